"""Keeping noise out of the vector leg (mission.md §3.5). Pure."""

from __future__ import annotations

from dataclasses import replace

from graph.model import VectorRankings


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
