"""From ranked candidates to numbered evidence: a page's share, neighbours, exact links (mission.md §4.8)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from urllib.parse import quote

from config.settings import SearchSettings
from graph.model import Evidence, StoredChunk
from graph.protocols import StateStore
from graph.research import KeptPassage
from server.candidates import Candidate


def evidence_of(
    candidates: Sequence[Candidate], state: StateStore, settings: SearchSettings, *, limit: int
) -> tuple[Evidence, ...]:
    """The first `limit` entries, none of whose pages takes more than its share; numbers count from 1."""
    chosen = page_share(candidates, share=settings.page_share)[:limit]
    shown = {candidate.hit.key for candidate in chosen}
    return tuple(
        _of_chunk(number, candidate, candidate.chunk, state, settings.neighbours, shown)
        if candidate.chunk is not None
        else _of_passage(number, candidate)
        for number, candidate in enumerate(chosen, 1)
    )


def page_share(candidates: Sequence[Candidate], *, share: int) -> list[Candidate]:
    """At most `share` candidates of one page, in order."""
    taken: Counter[str] = Counter()
    kept = []
    for candidate in candidates:
        taken[candidate.page] += 1
        if taken[candidate.page] <= share:
            kept.append(candidate)
    return kept


def _of_chunk(
    number: int, candidate: Candidate, stored: StoredChunk, state: StateStore, distance: int, shown: set[str]
) -> Evidence:
    around = state.neighbours(stored.chunk.id, distance)
    # A neighbour that is evidence itself is not shown twice.
    context = "\n\n".join(c.text for c in around if c.id == stored.chunk.id or c.id not in shown)
    return Evidence(
        number=number,
        key=candidate.hit.key,
        title=stored.title,
        url=section_url(stored),
        text=stored.chunk.text,
        context=context or stored.chunk.text,
        heading_path=stored.chunk.heading_path,
        source=stored.source,
        origin="wiki",
        page_id=stored.chunk.page_id,
        score=candidate.hit.score,
        modified=stored.modified,
        provenance=candidate.hit.provenance,
    )


def section_url(stored: StoredChunk) -> str:
    """The page's URL with the anchor of the section the chunk is in."""
    if not stored.chunk.anchor or not stored.url:
        return stored.url
    return f"{stored.url.partition('#')[0]}#{quote(stored.chunk.anchor, safe='-._~:()!*,;=@/')}"


def _of_passage(number: int, candidate: Candidate) -> Evidence:
    passage = candidate.passage
    if passage is None:
        raise ValueError("a candidate is a chunk or a passage")
    return Evidence(
        number=number,
        key=candidate.hit.key,
        title=passage.title,
        url=passage.url,
        text=passage.text,
        source=passage.topic if isinstance(passage, KeptPassage) else passage.engine,
        origin=passage.origin if isinstance(passage, KeptPassage) else "web",
        page_id=passage.url,
        score=candidate.hit.score,
        modified=passage.published,
        provenance=candidate.hit.provenance,
    )
