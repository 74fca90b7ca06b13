"""Which model reads the sentences of an extractive answer, and what the embedder makes of them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from graph.errors import DependencyDownError
from server.answer.answer import whole_answer
from server.answer.sentence_reader import AT_ONCE, EmbeddedSentences, sentence_reader
from server.model import Question
from server.question_vectors import QuestionVectors
from tests.fakes import HashEmbedder
from tests.server.answer.found import ScriptedSearch, backends
from tests.server.answer.test_extractive import ScoreBy, page


class NamedEmbedder(HashEmbedder):
    """Compares words; takes so long for each sentence, and may be down."""

    def __init__(self, model: str = "multilingual-e5-small", seconds: float = 0.0, *, down: bool = False) -> None:
        super().__init__(512)
        self.model = model
        self.seconds = seconds
        self.down = down
        self.calls: list[int] = []

    async def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if self.down:
            raise DependencyDownError("the embedder is down", dependency="ollama")
        await asyncio.sleep(self.seconds * len(texts))
        self.calls.append(len(texts))
        return await super().embed_passages(texts)


def named(model: str) -> ScoreBy:
    reranker = ScoreBy({})
    reranker.model = model
    return reranker


ENGLISH, MANY = "ms-marco-MiniLM-L12-v2", "bge-reranker-v2-m3"


@pytest.mark.parametrize(
    ("language", "reranker", "embedder", "reads"),
    [
        ("en", ENGLISH, "bge-small-en-v1.5", ENGLISH),
        ("", ENGLISH, "multilingual-e5-small", ENGLISH),
        ("fr", MANY, "bge-small-en-v1.5", MANY),
        ("fr", ENGLISH, "multilingual-e5-small", "multilingual-e5-small"),
        ("fr", ENGLISH, "bge-small-en-v1.5", None),
        ("fr", None, "bge-small-en-v1.5", None),
        ("fr", None, "bge-m3", "bge-m3"),
        ("en", None, "bge-small-en-v1.5", "bge-small-en-v1.5"),
    ],
)
def test_who_knows_the_language_reads(language: str, reranker: str | None, embedder: str, reads: str | None) -> None:
    found = sentence_reader(language, named(reranker) if reranker else None, NamedEmbedder(embedder), QuestionVectors())
    assert (found.model if found else None) == reads


async def test_the_sentence_most_like_the_question_scores_most() -> None:
    reader = EmbeddedSentences(NamedEmbedder(), QuestionVectors())
    question = "la lampe du phare"
    low, high = await reader.score(question, ["Le pain est cuit.", "la lampe du phare"], budget=5)
    assert low == 0
    assert high == pytest.approx(18, abs=0.01)


async def test_what_there_is_no_time_for_is_left_unscored() -> None:
    embedder = NamedEmbedder(seconds=0.05)
    reader = EmbeddedSentences(embedder, QuestionVectors())
    scores = await reader.score("la lampe", ["la lampe"] * 40, budget=0.5)
    assert len(scores) == 40
    known = [score for score in scores if score is not None]
    assert AT_ONCE <= len(known) <= 3 * AT_ONCE
    assert scores[: len(known)] == known
    assert set(embedder.calls) == {AT_ONCE}


async def test_an_embedder_that_is_too_slow_for_any_says_so() -> None:
    reader = EmbeddedSentences(NamedEmbedder(seconds=5), QuestionVectors())
    with pytest.raises(DependencyDownError, match=r"took over 0\.05 s"):
        await reader.score("la lampe", ["la lampe"], budget=0.05)


async def test_no_sentences_cost_nothing() -> None:
    assert await EmbeddedSentences(NamedEmbedder(), QuestionVectors()).score("la lampe", [], budget=1) == []


PAGES = (
    page(1, "Le village a un port et une lampe. Le pain du village est noir."),
    page(2, "Une lampe du phare brûle depuis 1887. Personne ne la voit de jour."),
)


@pytest.mark.parametrize("down", [False, True])
async def test_a_french_answer_comes_of_the_embedder_or_else_of_words(
    monkeypatch: pytest.MonkeyPatch, down: bool
) -> None:
    monkeypatch.setattr("server.answer.answer.search", ScriptedSearch(evidence=PAGES, language="fr"))
    reranker = named(ENGLISH)
    on = replace(backends(reranker=reranker), embedder=NamedEmbedder(down=down))
    answer = await whole_answer(Question(text="Depuis quand brûle une lampe du phare ?"), on)
    assert answer.mode == "extractive"
    assert answer.text.startswith("Une lampe du phare brûle depuis 1887. [2]")
    assert reranker.asked == []
    told = [note for note in answer.notes if "shared words alone" in note]
    assert bool(told) == down
