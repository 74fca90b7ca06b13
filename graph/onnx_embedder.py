"""The embedder that needs no server: an ONNX model on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding

from graph.onnx_batches import OnnxBatches
from graph.onnx_models import open_tokenizer

MAX_TOKENS = 512


class OnnxEmbedder:
    """`Embedder` on a model of the bundled kind: token vectors, of which it makes one."""

    def __init__(
        self,
        folder: Path,
        *,
        name: str,
        query_prefix: str,
        pooling: Literal["cls", "mean"],
        passage_prefix: str = "",
        threads: int = 0,
        batch_size: int = 8,
    ) -> None:
        self.model = name
        self.max_tokens = MAX_TOKENS
        self._batches = OnnxBatches(folder, max_tokens=MAX_TOKENS, threads=threads, batch_size=batch_size)
        self._counter = open_tokenizer(folder)
        self._query_prefix = query_prefix
        self._passage_prefix = passage_prefix
        self._pool = partial(pool, pooling=pooling)
        sample = self._batches.tokenizer.encode_batch(["dimension"])
        self.dimension = int(self._batches.run_batch(sample, self._pool)[0].shape[0])

    async def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if not texts:
            return np.zeros((0, self.dimension), np.float32)
        return np.stack(await self._batches.run([self._passage_prefix + text for text in texts], self._pool))

    async def embed_question(self, question: str) -> NDArray[np.float32]:
        return (await self._batches.run([self._query_prefix + question], self._pool))[0]

    def count_tokens(self, text: str) -> int:
        """Untruncated, special tokens included."""
        return len(self._counter.encode(text).ids)

    async def close(self) -> None:
        self._batches.close()


def pool(
    states: NDArray[np.float32], encodings: list[Encoding], *, pooling: Literal["cls", "mean"]
) -> list[NDArray[np.float32]]:
    """Token vectors to one unit vector each: the first token's, or the mean over those that are not padding."""
    if pooling == "cls":
        vectors = states[:, 0]
    else:
        counts = np.array([len(encoding.ids) for encoding in encodings])
        mask = (np.arange(states.shape[1])[None, :] < counts[:, None]).astype(np.float32)
        vectors = (states * mask[..., None]).sum(axis=1) / counts[:, None]
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return list(np.asarray(vectors / np.maximum(norms, 1e-12), dtype=np.float32))
