"""The graph leg: from the names in a question to chunks, by way of entities (mission.md §2.4–2.5)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from config.settings import GraphSettings
from graph.graph_model import Neighbourhood, NeighbourhoodBounds
from graph.model import Scored
from graph.pagerank import Masses, Vector, Walk, WalkSettings
from graph.protocols import GraphStore
from graph.recognizer import Recognizer
from graph.refreshed import Refreshed
from server.keywords import Keywords, QuestionWords, choose_keywords, keys_to_look_up

SEED_TEMPERATURE = 0.1
"""Of the softmax over the vector leg's scores, which lie in [0, 1]; chosen on hotpotqa_pool, where .05 does as well."""
SPECIFIC_CHUNKS = 4
"""Chunks up to which a name leads to a passage rather than to a page; 1 to 8 do as well on hotpotqa_pool."""
PATH_HOPS = 3
"""Chunks a path may go through; the walk itself has spread no further that counts."""
PATH_WIDTH = 4
"""Ways back that are looked at from each node."""


class WalkCache:
    """The last prepared walk. Preparing takes longer than walking, and a whole graph is the same until it changes."""

    def __init__(self, *, patience: float | None = None) -> None:
        """`patience`: seconds to wait for the walk over a graph that has changed, before the one from before is used;
        None: however long it takes."""
        self._walk = Refreshed[Walk](patience=patience)

    def get(self, graph: Neighbourhood, settings: WalkSettings) -> Walk:
        """Its own `graph` is what it goes over: this one, or the same from before a change."""
        if not graph.version:
            return Walk.prepare(graph, settings)
        return self._walk.get(
            lambda walk: walk.graph is graph and walk.settings == settings, lambda: Walk.prepare(graph, settings)
        )

    def close(self) -> None:
        """Waits for what is being prepared."""
        self._walk.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Exploration:
    """What the graph made of a question: its keywords, and the mass its entities gave to chunks."""

    keywords: Keywords
    walk: Walk
    seeds: Vector
    masses: Masses
    open_share: float
    """How much of the question its names leave open, 0 to 1."""

    def ranking(self, limit: int) -> list[Scored]:
        return top_chunks(self.walk, self.masses.chunks, limit)


async def explore(
    question: str,
    language: str,
    graph: GraphStore,
    recognizer: Recognizer,
    walks: WalkCache,
    settings: GraphSettings,
) -> Exploration:
    """Find the question's entities and spread from them."""
    keywords = await find_keywords(question, language, graph, recognizer)
    return await spread(keywords, (), graph, walks, settings)


async def find_keywords(question: str, language: str, graph: GraphStore, recognizer: Recognizer) -> Keywords:
    """The names of a question that the graph knows."""
    names = (await asyncio.to_thread(recognizer.names, [question], language))[0]
    tokens = QuestionWords.of(question)
    found = await graph.find_entities(keys_to_look_up(tokens, question, names))
    return choose_keywords(tokens, question, names, found)


async def spread(
    keywords: Keywords,
    passages: Sequence[Scored],
    graph: GraphStore,
    walks: WalkCache,
    settings: GraphSettings,
    before: Exploration | None = None,
) -> Exploration:
    """PageRank from the entities, and from the vector leg's best passages where those are known.

    The walk is linear in its seeds: over the same neighbourhood as `before`, only the passages' part is walked.
    """
    bounds = NeighbourhoodBounds(max_nodes=settings.max_nodes, max_edges=settings.max_edges)
    around = await graph.neighbourhood(sorted(keywords.entities), [scored.key for scored in passages], bounds)
    return await asyncio.to_thread(_spread, keywords, passages, around, walks, settings, before)


def _spread(
    keywords: Keywords,
    passages: Sequence[Scored],
    around: Neighbourhood,
    walks: WalkCache,
    settings: GraphSettings,
    before: Exploration | None,
) -> Exploration:
    walk = walks.get(around, walk_settings(settings))
    if before is not None and before.walk is walk:
        seeds, masses = before.seeds, before.masses
    else:
        seeds = entity_seeds(keywords, walk)
        masses = walk.rank(seeds, np.zeros(len(walk.graph.chunk_ids), np.float32))
    open_share = 1.0 - keywords.coverage * specificity(keywords, walk)
    if passages:
        nothing = np.zeros(len(walk.graph.entity_ids), np.float32)
        start = passage_seeds(passages, walk)
        share = passage_weight(keywords, open_share, settings)
        masses = masses.plus(walk.rank(nothing, start), share).plus(
            Masses(nothing, start), share * passage_pull(open_share, settings)
        )
    return Exploration(keywords=keywords, walk=walk, seeds=seeds, masses=masses, open_share=open_share)


def walk_settings(settings: GraphSettings) -> WalkSettings:
    return WalkSettings(
        damping=settings.damping,
        iterations=settings.iterations,
        title_weight=settings.title_weight,
        about_weight=settings.about_weight,
        link_weight=settings.link_weight,
    )


