"""What the embedders behind a service share, whatever protocol it speaks."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Required, TypedDict, TypeVar

import numpy as np
from numpy.typing import NDArray

from graph.breaker import BreakerState
from graph.errors import StoreVersionError
from graph.model_service import CONCURRENT, ModelService, in_parts, sendable, together
from graph.token_estimate import estimate_tokens

SPECIAL_TOKENS = 2
"""What a model puts around a text, such as [CLS] and [SEP]."""

A = TypeVar("A")


class ServiceOptions(TypedDict, total=False):
    """What all of them take."""

    model: Required[str]
    dimension: Required[int]
    """0 where it is not known yet; then that of the first answer holds."""
    query_prefix: str
    passage_prefix: str
    max_tokens: int
    seconds: float
    """The deadline of one batch of passages, with what a busy service makes it wait."""
    question_seconds: float
    """That of a question, which would rather do without its vector than wait."""
    batch_size: int


class ServiceEmbedder(ABC):
    """An embedder behind a `ModelService`, whatever it speaks."""

    def __init__(
        self,
        service: ModelService,
        *,
        model: str,
        dimension: int,
        query_prefix: str = "",
        passage_prefix: str = "",
        max_tokens: int = 512,
        seconds: float = 30.0,
        question_seconds: float = 3.0,
        batch_size: int = 32,
    ) -> None:
        self.model = model
        self.dimension = dimension
        self.max_tokens = max_tokens
        self._service = service
        self._query_prefix = query_prefix
        self._passage_prefix = passage_prefix
        self._seconds = seconds
        self._question_seconds = question_seconds
        self._batch_size = batch_size
        self._slots = asyncio.Semaphore(CONCURRENT)

    async def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        prepared = [sendable(self._passage_prefix + text) for text in texts]
        batches = [prepared[start : start + self._batch_size] for start in range(0, len(texts), self._batch_size)]

        async def embed(batch: list[str]) -> list[NDArray[np.float32]]:
            async with self._slots:
                return await self._rows(batch, self._seconds, patient=True)

        # While the service is given up on one tries alone: the breaker would refuse a second, which would end both.
        alone = 0 if self._service.breaker.state is BreakerState.CLOSED else 1
        found = [await embed(batch) for batch in batches[:alone]]
        found += await together(embed(batch) for batch in batches[alone:])
        rows = [row for part in found for row in part]
        return np.stack(rows) if rows else np.zeros((0, self.dimension), np.float32)

    async def embed_question(self, question: str) -> NDArray[np.float32]:
        text = sendable(self._query_prefix + question)
        return (await self._rows([text], self._question_seconds, patient=False))[0]

    def count_tokens(self, text: str) -> int:
        """An over-estimate: the protocols have no call for it."""
        return estimate_tokens(text) + SPECIAL_TOKENS

    async def close(self) -> None:
        await self._service.close()

    @abstractmethod
    async def _request(self, texts: list[str], *, seconds: float, patient: bool) -> NDArray[np.float32]:
        """One request; a row for each text, through `_unit_rows`."""

    async def _rows(self, texts: list[str], seconds: float, *, patient: bool) -> list[NDArray[np.float32]]:
        deadline = time.monotonic() + seconds

        async def ask(part: list[str]) -> list[NDArray[np.float32]]:
            return list(await self._request(part, seconds=deadline - time.monotonic(), patient=patient))

        return await in_parts(texts, ask, max_tokens=self.max_tokens)

    async def _ask(
        self,
        body: Mapping[str, Any],
        kind: type[A],
        read: Callable[[A], NDArray[np.float32]],
        *,
        seconds: float,
        patient: bool,
    ) -> NDArray[np.float32]:
        if patient:
            hint = "raise embedder.seconds, or lower embedder.batch_size"
            return await self._service.ask_patiently(body, kind, read, seconds=seconds, if_slow=hint)
        hint = "check that it has loaded the model and is not overloaded"
        return await self._service.ask(body, kind, read, seconds=seconds, if_slow=hint)

    def _unit_rows(self, vectors: Sequence[Sequence[float]], count: int) -> NDArray[np.float32]:
        """(count, dimension), normalised, since services differ in whether they do it."""
        if len(vectors) != count:
            raise self._service.fault(f"gives {len(vectors)} vectors for {count} texts; check what answers there")
        sizes = {len(vector) for vector in vectors}
        if len(sizes) != 1 or 0 in sizes:
            raise self._service.fault(
                f"gives no vectors of one length for {self.model}; check that it is an embedding model"
            )
        (size,) = sizes
        if self.dimension not in (0, size):
            raise StoreVersionError(
                f"{self._service.place} gives {size} numbers for {self.model} and {self.dimension} are expected: "
                "serve the model that the store was made with, or run `trivet ingest --rebuild`"
            )
        rows = np.asarray(vectors, np.float64)
        # Scaled first, so that no square runs over.
        largest = np.abs(rows).max(axis=1, keepdims=True)
        if not np.isfinite(largest).all() or not largest.all():
            raise self._service.fault(
                f"gives vectors for {self.model} that are not of numbers or all zero; see its log"
            )
        self.dimension = size
        rows /= largest
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


async def measured_dimension(embedder: ServiceEmbedder) -> int:
    """How many numbers the service gives, by one call; as patient as for passages, since a model may have to load."""
    return int((await embedder.embed_passages(["dimension"])).shape[1])
