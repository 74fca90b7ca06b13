"""The walk: what it reaches, and that it is what it says (linear, mass-preserving, equal to a plain computation)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from graph.graph_model import Neighbourhood
from graph.pagerank import FLOOR, Walk, WalkSettings, inverse_document_frequency

DROPPED = 42 * FLOOR
"""What a step may leave out of a graph with at most 42 edges."""


def neighbourhood(chunks: list[list[int]], about: list[int | None], entities: int) -> Neighbourhood:
    """`chunks[i]` are the entities that chunk i names; `about[i]` the one its page is about."""
    mentions = [(c, e) for c, named in enumerate(chunks) for e in named]
    titles = [(c, e) for c, e in enumerate(about) if e is not None]

    def column(pairs: list[tuple[int, int]], place: int) -> NDArray[np.int32]:
        return np.array([pair[place] for pair in pairs], np.int32)

    return Neighbourhood(
        entity_ids=tuple(f"e{n:03}" for n in range(entities)),
        entity_names=tuple(f"E{n}" for n in range(entities)),
        chunk_ids=tuple(f"c{n:03}" for n in range(len(chunks))),
        mention_chunk=column(mentions, 0),
        mention_entity=column(mentions, 1),
        mention_count=np.ones(len(mentions), np.float32),
        title_chunk=column(titles, 0),
        title_entity=column(titles, 1),
        link_chunk=np.zeros(0, np.int32),
        link_entity=np.zeros(0, np.int32),
        chunk_frequency=np.bincount(column(mentions, 1), minlength=entities).astype(np.int32),
        chunk_total=len(chunks),
    )


LOTHAIR = neighbourhood([[1], [0], [2], [2]], [0, 1, None, 2], 3)
"""Chunk 0 is about entity 0 and names 1; chunk 1 is about 1; chunks 2 and 3 have to do with neither."""


def one(size: int, place: int) -> NDArray[np.float32]:
    seeds = np.zeros(size, np.float32)
    seeds[place] = 1
    return seeds


def test_a_page_two_hops_away_is_found() -> None:
    masses = Walk.prepare(LOTHAIR).rank(one(3, 0), np.zeros(4, np.float32))
    assert masses.chunks[0] > 0
    assert masses.chunks[1] > 0
    assert list(masses.chunks[2:]) == [0, 0]


def test_the_page_about_an_entity_comes_before_one_that_names_it() -> None:
    graph = neighbourhood([[1], [0], [0]], [0, None, None], 2)
    masses = Walk.prepare(graph).rank(one(2, 0), np.zeros(3, np.float32))
    assert masses.chunks.argmax() == 0


def test_a_hub_carries_less_than_a_rare_name() -> None:
    hub = [[0, 1], [0, 2], *[[1] for _ in range(20)]]
    masses = Walk.prepare(neighbourhood(hub, [None] * 22, 3)).rank(one(3, 0), np.zeros(22, np.float32))
    entities = masses.entities
    assert entities[2] > entities[1]


def test_a_hub_that_would_give_each_next_to_nothing_gives_nothing() -> None:
    """A wiki may name "France" on a hundred thousand pages; what lies beyond it is not looked at."""
    names = [[0, 1], [1, 2], *[[1] for _ in range(20_000)], *[[2] for _ in range(20_000)]]
    masses = Walk.prepare(neighbourhood(names, [None] * len(names), 3)).rank(
        one(3, 0), np.zeros(len(names), np.float32)
    )
    assert masses.chunks[0] > 0.1
    assert masses.entities[1] > 0.001
    assert not masses.chunks[1:].any()


@st.composite
def graphs(draw: st.DrawFn) -> Neighbourhood:
    entities = draw(st.integers(1, 6))
    named = st.lists(st.integers(0, entities - 1), unique=True, max_size=entities)
    chunks = draw(st.lists(named, min_size=1, max_size=6))
    about = draw(st.lists(st.none() | st.integers(0, entities - 1), min_size=len(chunks), max_size=len(chunks)))
    return neighbourhood(chunks, about, entities)


@settings(max_examples=50, deadline=None)
@given(graphs(), st.floats(0.1, 0.9), st.integers(1, 12))
def test_the_walk_is_the_power_iteration_written_out(graph: Neighbourhood, damping: float, iterations: int) -> None:
    walk = Walk.prepare(graph, WalkSettings(damping=damping, iterations=iterations))
    entities, chunks = len(graph.entity_ids), len(graph.chunk_ids)
    step = np.zeros((entities + chunks, entities + chunks))
    step[:entities, entities:] = walk.to_entities.toarray()
    step[entities:, :entities] = walk.to_chunks.toarray()
    seeds = np.concatenate([one(entities, 0), one(chunks, 0)]).astype(float)
    mass = seeds
    for _ in range(iterations):
        mass = (1 - damping) * seeds + damping * step @ mass
    found = walk.rank(one(entities, 0), one(chunks, 0))
    assert np.concatenate([found.entities, found.chunks]) == pytest.approx(mass, abs=1e-5 + DROPPED / (1 - damping))


@settings(max_examples=50, deadline=None)
@given(graphs(), st.floats(0.01, 2))
def test_linear_in_its_seeds(graph: Neighbourhood, weight: float) -> None:
    walk = Walk.prepare(graph)
    no_entity, no_chunk = np.zeros(len(graph.entity_ids), np.float32), np.zeros(len(graph.chunk_ids), np.float32)
    entity, chunk = one(len(no_entity), 0), one(len(no_chunk), 0)
    apart = walk.rank(entity, no_chunk).plus(walk.rank(no_entity, chunk), weight)
    together = walk.rank(entity, np.float32(weight) * chunk)
    assert apart.chunks == pytest.approx(together.chunks, abs=1e-5 + 3 * DROPPED / 0.15)


@settings(max_examples=50, deadline=None)
@given(graphs())
def test_mass_never_grows(graph: Neighbourhood) -> None:
    masses = Walk.prepare(graph).rank(one(len(graph.entity_ids), 0), np.zeros(len(graph.chunk_ids), np.float32))
    assert masses.entities.sum() + masses.chunks.sum() <= 1 + 1e-4
    assert (masses.chunks >= 0).all()


def test_idf_falls_with_frequency() -> None:
    idf = inverse_document_frequency(np.array([0, 1, 10, 100], np.int32), 100)
    assert (np.diff(idf) < 0).all()
    assert idf[-1] > 0
