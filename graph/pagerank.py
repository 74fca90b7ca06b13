"""Personalised PageRank from a question's entities and passages to chunks (mission.md §2.5). Pure.

The walk alternates between chunks and entities. HippoRAG (arXiv 2405.14831) walks such a graph made by an LLM;
here the graph is made of titles and names alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from graph.graph_model import Neighbourhood

Vector = NDArray[np.float32]
FLOOR = 3e-6
"""Mass a node must have for each of its neighbours to pass any on, of a question's 1: so a question costs what lies
around it, not what the wiki holds. The rule of Andersen, Chung and Lang's approximate PageRank (FOCS 2006)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkSettings:
    """How the walk moves. Tuned on hotpotqa_pool and popqa1000 only."""

    damping: float = 0.85
    """Share of the mass that walks on; the rest returns to the seeds."""
    iterations: int = 8
    title_weight: float = 50.0
    """Entity → the page about it, beside 1 for each chunk that names it: who asks for a thing wants its page."""
    about_weight: float = 0.0
    """Chunk → the entity its page is about, beside 1 for each entity it names."""
    link_weight: float = 0.3
    """Chunk ↔ an entity its page links to."""


def inverse_document_frequency(frequency: NDArray[np.int32], total: int) -> Vector:
    """BM25's IDF, ln(1 + (N − n + ½) / (n + ½)): a hub that every chunk names weighs next to nothing."""
    counts = frequency.astype(np.float32)
    odds = (max(total, 1) - counts + 0.5).clip(min=0.5) / (counts + 0.5)
    return np.asarray(np.log1p(odds), dtype=np.float32)


@dataclass(frozen=True, slots=True)
class Masses:
    """Where a walk ended up: (entities,) and (chunks,)."""

    entities: Vector
    chunks: Vector

    def plus(self, other: Masses, weight: float) -> Masses:
        return Masses(self.entities + weight * other.entities, self.chunks + weight * other.chunks)


@dataclass(frozen=True, slots=True)
class Held:
    """Mass on few of many nodes: on node `places[i]`, `mass[i]`."""

    places: NDArray[np.intp]
    mass: Vector

    @classmethod
    def of(cls, mass: Vector) -> Held:
        places = np.flatnonzero(mass > 0)  # of truth values: of numbers it takes ten times as long
        return cls(places, mass[places])

    def times(self, factor: float) -> Held:
        return Held(self.places, np.float32(factor) * self.mass)


@dataclass(frozen=True, slots=True)
class Steps:
    """Where the mass of each node goes: rows (from, to) that sum to 1."""

    rows: sparse.csr_array

    def of_mass(self, held: Held) -> Vector:
        """(to,) — what a step brings to each node. Looks at the edges of the nodes that hold mass, and at no others:
        a product with the matrix would take as long as the wiki is large."""
        rows = self.rows
        lengths = rows.indptr[held.places + 1] - rows.indptr[held.places]
        giving = held.mass > FLOOR * lengths
        places, mass, lengths = held.places[giving], held.mass[giving], lengths[giving]
        before = np.cumsum(lengths) - lengths
        edges = np.arange(int(lengths.sum())) + np.repeat(rows.indptr[places] - before, lengths)
        brought = np.zeros(rows.shape[1], np.float32)
        np.add.at(brought, rows.indices[edges], rows.data[edges] * np.repeat(mass, lengths))
        return brought


