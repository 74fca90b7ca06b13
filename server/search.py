"""One question through the system (mission.md §4): read `search` from top to bottom to know the product.

question ─ language ─ core keywords
   ├─ vector leg   dense + BM25, fused by score ──────┐ stage 1 → wiki ranking ─┐
   ├─ graph leg    keywords → entities → PageRank ────┘                         │ stage 2
   ├─ web leg      SearXNG → fetch → passages ──────────────────────────────────┤
   └─ kept leg     research, approved facts: where they would stand in the wiki ┘
merged ─ source weights × domain trust ─ noise last ─ semantic dedup ─ cross-encoder
   ─ a page's share ─ neighbours ─ confidence zone
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

from graph.errors import DependencyDownError, DependencyError
from graph.knowledge import WIKI
from graph.model import Hit, Leg, Scored, SearchFilter, VectorRankings
from graph.prefixes import cosine_of_nothing
from ingestion.language import detect_language
from server.answer.gate import check_question
from server.backends import Backends
from server.candidates import LIVE_MOST, candidates_of, dated, drop_duplicates, live_only
from server.evidence import evidence_of
from server.fusion import annotate, convex_combination, reciprocal_rank_fusion
from server.graph_leg import Exploration, explore, spread
from server.kept_leg import KNOWLEDGE, Kept, kept_hits, kept_leg
from server.legs import FILTERED, OFF, LegResult, Stopwatch, guarded
from server.model import Question, SearchResult
from server.noise import above_threshold
from server.paths import with_paths
from server.rerank.order import confidence_zone, reranked
from server.web.leg import WebPassage, web_passages

SCORED_DEPTH = 4
"""How much deeper both lists go where their scores are added, so that a hit of one has its score in the other."""


VectorFound = LegResult[tuple[VectorRankings, str]]
WebFound = LegResult[tuple[list[WebPassage], list[str]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class WikiRanking:
    """Stage 1: what the owner's own pages say, with the rankings it was made of."""

    hits: tuple[Hit, ...]
    vector: tuple[Scored, ...]
    graph: tuple[Scored, ...]
    exploration: Exploration | None

    @property
    def open_share(self) -> float:
        """How much of the question its names leave open; all of it without the graph leg."""
        return self.exploration.open_share if self.exploration else 1.0


async def search(question: Question, backends: Backends) -> SearchResult:
    """Evidence for a question. A leg that is down, slow or off is named in `legs` and never fails the search.

    Raises `QuestionError` for a question that is empty, too long or without a word, `NotFoundError` for a persona that
    there is none of, and `DependencyDownError` where nothing was found and the vectors could not be asked: "no results"
    would not be true.
    """
    question = replace(question, text=check_question(question.text, backends.settings.answer.question_chars))
    weights = backends.persona(question.persona).source_weights
    watch = Stopwatch()
    language = await asyncio.to_thread(detect_language, question.text, default="")

    with watch.stage("legs"):
        (vector, graph, web), kept = await asyncio.gather(
            run_legs(question, language, backends), kept_leg(question, backends)
        )
    legs = statuses(vector, graph, web, kept)
    times = {"vector": vector.milliseconds, "graph": graph.milliseconds, "web": web.milliseconds}
    times[KNOWLEDGE] = kept.milliseconds
    watch.milliseconds |= {leg: taken for leg, taken in times.items() if taken}

    with watch.stage("fusion"):
        rankings = vector.found[0] if vector.found else None
        wiki = await fuse_wiki(question, rankings, graph.found, backends)
        passages = web.found[0] if web.found else []
        k = backends.settings.search.rrf_k
        beside = kept_hits(kept.found, rankings, backends.settings.knowledge, k=k)
        candidates = await candidates_of(wiki.hits, passages, backends, k=k, weights=weights, kept=beside)

    with watch.stage("rerank"):
        candidates = await drop_duplicates(candidates, backends)
        order = await reranked(
            question.text,
            candidates,
            backends.reranker,
            backends.settings.rerank,
            backends.late,
            open_share=wiki.open_share,
        )
        legs["reranker"] = order.status
        if backends.late is not None:
            legs["late interaction"] = order.late

    with watch.stage("evidence"):
        limit = question.limit or backends.settings.search.evidence_limit
        first = order.candidates[: 3 * limit]
        chosen = await asyncio.to_thread(with_paths, first, wiki.exploration, backends.state, question.where)
        evidence = await asyncio.to_thread(evidence_of, chosen, backends.state, backends.settings.search, limit=limit)
    if not evidence and vector.found is None:
        named = "; ".join(f"{leg}: {status}" for leg, status in legs.items() if status != OFF)
        raise DependencyDownError(f"The wiki cannot be searched now ({named}).", dependency=Leg.VECTOR.value)
    return SearchResult(
        question=question.text,
        language=language,
        keywords=wiki.exploration.keywords.keys if wiki.exploration else (),
        evidence=evidence,
        legs=legs,
        zone=confidence_zone(order, backends.settings.answer),
        milliseconds=watch.milliseconds,
    )


