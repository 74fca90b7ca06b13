"""What is kept beside the wiki: research, approved knowledge and evergreen facts (mission.md §3.4, §4.3).

Each collection is searched exactly; what has something to do with the question is ranked per origin, and stands as high
as it would if it lay in the wiki: small collections always have a best passage, which says nothing of how good it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from config.domains import Domains
from config.settings import KnowledgeSettings
from graph.errors import DependencyError
from graph.model import Hit, LegRank, Provenance, Scored, SearchFilter, VectorRankings
from graph.names import words
from graph.research import KeptOrigin, KeptPassage, ResearchStore
from graph.titles import FUNCTION_WORDS
from server.backends import Backends
from server.fusion import annotate, reciprocal_rank_fusion
from server.legs import FILTERED, OK, LegResult, guarded
from server.model import Question
from server.question_vectors import QuestionVector

KNOWLEDGE = "knowledge"
"""The leg's name."""
DEPTH = 100
"""The best of each collection, by both rankings, that are looked at."""
WORDS_SHARE = 0.5
"""Of the question's content words, in a passage that is not near to it: below that it only happens to share one."""
SAME = 1e-6
"""Cosines that differ by less are equal, and then the wiki comes first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What the leg has found: live passages that have to do with the question, and how each ranking has them."""

    passages: Mapping[str, KeptPassage]
    dense: Mapping[str, float]
    """Cosine by id; nothing where the question has no vector now."""
    sparse: Mapping[str, float]
    note: str = ""
    """What is amiss with the embedder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptHits:
    """The same on its way through stage 2."""

    hits: tuple[Hit, ...] = ()
    passages: Mapping[str, KeptPassage] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)
    """Of each origin, where the persona says nothing."""


async def kept_leg(question: Question, backends: Backends) -> LegResult[Kept]:
    """Its status is "" where nothing is kept: then there is no such leg."""
    settings, shelf = backends.settings, backends.shelf
    if shelf is None or settings.knowledge.kept_limit == 0:
        return LegResult(None, "")
    seconds = settings.search.vector_seconds
    names = await guarded(KNOWLEDGE, asyncio.to_thread(shelf.store.collections), seconds=seconds)
    if not names.found:
        return LegResult(None, "" if names.status == OK else names.status)
    if question.where != SearchFilter():
        return LegResult(None, FILTERED)
    leg = _found(question.text, tuple(names.found), shelf.store, backends)
    return await guarded(KNOWLEDGE, leg, seconds=seconds, breaker=backends.breakers.get(KNOWLEDGE))


async def _found(question: str, names: Sequence[str], store: ResearchStore, backends: Backends) -> Kept:
    vector, note = None, ""
    try:
        vector = await backends.question_vectors.of(question, backends.embedder)
    except DependencyError as error:
        note = f"by words alone: {error}"
    searched = await asyncio.gather(*(_collection(question, vector, name, store, backends) for name in names))
    passages = {key: passage for found, _ in searched for key, passage in found.items()}
    dense = {scored.key: scored.score for _, rankings in searched for scored in rankings.dense}
    sparse = {scored.key: scored.score for _, rankings in searched for scored in rankings.sparse}
    found = Kept(passages=passages, dense=dense, sparse=sparse, note=note)
    return await asyncio.to_thread(_about, question, found, backends)


async def _collection(
    question: str, vector: QuestionVector | None, name: str, store: ResearchStore, backends: Backends
) -> tuple[Mapping[str, KeptPassage], VectorRankings]:
    """Its best live passages. Where many have expired it is read further down."""
    dense, sparse = (vector.dense, vector.sparse) if vector else (None, None)
    limit = DEPTH
    while True:
        rankings = await backends.vectors.search(name, dense=dense, sparse=sparse, text=question, limit=limit)
        keys = [scored.key for scored in rankings.fused]
        passages = await asyncio.to_thread(store.passages, keys)
        if len(passages) >= backends.settings.knowledge.kept_limit or len(keys) < limit:
            return dict(list(passages.items())[:DEPTH]), rankings
        limit *= 4


def _about(question: str, found: Kept, backends: Backends) -> Kept:
    """Without what neither is near to the question nor shares enough words with it, and what may not be cited."""
    content = frozenset(words(question)) - FUNCTION_WORDS
    threshold = backends.settings.search.vector_threshold
    passages = {
        key: passage
        for key, passage in found.passages.items()
        if (found.dense.get(key, -1.0) >= threshold or (key in found.sparse and _shares(passage, content)))
        and _may_be_cited(passage.url, backends.domains)
    }
    return replace(found, passages=passages)


def _shares(passage: KeptPassage, content: frozenset[str]) -> bool:
    there = content.intersection(words(f"{passage.title} {passage.text}"))
    return bool(content) and len(there) >= WORDS_SHARE * len(content)


def _may_be_cited(url: str, domains: Domains) -> bool:
    """A domain may have been blocked since; what is no URL leads nowhere."""
    try:
        return not domains.is_blocked(url)
    except ValueError:
        return False


def kept_hits(kept: Kept | None, wiki: VectorRankings | None, settings: KnowledgeSettings, *, k: int) -> KeptHits:
    """The best of each origin, each scored 1 / (k + place) as the wiki's and the web's are.

    Its place is its rank among its own, but behind every passage of the wiki that is as near to the question. Cosines
    of one model compare across collections; BM25 does so only roughly, and stands in where there are no cosines.
    """
    if kept is None:
        return KeptHits()
    dense = bool(kept.dense)
    beside = (wiki.dense if dense else wiki.sparse) if wiki else ()
    hits: list[Hit] = []
    for origin in ("research", "knowledge", "evergreen"):
        keys = [key for key, passage in kept.passages.items() if passage.origin == origin]
        hits += _ranked(origin, keys, kept, kept.dense if dense else kept.sparse, beside, settings.kept_limit, k)
    return KeptHits(
        hits=tuple(hits),
        passages={hit.key: kept.passages[hit.key] for hit in hits},
        weights={
            "research": settings.research_weight,
            "knowledge": settings.knowledge_weight,
            "evergreen": settings.evergreen_weight,
        },
    )


def _ranked(
    origin: KeptOrigin,
    keys: Sequence[str],
    kept: Kept,
    nearness: Mapping[str, float],
    wiki: Sequence[Scored],
    limit: int,
    k: int,
) -> list[Hit]:
    rankings = {"dense": _best_first(keys, kept.dense), "sparse": _best_first(keys, kept.sparse)}
    order = [hit.key for hit in reciprocal_rank_fusion(rankings, k=k)][:limit]
    farthest = min(nearness.values(), default=0.0)
    hits = []
    for rank, key in enumerate(order, 1):
        near = nearness.get(key, farthest)
        place = max(rank, 1 + sum(scored.score >= near - SAME for scored in wiki))
        part = LegRank(ranking=origin, rank=place, score=near, contribution=1 / (k + place))
        hits.append(Hit(key=key, score=part.contribution, provenance=Provenance(ranks=(part,))))
    return annotate(hits, rankings)


def _best_first(keys: Iterable[str], scores: Mapping[str, float]) -> list[Scored]:
    found = [Scored(key=key, score=scores[key]) for key in keys if key in scores]
    return sorted(found, key=lambda scored: (-scored.score, scored.key))
