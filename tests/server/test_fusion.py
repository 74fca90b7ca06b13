"""Reciprocal rank fusion in two stages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.model import Scored
from server.fusion import annotate, fuse_stages, reciprocal_rank_fusion


def ranking(keys: str) -> list[Scored]:
    return [Scored(key=key, score=1.0 / n) for n, key in enumerate(keys, 1)]


def test_the_formula() -> None:
    hits = reciprocal_rank_fusion({"vector": ranking("ab"), "graph": ranking("bc")}, k=60)
    assert [hit.key for hit in hits] == ["b", "a", "c"]
    assert hits[0].score == pytest.approx(1 / 62 + 1 / 61)
    assert [(r.ranking, r.rank, r.contribution) for r in hits[0].provenance.ranks] == [
        ("vector", 2, 1 / 62),
        ("graph", 1, 1 / 61),
    ]


def test_ties_are_ordered_by_key() -> None:
    assert [h.key for h in reciprocal_rank_fusion({"x": ranking("b"), "y": ranking("a")}, k=60)] == ["a", "b"]


def test_weights() -> None:
    hits = reciprocal_rank_fusion({"x": ranking("a"), "y": ranking("b")}, k=60, weights={"y": 2.0})
    assert [hit.key for hit in hits] == ["b", "a"]


def test_two_wiki_legs_do_not_push_a_page_past_the_web() -> None:
    wiki = reciprocal_rank_fusion({"vector": ranking("w"), "graph": ranking("w")}, k=60)
    merged = fuse_stages(wiki, ranking("v"), k=60)
    assert merged[0].score == merged[1].score
    assert [r.ranking for r in merged[1].provenance.ranks] == ["vector", "graph", "wiki"]


def test_annotating_changes_no_order() -> None:
    hits = reciprocal_rank_fusion({"vector": ranking("ab")}, k=60)
    noted = annotate(hits, {"dense": ranking("ba")})
    assert [h.key for h in noted] == ["a", "b"]
    assert [(r.ranking, r.rank) for r in noted[0].provenance.ranks] == [("vector", 1), ("dense", 2)]


@given(st.lists(st.permutations("abcdef"), min_size=1, max_size=4), st.integers(1, 100))
def test_unanimity(rankings: list[list[str]], k: int) -> None:
    """What every ranking puts before something else, the fusion does too."""
    fused = [
        hit.key for hit in reciprocal_rank_fusion({str(n): ranking("".join(r)) for n, r in enumerate(rankings)}, k=k)
    ]
    for one in "abcdef":
        for other in "abcdef":
            if all(r.index(one) < r.index(other) for r in rankings):
                assert fused.index(one) < fused.index(other)


@given(st.lists(st.permutations("abcd"), min_size=1, max_size=3))
def test_the_score_is_the_sum_of_its_contributions(rankings: list[list[str]]) -> None:
    for hit in reciprocal_rank_fusion({str(n): ranking("".join(r)) for n, r in enumerate(rankings)}, k=60):
        assert hit.score == pytest.approx(sum(rank.contribution for rank in hit.provenance.ranks))
