"""The application on a real port, in a thread."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from config.settings import Settings
from server.app import create_app
from server.http.answerer import Answerer
from server.http.gate import Drain
from server.http.listener import bind, url_of
from server.http.options import HttpOptions
from server.http.uvicorn_server import DrainingServer, server_for
from tests.server.http.scripted import opening


@dataclass
class Running:
    """A server that listens."""

    url: str
    port: int
    server: DrainingServer
    drain: Drain

    def connect(self, timeout: float = 10.0) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=timeout)


@contextmanager
def running(answerer: Answerer, options: HttpOptions | None = None) -> Iterator[Running]:
    options = options or HttpOptions(drain_seconds=1.0)
    drain = Drain()
    listening = threading.Event()
    app = create_app(Settings(), open_answerer=opening(answerer), options=options, drain=drain)
    server = server_for(app, options, drain, listening.set)
    with bind("127.0.0.1", 0, has_key=False) as listener:
        port = listener.getsockname()[1]
        thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])))
        url = url_of(listener)
        thread.start()
        assert listening.wait(10)
        try:
            yield Running(url=url, port=port, server=server, drain=drain)
        finally:
            server.should_exit = True
            thread.join(20)
            assert not thread.is_alive()
