"""Do the manifest, the vectors and the graph say the same? Every disagreement is counted, and can be mended."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from config.settings import IngestionSettings
from graph.knowledge import WIKI, Knowledge
from graph.model import text_of
from graph.parts import parts
from graph.titles import TitleDictionary
from ingestion.link import chunk_mentions, graph_page, link_chunks
from ingestion.points import embedded_points
from ingestion.removal import recover

CHECK_BATCH = 500
SHOWN = 5
"""Ids given as examples of one kind of disagreement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """One kind of fault: how many, and a few of them."""

    kind: str
    count: int
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyReport:
    """What was compared, and what did not agree."""

    pages: int
    chunks: int
    entities: int
    disagreements: tuple[Disagreement, ...]
    kept: int = 0
    """Passages of research and approved facts, which are compared where a whole store is open."""

    @property
    def clean(self) -> bool:
        return not self.disagreements


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """The ids behind a report, as `repair` needs them."""

    vectors_missing: frozenset[str]
    vectors_orphaned: frozenset[str]
    graph_chunks_missing: frozenset[str]
    graph_chunks_orphaned: frozenset[str]
    graph_pages_missing: frozenset[str]
    graph_pages_orphaned: frozenset[str]
    unfinished: frozenset[str]
    unlinked: frozenset[str]
    mentions_wrong: frozenset[str]
    titles_wrong: frozenset[str]
    tokens_missing: frozenset[str]
    tokens_orphaned: frozenset[str]

    def disagreements(self) -> Iterator[Disagreement]:
        for kind, text in KINDS.items():
            ids: frozenset[str] = getattr(self, kind)
            if ids:
                yield Disagreement(kind=text, count=len(ids), examples=tuple(sorted(ids)[:SHOWN]))


KINDS = {
    "vectors_missing": "live chunks without a vector",
    "vectors_orphaned": "vectors of chunks that are not live",
    "graph_chunks_missing": "live chunks that the graph does not know",
    "graph_chunks_orphaned": "chunks in the graph that are not live",
    "graph_pages_missing": "pages that the graph does not know",
    "graph_pages_orphaned": "pages in the graph without a manifest",
    "unfinished": "chunks of a batch that was cut short",
    "unlinked": "chunks whose mentions are out of date",
    "mentions_wrong": "chunks whose mentions are not what their text says",
    "titles_wrong": "entities whose titles are not what the pages say",
    "tokens_missing": "live chunks without token vectors",
    "tokens_orphaned": "token vectors of chunks that are not live",
}


async def verify(knowledge: Knowledge) -> VerifyReport:
    """Compare everything; read-only."""
    faults = await find_faults(knowledge)
    counts = await knowledge.graph.counts()
    live = await asyncio.to_thread(knowledge.state.live_ids)
    pages = await asyncio.to_thread(lambda: sum(1 for _ in knowledge.state.all_manifests()))
    return VerifyReport(
        pages=pages, chunks=len(live), entities=counts.entities, disagreements=tuple(faults.disagreements())
    )


async def find_faults(knowledge: Knowledge) -> Faults:
    state = knowledge.state
    live = await asyncio.to_thread(state.live_ids)
    pages = await asyncio.to_thread(lambda: {m.page_id for m in state.all_manifests() if not m.redirect_to})
    vectors = await knowledge.vectors.ids(WIKI)
    graph_pages, graph_chunks = await knowledge.graph.ids()
    tokens = await asyncio.to_thread(knowledge.tokens.ids) if knowledge.tokens else set()
    titles = await asyncio.to_thread(lambda: TitleDictionary.build(state.titles()))
    known = await knowledge.graph.titled_entities()
    wrong_titles = {key for key in {*known, *titles.entities} if known.get(key) != titles.entities.get(key)}
    return Faults(
        vectors_missing=frozenset(live - vectors),
        vectors_orphaned=frozenset(vectors - live),
        graph_chunks_missing=frozenset(live - graph_chunks),
        graph_chunks_orphaned=frozenset(graph_chunks - live),
        graph_pages_missing=frozenset(pages - graph_pages),
        graph_pages_orphaned=frozenset(graph_pages - pages),
        unfinished=frozenset(await asyncio.to_thread(state.unfinished)),
        unlinked=frozenset(await asyncio.to_thread(state.unlinked, len(live) + 1)),
        mentions_wrong=frozenset(await _wrong_mentions(knowledge, sorted(live), titles)),
        titles_wrong=frozenset(wrong_titles),
        tokens_missing=frozenset(live - tokens) if knowledge.token_embedder else frozenset(),
        tokens_orphaned=frozenset(tokens - live),
    )


