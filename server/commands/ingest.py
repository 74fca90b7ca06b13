"""`trivet ingest PATH-OR-URL`."""

from __future__ import annotations

import asyncio

import rich_click as click

from server.commands.filling import pairs, read_in
from server.commands.options import common_options, options_of
from server.commands.reports import print_report
from server.commands.setup import settings_of
from server.commands.terminal import Printer, fields_of, print_json
from server.exit_codes import ExitCode


@click.command()
@click.argument("location", metavar="PATH-OR-URL")
@click.option("--source", "kind", metavar="KIND", help="What is there, where it cannot be told from looking at it.")
@click.option("--name", metavar="NAME", help="What to call this wiki; by default the name of its file, folder or host.")
@click.option("--base-url", metavar="URL", help="Where the pages can be read, so that citations lead there.")
@click.option("--option", "given", metavar="KEY=VALUE", multiple=True, help="What only this kind of source knows.")
@click.option("--moved", is_flag=True, help="The wiki of this name is at another place now.")
@click.option("--prune", is_flag=True, help="Remove pages that the wiki no longer has.")
@click.option("--rebuild", is_flag=True, help="Empty the store first: needed after a change of embedding model.")
@common_options
@click.pass_context
def command(
    context: click.Context,
    location: str,
    kind: str | None,
    name: str | None,
    base_url: str | None,
    given: tuple[str, ...],
    moved: bool,
    prune: bool,
    rebuild: bool,
) -> ExitCode:
    """Read a wiki into the store, and register it for `trivet sync`.

    A MediaWiki (its dump or its address), a folder of Markdown, DokuWiki, HTML, text or PDF, a site, a forum: the kind
    is found by looking. A second run embeds only what has changed. An interrupted run goes on where it stopped.
    While a server holds the store, it does the work. Exit code 5 means that some pages could not be read; they are
    named.
    """
    options = options_of(context)
    report = asyncio.run(
        read_in(
            settings_of(options),
            location,
            name=name,
            kind=kind,
            base_url=base_url,
            options=pairs(given),
            moved=moved,
            prune=prune,
            rebuild=rebuild,
        )
    )
    if options.json:
        print_json(fields_of(report, chunks_per_second=round(report.chunks_per_second, 1)))
    else:
        print_report(report, Printer())
    return ExitCode.PARTIAL if report.partial else ExitCode.OK
