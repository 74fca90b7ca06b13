"""Candidates: hits with their text, from the wiki and the web, merged, filtered and without near-copies."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime

import numpy as np
from numpy.typing import NDArray

from config.domains import Domains, Verdict
from config.personas import Origin
from config.settings import SearchSettings
from graph.knowledge import WIKI
from graph.model import Hit, Leg, Scored, SearchFilter, StoredChunk, VectorRankings
from graph.names import words
from graph.protocols import StateStore, VectorStore
from graph.research import KeptPassage
from server.backends import Backends
from server.fusion import fuse_stages
from server.graph_leg import Exploration
from server.kept_leg import KeptHits
from server.legs import guarded
from server.noise import length_weight, level_run
from server.web.leg import WebPassage
from server.weights import weighted

LIVE_SPARE = 4
"""Chunks looked up beyond those that are wanted, as a few may be gone; reading a chunk takes a tenth of a millisecond.
"""
LIVE_MOST = 2_000
"""How far down the graph's ranking a narrow filter is followed, and the vectors' one a filter by date."""
VECTORS_SECONDS = 1.0
"""For reading the vectors of a few candidates, which takes milliseconds."""
REPEAT_WEIGHT = 0.5
"""Behind every place of one ranking: 1/61 halved is less than 1/100."""
NO_WEIGHTS: Mapping[Origin, float] = {}
NOTHING_KEPT = KeptHits()
COPY_SHARE = 0.9
"""Jaccard similarity of word sets above which two texts without vectors are one."""
COPY_LEAST = 0.3
"""The same, below which two texts are never one, whatever their vectors say: to a model that knows no Arabic all
Arabic is alike (on xquad it dropped the right passage of every eleventh Arabic question)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A hit with what it stands for: a live chunk of the wiki, a passage of the web, or one that was kept of it."""

    hit: Hit
    chunk: StoredChunk | None = None
    passage: WebPassage | KeptPassage | None = None

    @property
    def text(self) -> str:
        """What the cross-encoder reads: title, headings and text."""
        if self.chunk is not None:
            return " › ".join((self.chunk.title, *self.chunk.chunk.heading_path, self.chunk.chunk.text))
        return f"{self.passage.title} › {self.passage.text}" if self.passage else ""

    @property
    def body(self) -> str:
        """The passage itself."""
        if self.chunk is not None:
            return self.chunk.chunk.text
        return self.passage.text if self.passage else ""

    @property
    def page(self) -> str:
        """What counts as one page: a page id, or a URL."""
        if self.chunk is not None:
            return self.chunk.chunk.page_id
        return self.passage.url if self.passage else ""


async def live_only(graph: Exploration, where: SearchFilter, state: StateStore, *, limit: int) -> tuple[Scored, ...]:
    """The graph's best `limit` chunks that readers may see and the filter lets through."""
    return await passing(graph.ranking(LIVE_MOST), where, state, limit=limit)


async def passing(
    ranking: Sequence[Scored], where: SearchFilter, state: StateStore, *, limit: int
) -> tuple[Scored, ...]:
    """The best `limit` of a ranking that readers may see and the filter lets through."""
    kept: list[Scored] = []
    start, count = 0, limit + LIVE_SPARE
    while start < len(ranking) and len(kept) < limit:
        part = ranking[start : start + count]
        live = await asyncio.to_thread(_passing, [scored.key for scored in part], where, state)
        kept += [scored for scored in part if scored.key in live]
        start, count = start + count, 2 * count
    return tuple(kept[:limit])


def _passing(chunk_ids: Sequence[str], where: SearchFilter, state: StateStore) -> set[str]:
    """Without a filter no text needs to be read to tell which are live."""
    if where == SearchFilter():
        return set(state.chunk_names(chunk_ids))
    return {key for key, chunk in state.chunks(chunk_ids).items() if matches(chunk, where)}


