"""A whole entity graph as arrays, and the part of it that lies around some nodes. Knows no backend."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from graph.graph_model import Neighbourhood, NeighbourhoodBounds

Numbers = NDArray[np.int64]
HOPS = 4
"""Question → entity → chunk → entity → chunk is what a two-hop question needs, and two steps more."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Lists of numbers of different lengths, end to end: row i is `values[starts[i]:starts[i + 1]]`."""

    starts: Numbers
    values: Numbers

    @classmethod
    def grouped(cls, keys: Numbers, values: Numbers, count: int) -> Rows:
        """Row i holds, ascending, the values whose key is i."""
        return cls.of_sorted(keys, values[np.lexsort((values, keys))], count)

    @classmethod
    def of_sorted(cls, keys: Numbers, values: Numbers, count: int) -> Rows:
        """The same where `values` are in order already."""
        return cls(np.concatenate(([0], np.cumsum(np.bincount(keys, minlength=count)))), values)

    def lengths(self, rows: Numbers) -> Numbers:
        return self.starts[rows + 1] - self.starts[rows]

    def places(self, rows: Numbers) -> tuple[Numbers, Numbers]:
        """For each value of the given rows: which of `rows` it belongs to (0, 1, …), and where it is in `values`."""
        lengths = self.lengths(rows)
        owner = np.repeat(np.arange(len(rows)), lengths)
        first_places = np.cumsum(lengths) - lengths
        return owner, np.arange(len(owner)) - first_places[owner] + self.starts[rows][owner]

    def of(self, rows: Numbers) -> tuple[Numbers, Numbers]:
        """The same with the values themselves."""
        owner, places = self.places(rows)
        return owner, self.values[places]


@dataclass(frozen=True)
class GraphArrays:
    """The graph of one moment. Nodes are numbered in the order of their ids, so nothing depends on who came first.

    Links are kept by page: a page's chunks share them, and a wiki has many more links than pages.
    """

    version: str
    entity_ids: tuple[str, ...]
    entity_names: tuple[str, ...]
    chunk_ids: tuple[str, ...]
    mentions: Rows
    """Chunk → entities, ascending."""
    mention_counts: NDArray[np.float32]
    """Beside `mentions.values`."""
    chunk_page: Numbers
    page_title: Numbers
    """Page → the entity it is about, or -1."""
    page_links: Rows
    """Page → entities, ascending."""

    @cached_property
    def frequency(self) -> NDArray[np.int32]:
        """(entities,): in how many chunks each is named."""
        return np.bincount(self.mentions.values, minlength=len(self.entity_ids)).astype(np.int32)

    @cached_property
    def chunks_of(self) -> Rows:
        """Entity → chunks that name it or whose page is about it; a chunk that does both is there twice."""
        every = np.arange(len(self.chunk_ids))
        naming, named = self.mentions.of(every)
        titles = self.page_title[self.chunk_page]
        entities = np.concatenate((named, titles[titles >= 0]))
        return Rows.grouped(entities, np.concatenate((naming, every[titles >= 0])), len(self.entity_ids))

    @cached_property
    def edge_total(self) -> int:
        titles = int((self.page_title[self.chunk_page] >= 0).sum())
        return len(self.mentions.values) + titles + int(self.page_links.lengths(self.chunk_page).sum())

    @cached_property
    def whole(self) -> Neighbourhood:
        """Made once, so callers can see that nothing changed."""
        return self._part(np.arange(len(self.entity_ids)), np.arange(len(self.chunk_ids)), self.version)

    def neighbourhood(
        self, entity_ids: Sequence[str], chunk_ids: Sequence[str], bounds: NeighbourhoodBounds
    ) -> Neighbourhood:
        """Everything where that is within the bounds; else what a walk from these nodes reaches.

        A part has no version: two parts of one graph differ.
        """
        if len(self.entity_ids) + len(self.chunk_ids) <= bounds.max_nodes and self.edge_total <= bounds.max_edges:
            return self.whole
        walk = _Walk(self, bounds)
        walk.run(_numbers(entity_ids, self.entity_ids), _numbers(chunk_ids, self.chunk_ids))
        return self._part(np.flatnonzero(walk.entity_taken), np.flatnonzero(walk.chunk_taken), "")

    def entities_of(self, chunks: Numbers) -> tuple[Numbers, Numbers]:
        """Every edge of these chunks: (which of `chunks`, entity)."""
        naming, named = self.mentions.of(chunks)
        pages = self.chunk_page[chunks]
        titles = self.page_title[pages]
        about = np.flatnonzero(titles >= 0)
        linking, linked = self.page_links.of(pages)
        return np.concatenate((naming, about, linking)), np.concatenate((named, titles[about], linked))

    def _part(self, entities: Numbers, chunks: Numbers, version: str) -> Neighbourhood:
        number = np.full(len(self.entity_ids) + 1, -1)  # the last stands for "no entity", which is -1
        number[entities] = np.arange(len(entities))
        naming, places = self.mentions.places(chunks)
        named = number[self.mentions.values[places]]
        pages = self.chunk_page[chunks]
        titles = number[self.page_title[pages]]
        linking, links = self.page_links.of(pages)
        linked = number[links]
        return Neighbourhood(
            entity_ids=tuple(self.entity_ids[entity] for entity in entities),
            entity_names=tuple(self.entity_names[entity] for entity in entities),
            chunk_ids=tuple(self.chunk_ids[chunk] for chunk in chunks),
            mention_chunk=naming[named >= 0].astype(np.int32),
            mention_entity=named[named >= 0].astype(np.int32),
            mention_count=self.mention_counts[places][named >= 0],
            title_chunk=np.flatnonzero(titles >= 0).astype(np.int32),
            title_entity=titles[titles >= 0].astype(np.int32),
            link_chunk=linking[linked >= 0].astype(np.int32),
            link_entity=linked[linked >= 0].astype(np.int32),
            chunk_frequency=self.frequency[entities],
            chunk_total=len(self.chunk_ids),
            version=version,
        )


