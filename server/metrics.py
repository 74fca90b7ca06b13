"""How good a ranking is: the measures that `trivet eval` prints. Pure; rankings are lists of document ids."""

from __future__ import annotations

import math
from collections.abc import Sequence, Set


def hit_at(ranking: Sequence[str], gold: Set[str], k: int) -> float:
    """1 if any gold document is among the first k."""
    return float(any(document in gold for document in ranking[:k]))


def recall_at(ranking: Sequence[str], gold: Set[str], k: int) -> float:
    """Share of the gold documents among the first k."""
    return len(gold & set(ranking[:k])) / len(gold)


def all_at(ranking: Sequence[str], gold: Set[str], k: int) -> float:
    """1 if every gold document is among the first k: what a multi-hop answer needs."""
    return float(gold <= set(ranking[:k]))


def reciprocal_rank(ranking: Sequence[str], gold: Set[str]) -> float:
    """1 / rank of the first gold document, 0 if there is none."""
    return next((1.0 / rank for rank, document in enumerate(ranking, 1) if document in gold), 0.0)


def ndcg_at(ranking: Sequence[str], gold: Set[str], k: int) -> float:
    """Normalised discounted cumulative gain with binary relevance (Järvelin, Kekäläinen 2002)."""
    gained = sum(1.0 / math.log2(rank + 1) for rank, document in enumerate(ranking[:k], 1) if document in gold)
    ideal = sum(1.0 / math.log2(rank + 1) for rank in range(1, min(len(gold), k) + 1))
    return gained / ideal


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` of the values do not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else 0.0
