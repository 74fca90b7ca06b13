"""A measurement's figures in a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence

from server.commands.sentences import sentence
from server.commands.terminal import Printer
from server.evaluation.abstention import Abstention, AbstentionPoint
from server.evaluation.answering import AnswerSummary
from server.evaluation.baseline import Comparison
from server.evaluation.figures import Figures, FlatRun, flat_run
from server.evaluation.results import BASE
from server.evaluation.summary import Difference, RunSummary

SECONDS_BETWEEN_LINES = 10.0
SHOWN = ("recall@5", "ndcg@10")
"""The measures whose differences are printed; `--json` and the report have all."""


class Asked:
    """A line on stderr at most every ten seconds: measuring takes minutes."""

    def __init__(self, dataset: str) -> None:
        self._dataset = sentence(dataset)
        self._next = time.monotonic() + SECONDS_BETWEEN_LINES

    def __call__(self, what: str, done: int, total: int) -> None:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + SECONDS_BETWEEN_LINES
            print(f"{self._dataset}: {what} {done:,} of {total:,} questions", file=sys.stderr, flush=True)


def print_figures(figures: Figures, out: Printer) -> None:
    out.line((figures.dataset, "bold"))
    _print_table([flat_run(run) for run in figures.runs], out)
    _print_differences(figures.runs, out)
    if figures.abstention:
        _print_abstention(figures.abstention, out)
    if figures.answers:
        _print_answers(figures.answers, out)
    if figures.comparison:
        _print_comparison(figures.comparison, out)
    if figures.unscored:
        out.line()
        out.line(
            f"{figures.unscored:.1%} of the passages were not scored within rerank.budget_seconds, so figures depend "
            "on this machine's speed; `--set rerank.budget_seconds=60` measures without that."
        )


def _print_table(runs: Sequence[FlatRun], out: Printer) -> None:
    names = [name for name in dict.fromkeys(name for run in runs for name in run) if name != "name"]
    width = max(10, *(len(str(run["name"])) + 1 for run in runs))
    out.line(f"{'run':<{width}}" + "".join(f"{name:>11}" for name in names))
    for run in runs:
        cells = "".join(f"{_cell(name, run.get(name)):>11}" for name in names)
        out.line(f"{run['name']:<{width}}{cells}".rstrip())


def _cell(name: str, value: str | int | float | None) -> str:
    if isinstance(value, float):
        return f"{value:,.1f}" if name.endswith("_ms") else f"{value:.3f}"
    return "" if value is None else str(value)


def _print_differences(runs: Sequence[RunSummary], out: Printer) -> None:
    compared = {run.name: run.differences for run in runs if run.differences}
    if compared:
        out.heading(f"against {BASE}, with 95 % intervals and p after Holm")
        _print_each(compared, out)


def _print_each(compared: Mapping[str, Mapping[str, Difference]], out: Printer) -> None:
    width = max(10, *(len(name) + 1 for name in compared))
    for name, differences in compared.items():
        parts = [f"{measure} {_difference(differences[measure])}" for measure in SHOWN]
        out.line(f"{name:<{width}} {'   '.join(parts)}")


def _difference(one: Difference) -> str:
    return f"{one.mean:+.3f} [{one.low:+.3f}, {one.high:+.3f}] p={one.adjusted_p:.4f}"


def _print_abstention(found: Abstention, out: Printer) -> None:
    out.heading(f"abstaining, over {found.answerable:,} answerable and {found.unanswerable:,} unanswerable questions")
    out.line(f"AUROC {found.auroc:.3f} [{found.auroc_low:.3f}, {found.auroc_high:.3f}]")
    out.line(_point("answer.abstain_below as set", found.configured))
    out.line(_point("at most 5 % false refusals", found.at_most_5))
    if found.unscored:
        out.line(f"{found.unscored:,} questions had no logit in time and are left out")


def _point(name: str, one: AbstentionPoint) -> str:
    precision = "–" if one.precision is None else f"{one.precision:.3f}"
    return (
        f"{name}: {one.threshold:.2f}, precision {precision}, recall {one.recall:.3f}, "
        f"false refusals {one.false_refusals:.3f}"
    )


def _print_answers(found: AnswerSummary, out: Printer) -> None:
    out.heading(f"extractive answers to {found.questions:,} questions")
    out.line(
        f"abstained {found.abstained:.3f}, contains an answer {found.contains:.3f}, F1 {found.f1:.3f}, "
        f"EM {found.exact:.3f}"
    )
    if found.first_citation is not None and found.citations is not None:
        out.line(
            f"citation precision: the first {found.first_citation:.3f}, all {found.citations:.3f} "
            f"({found.cited:,} answers cite)"
        )


def _print_comparison(found: Comparison, out: Printer) -> None:
    out.heading("now minus before, with 95 % intervals and p after Holm")
    if found.runs:
        _print_each(found.runs, out)
    for key, (before, now) in found.settings.items():
        out.line(f"{key}: {before} → {now}", indent=2)
    if not found.worse:
        out.line(("nothing is worse by more than chance explains", "green"))
