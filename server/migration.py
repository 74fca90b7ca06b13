"""Moving a store between the home folder and servers: which parts, from where, and what is cleared afterwards."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass, replace
from typing import Literal

from config.settings import Settings
from graph.errors import SettingsError, TrivetError
from graph.home import STATE_FILE, HomeLock, HomeStamp, erase_graph_file
from graph.knowledge import Knowledge
from graph.protocols import Embedder, GraphStore, VectorStore
from graph.recognizer import Recognizer
from graph.sqlite_state import SqliteState
from graph.vectors_with_tokens import VectorsWithTokens
from ingestion.migrate import Moved, migrate
from ingestion.verify import VerifyReport
from server.library import take_turn
from server.open import open_graph, open_shelf, open_tokens, open_vectors, wanted_stamp
from server.open_models import open_embedder

Target = Literal["servers", "embedded"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """What was moved ("vectors", "graph"), and the comparison of all stores afterwards."""

    moved: tuple[str, ...] = ()
    report: VerifyReport | None = None
    left_behind: str = ""
    """Why the old copy could not be removed."""


async def migrate_store(
    settings: Settings, target: Target, *, on_progress: Callable[[Moved], None] = lambda moved: None
) -> Migration:
    """Fill the new stores, compare them with the manifest, and only then say so in the stamp and empty the old.

    Cut short at any point, the store is the one it was before, or the one it is to be. Raises `SettingsError` where
    no server is named or there is no store.
    """
    with HomeLock.acquire(settings.home, command="migrate"):
        found = HomeStamp.read(settings.home)
        if found is None:
            raise SettingsError(
                f"There is no store in {settings.home} to move; `trivet ingest PATH` fills the stores that are set."
            )
        found = replace(found, id=found.id or uuid.uuid4().hex[:16])
        wanted = target_stamp(settings, target, found)
        if (wanted.vectors, wanted.graph) == (found.vectors, found.graph):
            return Migration()
        async with AsyncExitStack() as opened:
            # A worker in the midst of a job would go on filling the store that is left.
            opened.enter_context(take_turn(settings.home, command="migrate"))
            embedder = await open_embedder(settings, found)
            opened.push_async_callback(embedder.close)
            now = replace(wanted_stamp(settings, embedder, found), vectors=found.vectors, graph=found.graph)
            now.check(settings.home, found)
            return await _move(settings, found, wanted, embedder, opened, on_progress)


def target_stamp(settings: Settings, target: Target, found: HomeStamp) -> HomeStamp:
    """`found` with its parts where they are to be. Raises `SettingsError` where the address that needs is not set."""
    qdrant, neo4j = settings.vectors.qdrant_url, settings.graph.neo4j_url
    if target == "servers":
        if not qdrant and not neo4j:
            raise SettingsError("No server is set; set vectors.qdrant_url, graph.neo4j_url or both, and move again.")
        return replace(found, vectors="qdrant" if qdrant else found.vectors, graph="neo4j" if neo4j else found.graph)
    for where, home, url, name in (
        (found.vectors, "edge", qdrant, "vectors.qdrant_url"),
        (found.graph, "sqlite", neo4j, "graph.neo4j_url"),
    ):
        if where != home and not url:
            raise SettingsError(f"{name} is not set, so what is there cannot be fetched; set it until all is moved.")
    return replace(found, vectors="edge", graph="sqlite")


async def _move(
    settings: Settings,
    found: HomeStamp,
    wanted: HomeStamp,
    embedder: Embedder,
    opened: AsyncExitStack,
    on_progress: Callable[[Moved], None],
) -> Migration:
    state = opened.enter_context(closing(SqliteState(settings.home / STATE_FILE)))
    vectors, graph = open_vectors(settings, found), open_graph(settings, found)
    opened.push_async_callback(vectors.close)
    opened.push_async_callback(graph.close)
    # The engine takes no lock: a shard that stays must not be opened twice.
    new_vectors = open_vectors(settings, wanted) if wanted.vectors != found.vectors else None
    new_graph = open_graph(settings, wanted) if wanted.graph != found.graph else None
    for store in (new_vectors, new_graph):
        if store is not None:
            opened.push_async_callback(store.close)
    tokens = open_tokens(settings)  # they stay, but what a cut batch left of them is taken back
    if tokens is not None:
        opened.enter_context(closing(tokens))
    knowledge = Knowledge(
        state=state,
        vectors=VectorsWithTokens(vectors, tokens) if tokens else vectors,
        graph=graph,
        embedder=embedder,
        recognizer=Recognizer(()),  # no text is read again
        tokens=tokens,
    )
    shelf = open_shelf(settings, vectors, embedder)
    opened.callback(shelf.store.close)
    await shelf.repair()
    report = await migrate(knowledge, vectors=new_vectors, graph=new_graph, on_progress=on_progress)
    if new_vectors is not None:
        await shelf.copy_to(new_vectors)
    wanted.write(settings.home)
    left_behind = await _empty(vectors if new_vectors else None, graph if new_graph else None)
    if new_graph is not None and found.graph == "sqlite":
        opened.callback(erase_graph_file, settings.home)  # once it is closed
    moved = tuple(name for name, new in (("vectors", new_vectors), ("graph", new_graph)) if new is not None)
    return Migration(moved=moved, report=report, left_behind=left_behind)


async def _empty(*stores: VectorStore | GraphStore | None) -> str:
    """The move is done: that the old copy cannot be removed does not undo it."""
    problems = []
    for store in stores:
        try:
            if store is not None:
                await store.clear()
        except TrivetError as error:
            problems.append(str(error))
    return " ".join(problems)
