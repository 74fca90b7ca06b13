"""What each leg runs under: a deadline, and a guard that turns its failure into its status."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

import structlog

from graph.breaker import Breaker
from graph.errors import DependencyDownError, TrivetError

if TYPE_CHECKING:
    from collections.abc import Iterator

T = TypeVar("T")
OK = "ok"
OFF = "off"
FILTERED = f"{OFF}: a filter is set, which only pages of the wiki can pass"
"""A page of the web has no source, category or type, and mostly neither a language nor a date that can be relied on."""
LATE_SECONDS = 20.0
"""How long a leg goes on that was too late for its question."""
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class LegResult(Generic[T]):
    """A leg's findings, or None and why."""

    found: T | None
    status: str
    milliseconds: float = 0.0


async def guarded(
    name: str, leg: Coroutine[None, None, T], *, seconds: float, breaker: Breaker | None = None
) -> LegResult[T]:
    """Run a leg; whatever goes wrong in it is named and never fails the answer (mission.md §4.1).

    `breaker`: of the service the leg needs. While it is open the leg is not run, so that a dead service costs a
    question nothing.
    """
    watch, found, status = Stopwatch(), None, OK
    with watch.stage(name):
        try:
            with breaker.watch() if breaker else nullcontext():
                found = await _in_time(leg, name, seconds, breaker)
        except SlowError:
            status = f"timeout after {seconds:g} s"
        except TrivetError as error:
            leg.close()  # where the breaker did not let it run
            status = f"unavailable: {error}"
        except Exception as error:
            log.exception("leg failed", leg=name)
            status = f"failed: {type(error).__name__}"
    return LegResult(found, status, watch.milliseconds[name])


class SlowError(DependencyDownError):
    """A leg that ran out of time: to its breaker, a service that is down."""


async def _in_time(leg: Coroutine[None, None, T], name: str, seconds: float, breaker: Breaker | None) -> T:
    work = asyncio.create_task(leg)
    goes_on = False
    try:
        if (await asyncio.wait({work}, timeout=seconds))[0]:
            return work.result()
        if breaker is not None and (breaker.late is None or breaker.late.done()):
            goes_on = True
            breaker.late = asyncio.create_task(_go_on(work, name, breaker))
        raise SlowError(f"timeout after {seconds:g} s", dependency=name)
    finally:
        if not goes_on and not work.done():
            work.cancel()
            await asyncio.wait({work})


async def _go_on(work: asyncio.Task[T], name: str, breaker: Breaker) -> None:
    """Without its question: a service that has just come up takes longer than a leg may for the first thing it is
    asked. Cut each time, and left alone in between, it would not be used again for long after its return."""
    try:
        async with asyncio.timeout(LATE_SECONDS):
            await work
    except (TrivetError, TimeoutError):
        return
    except Exception:
        log.exception("leg failed", leg=name)
        return
    breaker.succeeded()


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