def matches(chunk: StoredChunk, where: SearchFilter) -> bool:
    """Whether a chunk's page passes the filter."""
    return (
        (not where.sources or chunk.source in where.sources)
        and (not where.page_types or chunk.page_type in where.page_types)
        and (not where.languages or chunk.language in where.languages)
        and (not where.categories or bool(set(chunk.categories) & set(where.categories)))
        and (not where.asks_for_dates or _within(day_of(chunk.modified), where))
    )


def _within(day: date | None, where: SearchFilter) -> bool:
    return (
        day is not None
        and (where.modified_from is None or day >= where.modified_from)
        and (where.modified_to is None or day <= where.modified_to)
    )


def day_of(modified: str) -> date | None:
    """The day in UTC of a page's own date; None where it has none that can be read."""
    try:
        at = datetime.fromisoformat(modified)
        return (at.astimezone(UTC) if at.tzinfo else at).date()
    except (ValueError, OverflowError):
        return None


async def dated(rankings: VectorRankings, where: SearchFilter, state: StateStore, *, limit: int) -> VectorRankings:
    """The same without what a filter by date leaves out, up to `limit` of each list."""
    if not where.asks_for_dates:
        return rankings
    lists = (rankings.fused, rankings.dense, rankings.sparse)
    fused, dense, sparse = [await passing(each, where, state, limit=limit) for each in lists]
    return VectorRankings(fused=fused, dense=dense, sparse=sparse)


async def candidates_of(
    wiki: Sequence[Hit],
    passages: Sequence[WebPassage],
    backends: Backends,
    *,
    k: int,
    weights: Mapping[Origin, float] = NO_WEIGHTS,
    kept: KeptHits = NOTHING_KEPT,
) -> list[Candidate]:
    """Both stages merged (stage 2), with their texts; chunks that are no longer live are left out.

    `weights`: the persona's, of each origin; where it says nothing, 1, or what the settings say of what is kept. Of
    equal hits those of the wiki come first.
    """
    web = dict(zip(_web_keys(passages), passages, strict=True))
    stored = await asyncio.to_thread(backends.state.chunks, [hit.key for hit in wiki])
    live = [hit for hit in wiki if hit.key in stored]
    merged = fuse_stages(live, [Scored(key=key, score=1.0 / (1 + n)) for n, key in enumerate(web)], k=k)
    pages: dict[str, WebPassage | KeptPassage] = {**web, **kept.passages}
    origins: dict[str, Origin] = {
        **dict.fromkeys(web, "web"),
        **{key: each.origin for key, each in kept.passages.items()},
    }
    factors = {key: weights.get(origin, kept.weights.get(origin, 1.0)) for key, origin in origins.items()}
    factors |= {key: weights.get("wiki", 1.0) for key in stored}
    # Who approved a fact has judged its source; all else is judged by the list.
    urls = {key: page.url for key, page in pages.items() if origins[key] in ("web", "research")}
    merged = by_trust([*merged, *kept.hits], urls, factors, backends.domains)
    found = [Candidate(hit=hit, chunk=stored.get(hit.key), passage=pages.get(hit.key)) for hit in merged]
    return await asyncio.to_thread(noise_last, found, backends.settings.search)


def by_trust(hits: Sequence[Hit], urls: Mapping[str, str], factors: Mapping[str, float], domains: Domains) -> list[Hit]:
    """Source weights × domain trust. `urls`: key → URL of those whose domain counts."""
    verdicts = {key: domains.judge(url) for key, url in urls.items()}
    trust = {key: verdict.boost for key, verdict in verdicts.items()}
    products = {hit.key: factors.get(hit.key, 1.0) * trust.get(hit.key, 1.0) for hit in hits}
    return [_of_category(hit, verdicts) for hit in weighted(hits, products)]


def _of_category(hit: Hit, verdicts: Mapping[str, Verdict]) -> Hit:
    if hit.key not in verdicts:
        return hit
    return replace(hit, provenance=replace(hit.provenance, domain_category=verdicts[hit.key].category))


