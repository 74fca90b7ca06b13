"""The report: a page on its own, whose plots stay in their frames and whose numbers are in tables."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.evaluation.figures import figures_of
from server.evaluation.plots import WIDTH, IntervalRow, bars, curve, intervals, ticks
from server.evaluation.report import report
from server.evaluation.results import Confidence, Run
from tests.server.evaluation.test_baseline import measured, ranked

SVG = "{http://www.w3.org/2000/svg}"
NUMBERS = st.floats(-1, 1, allow_nan=False)


def checked(markup: str) -> ElementTree.Element:
    """Well-formed, named, and with all shapes inside its frame."""
    image = ElementTree.fromstring(markup)
    assert image.get("role") == "img"
    assert image.get("aria-label")
    height = float(str(image.get("viewBox")).split()[3])
    for shape in image.iter():
        for name, most in (("x", WIDTH), ("x1", WIDTH), ("x2", WIDTH), ("cx", WIDTH), ("y", height), ("cy", height)):
            if shape.get(name) is not None:
                assert 0 <= float(str(shape.get(name))) <= most
        if shape.tag == f"{SVG}rect":
            assert float(str(shape.get("width"))) >= 0
    return image


@given(st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS).map(sorted), min_size=1, max_size=5), st.booleans())
def test_intervals_stay_in_their_frame(rows: list[list[float]], signed: bool) -> None:
    drawn = intervals([IntervalRow("<a>", mean, low, high) for low, mean, high in rows], name="x & y", signed=signed)
    image = checked(drawn)
    assert len(list(image.iter(f"{SVG}circle"))) == len(rows)


@given(st.dictionaries(st.sampled_from(["a", "b"]), st.dictionaries(st.sampled_from("xyz"), st.floats(0, 1e6))))
def test_bars_stay_in_their_frame(groups: dict[str, dict[str, float]]) -> None:
    checked(bars(groups, name="bars"))


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), max_size=8))
def test_curves_stay_in_their_frame(points: list[tuple[float, float]]) -> None:
    checked(curve({"a": points}, {"here": (0.5, 0.5)}, name="curve", x="x", y="y"))


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1.0]), (-0.1, 0.12, [-0.1, -0.05, 0, 0.05, 0.1]), (3, 3, [3])],
)
def test_ticks_are_round(low: float, high: float, expected: list[float]) -> None:
    assert ticks(low, high) == pytest.approx(expected)


@given(st.floats(-1e3, 1e3), st.floats(1e-4, 1e4))
def test_ticks_are_few_and_inside(low: float, width: float) -> None:
    found = ticks(low, low + width)
    assert 1 <= len(found) <= 7
    assert all(low - 1e-6 * width <= tick <= low + width * (1 + 1e-6) for tick in found)


def test_a_report_has_everything_in_one_file() -> None:
    before = measured()
    now = replace(
        measured(reranked=10),
        runs=(*measured(reranked=10).runs, Run(name="no-<graph>", kind="ablation", documents=ranked(9))),
        unanswerable=(Confidence(best=-2.0, candidates=3),) * 5,
        unscored=0.1,
    )
    page = report(figures_of(now, before))
    assert re.findall(r"<h2>([^<]+)</h2>", page) == [
        "Compared with before",
        "Runs",
        "Against reranked",
        "Questions by hops",
        "Latency",
        "Abstaining",
        "Extractive answers",
        "Settings and versions",
    ]
    assert "reranked is worse by recall@5" in page
    assert "10.0% of the passages were not scored in time" in page
    assert "no-<graph>" not in page
    assert "no-&lt;graph&gt;" in page
    assert not re.search(r"<script|<link|<img|src=|url\(|@import|href=", page)
    for plot in re.findall(r"<svg.*?</svg>", page):
        checked(plot)
    assert page.count("<figure>") < page.count("<table>")
    assert "prefers-color-scheme: dark" in page


def test_a_report_of_the_least() -> None:
    least = replace(measured(), unanswerable=(), answers=(), settings={})
    page = report(figures_of(least))
    assert "Abstaining" not in page
    assert "Compared" not in page
