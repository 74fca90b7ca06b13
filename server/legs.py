"""What each leg runs under: a deadline, and a guard that turns its failure into its status."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

import structlog

from graph.errors import TrivetError

if TYPE_CHECKING:
    from collections.abc import Iterator

T = TypeVar("T")
OK = "ok"
OFF = "off"
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class LegResult(Generic[T]):
    """A leg's findings, or None and why."""

    found: T | None
    status: str


async def guarded(name: str, leg: Coroutine[None, None, T], *, seconds: float) -> LegResult[T]:
    """Run a leg; whatever goes wrong in it is named and never fails the answer (mission.md §4.1)."""
    try:
        async with asyncio.timeout(seconds):
            return LegResult(await leg, OK)
    except TimeoutError:
        return LegResult(None, f"timeout after {seconds:g} s")
    except TrivetError as error:
        return LegResult(None, f"unavailable: {error}")
    except Exception as error:
        log.exception("leg failed", leg=name)
        return LegResult(None, f"failed: {type(error).__name__}")


@dataclass(slots=True)
class Stopwatch:
    """Milliseconds per stage of one question."""

    milliseconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        started = time.perf_counter()
        try:
            yield
        finally:
            self.milliseconds[name] = round((time.perf_counter() - started) * 1000, 2)
