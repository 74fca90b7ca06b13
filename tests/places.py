"""Where tests put stores."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MEMORY = Path("/dev/shm")
ENOUGH = 2**30


@contextmanager
def quick_folder() -> Iterator[Path]:
    """In memory where the system has room: stores wait for the disk at every commit, and tests need not."""
    in_memory = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ENOUGH
    with tempfile.TemporaryDirectory(dir=MEMORY if in_memory else None, prefix="trivet-test-") as folder:
        yield Path(folder)
