"""A small real HTTP server on 127.0.0.1 that can also misbehave."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpcore

HTML = {"Content-Type": "text/html; charset=utf-8"}
JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What came in. `target` is path and query as sent."""

    target: str
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What goes out; `stall` seconds pass before the body."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: HTML)
    body: bytes = b""
    stall: float = 0.0
    raw: bytes | None = None
    """Sent instead of all that, and the connection closed."""


Handler = Callable[[Request], Reply | Awaitable[Reply]]


@dataclass(slots=True)
class Site:
    """A running server: what it was asked, over how many connections."""

    port: int = 0
    connections: int = 0
    requests: list[Request] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@asynccontextmanager
async def serving(handle: Handler) -> AsyncIterator[Site]:
    site = Site()
    open_now: set[asyncio.Task[None]] = set()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        open_now.add(task)
        site.connections += 1
        try:
            while await _exchange(site, handle, reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            open_now.discard(task)
            writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    site.port = server.sockets[0].getsockname()[1]
    try:
        yield site
    finally:
        server.close()
        for task in open_now:
            task.cancel()
        await asyncio.gather(*open_now, return_exceptions=True)
        await server.wait_closed()


async def _exchange(site: Site, handle: Handler, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.rstrip("\r\n").split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    request = Request(target=first.split(" ")[1], headers=headers)
    site.requests.append(request)
    answer = handle(request)
    reply = answer if isinstance(answer, Reply) else await answer
    if reply.raw is not None:
        writer.write(reply.raw)
        await writer.drain()
        return False
    sent = {"Content-Length": str(len(reply.body)), **reply.headers}
    lines = [f"HTTP/1.1 {reply.status} -", *(f"{name}: {value}" for name, value in sent.items()), "", ""]
    writer.write("\r\n".join(lines).encode("latin-1"))
    await writer.drain()
    await asyncio.sleep(reply.stall)
    writer.write(reply.body)
    await writer.drain()
    return True


class ToSite(httpcore.AnyIOBackend):
    """Connects to one local port whatever the address, and remembers which addresses were asked for.

    It stands below the address check: so that a test can play a public site. Nothing answers at `dead`.
    """

    def __init__(self, port: int, dead: str = "") -> None:
        self._port = port
        self._dead = dead
        self.asked: list[str] = []

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        self.asked.append(f"{host}:{port}")
        if host == self._dead:
            raise httpcore.ConnectError("nobody there")
        return await super().connect_tcp("127.0.0.1", self._port, timeout, local_address, socket_options)


PUBLIC = "93.184.215.14"


async def public(_host: str, _port: int) -> list[str]:
    """A resolver to which every name is a public site."""
    return [PUBLIC]


def article(*paragraphs: str, title: str = "A page") -> bytes:
    body = "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs)
    return (
        f"<html><head><title>{title}</title></head><body><nav>Home About</nav><article><h1>{title}</h1>{body}"
        "</article></body></html>"
    ).encode()
