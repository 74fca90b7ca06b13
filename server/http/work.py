"""Work for a client: it ends when the client goes away, the deadline passes, or the server stops."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from anyio import CancelScope
from litestar.di import NamedDependency
from litestar.params import SkipValidation
from litestar.types import Receive

from server.http.answerer import Answerer
from server.http.gate import Drain
from server.http.given_answers import GivenAnswers
from server.http.metrics import Metrics
from server.http.options import HttpOptions
from server.http.problems import ClientGoneError, DeadlineError, Problem, log_error, problem_of
from server.http.requests import ApiRequest

T = TypeVar("T")

BUFFERED_EVENTS = 32
"""A reader that is slower than the model holds back the model, not our memory."""
CLOSE_SECONDS = 5.0
"""Cancelled work may take so long to close its connections."""


@dataclass(frozen=True, slots=True)
class Ping:
    """Nothing came for a while."""


@dataclass(frozen=True, slots=True)
class Fault:
    """The stream ends here, and why."""

    error: Exception

    def told(self) -> Problem:
        """What the client is told, once it is in the log."""
        problem = problem_of(self.error)
        log_error(self.error, problem)
        return problem


@dataclass(frozen=True, slots=True)
class _End:
    """The source has no more."""


PING = Ping()


async def finish(request: ApiRequest, work: Coroutine[Any, Any, T], *, seconds: float, drain: Drain) -> T:
    """The result of `work`, unless the client goes away first, `seconds` pass, or the server stops.

    Litestar lets the handler of a request that is not streamed run to its end, however long its client is gone.
    """
    task = asyncio.create_task(work)
    drain.track(task)
    gone = asyncio.create_task(_until_gone(request.receive))
    try:
        await asyncio.wait({task, gone}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            if task.cancelled():
                raise drain.error()
            return task.result()
        if gone.done():
            raise ClientGoneError("The client went away before its answer was ready.")
        raise DeadlineError(f"No answer within {seconds:g} seconds (server.request_seconds).")
    finally:
        gone.cancel()
        await _end(task)


async def _until_gone(receive: Receive) -> None:
    """The body has been read, so all that can still come is the disconnect."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _end(task: asyncio.Task[Any]) -> None:
    if task.done():
        return
    task.cancel()
    # Shielded: Litestar ends a stream by cancelling its scope, in which every await is cancelled at once.
    with CancelScope(shield=True):
        await asyncio.wait({task}, timeout=CLOSE_SECONDS)


async def relay(events: AsyncIterator[T], *, ping_seconds: float, drain: Drain) -> AsyncGenerator[T | Ping | Fault]:
    """The events, pings while there are none, and in place of an exception a last `Fault`.

    The source runs in a task of its own, from first to last, so that a timeout or a scope inside it holds.
    """
    queue: asyncio.Queue[T | Fault | _End] = asyncio.Queue(BUFFERED_EVENTS)
    pump = asyncio.create_task(_pump(events, queue, drain))
    drain.track(pump)
    try:
        while True:
            item = await _next(queue, ping_seconds)
            if isinstance(item, _End):
                return
            yield item
            if isinstance(item, Fault):
                return
    finally:
        await _end(pump)


async def _next(queue: asyncio.Queue[T], seconds: float) -> T | Ping:
    # anyio cannot cancel a task that is always ready to run: with a fast source it would outlive its client.
    await asyncio.sleep(0)
    try:
        async with asyncio.timeout(seconds):
            return await queue.get()
    except TimeoutError:
        return PING


async def _pump(events: AsyncIterator[T], queue: asyncio.Queue[T | Fault | _End], drain: Drain) -> None:
    try:
        async for event in events:
            await queue.put(event)
    except asyncio.CancelledError:
        if not drain.is_cut:
            raise
        await queue.put(Fault(drain.error()))
    except Exception as error:  # noqa: BLE001 - the one place where an unforeseen error becomes a stream's last event
        await queue.put(Fault(error))
    else:
        await queue.put(_End())
    finally:
        if isinstance(events, AsyncGenerator):
            await events.aclose()


async def _first(items: AsyncGenerator[T | Ping | Fault]) -> T | Ping | Fault:
    return await anext(items, PING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """What a handler works with."""

    answerer: Answerer
    options: HttpOptions
    drain: Drain
    metrics: Metrics
    given: GivenAnswers

    async def finish(self, request: ApiRequest, work: Coroutine[Any, Any, T]) -> T:
        return await finish(request, work, seconds=self.options.request_seconds, drain=self.drain)

    async def begin(self, request: ApiRequest, events: AsyncIterator[T]) -> AsyncGenerator[T | Ping | Fault]:
        """A stream whose first item is there, so that an error that comes first still has its own status."""
        items = relay(events, ping_seconds=self.options.ping_seconds, drain=self.drain)
        try:
            first = await self.finish(request, _first(items))
            if isinstance(first, Fault):
                raise first.error
        except BaseException:
            await items.aclose()
            raise
        return self._resume(first, items)

    async def _resume(
        self, first: T | Ping, items: AsyncGenerator[T | Ping | Fault]
    ) -> AsyncGenerator[T | Ping | Fault]:
        try:
            yield first
            async for item in items:
                if isinstance(item, Fault):
                    self.metrics.broke_off(problem_of(item.error).kind)
                yield item
        finally:
            await items.aclose()


ServingDependency = NamedDependency[SkipValidation[Serving]]
"""How a handler asks for it; it comes from the application, not from the request."""