def noise_last(candidates: Sequence[Candidate], settings: SearchSettings) -> list[Candidate]:
    """Passages too short to say anything, and repeats of one mould, weigh less than the rest; none is lost."""
    near = sorted(
        ((cosine, n) for n, c in enumerate(candidates) if (cosine := _cosine(c)) is not None),
        key=lambda pair: (-pair[0], pair[1]),
    )
    run = level_run([(cosine, candidates[n].body) for cosine, n in near], settings.level_spread)
    repeats = {near[place][1] for place in run}
    weights = [
        length_weight(candidate.body, settings.short_words) * (REPEAT_WEIGHT if n in repeats else 1.0)
        for n, candidate in enumerate(candidates)
    ]
    order = sorted(range(len(candidates)), key=lambda n: (-candidates[n].hit.score * weights[n], n))
    return [_weighed(candidates[n], weights[n]) for n in order]


def _cosine(candidate: Candidate) -> float | None:
    return next((rank.score for rank in candidate.hit.provenance.ranks if rank.ranking == "dense"), None)


def _weighed(candidate: Candidate, weight: float) -> Candidate:
    if weight == 1.0:
        return candidate
    hit = candidate.hit
    noted = replace(hit.provenance, boost=hit.provenance.boost * weight)
    return replace(candidate, hit=replace(hit, score=hit.score * weight, provenance=noted))


def _web_keys(passages: Sequence[WebPassage]) -> list[str]:
    """The URL; further passages of one page are numbered in the fragment."""
    seen: dict[str, int] = {}
    keys = []
    for passage in passages:
        count = seen[passage.url] = seen.get(passage.url, 0) + 1
        keys.append(passage.url if count == 1 else f"{passage.url}#passage-{count}")
    return keys


async def drop_duplicates(candidates: Sequence[Candidate], backends: Backends) -> list[Candidate]:
    """Near-copies fold into the better-ranked one, which records them (mission.md §4.5).

    Where the vectors cannot be had now, the words alone decide: what the legs have found stands.
    """
    asked = _vectors_of(candidates, backends.vectors)
    known = await guarded("dedup", asked, seconds=VECTORS_SECONDS, breaker=backends.breakers.get(Leg.VECTOR))
    return await asyncio.to_thread(without_copies, candidates, known.found or {}, backends.settings.search.dedup_cosine)


async def _vectors_of(candidates: Sequence[Candidate], store: VectorStore) -> dict[str, NDArray[np.float32]]:
    """Each from the collection it lies in; a passage that was fetched just now has none."""
    keys: dict[str, list[str]] = {}
    for candidate in candidates:
        if candidate.chunk is not None:
            keys.setdefault(WIKI, []).append(candidate.hit.key)
        elif isinstance(candidate.passage, KeptPassage):
            keys.setdefault(candidate.passage.collection, []).append(candidate.hit.key)
    found = await asyncio.gather(*(store.vectors(collection, asked) for collection, asked in keys.items()))
    return {key: vector for known in found for key, vector in known.items()}


def without_copies(
    candidates: Sequence[Candidate], vectors: Mapping[str, NDArray[np.float32]], threshold: float
) -> list[Candidate]:
    kept: list[Candidate] = []
    bags: list[frozenset[str]] = []
    for candidate in candidates:
        bag = frozenset(words(candidate.text))
        original = next(
            (n for n, other in enumerate(kept) if _same(candidate, other, bag, bags[n], vectors, threshold)), None
        )
        if original is None:
            kept.append(candidate)
            bags.append(bag)
            continue
        hit = kept[original].hit
        noted = replace(hit.provenance, duplicates=(*hit.provenance.duplicates, candidate.hit.key))
        kept[original] = replace(kept[original], hit=replace(hit, provenance=noted))
    return kept


def _same(
    one: Candidate,
    other: Candidate,
    bag: frozenset[str],
    other_bag: frozenset[str],
    vectors: Mapping[str, NDArray[np.float32]],
    threshold: float,
) -> bool:
    """By cosine where both have vectors and words in common, else by their words."""
    share = len(bag & other_bag) / max(1, len(bag | other_bag))
    first, second = vectors.get(one.hit.key), vectors.get(other.hit.key)
    if first is not None and second is not None:
        return share >= COPY_LEAST and float(first @ second) >= threshold
    return share >= COPY_SHARE
