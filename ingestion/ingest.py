"""From a source to the stores: read, compare, chunk, embed, write; old or new page, never neither and never both.

The order of writes makes it so (mission.md §1.7): new vectors and graph nodes first, under new chunk ids that
no reader sees yet; then one transaction in the state store that makes them the live ones; then the old are
removed. A batch cut short is found by `recover` and taken back.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from config.settings import IngestionSettings
from graph.errors import SourceError
from graph.feed import Checkpoint, FeedItem, GonePage, UnchangedPage
from graph.knowledge import WIKI, Knowledge
from graph.model import (
    EMBEDDED_TYPES,
    TITLE,
    Chunk,
    FailedPage,
    Manifest,
    Page,
    PageType,
    SkippedPage,
    VectorPoint,
)
from graph.parts import parts
from graph.protocols import ChangingSource, Source
from graph.titles import TitleDictionary
from ingestion.batch import (
    Batch,
    Ledger,
    NoLedger,
    PreparedPage,
    manifests_of,
    page_hash,
    prepared_page,
    storable_page,
)
from ingestion.blurbs import BlurbWriter
from ingestion.chunks import chunk_page
from ingestion.language import detect_language
from ingestion.link import graph_page, link_chunks
from ingestion.points import embedded_points, stored_points
from ingestion.reading import read_in_thread
from ingestion.removal import BATCH_PAGES, recover, remove_pages
from ingestion.report import IngestReport, Progress, Tally
from ingestion.strategies import BLURB, embedded_with, known_blurbs, recipe_of, strategy_for

OPTIMIZE_FROM = 2_000
"""Vectors written in one run that make optimising worth its time."""
NO_TITLES = TitleDictionary.build(())
"""A page's links are first stored as they are written; `link_chunks` resolves those that go by an alias."""


