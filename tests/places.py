"""Where tests put stores."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

from graph.home import SOURCES_FILE
from graph.sqlite_registry import SqliteRegistry

MEMORY = Path("/dev/shm")
ENOUGH = 2**30


@contextmanager
def quick_folder() -> Iterator[Path]:
    """In memory where the system has room: stores wait for the disk at every commit, and tests need not."""
    in_memory = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ENOUGH
    with tempfile.TemporaryDirectory(dir=MEMORY if in_memory else None, prefix="trivet-test-") as folder:
        yield Path(folder)


def note_place(home: Path, name: str, place: Path) -> None:
    """A copied store follows the copy of its wiki, as `trivet ingest --moved` notes it."""
    with closing(SqliteRegistry(home / SOURCES_FILE)) as registry:
        source = registry.source(name)
        assert source is not None
        registry.put_source(replace(source, location=str(place)))
