"""How good a ranking is: the measures that `trivet eval` prints. Pure; rankings are lists of document ids."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence, Set


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
    """1 / rank of the first gold document, 0 if there is none (Voorhees, TREC-8 question answering, 1999)."""
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


Measure = Callable[[Sequence[str], Set[str]], float]

MEASURES: Mapping[str, Measure] = {
    "hit@5": lambda ranking, gold: hit_at(ranking, gold, 5),
    "recall@2": lambda ranking, gold: recall_at(ranking, gold, 2),
    "recall@5": lambda ranking, gold: recall_at(ranking, gold, 5),
    "recall@10": lambda ranking, gold: recall_at(ranking, gold, 10),
    "mrr": reciprocal_rank,
    "ndcg@10": lambda ranking, gold: ndcg_at(ranking, gold, 10),
    "all@5": lambda ranking, gold: all_at(ranking, gold, 5),
}
"""What is computed of each ranking, in the order of the table; each is between 0 and 1, more is better."""
