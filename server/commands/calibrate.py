"""`trivet calibrate DIR`."""

from __future__ import annotations

import asyncio
from pathlib import Path

import rich_click as click

from server.commands.evaluations import Asked
from server.commands.options import common_options, options_of
from server.commands.progress import ingestion_progress
from server.commands.setup import settings_of
from server.commands.terminal import fields_of, print_json
from server.evaluation.calibration import as_toml
from server.evaluation.labelling import calibrate_on


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--index-dir",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Where the index is kept between runs; by default a cache folder.",
)
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Only the first N questions of each kind.")
@common_options
@click.pass_context
def command(context: click.Context, folder: Path, index_dir: Path | None, limit: int | None) -> None:
    """Find the thresholds of the models in use from a BEIR-style folder of labelled questions.

    Prints a piece of trivet.toml: what counts as noise, and when an answer is cautious or not given. At least 50
    questions with a relevant document are needed; questions in unanswerable.jsonl make the bounds better.
    """
    options = options_of(context)
    settings = settings_of(options)
    with ingestion_progress(folder.name) as show:
        calibrating = calibrate_on(
            folder, settings, index_dir=index_dir, limit=limit, on_progress=show, tell=Asked(folder.name)
        )
        found = asyncio.run(calibrating)
    toml = as_toml(
        found,
        dataset=folder.name,
        embedder=settings.embedder.name,
        reranker=settings.rerank.name if settings.rerank.enabled else "",
    )
    if options.json:
        print_json(fields_of(found, toml=toml))
    else:
        click.echo(toml, nl=False)
