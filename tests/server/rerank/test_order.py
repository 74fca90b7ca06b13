"""The cross-encoder's order against the fused one, and the confidence zones."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.settings import AnswerSettings, RerankSettings
from graph.model import Hit
from server.candidates import Candidate
from server.model import Zone
from server.rerank.order import RerankedOrder, blend, confidence_zone, reranked


def candidates(keys: str) -> list[Candidate]:
    return [Candidate(hit=Hit(key=key, score=1.0)) for key in keys]


def keys(found: list[Candidate]) -> str:
    return "".join(candidate.hit.key for candidate in found)


def test_weight_one_is_the_cross_encoders_order() -> None:
    assert keys(blend(candidates("abc"), [1.0, 3.0, 2.0], weight=1)) == "bca"


def test_weight_zero_is_the_fused_order() -> None:
    assert keys(blend(candidates("abc"), [1.0, 3.0, 2.0], weight=0)) == "abc"


def test_the_unscored_keep_their_place() -> None:
    assert keys(blend(candidates("abcd"), [None, 1.0, None, 3.0], weight=1)) == "adcb"
    assert keys(blend(candidates("abcd"), [None] * 4, weight=0.5)) == "abcd"


def test_scores_are_noted() -> None:
    noted = blend(candidates("ab"), [None, 2.5], weight=0.3)
    assert {c.hit.key: c.hit.provenance.rerank_score for c in noted} == {"a": None, "b": 2.5}


@given(st.lists(st.none() | st.floats(-10, 10), max_size=12), st.floats(0, 1))
def test_nothing_is_lost_or_doubled(scores: list[float | None], weight: float) -> None:
    found = candidates("abcdefghijkl"[: len(scores)])
    assert sorted(keys(blend(found, scores, weight=weight))) == sorted(keys(found))


@pytest.mark.parametrize(
    ("best", "zone"), [(-4.1, "abstain"), (-4.0, "caution"), (-0.1, "caution"), (0.0, "normal"), (None, "unknown")]
)
def test_zones(best: float | None, zone: Zone) -> None:
    assert confidence_zone(RerankedOrder(tuple(candidates("a")), "ok", best), AnswerSettings()) == zone


def test_nothing_found_is_no_reason_for_an_answer() -> None:
    assert confidence_zone(RerankedOrder((), "ok"), AnswerSettings()) == "abstain"


class LastIsBest:
    """Scores the passages in the order in which they come, the last highest."""

    model = "last"

    async def score(self, question: str, passages: Sequence[str], *, budget: float) -> list[float | None]:
        return [float(n) for n in range(len(passages))]

    async def close(self) -> None: ...


async def test_the_cross_encoder_has_the_more_say_the_more_the_names_leave_open() -> None:
    settings = RerankSettings(weight=0, open_weight=1)
    orders = [
        keys(list((await reranked("?", candidates("abc"), LastIsBest(), settings, open_share=share)).candidates))
        for share in (0.0, 1.0)
    ]
    assert orders == ["abc", "cba"]
