"""A Qdrant store to test, what to ask it, and a server in between that can say anything."""

from __future__ import annotations

import asyncio
import re
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
import pytest

from graph.errors import DependencyError, TrivetError
from graph.model import VectorPoint, VectorRankings, chunk_id
from graph.qdrant_server_store import QdrantServer

DIMENSION = 8
KEY = "hunter2-hunter2"
THEIRS = "what-the-server-said"
NOTHING = VectorRankings(fused=(), dense=(), sparse=())
CALLS: dict[str, Callable[[QdrantServer], Awaitable[Any]]] = {
    "search": lambda store: search(store),
    "ids": lambda store: store.ids("wiki"),
    "vectors": lambda store: store.vectors("wiki", [key(1)]),
    "weights": lambda store: store.weights("wiki", [key(1)]),
    "upsert": lambda store: store.upsert("wiki", points(2)),
    "delete": lambda store: store.delete("wiki", [key(99)]),
    "clear": lambda store: store.clear(),
}


def server(url: str, **options: Any) -> QdrantServer:
    return QdrantServer(
        url, **{"dimension": DIMENSION, "language": "english", "home": "h1", "seconds": 20.0, **options}
    )


def key(number: int) -> str:
    return chunk_id("w:page", f"n{number}", 0)


def points(count: int, *, dimension: int = DIMENSION, first: int = 0) -> list[VectorPoint]:
    numbers = np.random.default_rng(first)
    return [
        VectorPoint(
            chunk_id=key(number),
            dense=numbers.standard_normal(dimension).astype(np.float32),
            text=f"common word{number}",
            payload={"source": "w"},
        )
        for number in range(first, first + count)
    ]


async def search(store: QdrantServer, text: str = "common", dimension: int = DIMENSION) -> VectorRankings:
    return await store.search("wiki", dense=np.ones(dimension, np.float32), text=text, limit=5)


async def error_of(work: Awaitable[Any], kind: type[TrivetError]) -> str:
    """What it says: one sentence, without the key or the server's words, also in what a log would show of it."""
    with pytest.raises(kind) as caught:
        await work
    assert type(caught.value) is kind
    shown = "".join(traceback.format_exception(caught.value))
    assert KEY not in shown
    assert THEIRS not in shown
    message = str(caught.value)
    assert message.endswith(".")
    assert "\n" not in message
    if isinstance(caught.value, DependencyError):
        assert caught.value.dependency == "qdrant"
    return message


class Switch:
    """A TCP server before the stand-in that answers by itself where a test says what, and counts what it is asked."""

    def __init__(self, target: int) -> None:
        self._target = target
        self.answer: bytes | None = None
        self.times = 10**9
        self.asked: list[str] = []
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def say(self, status: int, body: bytes | str, **headers: str) -> None:
        content = body if isinstance(body, bytes) else body.encode()
        fields = {"Content-Length": str(len(content)), "Connection": "close", "Content-Type": "text/html", **headers}
        lines = [f"HTTP/1.1 {status} X", *(f"{name.replace('_', '-')}: {value}" for name, value in fields.items())]
        self.answer = "\r\n".join([*lines, "", ""]).encode() + content

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"(?i)content-length: (\d+)", head)
            body = await reader.readexactly(int(length[1])) if length else b""
            self.asked.append(head.split(b" HTTP/")[0].decode())
            if self.answer is not None and self.times > 0:
                self.times -= 1
                writer.write(self.answer)
            else:
                far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
                far_writer.write(head.replace(b"\r\n", b"\r\nConnection: close\r\n", 1) + body)
                writer.write(await far_reader.read())
                far_writer.close()
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def switched(target: int) -> AsyncIterator[Switch]:
    switch = Switch(target)
    listening = await asyncio.start_server(switch.talk, "127.0.0.1", 0)
    switch.port = listening.sockets[0].getsockname()[1]
    try:
        yield switch
    finally:
        listening.close()
