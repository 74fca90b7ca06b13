"""A turn that processes take by a file's lock: one waits until the other is done, or gone."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from graph.errors import StoreFullError


@contextmanager
def file_turn(path: Path) -> Iterator[None]:
    """Blocks until it is ours; the kernel drops it with its process. The file stays, and says nothing."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    except OSError as error:
        raise StoreFullError(f"Cannot lock {path} ({error.strerror}); make it writable, or free some space.") from error
    try:
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)  # also for a forked child that has a copy
        os.close(descriptor)
