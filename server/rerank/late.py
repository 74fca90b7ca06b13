"""Late interaction: each of the question's tokens looks for its like in a passage (Khattab & Zaharia 2020, ColBERT)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graph.protocols import TokenEmbedder, TokenStore


@dataclass(frozen=True, slots=True)
class LateInteraction:
    """The model that reads questions, and the token vectors that ingestion made of the chunks."""

    embedder: TokenEmbedder
    tokens: TokenStore

    async def score(self, question: str, keys: Sequence[str]) -> list[float | None]:
        """In the order of `keys`, at most the number of the question's tokens; None for keys without token vectors
        (passages of the web, and chunks from before late interaction was on)."""
        vectors = await self.embedder.embed_question(question)
        return await asyncio.to_thread(self._score, vectors, keys)

    def _score(self, question: NDArray[np.float32], keys: Sequence[str]) -> list[float | None]:
        stored = self.tokens.get(keys)
        known = [key for key in keys if key in stored]
        scores = dict(zip(known, max_sim(question, [stored[key] for key in known]).tolist(), strict=True))
        return [scores.get(key) for key in keys]


def max_sim(question: NDArray[np.float32], passages: Sequence[NDArray[np.int8]]) -> NDArray[np.float32]:
    """For each passage the sum, over the question's tokens, of the cosine with the passage's nearest token.

    `question`: (tokens, width), rows of length 1; each of `passages`: (its tokens, width), at least one row, of any
    length but 0. All passages are compared in one product, which for 50 of 150 tokens takes 3 ms.
    """
    if not passages:
        return np.zeros(0, np.float32)
    rows = np.concatenate(passages).astype(np.float32)
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    cosines = (rows @ question.T) / lengths[:, None]
    starts = np.cumsum([0, *(len(passage) for passage in passages[:-1])])
    return np.asarray(np.maximum.reduceat(cosines, starts, axis=0).sum(axis=1), dtype=np.float32)
