"""Connects only to addresses that were checked after the name was resolved."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpcore

from server.web.addresses import AddressError, address_refusal

CONNECT_SECONDS = 3.0
"""For each address of a host."""

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Host and port to IP addresses, as the operating system would."""


class SystemResolver:
    """The operating system's resolver, in threads of its own: a hanging name server must not starve other work."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(8, thread_name_prefix="trivet-dns")

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        def ask() -> list[str]:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            return list(dict.fromkeys(str(entry[4][0]) for entry in found))

        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, ask)
        except UnicodeError as error:
            raise OSError(f"{host!r} is not a name") from error

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


class CheckedNetwork(httpcore.AsyncNetworkBackend):
    """Resolves a host itself, refuses it if any of its addresses is not public, and connects to what it checked."""

    def __init__(self, resolve: Resolve, backend: httpcore.AsyncNetworkBackend, *, allow_private: bool) -> None:
        self._resolve = resolve
        self._backend = backend
        self._allow_private = allow_private

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        try:
            addresses = await self._resolve(host, port)
        except OSError as error:
            raise httpcore.ConnectError(f"{host} is not known") from error
        for address in addresses:
            if why := address_refusal(address, allow_private=self._allow_private):
                raise AddressError(host, f"{why} ({address})")
        failure: Exception = httpcore.ConnectError(f"{host} has no address")
        for address in addresses:
            try:
                stream = await self._backend.connect_tcp(address, port, CONNECT_SECONDS, local_address, socket_options)
                return _ClosedOnCancel(stream)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure

    async def sleep(self, seconds: float) -> None:
        await self._backend.sleep(seconds)

    def close(self) -> None:
        if isinstance(self._resolve, SystemResolver):
            self._resolve.close()


class _ClosedOnCancel(httpcore.AsyncNetworkStream):
    """httpcore forgets a connection that is cancelled in the middle of its TLS handshake; this one is closed."""

    def __init__(self, stream: httpcore.AsyncNetworkStream) -> None:
        self._stream = stream

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.AsyncNetworkStream:
        try:
            return await self._stream.start_tls(ssl_context, server_hostname, timeout)
        except asyncio.CancelledError:
            await self._stream.aclose()
            raise

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return await self._stream.read(max_bytes, timeout)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._stream.aclose()

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
