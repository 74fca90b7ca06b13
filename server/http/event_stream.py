"""Server-sent events as our own bytes: LF line ends, no `id:` field."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec
from litestar.response import Stream

MEDIA_TYPE = "text/event-stream"
HEADERS = {
    "cache-control": "no-cache",
    # nginx would collect the stream otherwise.
    "x-accel-buffering": "no",
}
PING = b": ping\n\n"
DONE = b"data: [DONE]\n\n"


def data_line(body: object) -> bytes:
    """One unnamed event; JSON has no line ends of its own."""
    return b"data: " + msgspec.json.encode(body) + b"\n\n"


def named_event(name: str, body: object) -> bytes:
    return b"event: " + name.encode() + b"\n" + data_line(body)


def event_stream(chunks: AsyncIterator[bytes]) -> Stream:
    """Litestar's ServerSentEvent writes CRLF, at which some clients stumble."""
    return Stream(chunks, media_type=MEDIA_TYPE, headers=HEADERS)
