"""`trivet serve`."""

from __future__ import annotations

import rich_click as click

from server.commands.options import common_options, options_of
from server.commands.setup import settings_of
from server.serve import serve


@click.command()
@click.option("--host", metavar="ADDRESS", help="Where to listen; anything but loopback needs server.api_key.")
@click.option("--port", type=click.IntRange(0, 65535), help="Port to listen on; 0 takes a free one.")
@common_options
@click.pass_context
def command(context: click.Context, host: str | None, port: int | None) -> None:
    """Serve the HTTP API, the OpenAI-compatible endpoint and the API's page, until it is stopped."""
    options = options_of(context)
    if host is not None:
        options.sets["server.host"] = host
    if port is not None:
        options.sets["server.port"] = str(port)
    serve(settings_of(options))