def entity_seeds(keywords: Keywords, walk: Walk) -> Vector:
    """(entities,) — by IDF, summing to 1: a rare name tells more of what is meant than a common one."""
    seeds = np.zeros(len(walk.graph.entity_ids), np.float32)
    for entity, share in keywords.entities.items():
        place = walk.entity_index(entity)
        if place is not None:
            seeds[place] = share * walk.idf[place]
    total = seeds.sum()
    return seeds / total if total > 0 else seeds


def passage_seeds(passages: Sequence[Scored], walk: Walk) -> Vector:
    """(chunks,) — the vector leg's best by the softmax of their scores, summing to 1."""
    seeds = np.zeros(len(walk.graph.chunk_ids), np.float32)
    best = max((scored.score for scored in passages), default=0.0)
    for scored in passages:
        place = walk.chunk_index(scored.key)
        if place is not None:
            seeds[place] = np.exp((scored.score - best) / SEED_TEMPERATURE)
    total = seeds.sum()
    return seeds / total if total > 0 else seeds


def passage_weight(keywords: Keywords, open_share: float, settings: GraphSettings) -> float:
    """How much the passages count beside the entities: little where names settle what is meant, much where not.

    Grows with the square of the share of content words that no specific name covers. On hotpotqa_pool recall@5 is
    .945 (.878 from entities and .890 from the vector leg alone), on popqa1000 .792 (.775 and .524); weights up to 10
    and powers of 1 to 3 lie within .005 there, so this is the least of them.
    """
    if not keywords.entities:
        return 1.0
    return settings.passage_weight_low + (settings.passage_weight_high - settings.passage_weight_low) * open_share**2


def passage_pull(open_share: float, settings: GraphSettings) -> float:
    """What a passage keeps beside what the walk brings back to it. Where names say little of what is meant, the walk
    goes astray more often than it finds a second hop, so the vector leg's order is mostly kept there.

    Grows with the eighth power, so that it is `passage_pull` for all but the most open: on hotpotqa_pool a stronger
    pull loses second hops below an open share of .8 (recall@5 .950 → .935 with 8 for all), and none above; this rule
    gives .949 there and .789 on popqa1000, as without it.
    """
    return settings.passage_pull + (settings.passage_pull_open - settings.passage_pull) * open_share**8


def specificity(keywords: Keywords, walk: Walk) -> float:
    """How far the names alone lead to passages, 0 to 1, the mean over their words.

    A title whose page has a hundred chunks says which page is meant, not which of its passages; and a name that
    no title stands for and a hundred chunks name says neither.
    """
    reached = total = 0.0
    for entity, share in keywords.entities.items():
        place = walk.entity_index(entity)
        if place is not None:
            weight = share * len(keywords.names[entity].split())
            reached += weight * min(1.0, SPECIFIC_CHUNKS / max(1, int(walk.breadth[place])))
            total += weight
    return reached / total if total > 0 else 0.0


def top_chunks(walk: Walk, mass: Vector, limit: int) -> list[Scored]:
    """Best first; equal masses by chunk id, which is the order of the arrays."""
    reached = np.flatnonzero(mass > 0)
    if len(reached) > 2 * limit:  # all that may be among the first, with those that tie with the last of them
        least = np.partition(mass[reached], len(reached) - limit)[len(reached) - limit]
        reached = reached[mass[reached] >= least]
    best = reached[np.argsort(-mass[reached], kind="stable")][:limit]
    return [Scored(key=walk.graph.chunk_ids[place], score=float(mass[place])) for place in best]


def path_to(exploration: Exploration, chunk: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(names of the entities of the question that led here, names of entities and ids of chunks on the way).

    The shortest way, and of those the one that brought the most mass among the strongest few at each step.
    Empty where the chunk was not reached from an entity within `PATH_HOPS` chunks.
    """
    place = exploration.walk.chunk_index(chunk)
    if place is None:
        return (), ()
    for hops in range(1, PATH_HOPS + 1):
        route = _route(exploration, place, hops, frozenset())
        if route is not None:
            return route.steps[:1], route.steps
    return (), ()


@dataclass(frozen=True, slots=True)
class Route:
    """A way from an entity of the question to a chunk, and the share of mass that went it."""

    share: float
    steps: tuple[str, ...]


def _route(exploration: Exploration, chunk: int, hops: int, visited: frozenset[int]) -> Route | None:
    """The best way to a chunk over exactly `hops - 1` other chunks."""
    walk, seeds, masses = exploration.walk, exploration.seeds, exploration.masses
    names, ids = walk.graph.entity_names, walk.graph.chunk_ids
    if hops == 1:
        given = walk.givers_of_chunk(chunk, seeds, 1)
        return Route(given[0][1], (names[given[0][0]],)) if given else None
    best: Route | None = None
    for entity, to_chunk in walk.givers_of_chunk(chunk, masses.entities, PATH_WIDTH):
        for before, to_entity in walk.givers_of_entity(entity, masses.chunks, PATH_WIDTH):
            if before == chunk or before in visited:
                continue
            way = _route(exploration, before, hops - 1, visited | {chunk})
            if way is not None and (best is None or way.share * to_chunk * to_entity > best.share):
                best = Route(way.share * to_chunk * to_entity, (*way.steps, ids[before], names[entity]))
    return best
