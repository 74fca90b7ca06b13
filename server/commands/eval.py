"""`trivet eval DIR`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import rich_click as click

from server.commands.options import common_options, options_of
from server.commands.progress import ingestion_progress
from server.commands.setup import settings_of
from server.commands.terminal import Printer, print_json
from server.evaluation.evaluate import evaluate
from server.evaluation.figures import FlatRun, flat_run
from server.evaluation.summary import summarise


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
    runs = [flat_run(run) for run in summarise(measured.runs, measured.questions)]
    if options.json:
        print_json({"dataset": measured.dataset, "runs": runs})
    else:
        _print_table(folder.name, runs, Printer())


def _print_table(dataset: str, runs: Sequence[FlatRun], out: Printer) -> None:
    out.line((dataset, "bold"))
    names = [name for name in dict.fromkeys(name for run in runs for name in run) if name != "name"]
    width = max(10, *(len(str(run["name"])) + 1 for run in runs))
    out.line(f"{'run':<{width}}" + "".join(f"{name:>11}" for name in names))
    for run in runs:
        cells = "".join(f"{_cell(run.get(name)):>11}" for name in names)
        out.line(f"{run['name']:<{width}}{cells}".rstrip())


def _cell(value: str | int | float | None) -> str:
    return "" if value is None else f"{value:.3f}" if isinstance(value, float) else str(value)
