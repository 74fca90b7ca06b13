"""uvicorn, set up for this application."""

from __future__ import annotations

import asyncio
import math
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
from litestar import Litestar

from server.http.gate import Drain
from server.http.h11_protocol import PatientH11Protocol
from server.http.options import HttpOptions

KEEP_ALIVE_SECONDS = 15
"""httpx gives up an idle connection after 5 s; if we did so too, it would now and then send into a closed one."""
BACKSTOP_SECONDS = 5
"""What has not ended so long after it was cut is cancelled."""


def server_for(app: Litestar, options: HttpOptions, drain: Drain, ready: Callable[[], None]) -> DrainingServer:
    """uvicorn, set up for this application; it still has to be given its socket."""
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
    return DrainingServer(config, drain, options.drain_seconds, ready)


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
