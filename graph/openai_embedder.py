"""An embedding model behind any server that speaks OpenAI's embeddings: OpenAI, TEI, vLLM, llama.cpp, Ollama."""

from __future__ import annotations

from typing import Unpack

import msgspec
import numpy as np
from numpy.typing import NDArray

from graph.breaker import Breaker
from graph.model_service import ModelService
from graph.service_embedder import ServiceEmbedder, ServiceOptions


class Embedding(msgspec.Struct):
    """One vector, for the text number `index`."""

    index: int
    embedding: list[float]


class Embeddings(msgspec.Struct):
    """The protocol's answer."""

    data: list[Embedding]


class OpenAIEmbedder(ServiceEmbedder):
    """`POST {url}/embeddings`. What is longer than the model's window is refused there and cut here."""

    def __init__(
        self, url: str, *, api_key: str = "", breaker: Breaker | None = None, **options: Unpack[ServiceOptions]
    ) -> None:
        """`url`: up to and with /v1."""
        service = ModelService(
            url,
            "/embeddings",
            title="The embedding service",
            section="embedder",
            breaker=breaker or Breaker("embedder"),
            api_key=api_key,
            explain=self._explain,
        )
        super().__init__(service, **options)

    async def _request(self, texts: list[str], *, seconds: float, patient: bool) -> NDArray[np.float32]:
        def read(answer: Embeddings) -> NDArray[np.float32]:
            by_index = {found.index: found.embedding for found in answer.data}
            if by_index.keys() != set(range(len(texts))) or len(answer.data) != len(texts):
                raise self._service.fault(
                    f"gives {len(answer.data)} vectors for {len(texts)} texts, or numbers them wrongly; "
                    "check embedder.url"
                )
            return self._unit_rows([by_index[index] for index in range(len(texts))], len(texts))

        body = {"model": self.model, "input": texts, "encoding_format": "float"}
        return await self._ask(body, Embeddings, read, seconds=seconds, patient=patient)

    def _explain(self, status: int, body: str) -> str:
        if "does not support embed" in body or "support Embeddings API" in body:
            return f"has {self.model}, which cannot embed; set embedder.name to an embedding model"
        if status == 404 and "model" in body and ("not found" in body or "not exist" in body):
            return f"has no model {self.model!r}; set embedder.name to one that it serves"
        if status == 404:
            return "knows no /embeddings (404); embedder.url must be the API's address, mostly with /v1 at its end"
        return ""
