"""A token embedder that knows only the words."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from graph.names import words

WIDTH = 64


class HashTokenEmbedder:
    """A direction for each word, by its hash, so that equal words are equal and others hardly alike."""

    model = "token-hash"
    dimension = WIDTH

    async def embed_passages(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        return [_vectors(text) for text in texts]

    async def embed_question(self, question: str) -> NDArray[np.float32]:
        return _vectors(question)

    async def close(self) -> None: ...


def _vectors(text: str) -> NDArray[np.float32]:
    rows = [_direction(word) for word in ("", *words(text))]
    return np.stack(rows)


def _direction(word: str) -> NDArray[np.float32]:
    row = np.random.default_rng(zlib.crc32(word.encode())).standard_normal(WIDTH)
    return np.asarray(row / np.linalg.norm(row), dtype=np.float32)
