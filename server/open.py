"""Opening what the settings name: the store under its lock, the models, the services."""

from __future__ import annotations

import asyncio
from importlib.metadata import version
from pathlib import Path

from config.personas import load_personas
from config.settings import Settings
from graph.home import GRAPH_FILE, STATE_FILE, VECTORS_FOLDER, HomeLock, HomeStamp, erase_store
from graph.neo4j_connection import Neo4jConnection
from graph.neo4j_store import Neo4jGraph
from graph.onnx_embedder import OnnxEmbedder
from graph.onnx_models import bundled_model_dir
from graph.protocols import ChatModel, Embedder, GraphStore, Reranker
from graph.qdrant_edge_store import QdrantEdge
from graph.recognizer import Recognizer
from graph.sqlite_graph import SqliteGraph
from graph.sqlite_state import SqliteState
from server.answer.ollama_chat import OllamaChat
from server.answer.openai_chat import OpenAIChat
from server.backends import Backends
from server.rerank.onnx_reranker import OnnxReranker
from server.web.fetcher import WebFetcher
from server.web.searxng import SearXNG

BM25_LANGUAGE = "english"


async def open_backends(settings: Settings, *, command: str, rebuild: bool = False) -> Backends:
    """Take the store's lock and open everything. `rebuild` empties the store first.

    Raises `StoreBusyError` where another process has it, `StoreVersionError` where it was made otherwise,
    `SettingsError` where a model cannot be opened. What was opened by then is closed.
    """
    lock = HomeLock.acquire(settings.home, command=command)
    try:
        return await asyncio.to_thread(_open, settings, lock, rebuild=rebuild)
    except BaseException:
        lock.release()
        raise


def _open(settings: Settings, lock: HomeLock, *, rebuild: bool) -> Backends:
    home = settings.home
    personas = load_personas(settings.answer.persona_dir)
    embedder = open_embedder(settings)
    if rebuild:
        erase_store(home)
    stamp_of(embedder).settle(home)
    web = settings.web
    return Backends(
        settings=settings,
        state=SqliteState(home / STATE_FILE),
        vectors=QdrantEdge(home / VECTORS_FOLDER, dimension=embedder.dimension, language=BM25_LANGUAGE),
        graph=open_graph(settings),
        embedder=embedder,
        recognizer=Recognizer(settings.ingestion.ner_languages),
        reranker=open_reranker(settings),
        chat=open_chat(settings),
        web=SearXNG(web.searxng_url, seconds=settings.search.web_seconds) if web.searxng_url else None,
        fetcher=WebFetcher(seconds=web.fetch_seconds, max_bytes=web.max_bytes, allow_private=web.allow_private),
        personas=personas,
        lock=lock,
    )


def open_graph(settings: Settings) -> GraphStore:
    """In the home folder, or in Neo4j where its address is set. Neo4j is connected to when it is first needed."""
    chosen = settings.graph
    if not chosen.neo4j_url:
        return SqliteGraph(settings.home / GRAPH_FILE)
    password = chosen.neo4j_password.get_secret_value()
    connection = Neo4jConnection(
        chosen.neo4j_url,
        user=chosen.neo4j_user,
        password=password,
        database=chosen.neo4j_database,
        pool_size=chosen.neo4j_pool_size,
    )
    return Neo4jGraph(connection)


def open_embedder(settings: Settings) -> Embedder:
    chosen = settings.embedder
    return OnnxEmbedder(
        chosen.model_dir or bundled_model_dir("bge_small_en"),
        name=chosen.name,
        query_prefix=chosen.query_prefix,
        pooling=chosen.pooling,
        threads=chosen.threads,
        batch_size=chosen.batch_size,
    )


def open_reranker(settings: Settings) -> Reranker | None:
    if not settings.rerank.enabled:
        return None
    folder = settings.rerank.model_dir
    name = folder.name if folder else "ms-marco-MiniLM-L12-v2"
    return OnnxReranker(folder or bundled_model_dir("reranker_en"), name=name)


def open_chat(settings: Settings) -> ChatModel | None:
    if settings.llm.provider == "ollama":
        return OllamaChat(settings.llm)
    if settings.llm.provider == "openai":
        return OpenAIChat(settings.llm)
    return None


def stamp_of(embedder: Embedder) -> HomeStamp:
    return HomeStamp(
        embedding_model=embedder.model,
        dimension=embedder.dimension,
        bm25_language=BM25_LANGUAGE,
        trivet_version=version("trivet"),
    )


def check_stamp(settings: Settings) -> str:
    """What the store was made with, "" where there is none. Raises `StoreVersionError` where it does not fit."""
    home: Path = settings.home
    found = HomeStamp.read(home)
    if found is None:
        return ""
    embedder = open_embedder(settings)
    stamp_of(embedder).check(home, found)
    return f"format {found.format}, {found.embedding_model}, {found.dimension} dimensions"
