"""Figures as `--json` gives them."""

from __future__ import annotations

from server.evaluation.summary import RunSummary

FlatRun = dict[str, str | int | float]


def flat_run(run: RunSummary) -> FlatRun:
    """A run's means in one row."""
    row: FlatRun = {"name": run.name, "questions": run.questions}
    row.update({name: one.mean for name, one in run.measures.items()})
    if run.p50_ms is not None and run.p95_ms is not None:
        row |= {"p50_ms": run.p50_ms, "p95_ms": run.p95_ms}
    return row
