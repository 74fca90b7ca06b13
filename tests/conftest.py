"""What all tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

DEFAULT_DATA = Path(__file__).parents[1] / "../shared/data"


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The shared data folder; a test that asks for it is skipped where there is none."""
    folder = Path(os.environ.get("TRIVET_DATA", DEFAULT_DATA)).resolve()
    if not folder.is_dir():
        pytest.skip(f"no shared data at {folder}; set TRIVET_DATA")
    return folder
