"""`trivet verify`."""

from __future__ import annotations

import asyncio

import rich_click as click

from config.settings import Settings
from ingestion.verify import VerifyReport, repair, verify
from server.commands.local import opened
from server.commands.options import common_options, options_of
from server.commands.setup import settings_of
from server.commands.terminal import Printer, fields_of, print_json
from server.exit_codes import ExitCode
from server.library import take_turn
from server.research.shelf_check import with_kept


@click.command()
@click.option(
    "--repair", "mend", is_flag=True, help="Bring vectors and graph in line with the manifest; make what is lacking."
)
@common_options
@click.pass_context
def command(context: click.Context, mend: bool) -> ExitCode:
    """Compare manifest, vectors, graph and what is kept of research, and count every disagreement.

    Exit code 1 means that there are some (left, with --repair).
    """
    options = options_of(context)
    report = asyncio.run(_verify(settings_of(options), mend=mend))
    if options.json:
        print_json(fields_of(report, clean=report.clean))
    else:
        _print(report, Printer())
    return ExitCode.OK if report.clean else ExitCode.FAILURE


async def _verify(settings: Settings, *, mend: bool) -> VerifyReport:
    command = "verify --repair" if mend else "verify"
    async with opened(settings, command=command) as backends:
        # A worker in the midst of a job would be undone by a repair, and what it is writing counted as disagreeing.
        with take_turn(settings.home, command=command):
            report = await (repair(backends.knowledge, settings.ingestion) if mend else verify(backends.knowledge))
            return await with_kept(report, backends.shelf, mend=mend)


def _print(report: VerifyReport, out: Printer) -> None:
    kept = f", {report.kept:,} passages of research and approved facts" if report.kept else ""
    out.line(f"compared {report.pages:,} pages, {report.chunks:,} chunks, {report.entities:,} entities{kept}")
    if report.clean:
        out.line(("they agree", "green"))
        return
    for found in report.disagreements:
        out.line((f"{found.count:,} {found.kind}", "bold red"), f": {', '.join(found.examples)}")
    out.line("`trivet verify --repair` mends them.")
