"""Late interaction: the sum of best similarities, and an order that stands where there is none."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from config.settings import RerankSettings
from graph.errors import StoreCorruptError
from graph.model import Chunk, Hit, PageType, StoredChunk
from graph.sqlite_tokens import SqliteTokens, quantised
from server.candidates import Candidate
from server.rerank.late import LateInteraction, max_sim
from server.rerank.order import blend_late, reranked
from server.web.leg import WebPassage
from tests.fake_tokens import WIDTH, HashTokenEmbedder

ON = RerankSettings(late_interaction=True, late_weight=1)
TEXTS = {"a": "Bread is baked from flour.", "b": "The keeper trims the lamp.", "c": "A lamp is lit."}


def unit_rows(count: int, seed: int) -> NDArray[np.float32]:
    rows = np.random.default_rng(seed).standard_normal((count, WIDTH))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


@given(st.integers(1, 5), st.lists(st.integers(1, 6), max_size=8), st.integers(0, 1000))
def test_it_is_the_sum_of_each_tokens_best_cosine(asked: int, lengths: list[int], seed: int) -> None:
    question = unit_rows(asked, seed)
    passages = [quantised(unit_rows(length, seed + n)) for n, length in enumerate(lengths, 1)]
    by_hand = [
        sum(max(float(q @ row / np.linalg.norm(row)) for row in passage.astype(np.float32)) for q in question)
        for passage in passages
    ]
    assert max_sim(question, passages).tolist() == pytest.approx(by_hand, abs=1e-4)


def candidate(key: str) -> Candidate:
    chunk = Chunk(id=key, page_id=key, ordinal=0, start=0, end=1, text=TEXTS.get(key, ""))
    stored = StoredChunk(chunk=chunk, title="", url="", page_type=PageType.ARTICLE, source="wiki")
    return Candidate(hit=Hit(key=key, score=1.0), chunk=stored)


def web(key: str) -> Candidate:
    return Candidate(hit=Hit(key=key, score=1.0), passage=WebPassage(url=key, title="", text="The keeper."))


@pytest.fixture
async def late(tmp_path: Path) -> AsyncIterator[LateInteraction]:
    embedder = HashTokenEmbedder()
    with closing(SqliteTokens(tmp_path / "tokens.db", model="m", dimension=WIDTH)) as store:
        store.put(dict(zip(TEXTS, await embedder.embed_passages(list(TEXTS.values())), strict=True)))
        yield LateInteraction(embedder, store)


async def test_the_passage_with_the_question_s_words_comes_first(late: LateInteraction) -> None:
    order = await reranked("Who trims the lamp?", [candidate(key) for key in "abc"], None, ON, late)
    assert [c.hit.key for c in order.candidates] == ["b", "c", "a"]
    assert order.late == "ok"
    scores = [c.hit.provenance.late_score or 0 for c in order.candidates]
    assert scores == sorted(scores, reverse=True)
    assert 3 < scores[0] <= 5


async def test_what_has_no_token_vectors_keeps_its_place(late: LateInteraction) -> None:
    found = [web("https://example.org"), candidate("a"), candidate("new"), candidate("b")]
    order = await reranked("Who trims the lamp?", found, None, ON, late)
    assert [c.hit.key for c in order.candidates] == ["https://example.org", "b", "new", "a"]
    assert order.late == "ok (1 of 3 chunks have no token vectors; `trivet verify --repair` makes them)"


async def test_only_the_first_candidates_are_compared(late: LateInteraction) -> None:
    few = ON.model_copy(update={"late_candidates": 2})
    order = await reranked("Who trims the lamp?", [candidate(key) for key in "acb"], None, few, late)
    assert [c.hit.key for c in order.candidates] == ["c", "a", "b"]


async def test_switched_off_it_changes_nothing(late: LateInteraction) -> None:
    order = await reranked("Who trims the lamp?", [candidate(key) for key in "abc"], None, RerankSettings(), late)
    assert [c.hit.key for c in order.candidates] == ["a", "b", "c"]
    assert order.late == "off"


class BrokenTokens(SqliteTokens):
    def get(self, chunk_ids: object) -> dict[str, NDArray[np.int8]]:
        raise StoreCorruptError("the token vectors cannot be read")


@pytest.fixture
def broken(tmp_path: Path) -> Iterator[LateInteraction]:
    with closing(BrokenTokens(tmp_path / "broken.db", model="m", dimension=WIDTH)) as store:
        yield LateInteraction(HashTokenEmbedder(), store)


async def test_a_failure_is_named_and_the_order_stands(broken: LateInteraction) -> None:
    order = await reranked("Who trims the lamp?", [candidate(key) for key in "abc"], None, ON, broken)
    assert [c.hit.key for c in order.candidates] == ["a", "b", "c"]
    assert order.late == "unavailable: the token vectors cannot be read"


async def test_nothing_found_is_nothing_to_compare(late: LateInteraction) -> None:
    assert (await reranked("Who?", [], None, ON, late)).candidates == ()


class LastIsBest:
    """A cross-encoder that sees only the first of its candidates in time."""

    model = "last"

    async def score(self, question: str, passages: list[str], *, budget: float) -> list[float | None]:
        return [5.0, *[None] * (len(passages) - 1)]

    async def close(self) -> None: ...


async def test_the_cross_encoder_reads_the_best_of_that_order(late: LateInteraction) -> None:
    order = await reranked("Who trims the lamp?", [candidate(key) for key in "abc"], LastIsBest(), ON, late)  # type: ignore[arg-type]
    scored = [c.hit.key for c in order.candidates if c.hit.provenance.rerank_score is not None]
    assert scored == ["b"]
    assert order.candidates[0].hit.provenance.late_score is not None


@given(st.lists(st.none() | st.floats(0, 30), max_size=12), st.floats(0, 1))
def test_nothing_is_lost_or_doubled(scores: list[float | None], weight: float) -> None:
    found = [candidate(key) for key in "abcdefghijkl"[: len(scores)]]
    blended = blend_late(found, scores, weight=weight)
    assert sorted(c.hit.key for c in blended) == [c.hit.key for c in found]
