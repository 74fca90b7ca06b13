"""All that a measurement shows, computed once for the terminal, `--json` and the report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from server.evaluation.abstention import Abstention, abstention
from server.evaluation.answering import AnswerSummary, summarise_answers
from server.evaluation.baseline import Comparison, compare
from server.evaluation.results import Evaluation
from server.evaluation.summary import GroupSummary, RunSummary, by_group, summarise

FlatRun = dict[str, str | int | float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What is not there was not asked for, or the set has no questions for it."""

    dataset: str
    questions: int
    runs: tuple[RunSummary, ...]
    groups: tuple[GroupSummary, ...]
    abstention: Abstention | None
    answers: AnswerSummary | None
    comparison: Comparison | None
    unscored: float
    settings: Mapping[str, object]
    versions: Mapping[str, str]


def figures_of(now: Evaluation, before: Evaluation | None = None) -> Figures:
    """`before`: what to compare with."""
    threshold = now.settings.get("answer.abstain_below")
    return Figures(
        dataset=now.dataset,
        questions=len(now.questions),
        runs=tuple(summarise(now.runs, now.questions)),
        groups=tuple(by_group(now.runs, now.questions)),
        abstention=abstention(
            now.answerable, now.unanswerable, threshold=threshold if isinstance(threshold, int | float) else 0.0
        ),
        answers=summarise_answers(now.answers),
        comparison=compare(before, now) if before else None,
        unscored=round(now.unscored, 4),
        settings=now.settings,
        versions=now.versions,
    )


def flat_run(run: RunSummary) -> FlatRun:
    """A run's means in one row."""
    row: FlatRun = {"name": run.name, "questions": run.questions}
    row.update({name: one.mean for name, one in run.measures.items()})
    if run.p50_ms is not None and run.p95_ms is not None:
        row |= {"p50_ms": run.p50_ms, "p95_ms": run.p95_ms}
    return row


def document(figures: Figures) -> dict[str, object]:
    """The object that `--json` prints."""
    return {
        "dataset": figures.dataset,
        "runs": [
            {**flat_run(run), "kind": run.kind, "intervals": run.measures, "differences": run.differences}
            for run in figures.runs
        ],
        "groups": figures.groups,
        "abstention": figures.abstention,
        "answers": figures.answers,
        "comparison": figures.comparison,
        "unscored": figures.unscored,
        "settings": figures.settings,
        "versions": figures.versions,
    }
