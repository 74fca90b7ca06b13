"""What a section is told of those before it: their lead sentences, without asking a model. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from server.answer.plain import sentences
from server.writing.model import SectionResult

MOST_OF_ONE = 3
"""Sentences of one section."""


def summary_of(written: Sequence[SectionResult], *, count_tokens: Callable[[str], int], tokens: int) -> str:
    """A line for each section, `heading: sentences`, within `tokens`.

    First the first sentence of each, the latest section's first, as what is said next must not repeat that; then the
    second ones, while there is room. Where not even the first ones fit, later sections are kept.
    """
    said = [(one, sentences(without_markers(one))[:MOST_OF_ONE]) for one in written if one.state == "done"]
    said = [(one, lines) for one, lines in said if lines and one.mode != "unknown"]
    kept: dict[int, list[str]] = {}
    text = ""
    for depth in range(MOST_OF_ONE):
        for place in range(len(said) - 1, -1, -1):
            if depth < len(said[place][1]) and len(kept.get(place, ())) == depth:
                tried = {**kept, place: [*kept.get(place, ()), said[place][1][depth]]}
                longer = _lines(said, tried)
                if count_tokens(longer) <= tokens:
                    kept, text = tried, longer
    return text


def _lines(said: Sequence[tuple[SectionResult, list[str]]], kept: dict[int, list[str]]) -> str:
    return "\n".join(f"{said[place][0].heading}: {' '.join(kept[place])}" for place in sorted(kept))


def without_markers(section: SectionResult) -> str:
    """A section's text without `[n]`, and without the space before it."""
    text = section.text
    for citation in sorted(section.citations, key=lambda one: -one.start):
        text = text[: citation.start].rstrip(" ") + text[citation.end :]
    return text
