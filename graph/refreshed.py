"""A value that takes seconds to make, made anew beside those who still use the old one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Generic, TypeVar

T = TypeVar("T")
REST = 4.0
"""After making it for longer than the patience, so many times that long nothing is made: while a wiki is being filled
what is read from it changes all the time, and reading it must not take a core of its own."""


class Refreshed(Generic[T]):
    """Holds the last one. Safe to use from any thread."""

    def __init__(self, *, patience: float | None = None) -> None:
        """`patience`: seconds to wait for a new one before the old one is good enough; None: only the new one is."""
        self._patience = patience
        self._held: T | None = None
        self._lock = threading.Lock()
        self._maker: ThreadPoolExecutor | None = None
        self._under_way: Future[T] | None = None
        self._rested = 0.0

    def get(self, is_current: Callable[[T], bool], make: Callable[[], T]) -> T:
        """The one that is current, or one from before where that takes longer than the patience. Raises what `make`
        raises."""
        held = self._held
        if held is not None and is_current(held):
            return held
        if held is None or self._patience is None:
            with self._lock:  # so that a burst of callers makes it once
                if self._held is None or not is_current(self._held):
                    self._held = make()
                return self._held
        making = self._begin(make)
        if making is None or not wait([making], timeout=self._patience).done:
            return held
        return making.result()

    def close(self) -> None:
        """Waits for what is being made."""
        if self._maker is not None:
            self._maker.shutdown()

    def _begin(self, make: Callable[[], T]) -> Future[T] | None:
        """What is being made already, or is begun now; None while there is rest."""
        with self._lock:
            if self._under_way is not None and not self._under_way.done():
                return self._under_way
            if time.monotonic() < self._rested:
                return None
            if self._maker is None:
                self._maker = ThreadPoolExecutor(1, thread_name_prefix="refresh")
            self._under_way = self._maker.submit(self._make, make)
            return self._under_way

    def _make(self, make: Callable[[], T]) -> T:
        begun = time.monotonic()
        try:
            self._held = made = make()
            return made
        finally:
            ended = time.monotonic()
            if self._patience is not None and ended - begun > self._patience:
                self._rested = ended + REST * (ended - begun)
