"""Reciprocal rank fusion in two stages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.model import Scored
from server.fusion import annotate, convex_combination, fuse_stages, reciprocal_rank_fusion


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


def scores(**of: float) -> list[Scored]:
    return [Scored(key=key, score=score) for key, score in sorted(of.items(), key=lambda pair: -pair[1])]


def test_scores_are_added_between_the_floor_and_the_best() -> None:
    fused = convex_combination(scores(a=0.9, b=0.65), scores(b=10, c=5), weight=0.6, floor=0.4)
    assert {hit.key: hit.score for hit in fused} == pytest.approx(
        {"a": 0.6, "b": 0.6 * 0.5 + 0.4, "c": 0.6 * 0.5 + 0.4 * 0.5}  # c is at most as near as the last, b
    )
    assert [hit.key for hit in fused] == ["b", "a", "c"]


def test_how_far_the_first_is_ahead_counts() -> None:
    """Ranks alone would leave both at the same score."""
    fused = convex_combination(scores(a=0.95, b=0.5), scores(b=10.0, a=9.9), weight=0.5, floor=0.4)
    assert [hit.key for hit in fused] == ["a", "b"]


@pytest.mark.parametrize("lists", [(scores(a=0.8, b=0.6), []), ([], scores(a=7, b=3)), ([], [])])
def test_one_list_alone_keeps_its_order(lists: tuple[list[Scored], list[Scored]]) -> None:
    fused = convex_combination(*lists, weight=0.6, floor=0.4)
    assert [hit.key for hit in fused] == [hit.key for one in lists for hit in one]
    assert not fused or fused[0].score == 1.0


def test_hits_below_the_floor_and_flat_lists_are_no_error() -> None:
    fused = convex_combination(scores(a=0.3, b=0.2), scores(c=0.0), weight=0.6, floor=0.4)
    assert sorted(hit.key for hit in fused) == ["a", "b", "c"]


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.floats(-1, 1)),
    st.dictionaries(st.sampled_from("defghi"), st.floats(0, 50)),
    st.floats(0, 1),
)
def test_scores_stay_between_nothing_and_one(dense: dict[str, float], sparse: dict[str, float], weight: float) -> None:
    fused = convex_combination(scores(**dense), scores(**sparse), weight=weight, floor=0.4)
    assert {hit.key for hit in fused} == dense.keys() | sparse.keys()
    assert all(0 <= hit.score <= 1 + 1e-9 for hit in fused)
    assert [hit.score for hit in fused] == sorted((hit.score for hit in fused), reverse=True)
