"""What every token embedder must do: the fake, and the bundled model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import numpy as np
import pytest

from graph.onnx_models import bundled_model_dir
from graph.onnx_token_embedder import OnnxTokenEmbedder
from graph.protocols import TokenEmbedder
from tests.fake_tokens import HashTokenEmbedder

Open = Callable[[], AbstractAsyncContextManager[TokenEmbedder]]
TEXTS = ["The keeper trims the lamp.", "", "量子纠缠", "lamp " * 700, "The keeper trims the lamp."]


@asynccontextmanager
async def fake() -> AsyncIterator[TokenEmbedder]:
    yield HashTokenEmbedder()


@asynccontextmanager
async def onnx() -> AsyncIterator[TokenEmbedder]:
    embedder = OnnxTokenEmbedder(bundled_model_dir("colbert"), name="colbert", batch_size=2)
    yield embedder
    await embedder.close()


@pytest.fixture(params=[fake, onnx], ids=["fake", "onnx"])
async def embedder(request: pytest.FixtureRequest) -> AsyncIterator[TokenEmbedder]:
    async with request.param() as opened:
        yield opened


async def test_a_unit_vector_for_each_token(embedder: TokenEmbedder) -> None:
    passages = await embedder.embed_passages(TEXTS)
    assert len(passages) == len(TEXTS)
    for vectors in (*passages, await embedder.embed_question("Who trims the lamp?")):
        assert vectors.dtype == np.float32
        assert vectors.shape[0] > 0
        assert vectors.shape[1] == embedder.dimension
        assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)


async def test_a_text_s_vectors_do_not_depend_on_its_batch(embedder: TokenEmbedder) -> None:
    for text, vectors in zip(TEXTS, await embedder.embed_passages(TEXTS), strict=True):
        (alone,) = await embedder.embed_passages([text])
        assert alone.shape == vectors.shape
        assert float((alone * vectors).sum(axis=1).mean()) > 0.97  # int8 activations are scaled over the whole batch


async def test_no_passage(embedder: TokenEmbedder) -> None:
    assert await embedder.embed_passages([]) == []


async def test_what_answers_is_nearer(embedder: TokenEmbedder) -> None:
    question = await embedder.embed_question("Who trims the lamp?")
    right, wrong = await embedder.embed_passages(["The keeper trims the lamp.", "Bread is baked from flour."])
    assert (question @ right.T).max(axis=1).sum() > (question @ wrong.T).max(axis=1).sum()


async def test_a_passage_of_marks_alone_has_vectors_too(embedder: TokenEmbedder) -> None:
    for vectors in await embedder.embed_passages(["…!?", "., ; :", " "]):
        assert vectors.shape[0] > 0