class _Walk:
    """Breadth first. Each node brings its edges to the nodes already taken; the first that does not fit ends it."""

    def __init__(self, graph: GraphArrays, bounds: NeighbourhoodBounds) -> None:
        self.graph = graph
        self.bounds = bounds
        self.entity_taken = np.zeros(len(graph.entity_ids), dtype=bool)
        self.chunk_taken = np.zeros(len(graph.chunk_ids), dtype=bool)
        self._nodes = 0
        self._edges = 0
        self._full = False
        self._ends = time.perf_counter() + bounds.milliseconds / 1000

    def run(self, entities: Numbers, chunks: Numbers) -> None:
        entities = self._take_entities(entities)
        chunks = self._take_chunks(chunks)
        for _ in range(HOPS):
            named = self.graph.entities_of(chunks)[1]
            chunks = self._take_chunks(self._chunks_around(entities))
            entities = self._take_entities(np.unique(named))

    def _chunks_around(self, entities: Numbers) -> Numbers:
        """Chunks next to these entities, those of rarer entities first; `entities` come in that order."""
        owner, chunks = self.graph.chunks_of.of(entities)
        found, first = np.unique(chunks, return_index=True)
        return found[np.argsort(owner[first], kind="stable")]

    def _take_entities(self, candidates: Numbers) -> Numbers:
        new = candidates[~self.entity_taken[candidates]]
        new = new[np.lexsort((new, self.graph.frequency[new]))]
        if not len(new) or self._over():
            return new[:0]
        edges = self.graph.entities_of(np.flatnonzero(self.chunk_taken))[1]
        taken = self._fitting(new, np.bincount(edges, minlength=len(self.entity_taken))[new])
        self.entity_taken[taken] = True
        return taken

    def _take_chunks(self, candidates: Numbers) -> Numbers:
        new = candidates[~self.chunk_taken[candidates]]
        if not len(new) or self._over():
            return new[:0]
        owner, entities = self.graph.entities_of(new)
        taken = self._fitting(new, np.bincount(owner[self.entity_taken[entities]], minlength=len(new)))
        self.chunk_taken[taken] = True
        return taken

    def _over(self) -> bool:
        return self._full or time.perf_counter() > self._ends

    def _fitting(self, nodes: Numbers, costs: Numbers) -> Numbers:
        edges = self._edges + np.cumsum(costs)
        room = min(len(nodes), self.bounds.max_nodes - self._nodes)
        count = min(room, int(np.searchsorted(edges, self.bounds.max_edges, side="right")))
        self._full = count < len(nodes)
        self._nodes += count
        self._edges = int(edges[count - 1]) if count else self._edges
        return nodes[:count]


def _numbers(ids: Sequence[str], every: tuple[str, ...]) -> Numbers:
    """The numbers, ascending, of the ids that exist."""
    places = ((bisect_left(every, wanted), wanted) for wanted in set(ids))
    return np.array(sorted(at for at, wanted in places if at < len(every) and every[at] == wanted), dtype=np.int64)