def statuses(
    vector: VectorFound, graph: LegResult[Exploration], web: WebFound, kept: LegResult[Kept]
) -> dict[str, str]:
    """What is said of each leg, with what is amiss where it has found something all the same."""
    legs = {Leg.VECTOR.value: vector.status, Leg.GRAPH.value: graph.status, Leg.WEB.value: web.status}
    notes = {Leg.VECTOR.value: vector.found[1] if vector.found else ""}
    notes[Leg.WEB.value] = "; ".join(web.found[1]) if web.found else ""
    if kept.status:
        legs[KNOWLEDGE], notes[KNOWLEDGE] = kept.status, kept.found.note if kept.found else ""
    return legs | {leg: f"{legs[leg]} ({note})" for leg, note in notes.items() if note}


async def run_legs(
    question: Question, language: str, backends: Backends
) -> tuple[VectorFound, LegResult[Exploration], WebFound]:
    """The three legs at once, each with its own deadline."""
    limits, breakers = backends.settings.search, backends.breakers
    explored = explore(
        question.text, language, backends.graph, backends.recognizer, backends.walks, backends.settings.graph
    )
    vector, graph, web = await asyncio.gather(
        guarded(
            "vector",
            vector_leg(question, backends),
            seconds=limits.vector_seconds,
            breaker=breakers.get(Leg.VECTOR),
        ),
        guarded("graph", explored, seconds=limits.graph_seconds, breaker=breakers.get(Leg.GRAPH)),
        web_leg(question, language, backends),
    )
    return vector, graph, web


async def vector_leg(question: Question, backends: Backends) -> tuple[VectorRankings, str]:
    """Dense and BM25 rankings of the wiki, and both fused; and what is amiss with the embedder.

    An embedding server that is down leaves BM25, which needs none.
    """
    settings = backends.settings.search
    limit = max(settings.vector_limit, 2 * question.limit)
    depth = limit * (SCORED_DEPTH if settings.adaptive_weights else 1)
    dense, sparse, note = None, None, ""
    try:
        vector = await backends.question_vectors.of(question.text, backends.embedder)
        dense, sparse = vector.dense, vector.sparse
    except DependencyError as error:
        note = f"by words alone: {error}"
    where = question.where
    read = LIVE_MOST if where.asks_for_dates else depth
    rankings = await backends.vectors.search(
        WIKI, dense=dense, sparse=sparse, text=question.text, limit=read, where=where
    )
    rankings = await dated(rankings, where, backends.state, limit=depth)
    if settings.adaptive_weights:
        nothing = settings.dense_floor
        floor = cosine_of_nothing(backends.embedder.model) if nothing is None else nothing
        fused = convex_combination(rankings.dense, rankings.sparse, weight=settings.dense_weight, floor=floor)
        rankings = replace(rankings, fused=tuple(fused))
    rankings = above_threshold(rankings, settings.vector_threshold)
    return replace(rankings, fused=rankings.fused[:limit]), note


async def web_leg(question: Question, language: str, backends: Backends) -> WebFound:
    """Passages of web pages, in the search engine's order."""
    settings = backends.settings
    if backends.web is None or not question.use_web or settings.search.web_limit == 0:
        return LegResult(None, OFF)
    if question.where != SearchFilter():
        return LegResult(None, FILTERED)
    leg = web_passages(
        question.text,
        language,
        backends.web,
        backends.fetcher,
        limit=settings.search.web_limit,
        passages_per_page=settings.web.passages_per_page,
        deadline=settings.search.web_seconds,
        blocked=backends.domains.is_blocked,
        allow_private=settings.web.allow_private,
    )
    return await guarded("web", leg, seconds=settings.search.web_seconds)


async def fuse_wiki(
    question: Question, vector: VectorRankings | None, graph: Exploration | None, backends: Backends
) -> WikiRanking:
    """Stage 1: one ranking of the owner's pages.

    With adaptive weights the graph leg walks once more, from the vector leg's best passages too: cheap, since the
    walk is linear in its seeds, and where two weak signs meet on one page it rises. That ranking holds what both
    legs know, so it leads and the vector ranking fills up; without, both rankings count the same.
    """
    settings = backends.settings
    adaptive = settings.search.adaptive_weights
    fused = vector.fused if vector else ()
    if graph is not None and adaptive:
        seeds = fused[: settings.graph.passage_seeds]
        again = spread(graph.keywords, seeds, backends.graph, backends.walks, settings.graph, graph)
        breaker = backends.breakers.get(Leg.GRAPH)
        graph = (await guarded("graph", again, seconds=settings.search.graph_seconds, breaker=breaker)).found or graph
    limit = max(settings.search.graph_limit, 2 * question.limit)
    reached = await live_only(graph, question.where, backends.state, limit=limit) if graph else ()
    weights = {"graph": settings.search.graph_weight} if adaptive else None
    hits = reciprocal_rank_fusion({"vector": fused, "graph": reached}, k=settings.search.rrf_k, weights=weights)
    if vector:
        hits = annotate(hits, {"dense": vector.dense, "sparse": vector.sparse})
    return WikiRanking(hits=tuple(hits), vector=tuple(fused), graph=tuple(reached), exploration=graph)