async def _wrong_mentions(knowledge: Knowledge, chunk_ids: Sequence[str], titles: TitleDictionary) -> set[str]:
    wrong: set[str] = set()
    for start in range(0, len(chunk_ids), CHECK_BATCH):
        batch = chunk_ids[start : start + CHECK_BATCH]
        stored = await knowledge.graph.mentions_of(batch)
        right = (await asyncio.to_thread(chunk_mentions, knowledge, batch, titles)).mentions
        wrong.update(key for key in batch if tuple(stored.get(key, ())) != right.get(key, ()))
    return wrong


async def repair(knowledge: Knowledge, settings: IngestionSettings) -> VerifyReport:
    """Bring vectors and graph in line with the manifest, which is the truth; the report is of afterwards."""
    await recover(knowledge)
    faults = await find_faults(knowledge)
    await knowledge.vectors.delete(WIKI, sorted(faults.vectors_orphaned))
    await knowledge.graph.remove_chunks(sorted(faults.graph_chunks_orphaned))
    await knowledge.graph.remove_pages(sorted(faults.graph_pages_orphaned))
    await _embed_again(knowledge, sorted(faults.vectors_missing), settings.batch_chunks)
    await _mend_tokens(knowledge, faults, settings.batch_chunks)
    chunks = faults.graph_chunks_missing | faults.mentions_wrong
    pages = await asyncio.to_thread(_pages_of, knowledge, sorted(chunks))
    await asyncio.to_thread(knowledge.state.unlink_pages, sorted(pages | faults.graph_pages_missing))
    await _put_pages_again(knowledge, sorted(pages | faults.graph_pages_missing))
    await link_chunks(knowledge)
    return await verify(knowledge)


def _pages_of(knowledge: Knowledge, chunk_ids: Sequence[str]) -> set[str]:
    return {stored.chunk.page_id for stored in knowledge.state.chunks(chunk_ids).values()}


async def _put_pages_again(knowledge: Knowledge, page_ids: Sequence[str]) -> None:
    from_manifests = await asyncio.to_thread(knowledge.state.manifests, page_ids)
    titles = await asyncio.to_thread(lambda: TitleDictionary.build(knowledge.state.titles()))
    await knowledge.graph.put_pages([graph_page(manifest, titles) for manifest in from_manifests.values()])


async def _embed_again(knowledge: Knowledge, chunk_ids: Sequence[str], size: int) -> None:
    for start in range(0, len(chunk_ids), size):
        batch = chunk_ids[start : start + size]
        stored = await asyncio.to_thread(knowledge.state.chunks, batch)
        chunks = [found.chunk for found in stored.values()]
        manifests = await asyncio.to_thread(knowledge.state.manifests, sorted({chunk.page_id for chunk in chunks}))
        points = await embedded_points(knowledge.embedder, chunks, manifests, knowledge.token_embedder)
        await knowledge.vectors.upsert(WIKI, points)


async def _mend_tokens(knowledge: Knowledge, faults: Faults, size: int) -> None:
    """Also for a store from before late interaction was switched on."""
    if (tokens := knowledge.tokens) is None:
        return
    await asyncio.to_thread(tokens.delete, sorted(faults.tokens_orphaned))
    if (embedder := knowledge.token_embedder) is None:
        return
    for batch in parts(sorted(faults.tokens_missing - faults.vectors_missing), size):
        stored = await asyncio.to_thread(knowledge.state.chunks, batch)
        texts = [text_of(found.chunk, found.title) for found in stored.values()]
        vectors = await embedder.embed_passages(texts)
        await asyncio.to_thread(tokens.put, dict(zip(stored, vectors, strict=True)))
