"""All questions of a set through all runs, one after the other, as a single user would ask."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from config.settings import SearchSettings
from graph.model import VectorRankings
from server.backends import Backends
from server.evaluation.ablations import Ablation
from server.evaluation.changes import changed
from server.evaluation.dataset import JudgedQuestion
from server.evaluation.results import BASE, Confidence, Kind, Run
from server.evaluation.stages import (
    Found,
    RememberingReranker,
    final_run,
    graph_run,
    keys_of,
    legs_run,
    open_to_noise,
    ranked_documents,
    timed,
    vector_run,
    wiki_run,
)
from server.graph_leg import WalkCache, spread
from server.model import Question
from server.rerank.order import RerankedOrder

RUNS: dict[str, tuple[Kind, str]] = {
    "dense": ("leg", "dense vectors alone"),
    "sparse": ("leg", "BM25 alone, or the words' weights that the model learned"),
    "vector": ("leg", "both, fused by the engine, after noise control"),
    "graph": ("leg", "the walk from the question's names alone"),
    "wiki": ("stage", "both legs fused"),
    BASE: ("stage", "near-copies dropped, and the cross-encoder's say: what users get"),
}


@dataclass(slots=True)
class _Rows:
    """What one run returned so far."""

    documents: list[tuple[str, ...]] = field(default_factory=list)
    milliseconds: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """An ablation with the backends that search so; its walks are kept apart from the others'."""

    ablation: Ablation
    backends: Backends

    @classmethod
    def of(cls, ablation: Ablation, backends: Backends) -> Variant:
        settings = changed(backends.settings, ablation.changes)
        walks = WalkCache() if ablation.walks_again else backends.walks
        return cls(ablation=ablation, backends=replace(backends, settings=settings, walks=walks))


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Asks one question after the other and notes what each run returned."""

    source: str
    backends: Backends
    memory: RememberingReranker | None
    variants: tuple[Variant, ...]
    rows: defaultdict[str, _Rows] = field(default_factory=lambda: defaultdict(_Rows))

    @classmethod
    def of(cls, source: str, backends: Backends, ablations: Sequence[Ablation] = ()) -> Asker:
        memory = RememberingReranker(backends.reranker) if backends.reranker else None
        asked = replace(backends, reranker=memory)
        variants = tuple(Variant.of(ablation, asked) for ablation in ablations)
        return cls(source=source, backends=asked, memory=memory, variants=variants)

    async def warm_up(self, judged: JudgedQuestion) -> None:
        """Models load and the graph's snapshot is built with the first question; that is not its latency."""
        await self.ask(judged)
        self.rows.clear()
        if self.memory:
            self.memory.asked = self.memory.unscored = 0

    async def ask(self, judged: JudgedQuestion) -> Confidence:
        """Through every run; how sure the last stage was."""
        if self.memory:
            self.memory.forget()
        question, backends = Question(text=judged.text, use_web=False), self.backends
        vector, spent = await timed(vector_run(question, backends))
        await self._note("vector", keys_of(vector.fused), spent)
        raw = await vector_run(question, open_to_noise(backends))
        await self._note("dense", keys_of(raw.dense))
        await self._note("sparse", keys_of(raw.sparse))
        reached, spent = await timed(graph_run(question, backends))
        await self._note("graph", reached, spent)
        found, searching = await timed(legs_run(question, backends))
        wiki, fusing = await timed(wiki_run(found, backends))
        await self._note("wiki", keys_of(wiki.hits), searching + fusing)
        order, reranking = await timed(final_run(question, wiki, backends))
        await self._note(BASE, _keys(order), searching + fusing + reranking)
        known = {open_to_noise(backends).settings.search: raw}
        for variant in self.variants:
            await self._note(variant.ablation.name, _keys(await _vary(found, variant, known)))
        return confidence_of(order)

    async def _note(self, run: str, chunks: Sequence[str], milliseconds: float | None = None) -> None:
        row = self.rows[run]
        row.documents.append(tuple(await ranked_documents(chunks, self.source, self.backends)))
        if milliseconds is not None:
            row.milliseconds.append(round(milliseconds, 2))

    @property
    def runs(self) -> tuple[Run, ...]:
        """In the order of the table."""
        described = {**RUNS, **{v.ablation.name: ("ablation", v.ablation.says) for v in self.variants}}
        return tuple(
            Run(
                name=name,
                kind=kind,
                says=says,
                documents=tuple(self.rows[name].documents),
                milliseconds=tuple(self.rows[name].milliseconds),
            )
            for name, (kind, says) in described.items()
        )

    @property
    def unscored(self) -> float:
        """Share of the passages that the cross-encoder did not score in time."""
        return self.memory.unscored / self.memory.asked if self.memory and self.memory.asked else 0.0


async def _vary(found: Found, variant: Variant, known: dict[SearchSettings, VectorRankings]) -> RerankedOrder:
    """The search's end with one factor changed, over what the legs have found already.

    `known`: what the vector leg gives with other settings, for this question; grows.
    """
    ablation, backends = variant.ablation, variant.backends
    if ablation.searches_again:
        wanted = backends.settings.search
        if wanted not in known:
            known[wanted] = await vector_run(found.question, backends)
        found = replace(found, vector=known[wanted])
    if ablation.walks_again:
        again = await spread(found.graph.keywords, (), backends.graph, backends.walks, backends.settings.graph)
        found = replace(found, graph=again)
    wiki = await wiki_run(found, backends, without=ablation.without)
    return await final_run(found.question, wiki, backends)


async def ask_unanswerable(questions: Iterable[JudgedQuestion], backends: Backends) -> tuple[Confidence, ...]:
    """How sure the search was of each question; nothing where no cross-encoder has a say."""
    if backends.reranker is None or not backends.settings.rerank.enabled:
        return ()
    return tuple([confidence_of(await last_order(judged, backends)) for judged in questions])


async def last_order(judged: JudgedQuestion, backends: Backends) -> RerankedOrder:
    """What a user's search would take its evidence from."""
    found = await legs_run(Question(text=judged.text, use_web=False), backends)
    return await final_run(found.question, await wiki_run(found, backends), backends)


def confidence_of(order: RerankedOrder) -> Confidence:
    best = None if order.best is None else round(order.best, 4)
    return Confidence(best=best, candidates=len(order.candidates))


def _keys(order: RerankedOrder) -> list[str]:
    return keys_of([candidate.hit for candidate in order.candidates])
