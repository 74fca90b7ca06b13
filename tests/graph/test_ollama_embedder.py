"""Ollama's own wire format; the faults it shares with other services are in test_openai_embedder.py."""

from __future__ import annotations

import json

import numpy as np
import pytest

from graph.errors import DependencyFaultError
from graph.ollama_embedder import OllamaEmbedder
from tests.graph.model_site import Answer, Asked, Reply, as_json, ollama, ollama_embeddings, serving, vector
from tests.services.environment import service


async def refused(answer: Answer) -> str:
    async with serving(answer) as site:
        embedder = OllamaEmbedder(site.url, model="bge-m3", dimension=0)
        with pytest.raises(DependencyFaultError) as caught:
            await embedder.embed_question("Who?")
        await embedder.close()
        assert caught.value.dependency == "ollama"
        assert f"Ollama at {site.url} " in str(caught.value)
        return str(caught.value)


async def test_the_wire() -> None:
    async with serving(ollama) as site:
        embedder = OllamaEmbedder(
            f"{site.url}/", model="stub", dimension=32, query_prefix="query: ", passage_prefix="passage: "
        )
        await embedder.embed_passages(["a lamp", ""])
        await embedder.embed_question("Who?")
        await embedder.close()
    passages, question = site.asked
    assert passages.path == "/api/embed"
    assert passages.body == {"model": "stub", "input": ["passage: a lamp", "passage: "], "truncate": True}
    assert question.body["input"] == ["query: Who?"]
    assert "authorization" not in passages.headers


async def test_rows_are_in_order_over_batches_and_an_empty_text_has_one_too() -> None:
    texts = [f"word{n} lamp" for n in range(9)] + [""]
    async with serving(ollama) as site:
        embedder = OllamaEmbedder(site.url, model="stub", dimension=32, batch_size=4)
        rows = await embedder.embed_passages(texts)
        await embedder.close()
    assert site.sizes("input") == [4, 4, 2]
    for text, row in zip(texts, rows, strict=True):
        assert row == pytest.approx(np.array(vector(text)) / 3, abs=1e-6)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (404, '{"error":"model \\"bge-m3\\" not found, try pulling it first"}'),  # 0.9.6
        (404, '{"error":"model \'bge-m3\' not found"}'),
    ],
)
async def test_a_model_that_is_not_there_comes_with_the_command_that_gets_it(status: int, body: str) -> None:
    said = await refused(lambda _: Reply(body.encode(), status=status))
    assert "run `ollama pull bge-m3`" in said
    assert "embedder.name" in said


@pytest.mark.parametrize("status", [400, 500, 501])
async def test_a_model_that_cannot_embed_is_named(status: int) -> None:
    body = {"error": "this model does not support embeddings"}
    assert "bge-m3, which cannot embed; set embedder.name" in await refused(lambda _: as_json(body, status=status))


async def test_null_in_place_of_a_vector_is_how_older_ones_say_it() -> None:
    """Ollama 0.6.0 with gemma3 (its issue 9739)."""
    assert "check that it is an embedding model" in await refused(lambda _: ollama_embeddings([None]))


async def test_another_path_is_the_addresss_fault() -> None:
    async with serving(ollama) as site:
        embedder = OllamaEmbedder(f"{site.url}/v1", model="stub", dimension=0)
        with pytest.raises(DependencyFaultError, match=r"knows no /api/embed.*embedder\.url"):
            await embedder.embed_question("Who?")
        await embedder.close()


async def test_what_the_wheel_of_time_adds_to_the_answer_does_no_harm() -> None:
    def newer(asked: Asked) -> Reply:
        return as_json({**json.loads(ollama(asked).body), "something_new": {"a": 1}})

    async with serving(newer) as site:
        embedder = OllamaEmbedder(site.url, model="stub", dimension=32)
        assert (await embedder.embed_question("Who?")).shape == (32,)
        await embedder.close()


def test_a_recorded_answer_is_what_the_stub_gives() -> None:
    """Ollama 0.9.6 with SmolLM2, its numbers shortened."""
    recorded = json.loads(
        '{"model":"smollm2","embeddings":[[-0.024634367,-0.003741118,-0.00602082]],"total_duration":1615024210,'
        '"load_duration":2961521,"prompt_eval_count":5}'
    )
    ours = json.loads(ollama_embeddings([[-0.024634367, -0.003741118, -0.00602082]]).body)
    assert {**ours, "model": "smollm2"} == recorded


@pytest.mark.services
async def test_a_real_ollama_names_a_model_that_it_has_not() -> None:
    embedder = OllamaEmbedder(service("OLLAMA_URL"), model="no-such-model", dimension=0, question_seconds=60)
    with pytest.raises(DependencyFaultError, match="run `ollama pull no-such-model`"):
        await embedder.embed_question("Who?")
    await embedder.close()
