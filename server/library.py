"""The store together with what fills it: registered sources and the queue of jobs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, closing, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from config.domains import load_domains
from config.personas import load_personas
from config.settings import Settings
from graph.errors import NotFoundError, StoreBusyError
from graph.home import JOBS_FILE, PIECES_FILE, SOURCES_FILE, STATE_FILE, HomeLock, prepare_home
from graph.jobs import JobStore
from graph.protocols import ChatModel, Embedder, Reranker, TokenEmbedder
from graph.recognizer import Recognizer
from graph.registry import RegisteredSource, Registry
from graph.sqlite_jobs import SqliteJobs
from graph.sqlite_pieces import SqlitePieces
from graph.sqlite_registry import SqliteRegistry
from graph.sqlite_state import SqliteState
from graph.vectors_with_tokens import VectorsWithTokens
from ingestion import sync
from ingestion.report import IngestReport, Progress
from ingestion.sources.detect import reopen
from server.backends import Backends
from server.jobs import Turn
from server.open import (
    found_stamp,
    open_backends,
    open_fetcher,
    open_graph,
    open_search,
    open_shelf,
    open_tokens,
    open_vectors,
    wanted_stamp,
)
from server.open_models import open_chat, open_embedder, open_reranker, open_token_embedder
from server.research.desk import Desk
from server.research.wiring import desk_over
from server.writing.desk import PieceDesk

PUSHED = "pushed"
"""The kind of sources whose pages come by `POST /api/pages`: there is nothing to follow."""
SERVE = "serve"
TURN_FOLDER = "writing"
"""Beside the lock of the store, which a server keeps as long as it lives, there is one in this folder of it: who
changes the store has that one too, for a worker changes it beside the server."""
Show = Callable[[Progress], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """Opened together, as the registry and the queue lie in the store's folder, under its lock."""

    backends: Backends
    registry: Registry
    jobs: JobStore
    turn: Turn = nullcontext
    """For the jobs of a server."""
    desk: Desk | None = None
    """Research and what is kept of it."""
    pieces: PieceDesk | None = None
    """Long pieces, and writing them."""

    def registered(self, name: str) -> RegisteredSource:
        """Raises `NotFoundError` with the names there are."""
        found = self.registry.source(name)
        if found is None:
            names = ", ".join(source.name for source in self.registry.sources()) or "none"
            raise NotFoundError(f"There is no source {name!r}; there are: {names}.")
        return found

    async def follow(
        self, source: RegisteredSource, *, whole: bool, prune: bool, on_progress: Show
    ) -> IngestReport | None:
        """What has changed in a source, or all of it; None where its pages are pushed."""
        if source.kind == PUSHED:
            return None
        return await sync.follow(
            source,
            reopen,
            self.backends.knowledge,
            self.registry,
            self.backends.settings.ingestion,
            whole=whole,
            prune=prune,
            on_progress=on_progress,
        )

    async def retry(self, source: RegisteredSource, *, on_progress: Show) -> IngestReport | None:
        """The pages that could not be read before; None where there are none."""
        if source.kind == PUSHED:
            return None
        return await sync.retry(
            source,
            reopen,
            self.backends.knowledge,
            self.registry,
            self.backends.settings.ingestion,
            on_progress=on_progress,
        )

    async def forget(self, name: str) -> int:
        """Remove a source with its pages; how many."""
        return await sync.forget(name, self.backends.knowledge, self.registry)


def take_turn(home: Path, *, command: str) -> HomeLock:
    """The right to change the store, until it is released. Raises `StoreBusyError` naming who has it."""
    prepare_home(home)
    try:
        return HomeLock.acquire(home / TURN_FOLDER, command=command)
    except StoreBusyError:
        holder = HomeLock.holder(home / TURN_FOLDER) or "another process"
        raise StoreBusyError(f"The store in {home} is in use by {holder}; stop it or wait for it.") from None


