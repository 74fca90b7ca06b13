"""The measures, against values worked out by hand."""

from __future__ import annotations

import math

import pytest

from server.evaluation.metrics import all_at, hit_at, ndcg_at, percentile, recall_at, reciprocal_rank

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
