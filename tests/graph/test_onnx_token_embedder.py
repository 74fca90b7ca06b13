"""The bundled ColBERT: marks before texts, long texts cut, punctuation left out of passages."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from graph.errors import SettingsError
from graph.onnx_models import bundled_model_dir
from graph.onnx_token_embedder import (
    MAX_TOKENS,
    PASSAGE_MARK,
    QUESTION_MARK,
    QUESTION_TOKENS,
    OnnxTokenEmbedder,
    marked_tokenizer,
)

COLBERT = bundled_model_dir("colbert")


@pytest.fixture
async def embedder() -> AsyncIterator[OnnxTokenEmbedder]:
    opened = OnnxTokenEmbedder(COLBERT, name="colbert")
    yield opened
    await opened.close()


def test_the_mark_stands_after_the_first_token() -> None:
    tokens = marked_tokenizer(COLBERT, QUESTION_MARK, max_tokens=6).encode("who trims the lamp").tokens
    assert tokens == ["[CLS]", "[unused0]", "who", "trim", "##s", "[SEP]"]
    assert marked_tokenizer(COLBERT, PASSAGE_MARK, max_tokens=6).encode("").tokens == ["[CLS]", "[unused1]", "[SEP]"]


async def test_a_passage_has_no_vector_for_punctuation(embedder: OnnxTokenEmbedder) -> None:
    plain, marked = await embedder.embed_passages(["the lamp the keeper", "the lamp, the keeper!"])
    assert plain.shape == marked.shape == (7, 128)
    assert (await embedder.embed_question("the lamp?")).shape == (6, 128)


async def test_what_is_too_long_loses_its_end(embedder: OnnxTokenEmbedder) -> None:
    (passage,) = await embedder.embed_passages(["lamp " * 700])
    assert passage.shape == (MAX_TOKENS, 128)
    assert (await embedder.embed_question("lamp " * 700)).shape == (QUESTION_TOKENS, 128)


async def test_no_passages(embedder: OnnxTokenEmbedder) -> None:
    assert await embedder.embed_passages([]) == []


def test_another_kind_of_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"no model\.onnx"):
        OnnxTokenEmbedder(tmp_path, name="none")
    with pytest.raises(SettingsError, match=r"has no \[unused999999\]"):
        marked_tokenizer(COLBERT, "[unused999999]", max_tokens=8)
