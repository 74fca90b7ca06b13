"""When to leave a dependency alone: Retry-After, and a breaker that opens after a few failures in a row."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum

from graph.errors import DependencyBusyError, DependencyDownError, DependencyError

LONGEST_WAIT = 3600.0


class BreakerState(StrEnum):
    """Closed lets everything through, open nothing, half-open one trial."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half-open"


class Breaker:
    """Wrap each call in `with breaker.watch():`. One per dependency; for use on one event loop."""

    def __init__(
        self,
        dependency: str,
        *,
        failures: int = 3,
        cooldown: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`failures` in a row open it for `cooldown` seconds; a 429 opens it at once, for as long as it asks."""
        self.dependency = dependency
        self.late: asyncio.Task[None] | None = None
        """A call that goes on although nobody waits for it any more; one at a time."""
        self._allowed = failures
        self._cooldown = cooldown
        self._clock = clock
        self._failed = 0
        self._open_until = 0.0
        self._trial = False
        self._reason = ""

    @property
    def state(self) -> BreakerState:
        if not self._open_until:
            return BreakerState.CLOSED
        return BreakerState.OPEN if self._clock() < self._open_until else BreakerState.HALF_OPEN

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Raise `DependencyDownError` without a call while open; else see how the call ends.

        Only `DependencyError`s count. A cancelled call says nothing of the dependency.
        """
        trial = self._admit()
        try:
            yield
        except DependencyError as error:
            self.failed(error)
            raise
        else:
            self.succeeded()
        finally:
            if trial:
                self._trial = False

    def succeeded(self) -> None:
        self._failed = 0
        self._open_until = 0.0
        self._reason = ""

    def failed(self, error: DependencyError) -> None:
        was_trial = bool(self._open_until)
        self._failed += 1
        self._reason = str(error)
        if isinstance(error, DependencyBusyError):
            self._open_until = self._clock() + error.retry_after
        elif was_trial or self._failed >= self._allowed:
            self._open_until = self._clock() + self._cooldown

    def _admit(self) -> bool:
        """Whether this call is the trial of a half-open breaker."""
        state = self.state
        if state is BreakerState.OPEN:
            wait = math.ceil(self._open_until - self._clock())
            raise DependencyDownError(f"{self._reason} (not asked again for {wait} s)", dependency=self.dependency)
        if state is BreakerState.HALF_OPEN and self._trial:
            raise DependencyDownError(f"{self._reason} (being tried again)", dependency=self.dependency)
        if state is BreakerState.HALF_OPEN:
            self._trial = True
            return True
        return False


def retry_after(headers: Mapping[str, str], default: float = 5.0) -> float:
    """Seconds of a Retry-After header, given as a number or as a date; within an hour."""
    value = headers.get("retry-after", "").strip()
    if value.isascii() and value.isdigit():
        return min(float(value), LONGEST_WAIT)
    try:
        until = parsedate_to_datetime(value)
    except ValueError:
        return default
    if until.tzinfo is None:
        until = until.replace(tzinfo=UTC)
    return min(max((until - datetime.now(UTC)).total_seconds(), 0.0), LONGEST_WAIT)
