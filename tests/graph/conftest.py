"""What the tests of this package share."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from tests.services.qdrant_stand_in import QdrantProcess, qdrant_process


@pytest.fixture(scope="session")
def shared() -> Iterator[QdrantProcess]:
    """A stand-in for Qdrant that all use; what kills it starts one of its own."""
    with qdrant_process() as process:
        yield process


@pytest.fixture
def prefix() -> str:
    """Of the names of a test's collections there."""
    return f"test-{uuid.uuid4().hex[:8]}"
