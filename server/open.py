"""Opening what the settings name: the store under its lock, the models, the services."""

from __future__ import annotations

import asyncio
from contextlib import closing
from importlib.metadata import version

import structlog

from config.domains import Domains, load_domains
from config.personas import load_personas
from config.settings import Settings
from graph.bm25 import LEARNED
from graph.breaker import Breaker
from graph.errors import StoreCorruptError, TrivetError
from graph.home import (
    GRAPH_FILE,
    RESEARCH_FILE,
    STATE_FILE,
    TOKENS_FILE,
    VECTORS_FOLDER,
    HomeLock,
    HomeStamp,
    erase_store,
)
from graph.model import Leg
from graph.neo4j_connection import Neo4jConnection
from graph.neo4j_store import Neo4jGraph
from graph.onnx_token_embedder import BUNDLED_NAME, DIMENSION
from graph.protocols import Embedder, GraphStore, PoliteFetcher, TokenStore, VectorStore, WebSearch
from graph.qdrant_edge_store import QdrantEdge
from graph.qdrant_server_store import QdrantServer
from graph.recognizer import Recognizer
from graph.sqlite_graph import SqliteGraph
from graph.sqlite_research import SqliteResearch
from graph.sqlite_state import SqliteState
from graph.sqlite_tokens import SqliteTokens
from graph.vectors_with_tokens import VectorsWithTokens
from server.backends import Backends
from server.graph_leg import WalkCache
from server.kept_leg import KNOWLEDGE
from server.open_models import open_chat, open_embedder, open_reranker, open_token_embedder
from server.research.shelf import Shelf, note_all
from server.web.fetcher import WebFetcher
from server.web.searxng import SearXNG

log = structlog.get_logger()

PATIENCE_SECONDS = 0.5
"""What a question waits for a changed graph to be read and prepared: a hundred thousand chunks take seconds, and the
graph from before the change, without the pages that are gone, is better than none."""


async def open_backends(settings: Settings, *, command: str, rebuild: bool = False) -> Backends:
    """Take the store's lock and open everything. `rebuild` empties the store first, on servers too; what was found by
    research and approved stays, and is embedded again.

    Services are connected to when they are first needed, so one that is down now does not matter yet. Raises
    `StoreBusyError` where another process has the store, `StoreVersionError` where it was made otherwise,
    `SettingsError` where a model cannot be opened. What was opened by then is closed.
    """
    lock = HomeLock.acquire(settings.home, command=command)
    try:
        found = found_stamp(settings, rebuild=rebuild)
        embedder = await open_embedder(settings, found)
        try:
            stamp = wanted_stamp(settings, embedder, found)
            backends = await asyncio.to_thread(_open, settings, embedder, stamp, lock, rebuild=rebuild)
        except BaseException:
            await embedder.close()
            raise
    except BaseException:
        lock.release()
        raise
    if rebuild:
        try:
            await backends.vectors.clear()
            await backends.graph.clear()
        except BaseException:
            await backends.close()
            raise
    await _recover(backends.shelf)
    return backends


async def _recover(shelf: Shelf | None) -> None:
    """Asks a service only where a write or a rebuild was cut short. One that is down now does not matter yet: the note
    stays, and what is not mended is not shown."""
    try:
        if shelf is not None:
            await shelf.recover()
    except TrivetError as error:
        log.warning("kept passages wait to be mended", why=str(error))


def _open(settings: Settings, embedder: Embedder, stamp: HomeStamp, lock: HomeLock, *, rebuild: bool) -> Backends:
    home = settings.home
    personas = load_personas(settings.answer.persona_dir)
    domains = load_domains(settings.web.domains_path)
    if rebuild:
        with closing(SqliteResearch(home / RESEARCH_FILE)) as research:
            note_all(research)
        erase_store(home)
    stamp = stamp.settle(home)
    chat = open_chat(settings)
    vectors, tokens = open_vectors(settings, stamp), open_tokens(settings)
    if tokens is not None:
        vectors = VectorsWithTokens(vectors, tokens)
    return Backends(
        settings=settings,
        state=SqliteState(home / STATE_FILE),
        vectors=vectors,
        shelf=open_shelf(settings, vectors, embedder),
        graph=open_graph(settings, stamp),
        embedder=embedder,
        recognizer=Recognizer(settings.ingestion.ner_languages),
        tokens=tokens,
        token_embedder=open_token_embedder(settings),
        reranker=open_reranker(settings, chat),
        chat=chat,
        web=open_search(settings),
        fetcher=open_fetcher(settings, domains),
        personas=personas,
        domains=domains,
        walks=WalkCache(patience=PATIENCE_SECONDS),
        breakers=breakers_of(stamp),
        lock=lock,
    )


