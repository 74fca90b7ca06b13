"""From a source to the stores: read, compare, chunk, embed, write; old or new page, never neither and never both.

The order of writes makes it so (mission.md §1.7): new vectors and graph nodes first, under new chunk ids that
no reader sees yet; then one transaction in the state store that makes them the live ones; then the old are
removed. A batch cut short is found by `recover` and taken back.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from config.settings import IngestionSettings
from graph.errors import SourceError
from graph.feed import Checkpoint, FeedItem, GonePage, UnchangedPage
from graph.knowledge import WIKI, Knowledge
from graph.model import (
    EMBEDDED_TYPES,
    Chunk,
    FailedPage,
    Manifest,
    Page,
    PageType,
    SkippedPage,
    VectorPoint,
)
from graph.protocols import Source
from graph.titles import TitleDictionary
from ingestion.chunks import chunk_page
from ingestion.language import detect_language
from ingestion.link import graph_page, link_chunks
from ingestion.points import embedded_points, stored_points
from ingestion.reading import read_in_thread
from ingestion.report import IngestReport, Progress, Tally

OPTIMIZE_FROM = 2_000
"""Vectors written in one run that make optimising worth its time."""
NO_TITLES = TitleDictionary.build(())
"""A page's links are first stored as they are written; `link_chunks` resolves those that go by an alias."""
BATCH_PAGES = 500
"""Pages in one batch at most, so that a wiki of redirects still commits often."""


@dataclass(frozen=True, slots=True)
class PreparedPage:
    """A page that differs from what is stored: its manifest to be, its chunks, and which of them are new."""

    page: Page
    manifest: Manifest
    chunks: tuple[Chunk, ...]
    new: tuple[Chunk, ...]
    kept: tuple[str, ...]
    removed: tuple[str, ...]
    stored_before: bool