@dataclass(frozen=True, slots=True)
class Walk:
    """A neighbourhood made ready to walk on: row-normalised steps and what they were made from."""

    graph: Neighbourhood
    idf: Vector
    to_entities: sparse.csr_array
    """(chunks, entities)ᵀ, transposed so that a step is matrix @ vector."""
    to_chunks: sparse.csr_array
    """(entities, chunks)ᵀ."""
    from_chunks: Steps
    from_entities: Steps
    """The same steps by where they start."""
    breadth: NDArray[np.int32]
    """(entities,) — chunks of the page about it; for one without a page, chunks that name it."""
    settings: WalkSettings
    _entity_places: Mapping[str, int]
    _chunk_places: Mapping[str, int]

    @classmethod
    def prepare(cls, graph: Neighbourhood, settings: WalkSettings | None = None) -> Walk:
        settings = settings or WalkSettings()
        shape = (len(graph.chunk_ids), len(graph.entity_ids))
        idf = inverse_document_frequency(graph.chunk_frequency, graph.chunk_total)
        # A name said twice in a passage is a little more about it, not twice as much.
        mentions = _edges(graph.mention_chunk, graph.mention_entity, 1.0 + np.log(graph.mention_count), shape)
        titles = _edges(graph.title_chunk, graph.title_entity, np.ones(len(graph.title_chunk)), shape)
        links = _edges(graph.link_chunk, graph.link_entity, np.ones(len(graph.link_chunk)), shape)
        out = mentions + settings.about_weight * titles + settings.link_weight * links
        back = mentions + settings.title_weight * titles + settings.link_weight * links
        from_chunks = _rows_to_one(out @ sparse.diags_array(idf))
        from_entities = _rows_to_one(sparse.csr_array(back.T))
        about = np.bincount(graph.title_entity, minlength=shape[1])
        return cls(
            graph=graph,
            idf=idf,
            to_entities=sparse.csr_array(from_chunks.T),
            to_chunks=sparse.csr_array(from_entities.T),
            from_chunks=Steps(from_chunks),
            from_entities=Steps(from_entities),
            breadth=np.where(about > 0, about, graph.chunk_frequency).astype(np.int32),
            settings=settings,
            _entity_places={key: place for place, key in enumerate(graph.entity_ids)},
            _chunk_places={key: place for place, key in enumerate(graph.chunk_ids)},
        )

    def entity_index(self, entity_id: str) -> int | None:
        return self._entity_places.get(entity_id)

    def chunk_index(self, chunk_id: str) -> int | None:
        return self._chunk_places.get(chunk_id)

    def rank(self, entity_seeds: Vector, chunk_seeds: Vector) -> Masses:
        """The mass on every node. Linear in the seeds, so parts can be added at any weight."""
        walking = self.settings.damping
        seeds = Held.of(entity_seeds), Held.of(chunk_seeds)
        returning = tuple(held.times(1.0 - walking) for held in seeds)
        entities, chunks = seeds
        reached_entities, reached_chunks = entity_seeds, chunk_seeds
        for _ in range(self.settings.iterations):
            reached_entities = self.from_chunks.of_mass(chunks.times(walking))
            reached_chunks = self.from_entities.of_mass(entities.times(walking))
            for reached, held in zip((reached_entities, reached_chunks), returning, strict=True):
                reached[held.places] += held.mass
            entities, chunks = Held.of(reached_entities), Held.of(reached_chunks)
        return Masses(reached_entities, reached_chunks)

    def givers_of_chunk(self, chunk: int, mass: Vector, count: int) -> list[tuple[int, float]]:
        """The entities that give a chunk the most of their mass, and how much, best first."""
        return _strongest(self.to_chunks, chunk, mass, count)

    def givers_of_entity(self, entity: int, mass: Vector, count: int) -> list[tuple[int, float]]:
        """The chunks that give an entity the most of their mass, and how much, best first."""
        return _strongest(self.to_entities, entity, mass, count)


def _strongest(steps: sparse.csr_array, row: int, mass: Vector, count: int) -> list[tuple[int, float]]:
    start, end = steps.indptr[row], steps.indptr[row + 1]
    columns = steps.indices[start:end]
    given = steps.data[start:end] * mass[columns]
    best = np.lexsort((columns, -given))[:count]
    return [(int(columns[place]), float(given[place])) for place in best if given[place] > 0]


def _edges(
    rows: NDArray[np.int32], columns: NDArray[np.int32], weights: NDArray[np.floating], shape: tuple[int, int]
) -> sparse.csr_array:
    return sparse.csr_array((weights.astype(np.float32), (rows, columns)), shape=shape)


def _rows_to_one(matrix: sparse.csr_array) -> sparse.csr_array:
    sums = np.asarray(matrix.sum(axis=1)).ravel()
    scale = np.divide(1.0, sums, out=np.zeros_like(sums), where=sums > 0)
    return sparse.csr_array(sparse.diags_array(scale.astype(np.float32)) @ matrix)
