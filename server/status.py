"""What is in a store and who holds it, read without the vector engine: safe while another process works on it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from config.settings import Settings
from graph.graph_model import GraphCounts
from graph.home import RESEARCH_FILE, SOURCES_FILE, STATE_FILE, TOKENS_FILE, Holder, HomeLock, HomeStamp
from graph.model import PageType
from graph.registry import DeadLetter, RegisteredSource
from graph.research import TopicState
from graph.sqlite_registry import SqliteRegistry
from graph.sqlite_research import SqliteResearch
from graph.sqlite_state import SqliteState
from server.open import open_graph

BLOCK = 512
"""What `st_blocks` counts, whatever the file system's own blocks are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceStatus:
    """One wiki in the store."""

    name: str
    pages: int
    redirects: int
    chunks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreStatus:
    """`stamp` and `counts` are None where there is no store yet."""

    home: str
    holder: Holder | None
    stamp: HomeStamp | None
    counts: GraphCounts | None
    sources: tuple[SourceStatus, ...] = ()
    failed: tuple[DeadLetter, ...] = ()
    unfinished: int = 0
    """Chunks of a batch that is being written, or was cut short; the next ingestion finishes it."""
    bytes: int = 0
    topics: Mapping[str, int] = field(default_factory=dict)
    """Topics of research by state."""
    kept: Mapping[str, int] = field(default_factory=dict)
    """Facts that answer questions, by collection."""
    token_bytes: int = 0
    """Of these, what late interaction's token vectors take; it stays when that is switched off."""


async def status_of(settings: Settings) -> StoreStatus:
    """Raises `StoreError` where the store cannot be read. SQLite lets several processes read at once."""
    home = settings.home
    holder = HomeLock.holder(home)
    stamp = HomeStamp.read(home)
    topics, kept = await asyncio.to_thread(_read_research, home)
    if stamp is None or not (home / STATE_FILE).exists():
        return StoreStatus(home=str(home), holder=holder, stamp=stamp, counts=None, topics=topics, kept=kept)
    sources, unfinished = await asyncio.to_thread(_read_state, home)
    graph = open_graph(settings, stamp)
    try:
        counts = await graph.counts()
    finally:
        await graph.close()
    return StoreStatus(
        home=str(home),
        holder=holder,
        stamp=stamp,
        counts=counts,
        sources=sources,
        failed=tuple(await asyncio.to_thread(dead_letters, home)),
        unfinished=unfinished,
        topics=topics,
        kept=kept,
        bytes=_size(home, "*"),
        token_bytes=_size(home, f"{TOKENS_FILE}*"),
    )


def registered_sources(home: Path) -> Sequence[RegisteredSource]:
    """What is followed; readable while a server or an ingestion is at work."""
    if not (home / SOURCES_FILE).exists():
        return ()
    with closing(SqliteRegistry(home / SOURCES_FILE)) as registry:
        return registry.sources()


def dead_letters(home: Path) -> Sequence[DeadLetter]:
    """Pages that could not be read."""
    if not (home / SOURCES_FILE).exists():
        return ()
    with closing(SqliteRegistry(home / SOURCES_FILE)) as registry:
        return registry.dead_letters()


def _read_state(home: Path) -> tuple[tuple[SourceStatus, ...], int]:
    pages: Counter[str] = Counter()
    redirects: Counter[str] = Counter()
    chunks: Counter[str] = Counter()
    with closing(SqliteState(home / STATE_FILE)) as state:
        for manifest in state.all_manifests():
            redirect = manifest.page_type is PageType.REDIRECT
            (redirects if redirect else pages)[manifest.source] += 1
            chunks[manifest.source] += len(manifest.chunk_ids)
        unfinished = len(state.unfinished())
    names = sorted(pages.keys() | redirects.keys())
    return tuple(
        SourceStatus(name=name, pages=pages[name], redirects=redirects[name], chunks=chunks[name]) for name in names
    ), unfinished


def _read_research(home: Path) -> tuple[Mapping[str, int], Mapping[str, int]]:
    if not (home / RESEARCH_FILE).exists():
        return {}, {}
    with closing(SqliteResearch(home / RESEARCH_FILE)) as store:
        states = Counter(topic.state.value for topic in store.topics())
        kept = [name for name, origin in store.collections().items() if origin != "research"]
        facts = {name: len(store.passages(sorted(store.ids(name)))) for name in sorted(kept)}
    return {state.value: states[state.value] for state in TopicState if states[state.value]}, facts


def _size(home: Path, pattern: str) -> int:
    """Bytes on the disk: the vector engine sets aside files that are mostly holes."""
    total = 0
    for path in home.rglob(pattern):
        try:
            total += BLOCK * path.lstat().st_blocks
        except FileNotFoundError:
            continue  # another process has just removed it
    return total