async def ingest(
    source: Source,
    knowledge: Knowledge,
    settings: IngestionSettings,
    *,
    prune: bool = False,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> IngestReport:
    """Bring the stores in line with a source. Pages gone from it are removed only with `prune`."""
    started = time.monotonic()
    await recover(knowledge)
    run = Ingestion(source, knowledge, settings, on_progress)
    await run.read_all()
    if prune and not run.broken_off:
        await run.prune()
    linked = await link_chunks(knowledge, on_linked=lambda count: run.report_progress("linking"))
    if run.tally.embedded >= OPTIMIZE_FROM:
        run.report_progress("optimising")
        await knowledge.vectors.optimize()
    counts = await knowledge.graph.counts()
    dangling = await asyncio.to_thread(knowledge.state.dangling_redirects, source.name)
    tally = run.tally
    if tally.pages and not counts.entities:
        tally.warnings.append("no entity was found in this wiki: the graph leg will have nothing to say")
    return IngestReport(
        source=source.name,
        added=tally.added,
        changed=tally.changed,
        unchanged=tally.unchanged,
        deleted=tally.deleted,
        redirects=tally.redirects,
        skipped=tuple(tally.skipped),
        failed=tuple(tally.failed),
        dangling_redirects=tuple(f"{title} → {target}" for title, target in dangling),
        chunks=tally.chunks,
        embedded=tally.embedded,
        linked=linked,
        entities=counts.entities,
        links=counts.links,
        seconds=time.monotonic() - started,
        warnings=tuple(tally.warnings),
    )


async def recover(knowledge: Knowledge) -> int:
    """Take back what an interrupted batch left in the other stores; how many chunk ids were looked at."""
    noted = await asyncio.to_thread(knowledge.state.unfinished)
    if noted:
        live = await asyncio.to_thread(knowledge.state.chunks, sorted(noted))
        dead = sorted(noted - live.keys())
        await knowledge.vectors.delete(WIKI, dead)
        await knowledge.graph.remove_chunks(dead)
        await _remove_pages_without_manifest(knowledge)
        await asyncio.to_thread(knowledge.state.end_batch)
    return len(noted)


async def _remove_pages_without_manifest(knowledge: Knowledge) -> None:
    pages, _ = await knowledge.graph.ids()
    known = await asyncio.to_thread(knowledge.state.manifests, sorted(pages))
    await knowledge.graph.remove_pages(sorted(pages - known.keys()))


class Ingestion:
    """One run over one source. Reading and chunking, embedding, and writing overlap: while a batch is embedded,
    the one before is written and the next is read."""

    def __init__(
        self,
        source: Source,
        knowledge: Knowledge,
        settings: IngestionSettings,
        on_progress: Callable[[Progress], None],
    ) -> None:
        self.source = source
        self.knowledge = knowledge
        self.settings = settings
        self.tally = Tally()
        self.broken_off = False
        """Whether the source ended early: then a page that was not seen may exist all the same."""
        self._on_progress = on_progress
        self._started = time.monotonic()
        self._last_title = ""
        self._recipe = json.dumps([knowledge.embedder.model, settings.chunk_tokens, sorted(settings.ner_languages)])

    async def read_all(self) -> None:
        """Read, embed and write everything. A source that breaks off (a truncated dump) is a failure of the run,
        but what could be read of it is kept; one that cannot be read at all raises its `SourceError`."""
        writing: asyncio.Task[None] | None = None
        try:
            async for batch in self._batches():
                writing = await self._embed_and_start_writing(batch, writing)
        finally:
            if writing is not None:
                await writing

    async def _batches(self) -> AsyncIterator[list[PreparedPage]]:
        batch: list[PreparedPage] = []
        try:
            async for items in read_in_thread(self.source):
                batch += await asyncio.to_thread(self._prepare, self._new_pages(items))
                if sum(len(page.new) for page in batch) >= self.settings.batch_chunks or len(batch) >= BATCH_PAGES:
                    yield batch
                    batch = []
        except SourceError as error:
            if not self.tally.seen:
                raise
            self.tally.failed.append(FailedPage(key=self.source.name, reason=str(error)))
            self.broken_off = True
        if batch:
            yield batch

    def report_progress(self, stage: str) -> None:
        self._on_progress(
            Progress(
                stage=stage,
                pages=self.tally.pages,
                chunks=self.tally.chunks,
                title=self._last_title,
                seconds=time.monotonic() - self._started,
            )
        )

    async def prune(self) -> None:
        """Remove the source's pages that it no longer has."""
        self.report_progress("pruning")
        state = self.knowledge.state
        stored = await asyncio.to_thread(
            lambda: [(m.page_id, m.chunk_ids) for m in state.all_manifests(self.source.name)]
        )
        gone = [(page_id, ids) for page_id, ids in stored if page_id not in self.tally.seen]
        for start in range(0, len(gone), BATCH_PAGES):
            await remove_pages(self.knowledge, gone[start : start + BATCH_PAGES])
        self.tally.deleted += len(gone)

    def _new_pages(self, items: Sequence[FeedItem]) -> list[Page]:
        """The pages to look at; what is skipped, failed or a second page of the same key is tallied."""
        pages: list[Page] = []
        for item in items:
            page_id = item.id if isinstance(item, Page) else f"{self.source.name}:{item.key}"
            if isinstance(item, FailedPage):
                self.tally.failed.append(item)
                self.tally.seen.add(page_id)
            elif isinstance(item, SkippedPage):
                self.tally.skipped.append(item)
            elif page_id in self.tally.seen:
                self.tally.skipped.append(SkippedPage(key=item.key, reason="a second page of this key"))
            elif len(item.text) > self.settings.max_page_chars:
                limit = (
                    f"{len(item.text):,} characters; ingestion.max_page_chars allows {self.settings.max_page_chars:,}"
                )
                self.tally.failed.append(FailedPage(key=item.key, reason=limit))
                self.tally.seen.add(page_id)
            else:
                self.tally.seen.add(page_id)
                pages.append(item)
        return pages

    def _prepare(self, pages: Sequence[Page]) -> list[PreparedPage]:
        stored = self.knowledge.state.manifests([page.id for page in pages])
        prepared = []
        for page in pages:
            self._last_title = page.title
            before = stored.get(page.id)
            hashed = page_hash(page, self._recipe)
            if before is not None and before.page_hash == hashed:
                self.tally.unchanged += 1
                continue
            prepared.append(self._prepare_page(page, hashed, before))
        return prepared

    def _prepare_page(self, page: Page, hashed: str, before: Manifest | None) -> PreparedPage:
        chunks: tuple[Chunk, ...] = ()
        if page.page_type in EMBEDDED_TYPES:
            page = replace(page, language=page.language or detect_language(page.text, default=page.wiki_language))
            counter = self.knowledge.embedder
            limit = min(self.settings.chunk_tokens, counter.max_tokens)
            chunks = tuple(chunk_page(page, count_tokens=counter.count_tokens, max_tokens=limit))
        old = before.chunk_ids if before else ()
        now = {chunk.id for chunk in chunks}
        return PreparedPage(
            page=page,
            manifest=manifest_of(page, hashed, [chunk.id for chunk in chunks]),
            chunks=chunks,
            new=tuple(chunk for chunk in chunks if chunk.id not in old),
            kept=tuple(chunk_id for chunk_id in old if chunk_id in now),
            removed=tuple(chunk_id for chunk_id in old if chunk_id not in now),
            stored_before=before is not None,
        )

    async def _embed_and_start_writing(
        self, batch: list[PreparedPage], writing: asyncio.Task[None] | None
    ) -> asyncio.Task[None]:
        """Embed a batch while the one before is written, then start writing it. At most two are in memory."""
        new = [chunk for prepared in batch for chunk in prepared.new]
        try:
            points, names = await asyncio.gather(
                embedded_points(self.knowledge.embedder, new, _manifests(batch)), asyncio.to_thread(self._names, batch)
            )
        finally:
            if writing is not None:
                await writing
        return asyncio.create_task(self._write(batch, points, names))

    def _names(self, batch: Sequence[PreparedPage]) -> dict[str, tuple[str, ...]]:
        """Names found in each chunk: read for the new ones, remembered for the others."""
        kept = self.knowledge.state.chunk_names([chunk_id for page in batch for chunk_id in page.kept])
        names = dict(kept)
        by_language: dict[str, list[Chunk]] = {}
        for prepared in batch:
            by_language.setdefault(prepared.page.language, []).extend(prepared.new)
        for language, chunks in by_language.items():
            found = self.knowledge.recognizer.names([chunk.text for chunk in chunks], language)
            names.update({chunk.id: found_in for chunk, found_in in zip(chunks, found, strict=True)})
        return names

    async def _write(
        self, batch: Sequence[PreparedPage], points: list[VectorPoint], names: Mapping[str, Sequence[str]]
    ) -> None:
        knowledge = self.knowledge
        # What is stored beside a vector (type, categories) may have changed with the page.
        kept = [chunk for prepared in batch for chunk in prepared.chunks if chunk.id in prepared.kept]
        points += await stored_points(knowledge.vectors, knowledge.embedder, kept, _manifests(batch))
        removed = [chunk_id for prepared in batch for chunk_id in prepared.removed]
        await asyncio.to_thread(knowledge.state.begin_batch, [point.chunk_id for point in points], removed)
        await knowledge.vectors.upsert(WIKI, points)
        await knowledge.graph.put_pages(
            [graph_page(prepared.manifest, NO_TITLES) for prepared in batch if not prepared.manifest.redirect_to]
        )
        committed = [
            (prepared.manifest, prepared.chunks, {c.id: names.get(c.id, ()) for c in prepared.chunks})
            for prepared in batch
        ]
        await asyncio.to_thread(knowledge.state.commit_pages, committed)
        await knowledge.vectors.delete(WIKI, removed)
        await knowledge.graph.remove_chunks(removed)
        now_redirects = [p.page.id for p in batch if p.stored_before and p.page.redirect_to]
        await knowledge.graph.remove_pages(now_redirects)
        await asyncio.to_thread(knowledge.state.end_batch)
        self._count(batch)
        self.report_progress("reading")

    def _count(self, batch: Sequence[PreparedPage]) -> None:
        for prepared in batch:
            if prepared.page.page_type is PageType.REDIRECT:
                self.tally.redirects += 1
            elif prepared.stored_before:
                self.tally.changed += 1
            else:
                self.tally.added += 1
            self.tally.chunks += len(prepared.chunks)
            self.tally.embedded += len(prepared.new)


async def remove_pages(knowledge: Knowledge, pages: Sequence[tuple[str, Sequence[str]]]) -> None:
    """Delete pages, given as (page id, chunk ids), everywhere. The caller links afterwards."""
    page_ids = [page_id for page_id, _ in pages]
    chunk_ids = [chunk_id for _, ids in pages for chunk_id in ids]
    await asyncio.to_thread(knowledge.state.begin_batch, [], chunk_ids)
    await asyncio.to_thread(knowledge.state.commit_removal, page_ids)
    await knowledge.vectors.delete(WIKI, chunk_ids)
    await knowledge.graph.remove_pages(page_ids)
    await asyncio.to_thread(knowledge.state.end_batch)


def _manifests(batch: Sequence[PreparedPage]) -> dict[str, Manifest]:
    return {prepared.page.id: prepared.manifest for prepared in batch}


def page_hash(page: Page, recipe: str) -> str:
    """SHA-1 over all that the source said of a page and how it is processed; equal means nothing to do."""
    said = [
        page.title, page.text, page.url, page.page_type, page.language, page.wiki_language,
        page.redirect_to, page.aliases,
        [(link.target, link.shown) for link in page.links], page.categories,
        [(section.start, section.level, section.title, section.anchor) for section in page.sections], recipe,
    ]  # fmt: skip
    return hashlib.sha1(json.dumps(said).encode(), usedforsecurity=False).hexdigest()


def manifest_of(page: Page, hashed: str, chunk_ids: Sequence[str]) -> Manifest:
    return Manifest(
        page_id=page.id,
        source=page.source,
        key=page.key,
        title=page.title,
        url=page.url,
        page_type=page.page_type,
        language=page.language,
        revision=page.revision,
        modified=page.modified,
        page_hash=hashed,
        redirect_to=page.redirect_to,
        aliases=page.aliases,
        links=page.links,
        categories=page.categories,
        chunk_ids=tuple(chunk_ids),
    )
