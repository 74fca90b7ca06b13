"""Keeping noise out of what was found (mission.md §3.5). Pure; each rule can be switched off by its setting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from graph.model import VectorRankings
from graph.names import words

LEVEL_LEAST = 4
"""Hits that make a run; two or three pages may well be equally near."""
LEVEL_SHARE = 0.6
"""Jaccard similarity of word sets, to the best of the run, above which texts come from one mould."""


def above_threshold(rankings: VectorRankings, threshold: float) -> VectorRankings:
    """Without hits that only the dense vectors found, and those below `threshold` (cosine).

    A small wiki always has a nearest passage; without this an unrelated page would be evidence for anything.
    What BM25 found shares a word with the question and stays.
    """
    near = {scored.key for scored in rankings.dense if scored.score >= threshold}
    worded = {scored.key for scored in rankings.sparse}
    return replace(
        rankings,
        fused=tuple(scored for scored in rankings.fused if scored.key in near or scored.key in worded),
        dense=tuple(scored for scored in rankings.dense if scored.score >= threshold),
    )


def length_weight(text: str, least: int) -> float:
    """1 from `least` words on, below it their share: "See also." is near to everything and says nothing."""
    return 1.0 if least == 0 else min(1.0, len(words(text)) / least)


def level_run(found: Sequence[tuple[float, str]], spread: float) -> set[int]:
    """Which of (cosine, text), best first, are mere repeats of a mould: all of a run but its best.

    A run is `LEVEL_LEAST` or more neighbours in the ranking whose cosines lie within `spread` and whose texts are
    nearly the words of the first: index and category pages were seen at a uniform .86, in front of all that answers.
    """
    repeats: set[int] = set()
    start = 0
    while spread > 0 and start < len(found):
        top, bag = found[start][0], frozenset(words(found[start][1]))
        end = start + 1
        while end < len(found) and top - found[end][0] <= spread and _alike(bag, found[end][1]):
            end += 1
        if end - start >= LEVEL_LEAST:
            repeats.update(range(start + 1, end))
        start = end
    return repeats


def _alike(bag: frozenset[str], text: str) -> bool:
    other = frozenset(words(text))
    return len(bag & other) >= LEVEL_SHARE * len(bag | other)
