"""Source weights and domain trust, on the scores of stage 2 (mission.md §4.3, §4.4).

Pure; works on keys, scores and factors alone.

Stage 2 ranks every source group by 1 / (k + rank), so the groups' scores are of one scale already. Normalised to [0, 1]
they are measured from the place after the last hit of the longest group (0) to the first place (1). Each group's best
is 1, and, as it is by rank, the fifth of five stands where the fifth of five hundred does: a small group neither
floods the top, as it would by its own scores' range, nor is it cut at its own last.

A factor multiplies that. On the bare 1 / (60 + rank) a factor of 0.6 would put the first hit behind the fortieth; this
way it comes to stand where six tenths of the way from the last place to the first are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from graph.model import Hit


def normalised(hits: Sequence[Hit]) -> list[float]:
    """In the order of the hits: 1 for the best score, 0 for the place after the lowest; all 1 where there is no range.

    >>> [round(score, 2) for score in normalised([Hit(key="a", score=1 / 61), Hit(key="b", score=1 / 62)])]
    [1.0, 0.49]
    """
    best, floor = _range(hits)
    return [(hit.score - floor) / (best - floor) if best > floor else 1.0 for hit in hits]


def weighted(hits: Sequence[Hit], factors: Mapping[str, float]) -> list[Hit]:
    """Each normalised score times its factor (key → 0…1; 1 where there is none), best first, on the scale it came in.

    Equal ones stay in order; hits without a factor keep their score to the last bit. The factor goes into `boost`.
    """
    _, floor = _range(hits)
    moved = [_moved(hit, factors.get(hit.key, 1.0), floor) for hit in hits]
    return sorted(moved, key=lambda hit: -hit.score)


def _range(hits: Sequence[Hit]) -> tuple[float, float]:
    """The best score and the floor: as 1 / (k + n) is the lowest, the place after it has 1 / (k + n + 1)."""
    scores = [hit.score for hit in hits]
    lowest = min(scores, default=0.0)
    return max(scores, default=0.0), lowest / (1 + lowest)


def _moved(hit: Hit, factor: float, floor: float) -> Hit:
    if factor == 1.0:
        return hit
    noted = replace(hit.provenance, boost=hit.provenance.boost * factor)
    return replace(hit, score=floor + factor * (hit.score - floor), provenance=noted)
