"""Plots as inline SVG: pure functions from numbers to markup, coloured by the page's style sheet.

Each is an image with a name for screen readers; its numbers stand in a table beside it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

WIDTH = 720
LABELS = 150
"""Room for names, left of the axis."""
VALUES = 130
"""Room for numbers, right of it."""
ROW = 26
TOP = 10
FOOT = 36
SERIES = 6
"""Colours that the style sheet has."""


@dataclass(frozen=True, slots=True)
class Scale:
    """From values to pixels."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return round(self.start + min(max(share, 0.0), 1.0) * (self.end - self.start), 1)


@dataclass(frozen=True, slots=True)
class IntervalRow:
    """A value with its interval."""

    label: str
    mean: float
    low: float
    high: float
    clear: bool = True
    """Drawn full; hollow where chance explains it."""


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round numbers from `low` to `high`: steps of 1, 2 or 5 times a power of ten."""
    if high <= low:
        return [low]
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(n * step, 10) + 0.0 for n in range(first, last + 1)]


def intervals(rows: Sequence[IntervalRow], *, name: str, signed: bool = False, unit: str = "") -> str:
    """A dot with its interval per row; `signed` draws the line at 0 and shows plus signs."""
    ends = [end for row in rows for end in (row.low, row.high)] + ([0.0] if signed else [])
    scale = Scale(*_room(min(ends), max(ends)), LABELS, WIDTH - VALUES)
    height = TOP + ROW * len(rows) + FOOT
    parts = [_x_axis(scale, height, unit)]
    if signed:
        parts.append(_line(scale(0), TOP, scale(0), height - FOOT, "zero"))
    for place, row in enumerate(rows):
        y = TOP + ROW * (place + 0.5)
        shown = f"{row.mean:+.3f}" if signed else f"{row.mean:.3f}"
        span = f"{row.low:+.3f} … {row.high:+.3f}" if signed else f"{row.low:.3f} … {row.high:.3f}"
        parts += [
            f"<g><title>{escape(f'{row.label}: {shown}, {span}')}</title>",
            _text(LABELS - 10, y + 4, row.label, "end"),
            _line(scale(row.low), y, scale(row.high), y, "range"),
            f'<circle class="{"dot" if row.clear else "dot faint"}" cx="{scale(row.mean)}" cy="{y}" r="4.5"/>',
            _text(WIDTH - VALUES + 10, y + 4, shown, "start"),
            "</g>",
        ]
    return _svg(name, height, parts)


def bars(groups: Mapping[str, Mapping[str, float]], *, name: str, unit: str = "") -> str:
    """Group → series → value: horizontal bars from 0, a colour and a legend entry per series."""
    series = list(dict.fromkeys(one for values in groups.values() for one in values))
    most = max((value for values in groups.values() for value in values.values()), default=1.0)
    scale = Scale(0.0, _room(0.0, most)[1], LABELS, WIDTH - VALUES)
    thick, gap = 12, 12
    legend = 24 if len(series) > 1 else 0
    height = TOP + legend + sum(thick * len(values) + gap for values in groups.values()) + FOOT
    parts = [_x_axis(scale, height, unit), _legend(series) if legend else ""]
    y = float(TOP + legend)
    for label, values in groups.items():
        parts.append(_text(LABELS - 10, y + thick * len(values) / 2 + 4, label, "end"))
        for one, value in values.items():
            parts.append(
                f'<rect class="s{series.index(one) % SERIES}" x="{LABELS}" y="{y}" height="{thick - 2}" '
                f'width="{round(scale(value) - LABELS, 1)}"/>'
            )
            parts.append(_text(scale(value) + 5, y + thick - 3, _short(value), "start", "small"))
            y += thick
        y += gap
    return _svg(name, height, parts)


def curve(
    lines: Mapping[str, Sequence[tuple[float, float]]],
    marks: Mapping[str, tuple[float, float]],
    *,
    name: str,
    x: str,
    y: str,
) -> str:
    """Lines over the unit square, as for shares; `marks` are named points on them."""
    height, left, right = 360, 60, 40
    across, up = Scale(0, 1, left, WIDTH - right), Scale(0, 1, height - 50, 34)
    parts = [_legend(list(lines))]
    for tick in ticks(0, 1):
        parts += [
            _line(across(tick), up(0), across(tick), up(1), "grid"),
            _line(across(0), up(tick), across(1), up(tick), "grid"),
            _text(across(tick), up(0) + 18, f"{tick:g}", "middle", "small"),
            _text(left - 8, up(tick) + 4, f"{tick:g}", "end", "small"),
        ]
    for place, points in enumerate(lines.values()):
        path = " ".join(f"{across(one)},{up(other)}" for one, other in points)
        parts.append(f'<polyline class="curve c{place % SERIES}" points="{path}"/>')
    for label, (one, other) in marks.items():
        parts.append(f'<circle class="dot" cx="{across(one)}" cy="{up(other)}" r="5"/>')
        parts.append(_text(across(one) + 9, up(other) + 14, label, "start", "small"))
    parts += [
        _text((left + WIDTH - right) / 2, height - 10, x, "middle"),
        f'<text transform="translate(16 {height / 2}) rotate(-90)" text-anchor="middle">{escape(y)}</text>',
    ]
    return _svg(name, height, parts)


def _room(low: float, high: float) -> tuple[float, float]:
    """A little more than the values need."""
    spare = 0.05 * (high - low) or 0.05
    return (low - spare if low != 0 else 0.0), high + spare


def _x_axis(scale: Scale, height: float, unit: str) -> str:
    foot = height - FOOT
    parts = []
    for tick in ticks(scale.low, scale.high):
        parts.append(_line(scale(tick), TOP, scale(tick), foot, "grid"))
        parts.append(_text(scale(tick), foot + 16, f"{tick:g}", "middle", "small"))
    if unit:
        parts.append(_text(scale.end + 10, foot + 16, unit, "start", "small"))
    return "".join(parts)


def _legend(series: Sequence[str]) -> str:
    parts, x = [], float(LABELS)
    for place, one in enumerate(series):
        parts.append(f'<rect class="s{place % SERIES}" x="{x}" y="{TOP}" width="11" height="11"/>')
        parts.append(_text(x + 16, TOP + 10, one, "start", "small"))
        x += 34 + 7.2 * len(one)
    return "".join(parts)


def _short(value: float) -> str:
    return f"{value:.3f}" if value < 10 else f"{value:,.0f}"


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>'


def _text(x: float, y: float, words: str, anchor: str, kind: str = "") -> str:
    styled = f' class="{kind}"' if kind else ""
    return f'<text x="{round(x, 1)}" y="{round(y, 1)}" text-anchor="{anchor}"{styled}>{escape(words)}</text>'


def _svg(name: str, height: float, parts: Sequence[str]) -> str:
    return (
        f'<svg role="img" aria-label="{escape(name, quote=True)}" viewBox="0 0 {WIDTH} {round(height)}" '
        f'xmlns="http://www.w3.org/2000/svg">{"".join(parts)}</svg>'
    )
