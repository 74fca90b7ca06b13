"""`trivet eval DIR`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import rich_click as click

from config.settings import Settings
from graph.errors import InputError
from server.commands.evaluations import Asked, print_figures
from server.commands.options import common_options, options_of
from server.commands.progress import ingestion_progress
from server.commands.setup import settings_of
from server.commands.terminal import Printer, print_json
from server.evaluation.ablations import Ablation, available, named
from server.evaluation.asking import RUNS
from server.evaluation.baseline import Floor, check_comparable, load, save
from server.evaluation.dataset import corpus_fingerprint, read_questions
from server.evaluation.evaluate import evaluate
from server.evaluation.figures import Figures, document, figures_of
from server.evaluation.report import report
from server.evaluation.results import Evaluation
from server.exit_codes import ExitCode

FILE = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--index-dir",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Where the index is kept between runs; by default a cache folder.",
)
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Only the first N questions.")
@click.option("--ablations", "all_ablations", is_flag=True, help="Also change one factor of the search at a time.")
@click.option("--ablate", multiple=True, metavar="KEY=VALUE", help="A change of your own; may be repeated.")
@click.option("--answers", is_flag=True, help="Also check extractive answers, where the set has answers.")
@click.option(
    "--report", "report_file", type=FILE, metavar="FILE", help="Write all figures and plots as one HTML page."
)
@click.option("--save", "save_file", type=FILE, metavar="FILE", help="Keep every ranking, to compare with later.")
@click.option("--compare", "before_file", type=FILE, metavar="FILE", help="Compare with what --save has kept.")
@click.option(
    "--fail-below", "floors", multiple=True, metavar="MEASURE=VALUE", help="What must be reached, like recall@5=0.9."
)
@common_options
@click.pass_context
def command(
    context: click.Context,
    folder: Path,
    index_dir: Path | None,
    limit: int | None,
    all_ablations: bool,
    ablate: tuple[str, ...],
    answers: bool,
    report_file: Path | None,
    save_file: Path | None,
    before_file: Path | None,
    floors: tuple[str, ...],
) -> ExitCode:
    """Measure each leg and stage on a BEIR-style folder: corpus.jsonl, queries.jsonl, qrels/.

    Exit code 1 means that a run is below --fail-below, or worse than in --compare by more than chance explains.
    """
    options = options_of(context)
    settings = settings_of(options)
    # What can be wrong is found before minutes of measuring.
    changes = _ablations(settings, every=all_ablations, own=ablate)
    wanted = _floors(floors, changes)
    before = _before(before_file, folder, limit)
    _check_places(report_file, save_file)
    with ingestion_progress(folder.name) as show:
        measuring = evaluate(
            folder,
            settings,
            index_dir=index_dir,
            limit=limit,
            ablations=changes,
            with_answers=answers,
            on_progress=show,
            tell=Asked(folder.name),
        )
        measured = asyncio.run(measuring)
    if save_file:
        save(measured, save_file)
    figures = figures_of(measured, before)
    if report_file:
        report_file.write_text(report(figures), encoding="utf-8")
    if options.json:
        print_json(document(figures))
    else:
        print_figures(figures, Printer())
    return _verdict(figures, wanted)


def _floors(texts: Sequence[str], changes: Sequence[Ablation]) -> list[Floor]:
    floors = [Floor.read(text) for text in texts]
    for floor in floors:
        floor.check([*RUNS, *(change.name for change in changes)])
    return floors


def _ablations(settings: Settings, *, every: bool, own: Sequence[str]) -> list[Ablation]:
    """Each once, however often it was asked for."""
    wanted = [*(available(settings) if every else ()), *(named(pair, settings) for pair in own)]
    return list({ablation.name: ablation for ablation in wanted}.values())


def _before(path: Path | None, folder: Path, limit: int | None) -> Evaluation | None:
    if path is None:
        return None
    before = load(path)
    questions = read_questions(folder)[:limit]
    check_comparable(before, dataset=folder.name, corpus=corpus_fingerprint(folder), questions=questions, path=path)
    return before


def _check_places(*files: Path | None) -> None:
    for file in files:
        if file is not None and not file.absolute().parent.is_dir():
            raise InputError(f"{file} cannot be written: there is no folder {file.absolute().parent}.")


def _verdict(figures: Figures, floors: Sequence[Floor]) -> ExitCode:
    """What failed is named on stderr."""
    missed = [sentence for floor in floors if (sentence := floor.missed_by(figures.runs))]
    failed = [*missed, *(figures.comparison.worse if figures.comparison else ())]
    out = Printer(to_stderr=True)
    for sentence in failed:
        out.line((sentence, "bold red"))
    return ExitCode.FAILURE if failed else ExitCode.OK
