"""The measures, against values worked out by hand."""

from __future__ import annotations

import math

import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st

from server.evaluation.metrics import MEASURES, all_at, hit_at, ndcg_at, percentile, recall_at, reciprocal_rank

RANKING = ["a", "x", "b", "y", "z", "c"]
GOLD = {"a", "b", "c"}


def test_measures() -> None:
    assert hit_at(RANKING, {"b"}, 2) == 0
    assert hit_at(RANKING, {"b"}, 3) == 1
    assert recall_at(RANKING, GOLD, 5) == pytest.approx(2 / 3)
    assert all_at(RANKING, GOLD, 5) == 0
    assert all_at(RANKING, GOLD, 6) == 1
    assert reciprocal_rank(RANKING, {"b", "c"}) == pytest.approx(1 / 3)
    assert reciprocal_rank(RANKING, {"q"}) == 0
    gained = 1 + 1 / math.log2(4) + 1 / math.log2(7)
    assert ndcg_at(RANKING, GOLD, 10) == pytest.approx(gained / (1 + 1 / math.log2(3) + 1 / 2))


def test_percentile_is_the_nearest_rank() -> None:
    assert percentile([3, 1, 2, 4], 0.5) == 2
    assert percentile([3, 1, 2, 4], 0.95) == 4
    assert percentile([], 0.5) == 0


@given(
    st.permutations([f"d{n}" for n in range(14)]),
    st.integers(0, 14),
    st.sets(st.sampled_from([f"d{n}" for n in range(20)]), min_size=1, max_size=12),
)
def test_measures_are_those_of_trec_eval(order: list[str], length: int, gold: set[str]) -> None:
    """Against trec_eval itself, through pytrec_eval."""
    ranking = order[:length]
    ran = {document: float(100 - place) for place, document in enumerate(ranking)}
    names = {"success.5", "recall.2,5,10", "recip_rank", "ndcg_cut.10"}
    evaluator = pytrec_eval.RelevanceEvaluator({"q": dict.fromkeys(gold, 1)}, names)
    # Without a single document trec_eval leaves the question out; ours counts it as 0, as nothing was found.
    theirs = evaluator.evaluate({"q": ran}).get("q", {})
    measured = {name: measure(ranking, gold) for name, measure in MEASURES.items()}
    for ours, named in {
        "hit@5": "success_5",
        "recall@2": "recall_2",
        "recall@5": "recall_5",
        "recall@10": "recall_10",
        "mrr": "recip_rank",
        "ndcg@10": "ndcg_cut_10",
    }.items():
        assert measured[ours] == pytest.approx(theirs.get(named, 0.0)), ours
    assert measured["all@5"] == float(measured["recall@5"] == 1)
