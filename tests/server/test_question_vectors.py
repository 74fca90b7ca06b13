"""The vectors of the last questions: made once, forgotten in order, never of a failure."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from numpy.typing import NDArray

from graph.errors import DependencyDownError
from server.question_vectors import QuestionVectors
from tests.fakes import HashEmbedder


class CountingEmbedder(HashEmbedder):
    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []
        self.down = False

    async def embed_question(self, question: str) -> NDArray[np.float32]:
        self.asked.append(question)
        if self.down:
            raise DependencyDownError("no answer", dependency="embedder")
        return await super().embed_question(question)


async def test_a_question_is_embedded_once_while_it_is_among_the_last() -> None:
    embedder, vectors = CountingEmbedder(), QuestionVectors(2)
    for question in ("a lamp", "a reef", "a lamp", "a storm", "a lamp", "a reef"):
        found = await vectors.of(question, embedder)
        assert found.dense == pytest.approx(await HashEmbedder().embed_question(question))
    assert embedder.asked == ["a lamp", "a reef", "a storm", "a reef"]


async def test_a_failure_is_not_kept() -> None:
    embedder, vectors = CountingEmbedder(), QuestionVectors()
    embedder.down = True
    with pytest.raises(DependencyDownError):
        await vectors.of("a lamp", embedder)
    embedder.down = False
    assert (await vectors.of("a lamp", embedder)).dense.any()


async def test_what_is_kept_cannot_be_changed() -> None:
    found = await QuestionVectors().of("a lamp", HashEmbedder())
    with pytest.raises(ValueError, match="read-only"):
        found.dense[0] = 1


class WaitingEmbedder(CountingEmbedder):
    """Answers when it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.go = asyncio.Event()
        self.cut = 0

    async def embed_question(self, question: str) -> NDArray[np.float32]:
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cut += 1
            raise
        return await super().embed_question(question)


async def test_who_asks_at_once_shares_one_call() -> None:
    embedder, vectors = WaitingEmbedder(), QuestionVectors()
    legs = [asyncio.create_task(vectors.of("a lamp", embedder)) for _ in range(3)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    legs[0].cancel()
    await asyncio.wait(legs[:1])
    embedder.go.set()
    assert (await legs[1]).dense is (await legs[2]).dense
    assert embedder.asked == ["a lamp"]
    embedder.down = True
    failed = await asyncio.gather(*(vectors.of("a reef", embedder) for _ in range(2)), return_exceptions=True)
    assert [type(each) for each in failed] == [DependencyDownError] * 2
    assert embedder.asked == ["a lamp", "a reef"]


async def test_the_call_ends_with_the_last_who_waits_for_it() -> None:
    embedder, vectors = WaitingEmbedder(), QuestionVectors()
    legs = [asyncio.create_task(vectors.of("a lamp", embedder)) for _ in range(2)]
    await asyncio.sleep(0.01)
    legs[0].cancel()
    await asyncio.sleep(0.01)
    assert embedder.cut == 0
    legs[1].cancel()
    await asyncio.sleep(0.01)
    assert embedder.cut == 1
    embedder.go.set()
    assert (await vectors.of("a lamp", embedder)).dense.any()
