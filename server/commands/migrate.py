"""`trivet migrate --to servers|embedded`."""

from __future__ import annotations

import asyncio
import sys
import time

import rich_click as click

from ingestion.migrate import Moved
from server.commands.options import common_options, options_of
from server.commands.setup import settings_of
from server.commands.terminal import Printer, print_json
from server.exit_codes import ExitCode
from server.migration import Migration, Target, migrate_store

SECONDS_BETWEEN_LINES = 2.0


@click.command()
@click.option(
    "--to",
    "target",
    type=click.Choice(["servers", "embedded"]),
    required=True,
    help="The servers that are set (vectors.qdrant_url, graph.neo4j_url), or the home folder.",
)
@common_options
@click.pass_context
def command(context: click.Context, target: Target) -> ExitCode:
    """Move vectors and graph between the home folder and servers, without embedding or reading the wiki again.

    What was moved is compared with the manifest before the old copy is removed. A move that is cut short has
    changed nothing; run it again.
    """
    options = options_of(context)
    done = asyncio.run(migrate_store(settings_of(options), target, on_progress=_Lines()))
    if options.json:
        print_json(done)
    else:
        _print(done, target, Printer())
    return ExitCode.OK


class _Lines:
    """Progress on stderr, a line every two seconds."""

    def __init__(self) -> None:
        self._shown = time.monotonic()

    def __call__(self, moved: Moved) -> None:
        if time.monotonic() - self._shown >= SECONDS_BETWEEN_LINES:
            self._shown = time.monotonic()
            said = f"moved {moved.vectors:,} vectors, {moved.pages:,} pages of the graph, {moved.mentions:,} mentions"
            print(said, file=sys.stderr, flush=True)


def _print(done: Migration, target: Target, out: Printer) -> None:
    report = done.report
    if report is None:
        out.line(f"nothing to move: all is {'in the home folder' if target == 'embedded' else 'on the servers set'}")
        return
    out.line(
        (f"moved {' and '.join(done.moved)}", "green"),
        f": {report.pages:,} pages, {report.chunks:,} chunks, {report.entities:,} entities; all stores agree",
    )
    if done.left_behind:
        out.line(("the old copy could not be removed", "bold red"), f": {done.left_behind}")
    elif target == "embedded":
        out.line("Unset vectors.qdrant_url and graph.neo4j_url now.")
