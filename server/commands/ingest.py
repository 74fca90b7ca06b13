"""`trivet ingest PATH`."""

from __future__ import annotations

import asyncio
from pathlib import Path

import rich_click as click

from config.settings import Settings
from graph.protocols import Source
from ingestion.ingest import ingest
from ingestion.report import IngestReport
from ingestion.sources.detect import open_source
from server.commands.local import opened
from server.commands.options import common_options, options_of
from server.commands.progress import ingestion_progress
from server.commands.reports import print_report
from server.commands.setup import settings_of
from server.commands.terminal import Printer, fields_of, print_json
from server.exit_codes import ExitCode


@click.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--source", "kind", metavar="KIND", help="What PATH is, where it cannot be told from looking at it.")
@click.option("--name", metavar="NAME", help="What to call this wiki; by default the name of PATH.")
@click.option("--base-url", metavar="URL", help="Where the pages can be read, so that citations lead there.")
@click.option("--prune", is_flag=True, help="Remove pages that the wiki no longer has.")
@click.option("--rebuild", is_flag=True, help="Empty the store first: needed after a change of embedding model.")
@common_options
@click.pass_context
def command(
    context: click.Context,
    path: Path,
    kind: str | None,
    name: str | None,
    base_url: str | None,
    prune: bool,
    rebuild: bool,
) -> ExitCode:
    """Read a wiki into the store: a MediaWiki dump (.xml, .bz2, .gz) or a folder of Markdown.

    A second run embeds only what has changed. An interrupted run goes on where it stopped.
    Exit code 5 means that some pages could not be read; they are named.
    """
    options = options_of(context)
    settings = settings_of(options)
    source = open_source(path, name=name, kind=kind, base_url=base_url)
    report = asyncio.run(run(source, settings, prune=prune, rebuild=rebuild))
    if options.json:
        print_json(fields_of(report, chunks_per_second=round(report.chunks_per_second, 1)))
    else:
        print_report(report, Printer())
    return ExitCode.PARTIAL if report.partial else ExitCode.OK


async def run(source: Source, settings: Settings, *, prune: bool = False, rebuild: bool = False) -> IngestReport:
    async with opened(settings, command="ingest", rebuild=rebuild) as backends:
        with ingestion_progress(source.name) as show:
            return await ingest(source, backends.knowledge, settings.ingestion, prune=prune, on_progress=show)
