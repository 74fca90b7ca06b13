"""Streams of a model's pieces: closing them for certain, and deadlines that no server can stretch."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

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
