"""Tables of the report: pure functions from figures to HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from server.evaluation.abstention import Abstention, AbstentionPoint
from server.evaluation.metrics import MEASURES
from server.evaluation.summary import Difference, Estimate, GroupSummary, RunSummary

Cell = str
"""Markup of one cell: escaped already."""


def table(caption: str, head: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    """The first cell of each row is its heading."""
    heading = "".join(f'<th scope="col">{escape(one)}</th>' for one in head)
    body = "".join(
        f'<tr><th scope="row">{row[0]}</th>{"".join(f"<td>{cell}</td>" for cell in row[1:])}</tr>' for row in rows
    )
    return (
        f'<div class="scroll"><table><caption>{escape(caption)}</caption><thead><tr>{heading}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def runs_table(runs: Sequence[RunSummary]) -> str:
    rows = [
        [
            f"{escape(run.name)} <small>{escape(run.says)}</small>",
            *(estimate(run.measures[measure]) for measure in MEASURES),
        ]
        for run in runs
    ]
    return table("Means over the questions, with 95 % intervals", ["run", *MEASURES], rows)


def differences_table(caption: str, compared: Mapping[str, Mapping[str, Difference]]) -> str:
    rows = [
        [escape(name), *(difference(by_measure[measure]) for measure in MEASURES)]
        for name, by_measure in compared.items()
    ]
    return table(caption, ["run", *MEASURES], rows)


def groups_table(key: str, groups: Sequence[GroupSummary], measure: str) -> str:
    names = list(groups[0].runs) if groups else []
    rows = [
        [escape(group.value), f"{group.questions:,}", *(estimate(group.runs[name][measure]) for name in names)]
        for group in groups
    ]
    return table(f"{measure} by {key}", [key, "questions", *names], rows)


def latency_table(runs: Sequence[RunSummary]) -> str:
    rows = [[escape(run.name), f"{run.p50_ms:,.1f}", f"{run.p95_ms:,.1f}"] for run in runs if run.p50_ms is not None]
    return table("Milliseconds per question, one after the other", ["run", "p50", "p95"], rows)


def abstention_table(found: Abstention) -> str:
    step = max(1, len(found.curve) // 20)
    rows = [
        _point("as set (answer.abstain_below)", found.configured),
        _point("at most 5 % false refusals", found.at_most_5),
        *(_point("", one) for one in found.curve[::step]),
    ]
    return table("What thresholds do", ["threshold", "precision", "recall", "false refusals", "which"], rows)


def _point(name: str, one: AbstentionPoint) -> list[Cell]:
    precision = "–" if one.precision is None else f"{one.precision:.3f}"
    return [f"{one.threshold:.2f}", precision, f"{one.recall:.3f}", f"{one.false_refusals:.3f}", name]


def pairs_table(caption: str, pairs: Mapping[str, object]) -> str:
    rows = [[escape(key), escape(str(value))] for key, value in pairs.items()]
    return table(caption, ["name", "value"], rows)


def estimate(one: Estimate) -> Cell:
    return f"{one.mean:.3f}<small>{one.low:.3f} … {one.high:.3f}</small>"


def difference(one: Difference) -> Cell:
    return f"{one.mean:+.3f}<small>{one.low:+.3f} … {one.high:+.3f}</small><small>p = {one.adjusted_p:.4f}</small>"
