"""What the tests know of the real services: where they are, and whether they must be there."""

from __future__ import annotations

import os

import pytest


def service(name: str) -> str:
    """A value that `tests.services.run start` printed; without it the test is skipped, or fails where required."""
    value = os.environ.get(name, "")
    if not value:
        reason = f"{name} is not set; see `python -m tests.services.run start`"
        if os.environ.get("TRIVET_REQUIRE_SERVICES") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    return value
