"""`trivet sources`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import rich_click as click

from config.settings import Settings
from graph.registry import RegisteredSource
from ingestion.sources.detect import kinds
from server.commands.filling import serving_url
from server.commands.local import opened_library
from server.commands.options import common_options, options_of
from server.commands.remote import open_remote
from server.commands.setup import settings_of
from server.commands.terminal import Printer, print_json
from server.http.library_views import view_source
from server.status import registered_sources


@click.group(invoke_without_command=True)
@common_options
@click.pass_context
def command(context: click.Context) -> None:
    """List the wikis that are followed; `remove` takes one out, `kinds` says what can be read."""
    if context.invoked_subcommand is not None:
        return
    options = options_of(context)
    sources = registered_sources(settings_of(options).home)
    if options.json:
        print_json({"sources": [view_source(source) for source in sources]})
        return
    out = Printer()
    if not sources:
        out.line("no source is registered; `trivet ingest PATH-OR-URL` registers one")
    for source in sources:
        _print(source, out)


def _print(source: RegisteredSource, out: Printer) -> None:
    out.line((source.name, "bold"), f"  {source.kind}  {source.location}")
    out.line(f"last read {source.last_run or 'never'}", indent=4)
    if source.last_error:
        out.line(("failed: ", "bold red"), source.last_error, indent=4)


@command.command("remove")
@click.argument("name")
@common_options
@click.pass_context
def remove(context: click.Context, name: str) -> None:
    """Forget a source, and remove all its pages from the store."""
    options = options_of(context)
    removed = asyncio.run(_remove(settings_of(options), name))
    if options.json:
        print_json({"removed": removed})
    else:
        Printer().line(f"removed {name} and its {removed:,} pages")


async def _remove(settings: Settings, name: str) -> int:
    url = serving_url(settings)
    if url:
        async with open_remote(url, settings) as remote:
            job = await remote.finished(await remote.forget(name), lambda progress: None)
            return int(job.result.get("removed", 0))
    async with opened_library(settings, command="sources remove") as library:
        return await library.forget(name)


@command.command("kinds")
@common_options
@click.pass_context
def list_kinds(context: click.Context) -> None:
    """The kinds of wikis that can be read, as `--source` takes them."""
    known: Sequence[tuple[str, str]] = [(kind.name, kind.about) for kind in kinds().values()]
    if options_of(context).json:
        print_json({"kinds": dict(known)})
    else:
        Printer().pairs(known)
