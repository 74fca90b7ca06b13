"""Which model says how well a sentence fits a question: the cross-encoder, or the embedder where only it knows the
language, or there is no cross-encoder."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from graph.errors import DependencyDownError
from graph.prefixes import cosine_of_nothing, knows_english_only
from graph.protocols import Embedder, Reranker
from server.question_vectors import QuestionVectors

COSINE_LOGITS = 18.0
"""What a cosine of 1 is worth beside words and places, where one that means nothing is 0.

Chosen on 150 questions of the second half of piaf, with multilingual-e5-small, and of squad_dev; from 12 to 24 it makes
no difference beyond the noise.
"""
AT_ONCE = 4
"""Sentences embedded in one call, as none is cut short in it: slow embedders read as many as there is time for."""


def sentence_reader(
    language: str, reranker: Reranker | None, embedder: Embedder, vectors: QuestionVectors
) -> Reranker | None:
    """For a question in that language, "" where it is not known; None where neither knows it: then words alone are a
    better judge (French sentences by English models: an answer is contained in 65 % instead of 73 %)."""
    foreign = language not in ("", "en")
    if reranker is not None and not (foreign and knows_english_only(reranker.model)):
        return reranker
    if foreign and knows_english_only(embedder.model):
        return None
    return EmbeddedSentences(embedder, vectors)


class EmbeddedSentences:
    """A `Reranker` that compares the vectors of question and sentence. Its embedder is closed elsewhere."""

    def __init__(self, embedder: Embedder, vectors: QuestionVectors) -> None:
        self.model = embedder.model
        self._embedder = embedder
        self._vectors = vectors
        self._floor = cosine_of_nothing(embedder.model)

    async def score(self, question: str, passages: Sequence[str], *, budget: float) -> list[float | None]:
        """Raises `DependencyError`, also where not even the first ones came in time."""
        scores: list[float | None] = []
        end = time.monotonic() + budget
        try:
            async with asyncio.timeout(budget):
                asked = (await self._vectors.of(question, self._embedder)).dense
                while len(scores) < len(passages) and time.monotonic() < end:
                    read = await self._embedder.embed_passages(passages[len(scores) : len(scores) + AT_ONCE])
                    scores += [self._logit(float(cosine)) for cosine in read @ asked]
        except TimeoutError:
            if not scores:
                raise DependencyDownError(
                    f"the embedder took over {budget:g} s (rerank.budget_seconds)", dependency="embedder"
                ) from None
        return [*scores, *[None] * (len(passages) - len(scores))]

    async def close(self) -> None: ...

    def _logit(self, cosine: float) -> float:
        return COSINE_LOGITS * max(cosine - self._floor, 0.0) / (1.0 - self._floor)
