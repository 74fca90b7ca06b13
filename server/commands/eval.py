"""`trivet eval DIR`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import rich_click as click

from server.commands.options import common_options, options_of
from server.commands.progress import ingestion_progress
from server.commands.setup import settings_of
from server.commands.terminal import Printer, print_json
from server.evaluate import Run, evaluate


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--index-dir",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Where the index is kept between runs; by default a cache folder.",
)
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Only the first N questions.")
@common_options
@click.pass_context
def command(context: click.Context, folder: Path, index_dir: Path | None, limit: int | None) -> None:
    """Measure each leg and stage on a BEIR-style folder: corpus.jsonl, queries.jsonl, qrels/."""
    options = options_of(context)
    settings = settings_of(options)
    with ingestion_progress(folder.name) as show:
        measured = asyncio.run(evaluate(folder, settings, index_dir=index_dir, limit=limit, on_progress=show))
    if options.json:
        print_json(measured)
    else:
        _print_table(folder.name, cast(list[Run], measured["runs"]), Printer())


def _print_table(dataset: str, runs: Sequence[Run], out: Printer) -> None:
    out.line((dataset, "bold"))
    names = [name for name in runs[0] if name != "name"]
    out.line(f"{'run':<10}" + "".join(f"{name:>11}" for name in names))
    for run in runs:
        cells = (
            f"{value:.3f}" if isinstance(value, float) else f"{value}" for name, value in run.items() if name != "name"
        )
        out.line(f"{run['name']:<10}" + "".join(f"{cell:>11}" for cell in cells))
