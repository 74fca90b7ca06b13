"""What every reranker must do: a fake, the bundled cross-encoder, services on stub servers, and a chat model."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from graph.model import ChatMessage
from graph.onnx_models import bundled_model_dir
from graph.protocols import Reranker
from server.rerank.llm_reranker import LLMReranker
from server.rerank.onnx_reranker import OnnxReranker
from server.rerank.rerank_service import RerankService
from tests.fake_chat import FakeChat
from tests.graph.model_site import llama_cpp, relevance, serving, tei, vllm

Open = Callable[[], AbstractAsyncContextManager[Reranker]]
QUESTION = "Who wrote Animal Farm?"
PASSAGES = ["The lighthouse stands on a reef.", "George Orwell, who wrote Animal Farm.", "Bread is baked from flour."]


class WordReranker:
    """The fake: a logit by the words that question and passage share."""

    model = "words"

    async def score(self, question: str, passages: Sequence[str], *, budget: float) -> list[float | None]:
        return [relevance(question, passage) if budget > 0 else None for passage in passages]

    async def close(self) -> None: ...


def rate(messages: Sequence[ChatMessage]) -> str:
    """What a chat model would answer, by shared words."""
    found = re.findall(r"<<<\w+ passage (\d+)>>>\n(.*?)\n?<<<\w+ end", messages[-1].content, re.DOTALL)
    return "\n".join(f"{number}: {round((relevance(QUESTION, text) + 6) / 1.2)}" for number, text in found)


@asynccontextmanager
async def fake() -> AsyncIterator[Reranker]:
    yield WordReranker()


@asynccontextmanager
async def onnx() -> AsyncIterator[Reranker]:
    reranker = OnnxReranker(bundled_model_dir("reranker_en"), name="bundled")
    yield reranker
    await reranker.close()


@asynccontextmanager
async def on_tei() -> AsyncIterator[Reranker]:
    async with serving(tei) as site:
        reranker = RerankService(site.url, style="tei", model="stub")
        yield reranker
        await reranker.close()


@asynccontextmanager
async def on_jina() -> AsyncIterator[Reranker]:
    async with serving(vllm) as site:
        reranker = RerankService(f"{site.url}/v1", style="jina", model="stub")
        yield reranker
        await reranker.close()


@asynccontextmanager
async def on_llama_cpp() -> AsyncIterator[Reranker]:
    async with serving(llama_cpp) as site:
        reranker = RerankService(f"{site.url}/v1", style="jina", model="stub")
        yield reranker
        await reranker.close()


@asynccontextmanager
async def on_llm() -> AsyncIterator[Reranker]:
    reranker = LLMReranker(FakeChat(rate))
    yield reranker
    await reranker.close()


@pytest.fixture(
    params=[fake, onnx, on_tei, on_jina, on_llama_cpp, on_llm], ids=["fake", "onnx", "tei", "jina", "llama.cpp", "llm"]
)
def open_reranker(request: pytest.FixtureRequest) -> Open:
    found: Open = request.param
    return found


async def test_a_logit_for_each_passage_in_its_order(open_reranker: Open) -> None:
    async with open_reranker() as reranker:
        scores = await reranker.score(QUESTION, PASSAGES, budget=60)
    known = [score for score in scores if score is not None]
    assert len(known) == len(scores) == 3
    assert all(math.isfinite(score) for score in known)
    # Logits: above 0 is yes. Thresholds are set in them.
    assert known[1] > 0 > max(known[0], known[2])


async def test_more_passages_than_a_batch_holds(open_reranker: Open) -> None:
    async with open_reranker() as reranker:
        scores = await reranker.score(QUESTION, PASSAGES * 7, budget=60)
    assert [score is not None and score > 0 for score in scores] == [False, True, False] * 7


async def test_the_same_passage_has_the_same_score(open_reranker: Open) -> None:
    async with open_reranker() as reranker:
        first = await reranker.score(QUESTION, PASSAGES, budget=60)
        again = await reranker.score(QUESTION, PASSAGES[::-1], budget=60)
    for one, other in zip(first, again[::-1], strict=True):
        assert one == pytest.approx(other, abs=0.2)  # int8: padding moves the last bits


async def test_no_passages_and_no_time(open_reranker: Open) -> None:
    async with open_reranker() as reranker:
        assert await reranker.score(QUESTION, [], budget=1) == []
        assert await reranker.score(QUESTION, PASSAGES, budget=0) == [None] * 3


async def test_odd_and_long_passages_are_scored_too(open_reranker: Open) -> None:
    passages = ["", "\x00", "🙂", "George Orwell, who wrote Animal Farm. " * 200]
    async with open_reranker() as reranker:
        scores = await reranker.score(QUESTION, passages, budget=60)
        assert len(await reranker.score("why " * 2000, PASSAGES, budget=60)) == 3
    assert scores[3] is not None
    assert scores[3] > 0


async def test_questions_at_once_stay_apart(open_reranker: Open) -> None:
    async with open_reranker() as reranker:
        one, two = await asyncio.gather(
            reranker.score(QUESTION, PASSAGES, budget=60), reranker.score(QUESTION, PASSAGES[1:], budget=60)
        )
    assert [score is not None and score > 0 for score in one] == [False, True, False]
    assert [score is not None and score > 0 for score in two] == [True, False]


async def test_it_has_a_name_and_closing_twice_does_no_harm(open_reranker: Open) -> None:
    async with open_reranker() as reranker:
        assert reranker.model
        await reranker.score(QUESTION, PASSAGES, budget=60)
        await reranker.close()
