"""An embedding model that Ollama serves."""

from __future__ import annotations

from typing import Unpack

import msgspec
import numpy as np
from numpy.typing import NDArray

from graph.breaker import Breaker
from graph.model_service import ModelService
from graph.service_embedder import ServiceEmbedder, ServiceOptions


class Embeddings(msgspec.Struct):
    """Ollama's answer; older ones give null for a model that cannot embed."""

    embeddings: list[list[float] | None]


class OllamaEmbedder(ServiceEmbedder):
    """`POST {url}/api/embed`. Ollama itself cuts what is longer than the model's window."""

    def __init__(self, url: str, *, breaker: Breaker | None = None, **options: Unpack[ServiceOptions]) -> None:
        service = ModelService(
            url,
            "/api/embed",
            title="Ollama",
            section="embedder",
            breaker=breaker or Breaker("ollama"),
            explain=self._explain,
        )
        super().__init__(service, **options)

    async def _request(self, texts: list[str], *, seconds: float, patient: bool) -> NDArray[np.float32]:
        def read(answer: Embeddings) -> NDArray[np.float32]:
            return self._unit_rows([vector or [] for vector in answer.embeddings], len(texts))

        body = {"model": self.model, "input": texts, "truncate": True}
        return await self._ask(body, Embeddings, read, seconds=seconds, patient=patient)

    def _explain(self, status: int, body: str) -> str:
        if "does not support embed" in body:
            return f"has {self.model}, which cannot embed; set embedder.name to an embedding model"
        if "not found" in body and "model" in body:
            return f"has no model {self.model!r}; run `ollama pull {self.model}`, or set embedder.name"
        if status in (401, 403):
            return (
                f"refuses access ({status}); if it wants a key, set embedder.provider to openai, /v1 at the end "
                "of embedder.url, and embedder.api_key"
            )
        return ""
