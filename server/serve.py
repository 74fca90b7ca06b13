"""`serve`: the application on a socket, from binding it to draining it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import closing, nullcontext

from pydantic import SecretStr

from config.settings import Section, Settings
from server.app import create_app
from server.http.answerer import OpenAnswerer
from server.http.backends_answerer import open_answerer as open_over_backends
from server.http.gate import Drain
from server.http.listener import bind, url_of
from server.http.options import HttpOptions
from server.http.uvicorn_server import server_for
from server.logs import set_up_logging


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
    set_up_logging(secret_values=secrets_of(settings))
    with closing(bind(settings.server.host, settings.server.port, has_key=bool(options.api_key))) as listener:
        asyncio.run(_serve(settings, options, open_answerer, listener, on_ready or _print_url))


def secrets_of(settings: Settings) -> Iterator[str]:
    """The values of all settings that are secrets, whichever section they stand in."""
    for _, section in settings:
        for _, value in section if isinstance(section, Section) else ():
            if isinstance(value, SecretStr):
                yield value.get_secret_value()


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

        await server_for(app, options, drain, ready).serve(sockets=[listener])
