"""Source weights and domain trust on the fused scores: what they may change, and what never."""

from __future__ import annotations

import doctest
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.model import Hit, Provenance, Scored
from server import weights
from server.fusion import fuse_stages
from server.weights import normalised, weighted

SIZES = st.integers(0, 60)
FACTOR = st.floats(0, 1)


def group(name: str, size: int) -> list[Scored]:
    """Scores of its own scale, as its own search gives them."""
    return [Scored(key=f"{name}{n:03}", score=1e6 - n) for n in range(size)]


def merged(wiki: int, web: int, *, k: int = 60) -> list[Hit]:
    hits = [Hit(key=one.key, score=one.score) for one in group("wiki", wiki)]
    return fuse_stages(hits, group("web", web), k=k)


def by_group(hits: list[Hit], of: Mapping[str, float]) -> dict[str, float]:
    return {hit.key: of[hit.key.rstrip("0123456789")] for hit in hits}


def keys(hits: list[Hit], start: str = "") -> list[str]:
    return [hit.key for hit in hits if hit.key.startswith(start)]


def test_the_example_in_the_docstring() -> None:
    assert doctest.testmod(weights).failed == 0


@given(SIZES, SIZES, FACTOR, FACTOR, st.integers(1, 1000))
def test_the_order_inside_a_group_never_changes(wiki: int, web: int, one: float, other: float, k: int) -> None:
    before = merged(wiki, web, k=k)
    after = weighted(before, by_group(before, {"wiki": one, "web": other}))
    for name in ("wiki", "web"):
        assert keys(after, name) == keys(before, name)
    assert len(after) == len(before)


@given(SIZES, SIZES)
def test_weights_of_one_change_nothing_at_all(wiki: int, web: int) -> None:
    """Stage 2 is as it was tuned: order, scores and provenance."""
    before = merged(wiki, web)
    assert weighted(before, by_group(before, {"wiki": 1.0, "web": 1.0})) == before == weighted(before, {})


@given(st.integers(1, 60), st.floats(0, 1, exclude_max=True))
def test_one_group_alone_keeps_its_order_whatever_its_weight(size: int, factor: float) -> None:
    before = merged(size, 0)
    assert keys(weighted(before, by_group(before, {"wiki": factor}))) == keys(before)


@given(st.integers(0, 60), st.integers(0, 60))
def test_normalised_scores_are_of_one_scale_and_each_group_s_best_is_one(wiki: int, web: int) -> None:
    hits = merged(wiki, web)
    scores = dict(zip((hit.key for hit in hits), normalised(hits), strict=True))
    assert all(0 < score <= 1 for score in scores.values())
    for name, size in (("wiki", wiki), ("web", web)):
        if size:
            assert scores[f"{name}000"] == 1
    for n in range(min(wiki, web)):
        assert scores[f"wiki{n:03}"] == scores[f"web{n:03}"], "the same place is worth the same in either group"


@pytest.mark.parametrize("big", [5, 50, 500])
def test_a_small_group_does_not_flood_the_top_of_a_large_one(big: int) -> None:
    """Its best counts as the other's best and its fifth as the other's fifth: no more than every second place."""
    hits = merged(big, 5)
    after = weighted(hits, by_group(hits, {"wiki": 1.0, "web": 1.0}))
    for top in range(1, 11):
        assert len(keys(after[:top], "web")) <= (top + 1) // 2
    assert len(keys(after[:10], "web")) == 5, "and is not pushed down either"


def test_nor_is_it_pushed_down_by_the_least_of_weights_behind_the_fortieth() -> None:
    """What multiplying 1 / (60 + rank) would do: six tenths of a first place is worth a forty-second."""
    hits = merged(20, 5)
    after = weighted(hits, by_group(hits, {"wiki": 1.0, "web": 0.6}))
    assert 5 <= keys(after).index("web000") <= 9


@given(SIZES, st.integers(1, 60), FACTOR, FACTOR)
def test_who_weighs_less_never_stands_higher(wiki: int, web: int, one: float, other: float) -> None:
    hits = merged(wiki, web)
    low, high = sorted((one, other))
    place = [
        keys(weighted(hits, by_group(hits, {"wiki": 1.0, "web": factor}))).index("web000") for factor in (low, high)
    ]
    assert place[0] >= place[1]


@given(st.lists(st.floats(1e-6, 1), min_size=1, max_size=30), st.data())
def test_scores_stay_between_the_floor_and_what_they_were(scores: list[float], data: st.DataObject) -> None:
    """Any scores and factors: none is lost, none rises, none falls to nothing."""
    before = [Hit(key=str(n), score=score) for n, score in enumerate(sorted(scores, reverse=True))]
    factors = {hit.key: data.draw(FACTOR) for hit in before}
    after = {hit.key: hit for hit in weighted(before, factors)}
    lowest = min(scores)
    for hit in before:
        assert lowest / (1 + lowest) * (1 - 1e-9) <= after[hit.key].score <= hit.score * (1 + 1e-9)
        assert after[hit.key].provenance.boost == factors[hit.key]


def test_what_weighs_nothing_comes_last_and_is_not_lost() -> None:
    hits = merged(4, 3)
    after = weighted(hits, by_group(hits, {"wiki": 0.0, "web": 0.5}))
    assert keys(after) == ["web000", "web001", "web002", "wiki000", "wiki001", "wiki002", "wiki003"]


def test_factors_are_multiplied_into_the_boost_that_is_there() -> None:
    hit = Hit(key="a", score=0.5, provenance=Provenance(boost=0.5))
    assert weighted([hit], {"a": 0.5})[0].provenance.boost == 0.25


def test_nothing_is_no_error() -> None:
    assert weighted([], {}) == normalised([]) == []
