"""Server-sent events as our own bytes: LF line ends, no `id:` field."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import TypeVar

import msgspec
from litestar.response import Stream

from server.http.work import Fault, Ping

MEDIA_TYPE = "text/event-stream"
HEADERS = {
    "cache-control": "no-cache",
    # nginx would collect the stream otherwise.
    "x-accel-buffering": "no",
}
PING = b": ping\n\n"
DONE = b"data: [DONE]\n\n"
T = TypeVar("T")


def data_line(body: object) -> bytes:
    """One unnamed event; JSON has no line ends of its own."""
    return b"data: " + msgspec.json.encode(body) + b"\n\n"


def named_event(name: str, body: object) -> bytes:
    return b"event: " + name.encode() + b"\n" + data_line(body)


async def encoded(
    items: AsyncGenerator[T | Ping | Fault, None], event_of: Callable[[T], bytes]
) -> AsyncGenerator[bytes, None]:
    """Items of a stream as events, with signs of life between them and a fault as its last one."""
    async with aclosing(items):
        async for item in items:
            if isinstance(item, Ping):
                yield PING
            elif isinstance(item, Fault):
                yield named_event("error", item.told())
            else:
                yield event_of(item)


def event_stream(chunks: AsyncIterator[bytes]) -> Stream:
    """Litestar's ServerSentEvent writes CRLF, at which some clients stumble."""
    return Stream(chunks, media_type=MEDIA_TYPE, headers=HEADERS)
