"""Moving a wiki's vectors and graph to other stores, without embedding again and without reading the wiki."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

from graph.errors import StoreCorruptError
from graph.knowledge import WIKI, Knowledge
from graph.parts import parts
from graph.protocols import GraphStore, VectorStore
from graph.titles import TitleDictionary
from ingestion.link import graph_page, link_chunks
from ingestion.points import stored_points
from ingestion.removal import recover
from ingestion.verify import VerifyReport, verify

MOVE_BATCH = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """How far a move is: chunks whose vectors, pages whose graph, and chunks whose mentions are there."""

    vectors: int = 0
    pages: int = 0
    mentions: int = 0


async def migrate(
    knowledge: Knowledge,
    *,
    vectors: VectorStore | None = None,
    graph: GraphStore | None = None,
    on_progress: Callable[[Moved], None] = lambda moved: None,
) -> VerifyReport:
    """Fill `vectors` and `graph` (whichever is given) from the manifest and the stores that `knowledge` has.

    What they held is removed first; what they are filled from stays, so that a move that is cut short has lost
    nothing and can be run again. The manifest has all that the graph is made of. Raises `StoreCorruptError` where
    the stores do not agree with the manifest, before the move or after it.
    """
    await recover(knowledge)
    moved = Moved()
    if vectors is not None:
        moved = await _move_vectors(knowledge, vectors, moved, on_progress)
        knowledge = replace(knowledge, vectors=vectors)
    if graph is not None:
        knowledge = replace(knowledge, graph=graph)
        await _move_graph(knowledge, moved, on_progress)
    report = await verify(knowledge)
    if not report.clean:
        first = report.disagreements[0]
        raise StoreCorruptError(
            f"After the move there are {first.count:,} {first.kind} ({', '.join(first.examples)}); the store is used "
            "as it was before; run `trivet verify --repair` and move again."
        )
    return report


async def _move_vectors(
    knowledge: Knowledge, target: VectorStore, moved: Moved, on_progress: Callable[[Moved], None]
) -> Moved:
    await target.clear()
    state = knowledge.state
    live = sorted(await asyncio.to_thread(state.live_ids))
    for part in parts(live, MOVE_BATCH):
        stored = await asyncio.to_thread(state.chunks, part)
        chunks = [found.chunk for found in stored.values()]
        manifests = await asyncio.to_thread(state.manifests, sorted({chunk.page_id for chunk in chunks}))
        points = await stored_points(knowledge.vectors, knowledge.embedder, chunks, manifests)
        if len(points) < len(chunks):
            raise StoreCorruptError(
                f"{len(chunks) - len(points):,} live chunks have no vector; run `trivet verify --repair`, which embeds "
                "them, and move again."
            )
        await target.upsert(WIKI, points)
        moved = replace(moved, vectors=moved.vectors + len(points))
        on_progress(moved)
    await target.optimize()
    return moved


async def _move_graph(knowledge: Knowledge, moved: Moved, on_progress: Callable[[Moved], None]) -> None:
    await knowledge.graph.clear()
    state = knowledge.state
    titles = await asyncio.to_thread(lambda: TitleDictionary.build(state.titles()))
    page_ids = await asyncio.to_thread(lambda: [m.page_id for m in state.all_manifests() if not m.redirect_to])
    for batch in parts(page_ids, MOVE_BATCH):
        manifests = await asyncio.to_thread(state.manifests, batch)
        await knowledge.graph.put_pages([graph_page(manifest, titles) for manifest in manifests.values()])
        await asyncio.to_thread(state.unlink_pages, batch)
        moved = replace(moved, pages=moved.pages + len(batch))
        on_progress(moved)
    await link_chunks(knowledge, on_linked=lambda count: on_progress(replace(moved, mentions=count)))
