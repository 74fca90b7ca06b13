"""Opening the models that the settings name: embedder, reranker, LLM; in this process or behind an address."""

from __future__ import annotations

import asyncio

from config.settings import Settings
from graph.home import HomeStamp
from graph.onnx_embedder import OnnxEmbedder
from graph.onnx_models import bundled_model_dir
from graph.protocols import ChatModel, Embedder, Reranker
from server.answer.ollama_chat import OllamaChat
from server.answer.openai_chat import OpenAIChat
from server.rerank.onnx_reranker import OnnxReranker


async def open_embedder(settings: Settings, stamp: HomeStamp | None = None) -> Embedder:
    """`stamp`: of the store it is for, which knows the dimension of a service's model without asking it."""
    return await asyncio.to_thread(_onnx_embedder, settings)


def _onnx_embedder(settings: Settings) -> Embedder:
    chosen = settings.embedder
    return OnnxEmbedder(
        chosen.model_dir or bundled_model_dir("bge_small_en"),
        name=chosen.name,
        query_prefix=chosen.query_prefix,
        pooling=chosen.pooling,
        threads=chosen.threads,
        batch_size=chosen.batch_size,
    )


def open_reranker(settings: Settings, chat: ChatModel | None) -> Reranker | None:
    chosen = settings.rerank
    if not chosen.enabled:
        return None
    return OnnxReranker(chosen.model_dir or bundled_model_dir("reranker_en"), name=chosen.name)


def open_chat(settings: Settings) -> ChatModel | None:
    if settings.llm.provider == "ollama":
        return OllamaChat(settings.llm)
    if settings.llm.provider == "openai":
        return OpenAIChat(settings.llm)
    return None