async def ingest(
    source: Source,
    knowledge: Knowledge,
    settings: IngestionSettings,
    *,
    prune: bool = False,
    since: str | None = None,
    only: Sequence[str] | None = None,
    ledger: Ledger | None = None,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> IngestReport:
    """Bring the stores in line with a source. Pages gone from it are removed only with `prune`, or by its feed.

    `since`: read only what a `ChangingSource` says has changed since this cursor, all of it where its feed does not
    reach back so far. `only`: read these pages alone.
    """
    started = time.monotonic()
    await recover(knowledge)
    run = Ingestion(source, knowledge, settings, on_progress, since=since, only=only, ledger=ledger or NoLedger())
    await run.read_all()
    await run.note_strategy()
    if prune and run.whole and not run.broken_off:
        await run.prune()
    linked = await link_chunks(knowledge, on_linked=lambda count: run.report_progress("linking"))
    if run.tally.embedded >= OPTIMIZE_FROM:
        run.report_progress("optimising")
        await knowledge.vectors.optimize()
    counts = await knowledge.graph.counts()
    dangling = await asyncio.to_thread(knowledge.state.dangling_redirects, source.name)
    tally = run.tally
    if tally.without_blurb:
        tally.warnings.append(run.about_blurbs())
    if tally.pages and not counts.entities:
        tally.warnings.append("no entity was found in this wiki: the graph leg will have nothing to say")
    return tally.report(
        source.name,
        whole=run.whole,
        linked=linked,
        counts=counts,
        dangling=[f"{title} → {target}" for title, target in dangling],
        seconds=time.monotonic() - started,
    )


class Ingestion:
    """One run over one source. Reading and chunking, embedding, and writing overlap: while a batch is embedded,
    the one before is written and the next is read."""

    def __init__(
        self,
        source: Source,
        knowledge: Knowledge,
        settings: IngestionSettings,
        on_progress: Callable[[Progress], None],
        *,
        since: str | None,
        only: Sequence[str] | None,
        ledger: Ledger,
    ) -> None:
        self.source = source
        self.knowledge = knowledge
        self.settings = settings
        self.tally = Tally()
        self.broken_off = False
        """Whether the source ended early: then a page that was not seen may exist all the same."""
        self.whole = only is None
        """Whether all of the source is read, and not only what has changed."""
        self._since, self._only, self._ledger = since, only, ledger
        self._writing: asyncio.Task[None] | None = None
        self._under_way: set[str] = set()
        """Keys of the pages that are being written."""
        self._on_progress = on_progress
        self._started = time.monotonic()
        self._last_title = ""
        self._strategy_key = f"embedding strategy of {source.name}"
        self._blurbs = BlurbWriter(knowledge.chat, seconds=settings.blurb_seconds)
        self._recipe = json.dumps([knowledge.embedder.model, settings.chunk_tokens, sorted(settings.ner_languages)])

    async def read_all(self) -> None:
        """Read, embed and write everything. A source that breaks off (a truncated dump) is a failure of the run,
        but what could be read of it is kept; one that cannot be read at all raises its `SourceError`."""
        try:
            async for batch in self._batches():
                await self._embed_and_start_writing(batch)
        finally:
            if self._writing is not None:
                await self._writing

    def _read(self) -> Iterator[FeedItem]:
        """Runs in the reading thread."""
        source = self.source
        if self._only is not None:
            if not isinstance(source, ChangingSource):
                raise SourceError(f"{source.name} cannot be read page by page; ingest it as a whole.")
            return source.pages(self._only)
        since = self._since if self._as_before() else None
        changes = source.changes(since) if since and isinstance(source, ChangingSource) else None
        self.whole = changes is None
        return source.read() if changes is None else changes

    def _as_before(self) -> bool:
        """Whether all of this source was last read with the same strategy; with another its old pages change too."""
        return (self.knowledge.state.meta(self._strategy_key) or TITLE) == self.settings.embedding_strategy

    async def note_strategy(self) -> None:
        if self.whole and not self.broken_off and not self._as_before():
            chosen = self.settings.embedding_strategy
            await asyncio.to_thread(self.knowledge.state.set_meta, self._strategy_key, chosen)

    def about_blurbs(self) -> str:
        return (
            f"{self.tally.without_blurb:,} pages are embedded in part or whole without the model's sentences, as with "
            f"“{TITLE}” ({self._blurbs.reason}); `trivet ingest` asks again for what is missing"
        )

    async def _batches(self) -> AsyncIterator[Batch]:
        batch = Batch()
        try:
            async for items in read_in_thread(self._read, self.source.name):
                await self._settle(items)
                await asyncio.to_thread(self._sort, items, batch)
                if batch.new_chunks >= self.settings.batch_chunks or len(batch.pages) >= BATCH_PAGES:
                    yield batch
                    batch = Batch()
        except SourceError as error:
            if not self.tally.seen:
                raise
            self.tally.failed.append(FailedPage(key=self.source.name, reason=str(error)))
            self.broken_off = True
        if not batch.empty:
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
        # A folder that could not be listed is one failure, whose key its pages begin with.
        unknown = tuple(f"{self.source.name}:{f.key}" for f in self.tally.failed if f.key.endswith(("/", ":")))
        gone = [
            (page_id, ids)
            for page_id, ids in stored
            if page_id not in self.tally.seen and not page_id.startswith(unknown)
        ]
        for part in parts(gone, BATCH_PAGES):
            await remove_pages(self.knowledge, part)
        self.tally.deleted += len(gone)

    async def _settle(self, items: Sequence[FeedItem]) -> None:
        """A feed may speak of a page again while its last version is being written, and what is to be removed is told
        from what is stored."""
        keys = (item.key for item in items if not isinstance(item, Checkpoint))
        if self._writing is not None and not self._under_way.isdisjoint(keys):
            await asyncio.wait([self._writing])

    def _sort(self, items: Sequence[FeedItem], batch: Batch) -> None:
        """Items into the batch and the tally."""
        pages: dict[str, Page] = {}
        for item in items:
            if isinstance(item, Checkpoint):
                batch.cursor = item.cursor
                continue
            if isinstance(item, Page):
                item = storable_page(item)
            page_id = f"{self.source.name}:{item.key}"
            if isinstance(item, Page) and (fault := self._fault_of(item)) is not None:
                item = fault
            if isinstance(item, FailedPage):
                self.tally.failed.append(item)
                batch.failed.append(item)
            elif isinstance(item, SkippedPage | GonePage):
                # A page that is left out on purpose must not answer from what was stored of it before.
                if isinstance(item, SkippedPage):
                    self.tally.skipped.append(item)
                pages.pop(page_id, None)
                batch.pages.pop(page_id, None)
                batch.gone[page_id] = None
            elif isinstance(item, UnchangedPage):
                self.tally.unchanged += 1
            elif self.whole and page_id in self.tally.seen:
                self.tally.skipped.append(SkippedPage(key=item.key, reason="a second page of this key"))
            else:
                batch.gone.pop(page_id, None)
                pages[page_id] = item
            if not isinstance(item, FailedPage):
                batch.settled.append(item.key)
            if not isinstance(item, SkippedPage | GonePage):
                self.tally.seen.add(page_id)
        self._prepare(pages, batch)

    def _fault_of(self, page: Page) -> FailedPage | None:
        most = self.settings.max_page_chars
        if len(page.text) <= most:
            return None
        return FailedPage(
            key=page.key, reason=f"{len(page.text):,} characters; ingestion.max_page_chars allows {most:,}"
        )

    def _prepare(self, pages: Mapping[str, Page], batch: Batch) -> None:
        stored = self.knowledge.state.manifests(list(pages))
        for page_id, page in pages.items():
            self._last_title = page.title
            before = stored.get(page_id)
            hashed = page_hash(page, recipe_of(page, self._recipe, self.settings.embedding_strategy))
            if before is not None and before.page_hash == hashed:
                self.tally.unchanged += 1
                batch.pages.pop(page_id, None)
                continue
            batch.pages[page_id] = self._prepare_page(page, hashed, before)

    def _prepare_page(self, page: Page, hashed: str, before: Manifest | None) -> PreparedPage:
        chunks: tuple[Chunk, ...] = ()
        if page.page_type in EMBEDDED_TYPES:
            page = replace(page, language=page.language or detect_language(page.text, default=page.wiki_language))
            counter = self.knowledge.embedder
            limit = min(self.settings.chunk_tokens, counter.max_tokens)
            chunks = tuple(chunk_page(page, count_tokens=counter.count_tokens, max_tokens=limit))
            strategy = strategy_for(page, self.settings.embedding_strategy)
            if strategy != BLURB:  # the model is asked for those later, a batch at a time
                chunks = embedded_with(page, chunks, strategy, counter)
        old = before.chunk_ids if before else ()
        return prepared_page(page, hashed, chunks, old, stored_before=before is not None)

    async def _add_blurbs(self, batch: Batch) -> None:
        """What the model says of each chunk. A chunk of which it says nothing is embedded without, as with `title`."""
        if self.settings.embedding_strategy != BLURB:
            return
        old = [chunk_id for prepared in batch.pages.values() for chunk_id in (*prepared.kept, *prepared.removed)]
        stored = await asyncio.to_thread(self.knowledge.state.chunks, old)
        known = known_blurbs(found.chunk for found in stored.values())
        pages = [prepared for prepared in batch.pages.values() if prepared.chunks]
        written = await asyncio.gather(*(self._blurbs.write(p.page, p.chunks, known.get(p.page.id, {})) for p in pages))
        for prepared, blurbs in zip(pages, written, strict=True):
            batch.pages[prepared.page.id] = prepared.with_blurbs(blurbs, self.knowledge.embedder)
            self.tally.without_blurb += not all(blurbs)

    async def _embed_and_start_writing(self, batch: Batch) -> None:
        """Embed a batch while the one before is written, then start writing it. At most two are in memory."""
        await self._add_blurbs(batch)
        pages = list(batch.pages.values())
        new = [chunk for prepared in pages for chunk in prepared.new]
        try:
            points, names = await asyncio.gather(
                embedded_points(self.knowledge.embedder, new, manifests_of(pages), self.knowledge.token_embedder),
                asyncio.to_thread(self._names, pages),
            )
        finally:
            if self._writing is not None:
                await self._writing
        self._under_way = {page_id.removeprefix(f"{self.source.name}:") for page_id in (*batch.pages, *batch.gone)}
        self._writing = asyncio.create_task(self._write(batch, points, names))

    async def _write(self, batch: Batch, points: list[VectorPoint], names: Mapping[str, Sequence[str]]) -> None:
        if batch.pages:
            await self._write_pages(list(batch.pages.values()), points, names)
        if batch.gone:
            await self._remove(list(batch.gone))
        await asyncio.to_thread(self._ledger.note, failed=batch.failed, settled=batch.settled, cursor=batch.cursor)
        self.report_progress("reading")

    async def _remove(self, page_ids: Sequence[str]) -> None:
        stored = await asyncio.to_thread(self.knowledge.state.manifests, page_ids)
        await remove_pages(self.knowledge, [(m.page_id, m.chunk_ids) for m in stored.values()])
        self.tally.deleted += len(stored)

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

    async def _write_pages(
        self, batch: Sequence[PreparedPage], points: list[VectorPoint], names: Mapping[str, Sequence[str]]
    ) -> None:
        knowledge = self.knowledge
        # What is stored beside a vector (type, categories) may have changed with the page.
        kept = [chunk for prepared in batch for chunk in prepared.chunks if chunk.id in prepared.kept]
        points += await stored_points(knowledge.vectors, knowledge.embedder, kept, manifests_of(batch))
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