@asynccontextmanager
async def open_library(settings: Settings, *, command: str, rebuild: bool = False) -> AsyncIterator[Library]:
    """As `open_backends`. After a rebuild every source is to be read again."""
    home = settings.home
    turn = partial(take_turn, home, command=command)
    with ExitStack() as held:
        if command != SERVE:  # which takes its turn for each job: a worker may be in the midst of one
            held.enter_context(await asyncio.to_thread(turn))
        backends = await open_backends(settings, command=command, rebuild=rebuild)
        try:
            with (
                closing(SqliteRegistry(home / SOURCES_FILE)) as registry,
                closing(SqliteJobs(home / JOBS_FILE)) as jobs,
                closing(SqlitePieces(home / PIECES_FILE)) as pieces,
            ):
                if rebuild:
                    registry.forget_cursors()
                yield Library(
                    backends=backends,
                    registry=registry,
                    jobs=jobs,
                    turn=turn,
                    desk=desk_over(backends),
                    pieces=PieceDesk(backends, pieces),
                )
        finally:
            await backends.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class FillingModels:
    """What takes long to open: a worker keeps it between jobs."""

    embedder: Embedder
    recognizer: Recognizer
    token_embedder: TokenEmbedder | None
    chat: ChatModel | None
    reranker: Reranker | None


@asynccontextmanager
async def open_filling_models(settings: Settings) -> AsyncIterator[FillingModels]:
    """Raises `StoreVersionError` where the store was made with others, `SettingsError` where one cannot be opened."""
    found = found_stamp(settings)
    async with AsyncExitStack() as opened:
        embedder = await open_embedder(settings, found)
        opened.push_async_callback(embedder.close)
        if found is not None:
            wanted_stamp(settings, embedder, found).check(settings.home, found)
        token_embedder = await asyncio.to_thread(open_token_embedder, settings)
        if token_embedder is not None:
            opened.push_async_callback(token_embedder.close)
        chat = open_chat(settings)
        if chat is not None:
            opened.push_async_callback(chat.close)
        reranker = await asyncio.to_thread(open_reranker, settings, chat)
        if reranker is not None:
            opened.push_async_callback(reranker.close)
        recognizer = Recognizer(settings.ingestion.ner_languages)
        yield FillingModels(
            embedder=embedder, recognizer=recognizer, token_embedder=token_embedder, chat=chat, reranker=reranker
        )


@asynccontextmanager
async def open_for_job(settings: Settings, models: FillingModels, jobs: JobStore) -> AsyncIterator[Library]:
    """The store as far as filling it needs it, for one job of a worker, whose turn it is.

    Opened anew for each: in between, the store may be made anew or moved. Raises as `open_backends`.
    """
    home = settings.home
    stamp = wanted_stamp(settings, models.embedder, found_stamp(settings)).settle(home)
    async with AsyncExitStack() as opened:
        state = opened.enter_context(closing(SqliteState(home / STATE_FILE)))
        registry = opened.enter_context(closing(SqliteRegistry(home / SOURCES_FILE)))
        pieces = opened.enter_context(closing(SqlitePieces(home / PIECES_FILE)))
        vectors, tokens = open_vectors(settings, stamp), open_tokens(settings)
        if tokens is not None:
            vectors = VectorsWithTokens(vectors, tokens)
        opened.push_async_callback(vectors.close)
        graph = open_graph(settings, stamp)
        opened.push_async_callback(graph.close)
        shelf = open_shelf(settings, vectors, models.embedder)
        opened.callback(shelf.store.close)
        domains = load_domains(settings.web.domains_path)
        search, fetcher = open_search(settings), open_fetcher(settings, domains)
        opened.push_async_callback(fetcher.close)
        if search is not None:
            opened.push_async_callback(search.close)
        backends = Backends(
            settings=settings,
            state=state,
            vectors=vectors,
            graph=graph,
            embedder=models.embedder,
            recognizer=models.recognizer,
            tokens=tokens,
            token_embedder=models.token_embedder,
            chat=models.chat,
            shelf=shelf,
            reranker=models.reranker,
            web=search,
            fetcher=fetcher,
            domains=domains,
            personas=load_personas(settings.answer.persona_dir),
        )
        yield Library(
            backends=backends,
            registry=registry,
            jobs=jobs,
            desk=desk_over(backends),
            pieces=PieceDesk(backends, pieces),
        )
