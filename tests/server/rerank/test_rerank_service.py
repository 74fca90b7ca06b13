"""Rerank services: TEI's and Jina's wire formats, scores of either kind, budgets and faults."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.breaker import Breaker
from graph.errors import DependencyBusyError, DependencyDownError, DependencyError, DependencyFaultError, SettingsError
from server.rerank.rerank_service import RerankService, logit
from tests.graph.model_site import Answer, Asked, Reply, Site, as_json, llama_cpp, relevance, serving, tei, vllm

QUESTION = "Who trims the lamp?"
PASSAGES = ["Bread is baked.", "The keeper trims the lamp.", "A lamp."]
Style = Literal["tei", "jina"]
ANSWERS: dict[Style, Answer] = {"tei": tei, "jina": vllm}


@asynccontextmanager
async def opened(answer: Answer, style: Style = "tei", **options: object) -> AsyncIterator[tuple[RerankService, Site]]:
    async with serving(answer) as site:
        reranker = RerankService(site.url, style=style, model="stub", **options)  # type: ignore[arg-type]
        try:
            yield reranker, site
        finally:
            await reranker.close()


async def fails(answer: Answer, style: Style = "tei", passages: Sequence[str] = PASSAGES) -> DependencyError:
    async with opened(answer, style) as (reranker, site):
        with pytest.raises(DependencyError) as caught:
            await reranker.score(QUESTION, passages, budget=0.5)
        assert site.url in str(caught.value)
        assert caught.value.dependency == "reranker"
        return caught.value


def expected(passages: Sequence[str]) -> list[float]:
    return [relevance(QUESTION, passage) for passage in passages]


async def test_the_wire_of_tei() -> None:
    async with opened(tei, api_key="sk-1") as (reranker, site):
        assert await reranker.score(QUESTION, PASSAGES, budget=5) == expected(PASSAGES)
    [asked] = site.asked
    assert asked.path == "/rerank"
    assert asked.body == {"query": QUESTION, "texts": PASSAGES, "raw_scores": True, "truncate": True}
    assert asked.headers["authorization"] == "Bearer sk-1"


async def test_the_wire_of_jina() -> None:
    async with serving(vllm) as site:
        reranker = RerankService(f"{site.url}/v1", style="jina", model="bge-reranker-v2-m3")
        assert await reranker.score(QUESTION, PASSAGES, budget=5) == pytest.approx(expected(PASSAGES), abs=1e-3)
        await reranker.close()
    [asked] = site.asked
    assert asked.path == "/v1/rerank"
    assert asked.body == {
        "model": "bge-reranker-v2-m3",
        "query": QUESTION,
        "documents": PASSAGES,
        "return_documents": False,
    }


@pytest.mark.parametrize(
    ("style", "recorded", "scores"),
    [
        ("tei", '[{"index":1,"score":-1.5},{"index":0,"score":-7.25}]', [-7.25, -1.5]),
        (
            "jina",  # Jina's own API, and Cohere's with its `meta` instead of `usage`
            '{"model":"jina-reranker-v2-base-multilingual","object":"list","usage":{"total_tokens":38},"results":'
            '[{"index":1,"relevance_score":0.5},{"index":0,"relevance_score":0.25}]}',
            [-1.0986, 0.0],
        ),
        (
            "jina",  # vLLM's
            '{"id":"rerank-46396c6c394b4d1bb810855365ad488e","model":"Qwen3-Reranker-4B","usage":{"total_tokens":9},'
            '"results":[{"index":1,"document":{"text":"banana","multi_modal":null},"relevance_score":0.9121023416519165},'
            '{"index":0,"document":{"text":"apple","multi_modal":null},"relevance_score":0.5}]}',
            [0.0, 2.3396],
        ),
        (
            "jina",  # llama.cpp's
            '{"model":"llama-cpp","object":"list","usage":{"prompt_tokens":464,"total_tokens":464},"results":'
            '[{"index":1,"relevance_score":6.747413635253906},{"index":0,"relevance_score":0.5}]}',
            [0.5, 6.7474],
        ),
    ],
)
async def test_recorded_answers(style: Style, recorded: str, scores: list[float]) -> None:
    async with opened(lambda _: Reply(recorded.encode()), style) as (reranker, _):
        assert await reranker.score(QUESTION, PASSAGES[:2], budget=5) == pytest.approx(scores, abs=1e-3)


async def test_scores_of_jinas_kind_are_probabilities_until_one_cannot_be() -> None:
    replies = iter([[0.9, 0.5], [3.0, 0.5], [0.9, 0.5]])

    def answer(asked: Asked) -> Reply:
        found = [{"index": index, "relevance_score": score} for index, score in enumerate(next(replies))]
        return as_json({"results": found})

    async with opened(answer, "jina") as (reranker, _):
        assert await reranker.score(QUESTION, ["a", "b"], budget=5) == pytest.approx([2.197, 0.0], abs=1e-3)
        assert await reranker.score(QUESTION, ["a", "b"], budget=5) == [3.0, 0.5]
        assert await reranker.score(QUESTION, ["a", "b"], budget=5) == [0.9, 0.5]


async def test_one_answer_decides_for_all_batches_of_a_question() -> None:
    def answer(asked: Asked) -> Reply:
        score = 0.5 if "first" in asked.body["documents"] else -4.0
        return as_json(
            {"results": [{"index": n, "relevance_score": score} for n in range(len(asked.body["documents"]))]}
        )

    async with opened(answer, "jina") as (reranker, _):
        assert await reranker.score(QUESTION, ["first"] * 8 + ["other"], budget=5) == [0.5] * 8 + [-4.0]


async def test_teis_scores_are_logits_whatever_they_look_like() -> None:
    async with opened(lambda _: as_json([{"index": 0, "score": 0.75}])) as (reranker, _):
        assert await reranker.score(QUESTION, ["a"], budget=5) == [0.75]


@given(st.floats(0, 1))
def test_a_probabilitys_logit_is_finite_and_in_order(probability: float) -> None:
    assert -14 < logit(probability) < 14
    assert (logit(probability) > 0) == (probability > 0.5) or abs(probability - 0.5) < 1e-9


async def test_batches_are_small_first_passages_first_and_two_at_once() -> None:
    passages = [f"passage {n} " + "lamp " * (n % 3) for n in range(20)]
    async with opened(tei) as (reranker, site):
        assert await reranker.score(QUESTION, passages, budget=5) == expected(passages)
    assert site.sizes("texts") == [8, 8, 4]
    assert site.asked[0].body["texts"][0] == passages[0]
    assert site.most_at_once <= 2


async def test_what_comes_after_the_budget_is_not_scored() -> None:
    def answer(asked: Asked) -> Reply:
        late = "passage 0" not in asked.body["texts"]
        return Reply(tei(asked).body, wait=30 if late else 0.0)

    passages = [f"passage {n}" for n in range(20)]
    async with opened(answer) as (reranker, _):
        begun = time.monotonic()
        scores = await reranker.score(QUESTION, passages, budget=0.4)
        assert time.monotonic() - begun < 0.8
    assert scores == expected(passages[:8]) + [None] * 12


@pytest.mark.parametrize("style", ["tei", "jina"])
async def test_nothing_within_the_budget_is_named(style: Style) -> None:
    begun = time.monotonic()
    found = await fails(lambda _: Reply(b"{}", wait=30), style, passages=["a"] * 20)
    assert time.monotonic() - begun < 0.9
    assert isinstance(found, DependencyDownError)
    assert "within 0.5 s; raise rerank.budget_seconds" in str(found)


async def test_nothing_to_score_and_no_time_need_no_request() -> None:
    async with opened(tei) as (reranker, site):
        assert await reranker.score(QUESTION, [], budget=1) == []
        assert await reranker.score(QUESTION, PASSAGES, budget=0) == [None] * 3
    assert site.asked == []


def scored(*pairs: tuple[int, object]) -> dict[Style, Reply]:
    return {
        "tei": as_json([{"index": index, "score": score} for index, score in pairs]),
        "jina": as_json({"results": [{"index": index, "relevance_score": score} for index, score in pairs]}),
    }


@pytest.mark.parametrize("style", ["tei", "jina"])
@pytest.mark.parametrize(
    ("replies", "said"),
    [
        (scored(), "gives 0 scores for 3 passages"),
        (scored((0, 1.0), (1, 1.0)), "gives 2 scores for 3 passages"),
        (scored(*[(n, 1.0) for n in range(4)]), "gives 4 scores for 3 passages"),
        (scored((0, 1.0), (1, 1.0), (1, 1.0)), "gives 3 scores for 3 passages, but some numbers are repeated"),
        (scored((0, 1.0), (1, 1.0), (3, 1.0)), "out of range"),
        (scored((0, 1.0), (1, 1.0), (-1, 1.0)), "out of range"),
        (scored((0, 1.0), (1, 1.0), (2, float("nan"))), "gives 3 scores for 3 passages, but some are no numbers"),
        (scored((0, 1.0), (1, 1.0), (2, float("-inf"))), "no numbers"),
        (scored((0, 1.0), (1, 1.0), (2, None)), "another form"),
        (scored((0, 1.0), (1, 1.0), (2, "best")), "another form"),
    ],
)
async def test_scores_that_do_not_fit_are_a_fault(style: Style, replies: dict[Style, Reply], said: str) -> None:
    found = await fails(lambda _: replies[style], style)
    assert isinstance(found, DependencyFaultError)
    assert said in str(found)
    assert "rerank." in str(found)


@pytest.mark.parametrize(
    ("reply", "error", "said"),
    [
        (Reply(b"secret", status=500), DependencyFaultError, "status 500"),
        (Reply(b"<html>secret", headers={"Content-Type": "text/html"}), DependencyFaultError, "rerank.url"),
        (Reply(), DependencyFaultError, "empty answer"),
        (Reply(b'{"error": "secret"}', status=401), DependencyFaultError, "rerank.api_key"),
        (Reply(b'{"error": "secret"}', status=404), DependencyFaultError, "rerank.url and rerank.provider"),
        (Reply(b'{"detail": "secret"}', status=422), DependencyFaultError, "rerank.name and rerank.provider"),
        (Reply(b'{"error":"model is not a re-ranker model"}', status=424), DependencyFaultError, "cannot rerank"),
        (
            Reply(b'{"error":{"message":"The model `x` does not exist."}}', status=404),
            DependencyFaultError,
            "no model 'stub'; set rerank.name",
        ),
        (Reply(status=429, headers={"Retry-After": "3"}), DependencyBusyError, "3 s"),
        (Reply(status=503), DependencyBusyError, "busy"),
        (Reply(b"{}" * 9, hang_up=True), DependencyDownError, "broke"),
    ],
)
async def test_faults_are_named_and_the_body_is_not_shown(
    reply: Reply, error: type[DependencyError], said: str
) -> None:
    found = await fails(lambda _: reply)
    assert type(found) is error
    assert said in str(found)
    assert "secret" not in str(found)


async def test_the_other_styles_answer_is_a_fault_that_names_the_address() -> None:
    assert "another form" in str(await fails(lambda _: scored((0, 1.0))["jina"], "tei"))
    assert "another form" in str(await fails(lambda _: scored((0, 1.0))["tei"], "jina"))


async def test_nobody_there_is_named_without_the_password() -> None:
    reranker = RerankService("http://user:secret@127.0.0.1:1", style="tei", model="stub")
    with pytest.raises(DependencyDownError, match=r"http://127\.0\.0\.1:1 .*rerank\.url") as caught:
        await reranker.score(QUESTION, PASSAGES, budget=1)
    assert "secret" not in str(caught.value)
    await reranker.close()


def test_no_address_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"rerank\.url"):
        RerankService("", style="tei", model="stub")


async def test_what_is_too_long_is_cut_where_the_service_does_not_do_it() -> None:
    def answer(asked: Asked) -> Reply:
        if any(len(text) > 500 for text in asked.body["documents"]):
            error = "input (596 tokens) is too large to process. increase the physical batch size"
            return as_json({"error": {"code": 500, "message": error, "type": "server_error"}}, status=500)
        return llama_cpp(asked)

    passages = ["Bread.", "The keeper trims the lamp. " + "word " * 1000, "A lamp."]
    async with opened(answer, "jina") as (reranker, _):
        assert await reranker.score(QUESTION, passages, budget=5) == pytest.approx(expected(passages))


async def test_the_breaker_opens_and_a_service_that_is_back_is_used_without_a_restart() -> None:
    alive = False

    def answer(asked: Asked) -> Reply:
        return tei(asked) if alive else Reply(status=500)

    passages = PASSAGES * 7
    async with opened(answer, breaker=Breaker("reranker", failures=2, cooldown=0.2)) as (reranker, site):
        for _ in range(6):
            with pytest.raises(DependencyError, match="status 500"):
                await reranker.score(QUESTION, passages, budget=1)
        assert len(site.asked) <= 4
        alive = True
        await asyncio.sleep(0.25)
        assert await reranker.score(QUESTION, passages, budget=1) == expected(passages)


async def test_a_slow_service_that_scores_some_is_not_given_up_on() -> None:
    def answer(asked: Asked) -> Reply:
        return Reply(tei(asked).body, wait=0 if "passage 0" in asked.body["texts"] else 30)

    passages = [f"passage {n}" for n in range(20)]
    async with opened(answer, breaker=Breaker("reranker")) as (reranker, _):
        for _ in range(6):
            assert (await reranker.score(QUESTION, passages, budget=0.1))[:8] == expected(passages[:8])


async def test_any_text_can_be_sent() -> None:
    passages = ["", "\x00", "half a pair \ud83d", "x" * 100_000]
    async with opened(tei) as (reranker, site):
        scores = await reranker.score("why \udc00 " * 5000, passages, budget=5)
    assert len(scores) == 4
    assert json.dumps(site.asked[0].body["query"])
    assert len(site.asked[0].body["query"]) <= 1000
