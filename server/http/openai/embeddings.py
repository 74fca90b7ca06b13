"""`/v1/embeddings`: the wiki's own embedder in OpenAI's form."""

from __future__ import annotations

import base64
from typing import Annotated, Literal

import numpy as np
from litestar import Controller, post
from litestar.params import JSONBody
from msgspec import Meta, Struct
from numpy.typing import NDArray

from graph.protocols import Embedder
from server.http.openai.models import OPENAI_ERRORS, find_model
from server.http.problems import RequestError, UnknownModelError
from server.http.requests import ApiRequest
from server.http.work import ServingDependency

MAX_TEXTS = 2048

Text = Annotated[str, Meta(min_length=1)]
Texts = Annotated[list[Text | list[int] | int], Meta(min_length=1, max_length=MAX_TEXTS)]


class EmbeddingRequest(Struct, frozen=True, kw_only=True):
    """OpenAI's request; unknown keys are ignored. `input_type` is an addition that others have too."""

    input: Text | Texts
    model: str | None = None
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: int | None = None
    input_type: Literal["passage", "document", "query"] | None = None


class Embedding(Struct, frozen=True, kw_only=True):
    """A unit vector: numbers, or little-endian float32 in base64."""

    index: int
    embedding: list[float] | str
    object: str = "embedding"


class EmbeddingUsage(Struct, frozen=True, kw_only=True):
    """Tokens of the embedder."""

    prompt_tokens: int
    total_tokens: int


class EmbeddingResponse(Struct, frozen=True, kw_only=True):
    """The vectors, in the order of the texts."""

    data: tuple[Embedding, ...]
    model: str
    usage: EmbeddingUsage
    object: str = "list"


class EmbeddingsController(Controller):
    """Embeddings."""

    path = "/v1/embeddings"
    tags = ("openai",)

    @post(status_code=200, summary="Embed texts", responses=OPENAI_ERRORS)
    async def embed(
        self, data: JSONBody[EmbeddingRequest], request: ApiRequest, serving: ServingDependency
    ) -> EmbeddingResponse:
        """Passages unless `input_type` is "query"; any of the models, or the embedder's own name."""
        embedder = serving.answerer.embedder
        _check_model(data, embedder, serving.answerer.personas)
        texts = _texts(data.input)
        tokens = [embedder.count_tokens(text) for text in texts]
        for place, count in enumerate(tokens):
            if count > embedder.max_tokens:
                said = f"{count} tokens are more than the embedder's {embedder.max_tokens}; split the text"
                raise RequestError(f"input[{place}]: {said}.", param="input")
        vectors = await serving.finish(request, _embed(embedder, texts, as_query=data.input_type == "query"))
        in_base64 = data.encoding_format == "base64"
        return EmbeddingResponse(
            data=tuple(Embedding(index=i, embedding=_shown(row, in_base64)) for i, row in enumerate(vectors)),
            model=embedder.model,
            usage=EmbeddingUsage(prompt_tokens=sum(tokens), total_tokens=sum(tokens)),
        )


def _check_model(data: JSONBody[EmbeddingRequest], embedder: Embedder, personas: tuple[str, ...]) -> None:
    if data.model != embedder.model:
        try:
            find_model(data.model, personas)
        except UnknownModelError as error:
            raise UnknownModelError(f"{str(error)[:-1]}, and {embedder.model} for embeddings.") from None
    if data.dimensions is not None and data.dimensions != embedder.dimension:
        raise RequestError(f"dimensions: the embedder has {embedder.dimension}; leave it out.", param="dimensions")


def _texts(given: str | list[str | list[int] | int]) -> list[str]:
    entries = [given] if isinstance(given, str) else given
    texts = [entry for entry in entries if isinstance(entry, str)]
    if len(texts) < len(entries):
        raise RequestError(
            "input: send text, not token numbers (LangChain: check_embedding_ctx_length=False).", param="input"
        )
    if not texts or not all(text.strip() for text in texts):
        raise RequestError("input: a text is empty; leave it out.", param="input")
    return texts


async def _embed(embedder: Embedder, texts: list[str], *, as_query: bool) -> NDArray[np.float32]:
    if as_query:
        return np.stack([await embedder.embed_question(text) for text in texts])
    return await embedder.embed_passages(texts)


def _shown(vector: NDArray[np.float32], in_base64: bool) -> list[float] | str:
    return base64.b64encode(vector.astype("<f4").tobytes()).decode() if in_base64 else [float(x) for x in vector]
