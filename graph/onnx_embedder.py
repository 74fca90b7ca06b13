"""The embedder that needs no server: an ONNX model on the CPU."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding

from graph.onnx_models import OnnxModel, length_batches, open_model, open_tokenizer, worker_count

MAX_TOKENS = 512


class OnnxEmbedder:
    """Batches by length over threads that each run the model with one thread of its own.

    Measured on 2 cores (packages.md): 3,650 tokens/s, against 1,900–2,700 for one run with two inner threads.
    """

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
        self._model = open_model(folder, max_tokens=MAX_TOKENS)
        self._counter = open_tokenizer(folder)
        self._query_prefix = query_prefix
        self._passage_prefix = passage_prefix
        self._pooling = pooling
        self._batch_size = batch_size
        self._threads = ThreadPoolExecutor(worker_count(threads), thread_name_prefix="embed")
        self.dimension = int(self._embed(self._model.tokenizer.encode_batch(["dimension"])).shape[1])

    async def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return await self._vectors([self._passage_prefix + text for text in texts])

    async def embed_question(self, question: str) -> NDArray[np.float32]:
        return np.asarray((await self._vectors([self._query_prefix + question]))[0])

    async def _vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if not texts:
            return np.zeros((0, self.dimension), np.float32)
        loop = asyncio.get_running_loop()
        encodings = await loop.run_in_executor(self._threads, self._model.tokenizer.encode_batch, list(texts))
        batches = length_batches([len(encoding.ids) for encoding in encodings], batch_size=self._batch_size)
        vectors = np.empty((len(texts), self.dimension), np.float32)

        async def fill(batch: list[int]) -> None:
            part = [encodings[index] for index in batch]
            vectors[batch] = await loop.run_in_executor(self._threads, self._embed, part)

        await asyncio.gather(*(fill(batch) for batch in batches))
        return vectors

    def count_tokens(self, text: str) -> int:
        """Untruncated, special tokens included."""
        return len(self._counter.encode(text).ids)

    async def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _embed(self, encodings: list[Encoding]) -> NDArray[np.float32]:
        return pool(self._model, encodings, self._pooling)


def pool(model: OnnxModel, encodings: list[Encoding], pooling: Literal["cls", "mean"]) -> NDArray[np.float32]:
    """Token vectors to one unit vector each: the first token's, or the mean over those that are not padding."""
    states = model.run(encodings)
    if pooling == "cls":
        vectors = states[:, 0]
    else:
        lengths = np.array([len(encoding.ids) for encoding in encodings])
        mask = (np.arange(states.shape[1])[None, :] < lengths[:, None]).astype(np.float32)
        vectors = (states * mask[..., None]).sum(axis=1) / lengths[:, None]
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(norms, 1e-12), dtype=np.float32)
