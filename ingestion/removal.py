"""Taking pages out of every store, and what an interrupted batch left in them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from graph.knowledge import WIKI, Knowledge

BATCH_PAGES = 500
"""Pages in one batch at most, so that a wiki of redirects still commits often."""


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


async def remove_pages(knowledge: Knowledge, pages: Sequence[tuple[str, Sequence[str]]]) -> None:
    """Delete pages, given as (page id, chunk ids), everywhere. The caller links afterwards."""
    page_ids = [page_id for page_id, _ in pages]
    chunk_ids = [chunk_id for _, ids in pages for chunk_id in ids]
    await asyncio.to_thread(knowledge.state.begin_batch, [], chunk_ids)
    await asyncio.to_thread(knowledge.state.commit_removal, page_ids)
    await knowledge.vectors.delete(WIKI, chunk_ids)
    await knowledge.graph.remove_pages(page_ids)
    await asyncio.to_thread(knowledge.state.end_batch)
