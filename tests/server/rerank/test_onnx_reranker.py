"""The bundled cross-encoder: it tells what fits, keeps the order of its input and its budget."""

from __future__ import annotations

import statistics
import time

import pytest

from graph.onnx_models import bundled_model_dir
from server.rerank.onnx_reranker import OnnxReranker

PASSAGES = [
    "Animal Farm is a novella by George Orwell, first published in 1945.",
    "The lighthouse stands on a reef.",
    "George Orwell wrote Animal Farm.",
]


@pytest.fixture(scope="module")
def reranker() -> OnnxReranker:
    return OnnxReranker(bundled_model_dir("reranker_en"), name="bundled")


async def test_scores_come_in_the_order_of_the_passages(reranker: OnnxReranker) -> None:
    scores = await reranker.score("Who wrote Animal Farm?", PASSAGES, budget=60)
    assert scores[0] is not None
    assert scores[1] is not None
    assert scores[2] is not None
    assert min(scores[0], scores[2]) > 4
    assert scores[1] < -8


async def test_a_batch_changes_no_score(reranker: OnnxReranker) -> None:
    together = await reranker.score("Who wrote Animal Farm?", PASSAGES * 3, budget=60)
    alone = await reranker.score("Who wrote Animal Farm?", PASSAGES[:1], budget=60)
    assert together[0] == pytest.approx(alone[0], abs=0.2)  # int8: padding moves the last bits


async def test_what_does_not_fit_the_budget_is_not_scored_and_the_first_are_tried_first(reranker: OnnxReranker) -> None:
    started = time.monotonic()
    scores = await reranker.score("Who?", ["word " * 400] * 60, budget=0.5)
    assert time.monotonic() - started < 10
    assert scores[0] is not None
    assert scores[-1] is None
    assert await reranker.score("Who?", PASSAGES, budget=0) == [None] * 3


async def test_a_run_that_would_end_too_late_is_not_begun(reranker: OnnxReranker) -> None:
    """The pace is known from two questions; the budget is told in the time that one passage takes here and now."""
    passage = "word " * 400
    began = time.monotonic()
    await reranker.score("Who?", [passage] * 4, budget=60)
    each = (time.monotonic() - began) / 4
    over = []
    for _ in range(5):
        began = time.monotonic()
        scores = await reranker.score("Who?", [passage] * 60, budget=10 * each)
        over.append(time.monotonic() - began - 10 * each)
        assert scores[0] is not None
        assert scores[-1] is None
    assert statistics.median(over) < 3 * each  # a run on each of two cores, at twice the pace it was begun for


async def test_a_pace_from_a_bad_moment_is_measured_again(reranker: OnnxReranker) -> None:
    reranker._pace = 1000.0
    scores = await reranker.score("Who?", PASSAGES * 8, budget=20)
    assert scores.count(None) > 0
    await reranker.score("Who?", PASSAGES, budget=20)
    for _ in range(25):
        await reranker.score("Who?", PASSAGES, budget=20)
    assert None not in await reranker.score("Who?", PASSAGES * 8, budget=20)


async def test_extremes(reranker: OnnxReranker) -> None:
    assert await reranker.score("Who?", [], budget=1) == []
    for question in ("why " * 5000, "為什麼" * 1300, "🦉" * 900):
        long = await reranker.score(question, ["", "x" * 10_000, "\x00", "答" * 3000], budget=60)
        assert all(isinstance(score, float) for score in long)
