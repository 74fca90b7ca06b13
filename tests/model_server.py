"""Stub model servers on 127.0.0.1 that speak the wire formats of Ollama 0.9.6 and of OpenAI, and can misbehave.

The formats were recorded from an Ollama on /api/chat and /v1/chat/completions.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

Wire = Callable[[Sequence[str], str], list[bytes]]


@dataclass(slots=True)
class Script:
    """What the server does with a request."""

    words: Sequence[str] = ("It", " is", " so", " [[1]].")
    finish: str = "stop"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    """Sent as it is, instead of the words."""
    wait_first: float = 0.0
    """Seconds before the head."""
    wait_each: float = 0.0
    die_after: int | None = None
    """Lines or events after which the connection is cut."""


@dataclass(slots=True)
class ModelServer:
    """A running stub."""

    scripts: list[Script]
    """One for each request; the last one serves all that follow."""
    port: int = 0
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    hung_up: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a client goes before its answer is whole."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


def ollama_lines(words: Sequence[str], finish: str) -> list[bytes]:
    def line(content: str, **more: object) -> bytes:
        part = {
            "model": "stub",
            "created_at": "2026-11-30T12:06:28.778720149Z",
            "message": {"role": "assistant", "content": content},
            "done": bool(more),
            **more,
        }
        return json.dumps(part).encode() + b"\n"

    end = {"done_reason": finish, "total_duration": 22, "prompt_eval_count": 12, "eval_count": len(words)}
    return [*(line(word) for word in words), line("", **end)]


def openai_events(words: Sequence[str], finish: str) -> list[bytes]:
    def event(choices: list[object], **more: object) -> bytes:
        chunk = {
            "id": "chatcmpl-799",
            "object": "chat.completion.chunk",
            "created": 1796040407,
            "model": "stub",
            "system_fingerprint": "fp_ollama",
            "choices": choices,
            **more,
        }
        return b"data: " + json.dumps(chunk, ensure_ascii=False).encode() + b"\n\n"

    def choice(content: str, reason: str | None) -> list[object]:
        return [{"index": 0, "delta": {"role": "assistant", "content": content}, "finish_reason": reason}]

    usage = {"prompt_tokens": 12, "completion_tokens": len(words), "total_tokens": 12 + len(words)}
    return [
        *(event(choice(word, None)) for word in words),
        event(choice("", finish)),
        event([], usage=usage),
        b"data: [DONE]\n\n",
    ]


@asynccontextmanager
async def serving(wire: Wire, *scripts: Script) -> AsyncIterator[ModelServer]:
    server = ModelServer(list(scripts) or [Script()])
    talking: set[asyncio.Task[None]] = set()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        talking.add(task)
        try:
            await _answer(server, wire, reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            talking.discard(task)
            writer.close()

    listening = await asyncio.start_server(talk, "127.0.0.1", 0)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        for task in talking:
            task.cancel()
        await asyncio.gather(*talking, return_exceptions=True)
        await listening.wait_closed()


async def _answer(server: ModelServer, wire: Wire, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    headers = {
        name.lower(): value for name, _, value in (line.partition(": ") for line in head.split("\r\n")[1:]) if name
    }
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    server.requests.append(json.loads(body))
    server.keys.append(headers.get("authorization", ""))
    script = server.scripts.pop(0) if len(server.scripts) > 1 else server.scripts[0]
    gone = asyncio.create_task(_watch(reader, server.hung_up))
    try:
        await asyncio.sleep(script.wait_first)
        await _speak(script, wire, writer)
        # Said all: from here on, leaving is no hanging up.
    finally:
        gone.cancel()


async def _watch(reader: asyncio.StreamReader, hung_up: asyncio.Event) -> None:
    if not await reader.read(1):
        hung_up.set()


async def _speak(script: Script, wire: Wire, writer: asyncio.StreamWriter) -> None:
    parts = [script.body] if script.body is not None else wire(script.words, script.finish)
    headers = {"Transfer-Encoding": "chunked", "Connection": "close", **script.headers}
    lines = [f"HTTP/1.1 {script.status} -", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    writer.write("\r\n".join(lines).encode())
    for count, part in enumerate(parts):
        if count == script.die_after:
            return
        await asyncio.sleep(script.wait_each if count else 0)
        if part:
            writer.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
        await writer.drain()
    writer.write(b"0\r\n\r\n")
    await writer.drain()
