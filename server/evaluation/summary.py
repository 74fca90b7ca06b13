"""Figures of each run, how sure they are, and how they differ from the base's. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from server.evaluation.dataset import GROUP_KEYS, JudgedQuestion
from server.evaluation.metrics import MEASURES, percentile
from server.evaluation.resampling import bootstrap_means, holm, interval, sign_flip_p
from server.evaluation.results import BASE, Kind, Run

Scores = NDArray[np.float64]
"""(questions, measures), in the order of `MEASURES`."""
MOST_VALUES = 20
"""A key of the metadata with more values is no kind of question."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over the questions with its 95 % interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Difference:
    """A mean difference with its 95 % interval, and how often chance alone would give one as large."""

    mean: float
    low: float
    high: float
    p: float
    adjusted_p: float
    """After Holm, over all runs that are compared by this measure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """One run; `differences` are empty for the base."""

    name: str
    kind: Kind
    says: str
    questions: int
    measures: dict[str, Estimate]
    differences: dict[str, Difference] = field(default_factory=dict)
    p50_ms: float | None = None
    p95_ms: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSummary:
    """Questions of one kind; run → measure → estimate."""

    key: str
    value: str
    questions: int
    runs: dict[str, dict[str, Estimate]]


def scores_of(run: Run, questions: Sequence[JudgedQuestion]) -> Scores:
    """(questions, measures)"""
    return np.array(
        [
            [measure(ranking, judged.gold) for measure in MEASURES.values()]
            for ranking, judged in zip(run.documents, questions, strict=True)
        ]
    )


def summarise(runs: Sequence[Run], questions: Sequence[JudgedQuestion]) -> list[RunSummary]:
    """All runs over all questions, each compared with the base where there is one."""
    scores = {run.name: scores_of(run, questions) for run in runs}
    estimates = estimate(scores)
    compared = {name: one for name, one in scores.items() if name != BASE} if BASE in scores else {}
    differences = differ({name: one - scores[BASE] for name, one in compared.items()})
    return [
        RunSummary(
            name=run.name,
            kind=run.kind,
            says=run.says,
            questions=len(questions),
            measures=estimates[run.name],
            differences=differences.get(run.name, {}),
            p50_ms=round(percentile(run.milliseconds, 0.5), 1) if run.milliseconds else None,
            p95_ms=round(percentile(run.milliseconds, 0.95), 1) if run.milliseconds else None,
        )
        for run in runs
    ]


def estimate(scores: dict[str, Scores]) -> dict[str, dict[str, Estimate]]:
    """Run → measure → mean with its interval; all from the same resamples."""
    if not scores:
        return {}
    together = np.concatenate(list(scores.values()), axis=1)
    low, high = interval(bootstrap_means(together))
    rows = np.stack([together.mean(axis=0), low, high]).round(4).reshape(3, len(scores), len(MEASURES))
    return {
        name: {measure: Estimate(*rows[:, run, place].tolist()) for place, measure in enumerate(MEASURES)}
        for run, name in enumerate(scores)
    }


def differ(differences: dict[str, Scores]) -> dict[str, dict[str, Difference]]:
    """Run → measure → mean difference; `differences` are per question. A run's p is adjusted for the other runs."""
    if not differences:
        return {}
    together = np.concatenate(list(differences.values()), axis=1)
    low, high = interval(bootstrap_means(together))
    shape = (len(differences), len(MEASURES))
    p = sign_flip_p(together).reshape(shape)
    adjusted = np.stack([holm(p[:, place]) for place in range(len(MEASURES))], axis=1)
    rows = np.stack([together.mean(axis=0), low, high]).round(4).reshape(3, *shape)
    return {
        name: {
            measure: Difference(
                mean=float(rows[0, run, place]),
                low=float(rows[1, run, place]),
                high=float(rows[2, run, place]),
                p=round(float(p[run, place]), 5),
                adjusted_p=round(float(adjusted[run, place]), 5),
            )
            for place, measure in enumerate(MEASURES)
        }
        for run, name in enumerate(differences)
    }


def by_group(runs: Sequence[Run], questions: Sequence[JudgedQuestion]) -> list[GroupSummary]:
    """Each value of each key of the metadata that tells questions of this set apart."""
    scores = {run.name: scores_of(run, questions) for run in runs if run.kind != "ablation"}
    groups = []
    for key in GROUP_KEYS:
        values = sorted({judged.groups[key] for judged in questions if key in judged.groups})
        if not 2 <= len(values) <= MOST_VALUES:
            continue
        for value in values:
            rows = np.array([judged.groups.get(key) == value for judged in questions])
            estimates = estimate({name: one[rows] for name, one in scores.items()})
            groups.append(GroupSummary(key=key, value=value, questions=int(rows.sum()), runs=estimates))
    return groups
