"""`trivet sync [NAME…]`."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping

import rich_click as click

from config.settings import Settings
from graph.errors import TrivetError
from ingestion.report import IngestReport
from server.commands.filling import follow_all
from server.commands.options import common_options, options_of
from server.commands.reports import print_report
from server.commands.setup import settings_of
from server.commands.terminal import Printer, fields_of, print_json
from server.exit_codes import ExitCode

UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
DURATION = re.compile(r"(\d{1,6})\s*([smhd]?)")
WATCH_SECONDS = 2.0
Done = Mapping[str, IngestReport | TrivetError | None]


class Duration(click.ParamType[float]):
    """`90`, `15m`, `2h`, `1d` → seconds."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        found = DURATION.fullmatch(str(value).strip().lower())
        if not found or not int(found[1]):
            self.fail(f"“{value}” is not a time like 90s, 15m, 2h or 1d.", param, ctx)
        return float(int(found[1]) * UNITS[found[2]])


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--every", type=Duration(), metavar="TIME", help="Look again after so long (15m, 2h), until stopped.")
@click.option("--watch", is_flag=True, help="Look every two seconds: for folders, which are only listed.")
@click.option("--whole", is_flag=True, help="Read all of each, whatever its feed says.")
@click.option("--retry", is_flag=True, help="Read only the pages that could not be read before.")
@common_options
@click.pass_context
def command(
    context: click.Context, names: tuple[str, ...], every: float | None, watch: bool, whole: bool, retry: bool
) -> ExitCode:
    """Bring the store up to date with the sources it was read from: those named, or all.

    Each is followed by its own change feed; where that does not reach back far enough, all of it is read. Pages that
    are gone at the source are removed, pages that could not be read are not. Exit code 5 means that something could
    not be read; `trivet status --failed` names the pages.
    """
    options = options_of(context)
    settings = settings_of(options)
    wait = WATCH_SECONDS if watch else every
    code = _once(settings, names, whole=whole, retry=retry, as_json=options.json)
    while wait is not None:
        time.sleep(wait)
        code = _once(settings, names, whole=False, retry=retry, as_json=options.json, quiet=True)
    return code


def _once(
    settings: Settings, names: tuple[str, ...], *, whole: bool, retry: bool, as_json: bool, quiet: bool = False
) -> ExitCode:
    done = asyncio.run(follow_all(settings, names, whole=whole, failed=retry))
    if as_json:
        print_json({"sources": {name: _plain(outcome) for name, outcome in done.items()}})
    else:
        _print(done, Printer(), retry=retry, quiet=quiet)
    failed = any(isinstance(each, TrivetError) or (each is not None and each.partial) for each in done.values())
    return ExitCode.PARTIAL if failed else ExitCode.OK


def _plain(outcome: IngestReport | TrivetError | None) -> object:
    if isinstance(outcome, TrivetError):
        return {"error": {"kind": outcome.kind, "message": str(outcome)}}
    return None if outcome is None else fields_of(outcome)


def _print(done: Done, out: Printer, *, retry: bool, quiet: bool) -> None:
    """`quiet`: only what has happened, for a run that looks again and again."""
    if not done:
        out.line("no source is registered; `trivet ingest PATH-OR-URL` registers one")
    for name, outcome in done.items():
        if isinstance(outcome, TrivetError):
            out.line((f"{name}: ", "bold red"), str(outcome))
        elif outcome is None:
            out.line(
                f"{name}: {'no page had failed' if retry else 'its pages are pushed, so there is nothing to follow'}"
            )
        elif not quiet or outcome.added or outcome.changed or outcome.deleted or outcome.partial:
            print_report(outcome, out)
