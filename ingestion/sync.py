"""Following sources: each from its own change feed, from where the last run stood (`trivet sync`)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from config.settings import IngestionSettings
from graph.errors import NotFoundError, SourceError, TrivetError
from graph.knowledge import Knowledge
from graph.model import FailedPage
from graph.parts import parts
from graph.protocols import Source
from graph.registry import RegisteredSource, Registry
from ingestion.batch import Ledger
from ingestion.ingest import ingest
from ingestion.link import link_chunks
from ingestion.removal import BATCH_PAGES, remove_pages
from ingestion.report import IngestReport, Progress

DUMP = "mediawiki-xml"
OpenSource = Callable[[RegisteredSource], Source]
"""How a registered source is opened; `ingestion.sources.detect.reopen`, or a test's own."""


class RegistryLedger(Ledger):
    """Keeps a source's cursor and dead letters in the registry."""

    def __init__(self, registry: Registry, name: str) -> None:
        self._registry = registry
        self._name = name

    def note(self, *, failed: Sequence[FailedPage], settled: Sequence[str], cursor: str | None) -> None:
        if failed or settled:
            self._registry.note_failures(self._name, failed, settled, now())
        if cursor is not None:
            self._registry.set_cursor(self._name, cursor)


def register(registry: Registry, source: RegisteredSource, *, moved: bool = False) -> RegisteredSource:
    """Note a source, or a change of it. `moved`: it is the wiki of that name at another place.

    Raises `SourceError` where the name is another wiki's, or this wiki goes by another name: its pages would be mixed
    with others', or be there twice.
    """
    for other in registry.sources():
        if other.name != source.name and (other.kind, other.location) == (source.kind, source.location):
            raise SourceError(
                f"{source.location} is registered already as {other.name!r}: `trivet sync {other.name}` follows it, "
                f"`trivet sources remove {other.name}` makes room for another name."
            )
    before = registry.source(source.name)
    if before is not None and before.location != source.location and not moved and not _successor(before, source):
        raise SourceError(
            f"There is a source named {source.name!r} already, at {before.location}; give this one another name "
            "(--name), or say that it is the same wiki (--moved)."
        )
    same = before is not None and _recipe(before) == _recipe(source)
    kept = replace(
        source,
        cursor=before.cursor if before is not None and same else "",
        added=before.added if before is not None else now(),
        last_run=before.last_run if before is not None else "",
    )
    registry.put_source(kept)
    return kept


def _recipe(source: RegisteredSource) -> tuple[str, str, str, dict[str, str]]:
    """What a cursor is worth something for."""
    return source.kind, source.location, source.base_url, dict(source.options)


def _successor(before: RegisteredSource, source: RegisteredSource) -> bool:
    """A dump is followed by a newer dump, and by the wiki itself."""
    return before.kind == DUMP and source.kind in {DUMP, "mediawiki-api"}


async def follow(
    registered: RegisteredSource,
    open_source: OpenSource,
    knowledge: Knowledge,
    registry: Registry,
    settings: IngestionSettings,
    *,
    whole: bool = False,
    prune: bool = True,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> IngestReport:
    """One run over one source: what has changed since the last, or `whole` of it. What went wrong is noted, and raised.

    Where all is read, pages that are gone from it are removed (`prune`); a page that failed is not gone.
    """
    try:
        source = await asyncio.to_thread(open_source, registered)
        report = await ingest(
            source,
            knowledge,
            settings,
            prune=prune,
            since=None if whole else registered.cursor or None,
            ledger=RegistryLedger(registry, registered.name),
            on_progress=on_progress,
        )
    except TrivetError as error:
        await asyncio.to_thread(_note_run, registry, registered.name, str(error))
        raise
    await asyncio.to_thread(_note_run, registry, registered.name, "")
    return report


async def retry(
    registered: RegisteredSource,
    open_source: OpenSource,
    knowledge: Knowledge,
    registry: Registry,
    settings: IngestionSettings,
    *,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> IngestReport | None:
    """Read the dead letters again; None where there are none."""
    keys = [letter.key for letter in await asyncio.to_thread(registry.dead_letters, registered.name)]
    if not keys:
        return None
    source = await asyncio.to_thread(open_source, registered)
    ledger = RegistryLedger(registry, registered.name)
    return await ingest(source, knowledge, settings, only=keys, ledger=ledger, on_progress=on_progress)


async def forget(name: str, knowledge: Knowledge, registry: Registry) -> int:
    """Remove a source and all its pages; how many. Raises `NotFoundError` where it is unknown."""
    state = knowledge.state
    stored = await asyncio.to_thread(lambda: [(m.page_id, m.chunk_ids) for m in state.all_manifests(name)])
    known = await asyncio.to_thread(registry.remove_source, name)
    if not known and not stored:
        names = ", ".join(source.name for source in registry.sources()) or "none"
        raise NotFoundError(f"There is no source {name!r}; there are: {names}.")
    for part in parts(stored, BATCH_PAGES):
        await remove_pages(knowledge, part)
    await link_chunks(knowledge)
    return len(stored)


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _note_run(registry: Registry, name: str, error: str) -> None:
    source = registry.source(name)
    if source is not None:
        registry.put_source(replace(source, last_run=now(), last_error=error))