def open_search(settings: Settings) -> WebSearch | None:
    url = settings.web.searxng_url
    return SearXNG(url, seconds=settings.search.web_seconds) if url else None


def open_fetcher(settings: Settings, domains: Domains) -> PoliteFetcher:
    """For questions and for research; it connects to nobody before it is asked to."""
    web, research = settings.web, settings.research
    return WebFetcher(
        seconds=web.fetch_seconds,
        max_bytes=web.max_bytes,
        allow_private=web.allow_private,
        blocked=domains.is_blocked,
        pdf_bytes=research.pdf_bytes,
        host_seconds=research.host_seconds,
        respect_robots=research.respect_robots,
    )


def open_vectors(settings: Settings, stamp: HomeStamp) -> VectorStore:
    """In the home folder or in Qdrant, as the stamp says."""
    chosen = settings.vectors
    if stamp.vectors != "edge":
        return QdrantServer(
            chosen.qdrant_url,
            api_key=chosen.qdrant_api_key.get_secret_value(),
            prefix=chosen.qdrant_prefix,
            dimension=stamp.dimension,
            language=stamp.bm25_language,
            model=stamp.embedding_model,
            home=stamp.id,
            seconds=chosen.qdrant_seconds,
            quantization=chosen.quantization,
            on_disk=chosen.on_disk,
            exact_up_to=chosen.exact_up_to,
        )
    return QdrantEdge(
        settings.home / VECTORS_FOLDER,
        dimension=stamp.dimension,
        language=stamp.bm25_language,
        exact_up_to=chosen.exact_up_to,
    )


def open_shelf(settings: Settings, vectors: VectorStore, embedder: Embedder) -> Shelf:
    """What research found and a person approved. `vectors` are closed by who opened them."""
    return Shelf(SqliteResearch(settings.home / RESEARCH_FILE), vectors, embedder)


def open_tokens(settings: Settings) -> TokenStore | None:
    """Where late interaction is off, only what is there already: it must lose what the wiki loses."""
    path = settings.home / TOKENS_FILE
    if not settings.rerank.late_interaction and not path.exists():
        return None
    return SqliteTokens(path, model=BUNDLED_NAME, dimension=DIMENSION)


def open_graph(settings: Settings, stamp: HomeStamp) -> GraphStore:
    """In the home folder or in Neo4j, as the stamp says."""
    if stamp.graph == "sqlite":
        return SqliteGraph(settings.home / GRAPH_FILE, patience=PATIENCE_SECONDS)
    chosen = settings.graph
    connection = Neo4jConnection(
        chosen.neo4j_url,
        user=chosen.neo4j_user,
        password=chosen.neo4j_password.get_secret_value(),
        database=chosen.neo4j_database,
        home=stamp.id,
        pool_size=chosen.neo4j_pool_size,
    )
    return Neo4jGraph(connection)


def breakers_of(stamp: HomeStamp) -> dict[str, Breaker]:
    """For the legs that need a server: three failures in a row, and it is left alone for five seconds.

    So is a model that does not begin to answer.
    """
    breakers: dict[str, Breaker] = {"llm": Breaker("llm")}
    if stamp.vectors != "edge":
        breakers[Leg.VECTOR] = Breaker("qdrant")
        breakers[KNOWLEDGE] = Breaker("qdrant")
    if stamp.graph != "sqlite":
        breakers[Leg.GRAPH] = Breaker("neo4j")
    return breakers


def found_stamp(settings: Settings, *, rebuild: bool = False) -> HomeStamp | None:
    """What is in the home folder. A rebuild goes on over one that cannot be read."""
    try:
        return HomeStamp.read(settings.home)
    except StoreCorruptError:
        if rebuild:
            return None
        raise


def wanted_stamp(settings: Settings, embedder: Embedder, found: HomeStamp | None) -> HomeStamp:
    """How a store made with these settings is stamped. It keeps the id of the one before, also over a rebuild:
    what that one has on servers carries it."""
    return HomeStamp(
        embedding_model=embedder.model,
        dimension=embedder.dimension,
        bm25_language=LEARNED if settings.embedder.learned_sparse else settings.vectors.bm25_language,
        trivet_version=version("trivet"),
        id=found.id if found else "",
        vectors="qdrant" if settings.vectors.qdrant_url else "edge",
        graph="neo4j" if settings.graph.neo4j_url else "sqlite",
    )
