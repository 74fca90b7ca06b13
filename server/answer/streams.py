"""Streams of a model's pieces: closing them for certain, and deadlines that no server can stretch."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from graph.errors import DependencyBusyError

LONGEST_PATIENCE = 5.0
"""Seconds that a busy server may ask us to wait; for more, the caller is told to come back."""

T = TypeVar("T")


@asynccontextmanager
async def closing(stream: AsyncIterator[T]) -> AsyncIterator[AsyncIterator[T]]:
    """The stream, closed at the end whatever happens, so that the work behind it stops at once."""
    try:
        yield stream
    finally:
        if isinstance(stream, AsyncGenerator):
            await stream.aclose()


class DeadlineError(TimeoutError):
    """Nothing came, or not everything, in time; `started` says which."""

    def __init__(self, seconds: float, *, started: bool) -> None:
        super().__init__(f"no end after {seconds:g} s" if started else f"no first token after {seconds:g} s")
        self.started = started


async def with_deadlines(
    stream: AsyncIterator[T], *, first_seconds: float, total_seconds: float
) -> AsyncGenerator[T, None]:
    """The same items; `DeadlineError` when the first or the last one is late. The reader's own time counts."""
    loop = asyncio.get_running_loop()
    begun = loop.time()
    started = False
    async with closing(stream):
        while True:
            seconds = total_seconds if started else min(first_seconds, total_seconds)
            try:
                async with asyncio.timeout_at(begun + seconds):
                    item = await anext(stream)
            except StopAsyncIteration:
                return
            except TimeoutError:
                raise DeadlineError(seconds, started=started) from None
            started = True
            yield item


async def patiently(start: Callable[[], AsyncIterator[T]]) -> AsyncGenerator[T, None]:
    """The stream; where the server is busy and asks for a short wait, once more after it."""
    try:
        async with closing(start()) as stream:
            async for item in stream:
                yield item
        return
    except DependencyBusyError as error:
        if error.retry_after > LONGEST_PATIENCE:
            raise
        await asyncio.sleep(error.retry_after)
    async with closing(start()) as stream:
        async for item in stream:
            yield item
