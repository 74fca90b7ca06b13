"""The bundled embedder: unit vectors in the order of the texts, whatever the batches."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from graph.errors import SettingsError
from graph.onnx_embedder import OnnxEmbedder
from graph.onnx_models import bundled_model_dir, length_batches, open_model

TEXTS = ["A lighthouse on a reef.", "量子纠缠", "", "lamp " * 700, "The keeper trims the lamp."]


def embedder(**changes: object) -> OnnxEmbedder:
    given: dict[str, object] = {"name": "bge", "query_prefix": "Query: ", "pooling": "cls"}
    return OnnxEmbedder(bundled_model_dir("bge_small_en"), **{**given, **changes})  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def bge() -> OnnxEmbedder:
    return embedder()


async def test_unit_vectors_row_by_row(bge: OnnxEmbedder) -> None:
    vectors = await bge.embed_passages(TEXTS)
    assert vectors.shape == (5, 384)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)
    for text, vector in zip(TEXTS, vectors, strict=True):
        (alone,) = await bge.embed_passages([text])
        assert float(alone @ vector) > 0.97  # int8 activations are scaled over the whole batch


async def test_near_in_meaning_is_near(bge: OnnxEmbedder) -> None:
    question = await embedder(query_prefix="Represent this sentence for searching relevant passages: ").embed_question(
        "Who looks after the light?"
    )
    vectors = await bge.embed_passages(["The keeper trims the lamp.", "Bread is baked from flour."])
    assert vectors[0] @ question > vectors[1] @ question


async def test_no_texts(bge: OnnxEmbedder) -> None:
    assert (await bge.embed_passages([])).shape == (0, 384)


def test_tokens_are_counted_untruncated(bge: OnnxEmbedder) -> None:
    assert bge.count_tokens("lamp " * 700) == 702
    assert bge.count_tokens("") == 2


async def test_mean_pooling_ignores_padding() -> None:
    mean = embedder(pooling="mean")
    together = await mean.embed_passages(["Short.", "A much longer text about a lamp and its keeper."])
    (alone,) = await mean.embed_passages(["Short."])
    assert float(together[0] @ alone) > 0.99


@pytest.mark.parametrize("content", [None, b"not a model"])
def test_a_folder_that_is_no_model_is_named(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        for name in ("model.onnx", "tokenizer.json"):
            (tmp_path / name).write_bytes(content)
    with pytest.raises(SettingsError, match=str(tmp_path)):
        open_model(tmp_path, max_tokens=512)


def test_batches_are_of_similar_length_and_complete() -> None:
    assert length_batches([3, 9, 1, 8, 2], batch_size=2) == [[1, 3], [0, 4], [2]]
