"""A measurement as one HTML page that needs nothing else: no script, no network, light and dark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from itertools import groupby
from pathlib import Path

from server.evaluation.abstention import Abstention
from server.evaluation.answering import AnswerSummary
from server.evaluation.baseline import ALPHA, Comparison
from server.evaluation.figures import Figures
from server.evaluation.plots import IntervalRow, bars, curve, intervals
from server.evaluation.results import BASE
from server.evaluation.summary import Difference, Estimate, GroupSummary
from server.evaluation.tables import (
    abstention_table,
    differences_table,
    groups_table,
    latency_table,
    pairs_table,
    runs_table,
)

STYLE = Path(__file__).with_name("report.css")
SHOWN = "recall@5"
"""The measure that is plotted; the tables have all."""
GROUPED_RUNS = ("vector", "graph", BASE)


def report(figures: Figures) -> str:
    """The whole page."""
    title = f"trivet eval: {figures.dataset}"
    sections = "".join(_sections(figures))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE.read_text(encoding='utf-8')}</style></head>"
        f"<body><main><h1>{escape(title)}</h1>{_lead(figures)}{sections}</main></body></html>\n"
    )


def _lead(figures: Figures) -> str:
    base = next((run for run in figures.runs if run.name == BASE), None)
    sentences = [f"{figures.questions:,} questions."]
    if base is not None:
        one = base.measures[SHOWN]
        sentences.append(
            f"What users get ({BASE}) has {SHOWN} {one.mean:.3f}; that it is so high or low may be these questions' "
            f"luck, which the 95 % interval of {one.low:.3f} to {one.high:.3f} allows for."
        )
    if figures.unscored:
        sentences.append(
            f"{figures.unscored:.1%} of the passages were not scored in time, so figures depend on the machine."
        )
    return f"<p>{escape(' '.join(sentences))}</p>"


def _sections(figures: Figures) -> Iterator[str]:
    if figures.comparison:
        yield _comparison(figures.comparison)
    yield _runs(figures)
    compared = {run.name: run.differences for run in figures.runs if run.differences}
    if compared:
        yield _against_base(compared)
    for key, groups in groupby(figures.groups, key=lambda group: group.key):
        yield _groups(key, list(groups))
    yield _latency(figures)
    if figures.abstention:
        yield _abstention(figures.abstention)
    if figures.answers:
        yield _answers(figures.answers)
    yield _section(
        "Settings and versions",
        f"<details><summary>All that can change a figure</summary>{pairs_table('Settings', figures.settings)}"
        f"{pairs_table('Versions', figures.versions)}</details>",
    )


def _section(title: str, *parts: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{''.join(parts)}</section>"


def _figure(caption: str, plot: str) -> str:
    return f"<figure><figcaption>{escape(caption)}</figcaption>{plot}</figure>"


def _runs(figures: Figures) -> str:
    rows = [IntervalRow(run.name, *_bounds(run.measures[SHOWN])) for run in figures.runs if run.kind != "ablation"]
    caption = f"{SHOWN} of each leg and stage, with 95 % intervals"
    return _section("Runs", _figure(caption, intervals(rows, name=caption)), runs_table(figures.runs))


def _bounds(one: Estimate) -> tuple[float, float, float]:
    return one.mean, one.low, one.high


def _against_base(compared: Mapping[str, Mapping[str, Difference]]) -> str:
    caption = f"Difference of {SHOWN} to {BASE}; hollow where chance explains it"
    return _section(
        f"Against {BASE}",
        "<p>The same questions for both, so that easy and hard ones cancel out. p is of the paired randomisation "
        "test, after Holm over all rows.</p>",
        _figure(caption, _difference_plot(compared, caption)),
        differences_table(f"Run minus {BASE}", compared),
    )


def _difference_plot(compared: Mapping[str, Mapping[str, Difference]], name: str) -> str:
    rows = [
        IntervalRow(run, one.mean, one.low, one.high, clear=one.adjusted_p < ALPHA)
        for run, by_measure in compared.items()
        for one in [by_measure[SHOWN]]
    ]
    return intervals(rows, name=name, signed=True)


def _groups(key: str, groups: list[GroupSummary]) -> str:
    values = {
        f"{group.value} ({group.questions:,})": {
            name: group.runs[name][SHOWN].mean for name in GROUPED_RUNS if name in group.runs
        }
        for group in groups
    }
    caption = f"{SHOWN} by {key}"
    return _section(
        f"Questions by {key}", _figure(caption, bars(values, name=caption)), groups_table(key, groups, SHOWN)
    )


def _latency(figures: Figures) -> str:
    values = {
        run.name: {"p50": run.p50_ms, "p95": run.p95_ms}
        for run in figures.runs
        if run.p50_ms is not None and run.p95_ms is not None
    }
    caption = "Milliseconds per question: half are faster than p50, 95 % faster than p95"
    return _section("Latency", _figure(caption, bars(values, name=caption, unit="ms")), latency_table(figures.runs))


def _abstention(found: Abstention) -> str:
    lines = {
        "unanswerable refused": [(one.false_refusals, one.recall) for one in found.curve],
        "precision": [(one.false_refusals, one.precision) for one in found.curve if one.precision is not None],
    }
    marks = {
        "as set": (found.configured.false_refusals, found.configured.recall),
        "at most 5 %": (found.at_most_5.false_refusals, found.at_most_5.recall),
    }
    caption = "What a higher threshold refuses rightly, and wrongly"
    plot = curve(lines, marks, name=caption, x="answerable questions refused", y="share")
    return _section(
        "Abstaining",
        f"<p>{found.answerable:,} answerable and {found.unanswerable:,} unanswerable questions. An answerable one "
        f"has the higher logit in {found.auroc:.1%} of the pairs (AUROC; 95 % interval {found.auroc_low:.3f} to "
        f"{found.auroc_high:.3f}; .5 is chance).</p>",
        _figure(caption, plot),
        abstention_table(found),
    )


def _answers(found: AnswerSummary) -> str:
    rows: dict[str, object] = {
        "questions": f"{found.questions:,}",
        "abstained": found.abstained,
        "contains an answer": found.contains,
        "F1": found.f1,
        "EM": found.exact,
        "answers that cite": f"{found.cited:,}",
        "first citation right": "–" if found.first_citation is None else found.first_citation,
        "all citations right": "–" if found.citations is None else found.citations,
    }
    return _section(
        "Extractive answers",
        "<p>Whole sentences of the pages, so F1 and EM are low by nature. A citation is right where its passage is "
        "gold or says an answer.</p>",
        pairs_table("Means over the questions with answers", rows),
    )


def _comparison(found: Comparison) -> str:
    said = "".join(f'<li class="bad">{escape(one)}</li>' for one in found.worse)
    verdict = f"<ul>{said}</ul>" if said else '<p class="good">Nothing is worse by more than chance explains.</p>'
    changes = {key: f"{before} → {now}" for key, (before, now) in found.settings.items()}
    caption = f"Difference of {SHOWN} to the measurement before; hollow where chance explains it"
    parts = [verdict]
    if found.runs:
        parts.append(_figure(caption, _difference_plot(found.runs, caption)))
        parts.append(differences_table("Now minus before", found.runs))
    if changes:
        parts.append(pairs_table("Settings and versions that differ", changes))
    return _section("Compared with before", *parts)
