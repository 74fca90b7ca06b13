"""Which entities each chunk names, kept true whatever the order in which pages came (mission.md §2.7).

Linking runs after pages were committed. It compares the titles that the graph was last linked with against
the titles there are now; chunks that contain a changed one are linked again, found by their full-text index.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from graph.graph_model import Entity, GraphPage, Mention
from graph.knowledge import Knowledge
from graph.model import EMBEDDED_TYPES, Manifest, StoredChunk
from graph.names import name_key, words
from graph.titles import PageLinks, TitleDictionary, entity_id, mentioned, untitled

LINK_BATCH = 500
"""Chunks linked and written together."""
NO_LINKS = PageLinks.of({})


@dataclass(frozen=True, slots=True)
class ChunkMentions:
    """The mentions of some chunks, the entities among them that no title stands for, and the chunks' pages."""

    mentions: Mapping[str, tuple[Mention, ...]]
    names: Mapping[str, Entity]
    pages: tuple[GraphPage, ...]


async def link_chunks(knowledge: Knowledge, *, on_linked: Callable[[int], None] = lambda count: None) -> int:
    """Bring entities and mentions in line with the live titles and chunks; how many chunks were linked."""
    titles = await asyncio.to_thread(lambda: TitleDictionary.build(knowledge.state.titles()))
    await _renew_entities(knowledge, titles)
    linked = 0
    while batch := await asyncio.to_thread(knowledge.state.unlinked, LINK_BATCH):
        found = await asyncio.to_thread(chunk_mentions, knowledge, batch, titles)
        await knowledge.graph.set_entities(list(found.names.values()))
        await knowledge.graph.set_mentions(found.mentions)
        await knowledge.graph.put_pages(found.pages)
        await asyncio.to_thread(knowledge.state.mark_linked, batch)
        linked += len(batch)
        on_linked(linked)
    await knowledge.graph.prune_entities()
    return linked


def chunk_mentions(knowledge: Knowledge, chunk_ids: Sequence[str], titles: TitleDictionary) -> ChunkMentions:
    """What these chunks mention now. Ids that are not live have no mentions."""
    chunks = knowledge.state.chunks(chunk_ids)
    names = knowledge.state.chunk_names(chunk_ids)
    manifests = knowledge.state.manifests(sorted({stored.chunk.page_id for stored in chunks.values()}))
    links = {page_id: PageLinks.of(shown_links(manifest, titles)) for page_id, manifest in manifests.items()}
    mentions: dict[str, tuple[Mention, ...]] = {}
    unknown: dict[str, Entity] = {}
    for chunk_id, stored in chunks.items():
        page_links = links.get(stored.chunk.page_id, NO_LINKS)
        counts = mentioned(words(linkable_text(stored)), names.get(chunk_id, ()), page_links, titles)
        mentions[chunk_id] = tuple(Mention(entity_id=key, count=counts[key]) for key in sorted(counts))
        unknown.update({key: untitled(key) for key in counts if key not in titles.entities})
    return ChunkMentions(mentions, unknown, tuple(graph_page(manifest, titles) for manifest in manifests.values()))


def linkable_text(stored: StoredChunk) -> str:
    """Where names are looked for: the headings a chunk stands under and its text, not the page's title,
    which the graph knows already."""
    return " \n ".join((*stored.chunk.heading_path, stored.chunk.text))


def shown_links(manifest: Manifest, titles: TitleDictionary) -> dict[str, str]:
    """The normalised words shown for a page's links → the entities they lead to.

    Words that lead to two targets on one page settle nothing and are left out.
    """
    targets: dict[str, set[str]] = {}
    for link in manifest.links:
        target = titles.link_target(link.target)
        if target:
            for key in {name_key(link.shown or link.target), name_key(link.target)} - {""}:
                targets.setdefault(key, set()).add(target)
    return {key: next(iter(found)) for key, found in targets.items() if len(found) == 1}


def graph_page(manifest: Manifest, titles: TitleDictionary) -> GraphPage:
    """A page as the graph keeps it, links by way of an alias resolved."""
    return GraphPage(
        page_id=manifest.page_id,
        title_entity=entity_id(manifest.title) if manifest.page_type in EMBEDDED_TYPES else "",
        chunk_ids=manifest.chunk_ids,
        link_entities=tuple(sorted({titles.link_target(link.target) for link in manifest.links} - {""})),
        categories=manifest.categories,
    )


async def _renew_entities(knowledge: Knowledge, titles: TitleDictionary) -> None:
    """Give the graph today's titles, after noting which chunks the difference may touch."""
    known = await knowledge.graph.titled_entities()
    changed = [entity for key, entity in titles.entities.items() if known.get(key) != entity]
    gone = [untitled(key) for key in known if key not in titles.entities]
    keys = _keys(known.values()) ^ _keys(titles.entities.values())
    if keys:
        # Before the graph is changed: if this process dies in between, the difference is found again.
        await asyncio.to_thread(knowledge.state.add_changed_keys, sorted({key for key, _ in keys}))
        # A link may show other words than its target's name, so that no text says which pages are touched.
        touched = sorted({name for pair in keys for name in pair})
        linking = await knowledge.graph.linking_pages(touched)
        await asyncio.to_thread(knowledge.state.unlink_pages, sorted(linking))
    await asyncio.to_thread(knowledge.state.spread_changed_keys)
    await knowledge.graph.set_entities([*changed, *gone])


def _keys(entities: Iterable[Entity]) -> set[tuple[str, str]]:
    return {(key, entity.id) for entity in entities for key in entity.keys}
