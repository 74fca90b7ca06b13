"""One question through legs and stages, each timed; what the legs found is kept for the stages and the ablations.

The only module here that knows the search's parts: `server/search.py` runs the same ones for users.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from graph.errors import DependencyDownError
from graph.model import Hit, Leg, Scored, VectorRankings
from graph.protocols import Reranker
from ingestion.language import detect_language
from server.backends import Backends
from server.candidates import candidates_of, drop_duplicates, live_only
from server.evaluation.changes import changed
from server.graph_leg import Exploration, explore
from server.model import Question
from server.rerank.order import RerankedOrder, reranked
from server.search import WikiRanking, fuse_wiki, run_legs, vector_leg

DEPTH = 20
"""Chunks asked of the graph, so that ten documents remain where a document has several chunks."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What the legs gave for a question."""

    question: Question
    language: str
    vector: VectorRankings
    graph: Exploration


async def timed(work: Awaitable[T]) -> tuple[T, float]:
    """The result, and the milliseconds it took."""
    started = time.perf_counter()
    result = await work
    return result, (time.perf_counter() - started) * 1000


async def vector_run(question: Question, backends: Backends) -> VectorRankings:
    """The vector leg alone. Raises `DependencyDownError` where no embedder answered."""
    rankings, note = await vector_leg(question, backends)
    if note:
        raise DependencyDownError(f"The vector leg failed for {question.text!r}: {note}", dependency="embedder")
    return rankings


async def graph_run(question: Question, backends: Backends) -> list[str]:
    """The graph leg alone, from names only: chunk ids, best first."""
    language = await asyncio.to_thread(detect_language, question.text, default="")
    found = await explore(
        question.text, language, backends.graph, backends.recognizer, backends.walks, backends.settings.graph
    )
    return keys_of(await live_only(found, question.where, backends.state, limit=DEPTH))


async def legs_run(question: Question, backends: Backends) -> Found:
    """Both legs at once, as a search runs them.

    Raises `DependencyDownError` where a leg failed: a figure without it would be another search's.
    """
    language = await asyncio.to_thread(detect_language, question.text, default="")
    vector, graph, _ = await run_legs(question, language, backends)
    for name, leg in ((Leg.VECTOR, vector), (Leg.GRAPH, graph)):
        if leg.found is None:
            raise DependencyDownError(f"The {name} leg failed for {question.text!r}: {leg.status}", dependency=name)
    assert vector.found is not None
    assert graph.found is not None
    rankings, note = vector.found
    if note:
        raise DependencyDownError(f"The vector leg failed for {question.text!r}: {note}", dependency="embedder")
    return Found(question=question, language=language, vector=rankings, graph=graph.found)


def open_to_noise(backends: Backends) -> Backends:
    """Searching so, every dense hit is kept: no cosine is below -1."""
    return replace(backends, settings=changed(backends.settings, {"search.vector_threshold": -1.0}))


async def wiki_run(found: Found, backends: Backends, *, without: Leg | None = None) -> WikiRanking:
    """Stage 1 from what the legs found; `without` leaves one of them out."""
    vector = None if without is Leg.VECTOR else found.vector
    graph = None if without is Leg.GRAPH else found.graph
    return await fuse_wiki(found.question, vector, graph, backends)


async def final_run(question: Question, wiki: WikiRanking, backends: Backends) -> RerankedOrder:
    """From the wiki's ranking to the order that evidence is taken from."""
    candidates = await candidates_of(wiki.hits, [], backends, k=backends.settings.search.rrf_k)
    candidates = await drop_duplicates(candidates, backends)
    settings = backends.settings.rerank
    return await reranked(
        question.text, candidates, backends.reranker, settings, backends.late, open_share=wiki.open_share
    )


def keys_of(ranking: Sequence[Scored] | Sequence[Hit]) -> list[str]:
    return [one.key for one in ranking]


async def ranked_documents(chunks: Sequence[str], source: str, backends: Backends) -> list[str]:
    """Chunk ids → document ids, each at its best chunk's place."""
    stored = await asyncio.to_thread(backends.state.chunks, chunks)
    pages = (stored[chunk].chunk.page_id for chunk in chunks if chunk in stored)
    return list(dict.fromkeys(page.removeprefix(f"{source}:") for page in pages))


class RememberingReranker:
    """Asks for each passage once until it forgets: ablations mostly reorder passages that were scored already.

    What was not scored in time stays so, or ablations would know more than the run they are compared to.
    """

    def __init__(self, reranker: Reranker) -> None:
        self._reranker = reranker
        self._scores: dict[str, float | None] = {}
        self.asked = 0
        self.unscored = 0
        """Passages that did not fit into the time budget, of `asked`."""

    @property
    def model(self) -> str:
        return self._reranker.model

    async def score(self, question: str, passages: Sequence[str], *, budget: float) -> list[float | None]:
        new = [passage for passage in dict.fromkeys(passages) if passage not in self._scores]
        if new:
            scores = await self._reranker.score(question, new, budget=budget)
            self._scores.update(zip(new, scores, strict=True))
            self.asked += len(new)
            self.unscored += scores.count(None)
        return [self._scores[passage] for passage in passages]

    def forget(self) -> None:
        """Before another question, and before the same one is timed again."""
        self._scores.clear()

    async def close(self) -> None:
        """Whoever opened the reranker closes it."""
