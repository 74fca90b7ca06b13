"""Noise control: short passages, and runs of hits that are one mould."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.settings import SearchSettings
from graph.model import Hit, LegRank, Provenance, Scored, VectorRankings
from server.candidates import Candidate, noise_last
from server.noise import above_threshold, length_weight, level_run
from tests.server.test_candidates import stored

INDEX = "Category index of lighthouses in the county, page {}, sorted by name and year of building"
ANSWER = "The lamp was first lit in 1871 by the keeper Ann Moore"


def found(key: str, score: float, cosine: float | None, text: str) -> Candidate:
    ranks = () if cosine is None else (LegRank(ranking="dense", rank=1, score=cosine),)
    return Candidate(hit=Hit(key=key, score=score, provenance=Provenance(ranks=ranks)), chunk=stored(key, text=text))


def index_pages(count: int) -> list[Candidate]:
    return [found(f"i{n}", 1 / (61 + n), 0.86 - n / 10_000, INDEX.format(n)) for n in range(count)]


def test_index_pages_with_level_scores_do_not_stand_before_the_answer() -> None:
    order = noise_last([*index_pages(6), found("answer", 1 / 67, 0.8, ANSWER)], SearchSettings())
    assert [c.hit.key for c in order][:2] == ["i0", "answer"]
    assert len(order) == 7, "none is lost"
    assert order[-1].hit.provenance.boost == 0.5


def test_each_rule_can_be_switched_off() -> None:
    candidates = [*index_pages(6), found("short", 1 / 67, 0.8, "See also"), found("answer", 1 / 68, None, ANSWER)]
    keys = [c.hit.key for c in candidates]
    off = SearchSettings(level_spread=0, short_words=0)
    assert [c.hit.key for c in noise_last(candidates, off)] == keys
    only_short = noise_last(candidates, SearchSettings(level_spread=0))
    assert [c.hit.key for c in only_short] == [*keys[:6], "answer", "short"]


@pytest.mark.parametrize(
    ("pages", "why"),
    [
        ([(0.86, INDEX), (0.8599, INDEX), (0.8598, INDEX)], "three may be equally near"),
        ([(0.86, INDEX), (0.85, INDEX), (0.84, INDEX), (0.83, INDEX)], "their scores differ"),
        ([(0.86, ANSWER), (0.86, "Quite another text"), (0.86, "A third one"), (0.86, "And more")], "texts differ"),
    ],
)
def test_what_is_no_run(pages: list[tuple[float, str]], why: str) -> None:
    assert level_run(pages, 0.005) == set(), why


def test_two_runs_keep_their_best() -> None:
    pages = [(0.9, INDEX)] * 4 + [(0.8, ANSWER)] * 5
    assert level_run(pages, 0.005) == {1, 2, 3, 5, 6, 7, 8}


@given(st.text(), st.integers(0, 50))
def test_a_length_weighs_between_nothing_and_one(text: str, least: int) -> None:
    assert 0 <= length_weight(text, least) <= 1
    assert length_weight(f"{text} " + "word " * least, least) == 1


def test_a_distant_hit_without_a_shared_word_is_no_evidence() -> None:
    near, far, worded = (Scored(key=key, score=score) for key, score in (("n", 0.8), ("f", 0.6), ("w", 0.5)))
    rankings = VectorRankings(fused=(near, far, worded), dense=(near, far, worded), sparse=(worded,))
    kept = above_threshold(rankings, 0.7)
    assert [s.key for s in kept.fused] == ["n", "w"]
    assert [s.key for s in kept.dense] == ["n"]
