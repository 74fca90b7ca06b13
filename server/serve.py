"""`serve`: the application on a socket, from binding it to draining it."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import math
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext

import uvicorn

from config.settings import Settings
from graph.errors import SettingsError
from server.app import create_app
from server.http.answerer import OpenAnswerer
from server.http.backends_answerer import open_answerer as open_over_backends
from server.http.gate import Drain
from server.http.h11_protocol import PatientH11Protocol
from server.http.options import HttpOptions
from server.logs import set_up_logging

KEEP_ALIVE_SECONDS = 15
"""httpx gives up an idle connection after 5 s; if we did so too, it would now and then send into a closed one."""
BACKSTOP_SECONDS = 5
"""What has not ended so long after it was cut is cancelled."""

Address = tuple[str, int] | tuple[str, int, int, int]


def serve(
    settings: Settings,
    *,
    open_answerer: OpenAnswerer = open_over_backends,
    options: HttpOptions | None = None,
    on_ready: Callable[[str], None] | None = None,
) -> None:
    """Serve until SIGTERM or Ctrl-C. `on_ready` gets the URL; without one it is printed.

    Raises `SettingsError` where the address cannot or must not be listened on, and what opening the store raises.
    """
    options = options or HttpOptions.from_settings(settings)
    keys = (settings.server.api_key, settings.llm.api_key)
    set_up_logging(secret_values=[key.get_secret_value() for key in keys])
    with closing(bind(settings.server.host, settings.server.port, has_key=bool(options.api_key))) as listener:
        asyncio.run(_serve(settings, options, open_answerer, listener, on_ready or _print_url))


def bind(host: str, port: int, *, has_key: bool) -> socket.socket:
    """A bound socket that does not listen yet, so that nobody waits on a server that never comes up."""
    family, address = _resolve(host, port)
    if not has_key and not _is_loopback(address[0]):
        raise SettingsError(
            f"server.host: {host} can be reached from other machines, so it needs a key: set server.api_key "
            "(TRIVET_SERVER__API_KEY), or listen on 127.0.0.1"
        )
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise SettingsError(_bind_fault(error, host, port)) from None
    return listener


def _resolve(host: str, port: int) -> tuple[int, Address]:
    try:
        found = socket.getaddrinfo(host or "0.0.0.0", port, type=socket.SOCK_STREAM)  # noqa: S104 - checked by `bind`
    except (OSError, UnicodeError) as error:
        raise SettingsError(f"server.host: {host!r} is not an address of this machine: {error}") from None
    family, _, _, _, address = found[0]
    return family, address  # type: ignore[return-value]


def _is_loopback(host: str) -> bool:
    address = ipaddress.ip_address(host.partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def _bind_fault(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"server.port: {port} on {host} is in use already; choose another, or 0 for a free one"
    if error.errno == errno.EACCES:
        return f"server.port: {port} may only be used by root; choose one above 1023"
    return f"server.host: cannot listen on {host}:{port}: {error.strerror}"


def url_of(listener: socket.socket) -> str:
    """Where this machine reaches it."""
    host, port = listener.getsockname()[:2]
    address = ipaddress.ip_address(host)
    if address.is_unspecified:
        host = "127.0.0.1" if address.version == 4 else "::1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _print_url(url: str) -> None:
    print(f"Trivet is ready at {url}", flush=True)


async def _serve(
    settings: Settings,
    options: HttpOptions,
    open_answerer: OpenAnswerer,
    listener: socket.socket,
    on_ready: Callable[[str], None],
) -> None:
    drain = Drain()
    # Opened here, not in the lifespan: there uvicorn makes a traceback and an exit code of its own of an error.
    async with open_answerer(settings) as answerer:
        app = create_app(settings, open_answerer=lambda _: nullcontext(answerer), options=options, drain=drain)

        def ready() -> None:
            answerer.announce(url_of(listener))
            on_ready(url_of(listener))

        config = uvicorn.Config(
            app,
            http=protocol_with(options.head_seconds),
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=math.ceil(options.drain_seconds + BACKSTOP_SECONDS),
        )
        await DrainingServer(config, drain, options.drain_seconds, ready).serve(sockets=[listener])


def protocol_with(seconds: float) -> type[PatientH11Protocol]:
    """uvicorn makes the protocol itself, so what it should know stands in the class."""
    return type("PatientH11Protocol", (PatientH11Protocol,), {"head_seconds": seconds})


class DrainingServer(uvicorn.Server):
    """uvicorn's server, which says when it listens, gives work under way a limit, and ends with exit code 0."""

    def __init__(self, config: uvicorn.Config, drain: Drain, seconds: float, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._drain = drain
        self._seconds = seconds
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        limit = asyncio.get_running_loop().call_later(self._seconds, self._drain.cut)
        try:
            await super().shutdown(sockets)
        finally:
            limit.cancel()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """uvicorn raises the signal again when it is done, which ends the process as if it had not been handled."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
