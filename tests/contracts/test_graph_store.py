"""What every entity graph must do."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph.errors import StoreCorruptError
from graph.graph_model import Entity, GraphCounts, GraphPage, Mention, Neighbourhood, NeighbourhoodBounds
from graph.protocols import GraphStore
from graph.sqlite_graph import SqliteGraph
from tests.contracts.neo4j_backend import empty_neo4j_graph
from tests.fakes import FakeGraph
from tests.places import quick_folder

BACKENDS: dict[str, Callable[[Path], GraphStore]] = {
    "fake": lambda _: FakeGraph(),
    "sqlite": lambda folder: SqliteGraph(folder / "graph.db"),
    "neo4j": lambda _: empty_neo4j_graph(),
}
ALL = NeighbourhoodBounds()
Edge = tuple[str, str]


@pytest.fixture(params=BACKENDS)
async def graph(request: pytest.FixtureRequest) -> AsyncIterator[GraphStore]:
    with quick_folder() as folder:
        store = BACKENDS[request.param](folder)
        yield store
        await store.close()


def thing(name: str, *keys: str, titled: bool = True) -> Entity:
    return Entity(id=name.lower(), name=name, keys=keys or (name.lower(),), titled=titled)


def counted(**mentions: int) -> list[Mention]:
    return [Mention(entity_id=entity_id, count=count) for entity_id, count in mentions.items()]


async def small_wiki(graph: GraphStore) -> None:
    """farm is about Farm and links to Orwell and Pig; orwell about Orwell; talk about nothing."""
    await graph.put_pages(
        [
            GraphPage(
                page_id="w:farm",
                title_entity="farm",
                chunk_ids=("f1", "f2"),
                link_entities=("orwell", "pig"),
                categories=("Novels", "1945"),
            ),
            GraphPage(page_id="w:orwell", title_entity="orwell", chunk_ids=("o1",), categories=("Writers", "1945")),
            GraphPage(page_id="w:talk", chunk_ids=("t1",)),
        ]
    )
    await graph.set_entities([thing("Farm"), thing("Orwell"), thing("Napoleon", titled=False)])
    await graph.set_mentions(
        {"f1": counted(orwell=2, napoleon=1), "f2": counted(napoleon=3), "o1": counted(farm=1), "t1": counted(farm=4)}
    )


def edges(found: Neighbourhood) -> tuple[dict[Edge, float], set[Edge], set[Edge]]:
    """(mentions with counts, titles, links) by id."""

    def named(chunks: np.ndarray, entities: np.ndarray) -> list[Edge]:
        pairs = [(found.chunk_ids[c], found.entity_ids[e]) for c, e in zip(chunks, entities, strict=True)]
        assert len(pairs) == len(set(pairs))
        return pairs

    mentions = named(found.mention_chunk, found.mention_entity)
    return (
        dict(zip(mentions, map(float, found.mention_count), strict=True)),
        set(named(found.title_chunk, found.title_entity)),
        set(named(found.link_chunk, found.link_entity)),
    )


def seen(found: Neighbourhood) -> tuple[object, ...]:
    """All of a neighbourhood but its version, comparable."""
    arrays = (
        found.mention_chunk,
        found.mention_entity,
        found.mention_count,
        found.title_chunk,
        found.title_entity,
        found.link_chunk,
        found.link_entity,
        found.chunk_frequency,
    )
    ids = (found.entity_ids, found.entity_names, found.chunk_ids, found.chunk_total)
    return (*ids, *(tuple(array.tolist()) for array in arrays))


async def test_an_empty_graph_knows_nothing(graph: GraphStore) -> None:
    assert await graph.ids() == (set(), set())
    assert await graph.find_entities(["a"]) == {}
    assert await graph.titled_entities() == {}
    assert await graph.mentions_of(["a"]) == {}
    assert await graph.linking_pages(["a"]) == set()
    assert await graph.prune_entities() == 0
    assert await graph.counts() == GraphCounts(pages=0, chunks=0, entities=0, mentions=0, links=0, categories=0)
    await graph.remove_pages(["a"])
    await graph.remove_chunks(["a"])
    for bounds in (ALL, NeighbourhoodBounds(max_nodes=0, max_edges=0)):
        found = await graph.neighbourhood(["a"], ["b"], bounds)
        assert (found.entity_ids, found.chunk_ids, found.chunk_total) == ((), (), 0)


async def test_a_whole_graph_comes_as_arrays(graph: GraphStore) -> None:
    await small_wiki(graph)
    found = await graph.neighbourhood(["farm"], [], ALL)
    assert found.entity_ids == ("farm", "napoleon", "orwell")
    assert found.entity_names == ("Farm", "Napoleon", "Orwell")
    assert found.chunk_ids == ("f1", "f2", "o1", "t1")
    mentions, titles, links = edges(found)
    assert mentions == {
        ("f1", "orwell"): 2,
        ("f1", "napoleon"): 1,
        ("f2", "napoleon"): 3,
        ("o1", "farm"): 1,
        ("t1", "farm"): 4,
    }
    assert titles == {("f1", "farm"), ("f2", "farm"), ("o1", "orwell")}
    assert links == {("f1", "orwell"), ("f2", "orwell")}
    assert found.chunk_frequency.tolist() == [2, 2, 1]
    assert found.chunk_total == 4
    kinds = {
        array.dtype for array in (found.mention_chunk, found.title_entity, found.link_chunk, found.chunk_frequency)
    }
    assert kinds == {np.dtype(np.int32)}
    assert found.mention_count.dtype == np.float32


async def test_counts_are_of_what_exists(graph: GraphStore) -> None:
    await small_wiki(graph)
    assert await graph.counts() == GraphCounts(pages=3, chunks=4, entities=3, mentions=5, links=1, categories=3)
    assert await graph.ids() == ({"w:farm", "w:orwell", "w:talk"}, {"f1", "f2", "o1", "t1"})


async def test_clearing_leaves_nothing_and_the_store_goes_on(graph: GraphStore) -> None:
    await small_wiki(graph)
    before = await graph.neighbourhood(["farm"], [], ALL)
    await graph.clear()
    assert await graph.counts() == GraphCounts(pages=0, chunks=0, entities=0, mentions=0, links=0, categories=0)
    assert await graph.find_entities(["farm", "orwell"]) == {}
    assert (await graph.neighbourhood(["farm"], [], ALL)).chunk_ids == ()
    await graph.clear()
    await small_wiki(graph)
    assert seen(await graph.neighbourhood(["farm"], [], ALL)) == seen(before)


async def test_an_edge_waits_for_its_entity(graph: GraphStore) -> None:
    await graph.put_pages([GraphPage(page_id="w:a", title_entity="a", chunk_ids=("a1",), link_entities=("b",))])
    assert await graph.linking_pages(["b", "a"]) == {"w:a"}
    await graph.prune_entities()
    before = await graph.neighbourhood([], [], ALL)
    assert (before.entity_ids, edges(before)) == ((), ({}, set(), set()))
    assert await graph.find_entities(["a", "b"]) == {}
    await graph.set_entities([thing("A"), thing("B")])
    assert edges(await graph.neighbourhood([], [], ALL)) == ({}, {("a1", "a")}, {("a1", "b")})


async def test_pruning_leaves_what_pages_are_about_and_chunks_name(graph: GraphStore) -> None:
    await small_wiki(graph)
    await graph.set_entities([thing("Pig"), thing("Lone")])
    assert await graph.prune_entities() == 2  # a link does not keep Pig
    assert (await graph.neighbourhood([], [], ALL)).entity_ids == ("farm", "napoleon", "orwell")
    assert await graph.find_entities(["pig", "lone"]) == {}
    await graph.set_entities([thing("Pig")])
    assert ("f1", "pig") in edges(await graph.neighbourhood([], [], ALL))[2]
    await graph.remove_pages(["w:farm"])
    assert await graph.prune_entities() == 2  # Pig and Napoleon; Farm is named by others
    assert await graph.prune_entities() == 0


async def test_a_page_is_replaced_but_its_chunks_only_added(graph: GraphStore) -> None:
    await small_wiki(graph)
    await graph.put_pages(
        [GraphPage(page_id="w:farm", title_entity="napoleon", chunk_ids=("f2", "f3"), categories=("Books",))]
    )
    assert (await graph.ids())[1] == {"f1", "f2", "f3", "o1", "t1"}
    mentions, titles, links = edges(await graph.neighbourhood([], [], ALL))
    assert len(mentions) == 5
    assert titles == {("f1", "napoleon"), ("f2", "napoleon"), ("f3", "napoleon"), ("o1", "orwell")}
    assert links == set()
    assert (await graph.counts()).categories == 3
    assert await graph.linking_pages(["orwell", "pig"]) == set()


async def test_removing_chunks_and_pages_takes_their_edges(graph: GraphStore) -> None:
    await small_wiki(graph)
    await graph.remove_chunks(["f1", "none"])
    mentions, titles, links = edges(await graph.neighbourhood([], [], ALL))
    assert mentions == {("f2", "napoleon"): 3, ("o1", "farm"): 1, ("t1", "farm"): 4}
    assert titles == {("f2", "farm"), ("o1", "orwell")}
    assert links == {("f2", "orwell")}
    await graph.remove_pages(["w:farm", "w:talk", "w:none"])
    assert await graph.ids() == ({"w:orwell"}, {"o1"})
    assert edges(await graph.neighbourhood([], [], ALL)) == ({("o1", "farm"): 1}, {("o1", "orwell")}, set())
    assert (await graph.counts()).categories == 2


async def test_entities_are_found_by_key_and_homonyms_stay_apart(graph: GraphStore) -> None:
    planet = Entity(id="mercury planet", name="Mercury (planet)", keys=("mercury planet", "mercury"), titled=True)
    element = Entity(id="mercury element", name="Mercury (element)", keys=("mercury", "mercury element"), titled=True)
    await graph.set_entities([planet, element, thing("Hg", titled=False)])
    found = await graph.find_entities(["mercury", "mercury planet", "mercur", "Mercury", ""])
    assert found == {"mercury": (element, planet), "mercury planet": (planet,)}
    assert await graph.titled_entities() == {"mercury planet": planet, "mercury element": element}
    renamed = Entity(id="mercury planet", name="Mercury", keys=("first planet",), titled=False)
    await graph.set_entities([renamed])
    assert await graph.find_entities(["mercury", "first planet"]) == {"mercury": (element,), "first planet": (renamed,)}
    assert set(await graph.titled_entities()) == {"mercury element"}


async def test_mentions_are_replaced(graph: GraphStore) -> None:
    await small_wiki(graph)
    assert await graph.mentions_of(["f1", "none"]) == {"f1": tuple(counted(napoleon=1, orwell=2))}
    await graph.set_mentions({"f1": counted(farm=7), "f2": []})
    assert await graph.mentions_of(["f1", "f2"]) == {"f1": tuple(counted(farm=7)), "f2": ()}
    await graph.set_mentions({})
    assert (await graph.counts()).mentions == 3


async def test_mentions_of_what_is_not_there_are_refused(graph: GraphStore) -> None:
    await small_wiki(graph)
    for mentions in ({"f1": counted(nobody=1)}, {"none": counted(farm=1)}):
        with pytest.raises(StoreCorruptError):
            await graph.set_mentions(mentions)
    assert await graph.mentions_of(["f1"]) == {"f1": tuple(counted(napoleon=1, orwell=2))}


async def test_writing_the_same_again_changes_nothing(graph: GraphStore) -> None:
    await small_wiki(graph)
    before = seen(await graph.neighbourhood([], [], ALL)), await graph.counts()
    await small_wiki(graph)
    assert (seen(await graph.neighbourhood([], [], ALL)), await graph.counts()) == before


async def test_the_version_of_a_whole_graph_tells_whether_it_changed(graph: GraphStore) -> None:
    await small_wiki(graph)
    first = await graph.neighbourhood(["farm"], [], ALL)
    again = await graph.neighbourhood([], ["o1"], ALL)
    assert first.version == again.version != ""
    versions = {first.version}
    for write in (
        graph.remove_chunks(["f1"]),
        graph.set_entities([thing("Pig")]),
        graph.set_mentions({"f2": []}),
        graph.put_pages([GraphPage(page_id="w:new", chunk_ids=("n1",))]),
        graph.remove_pages(["w:new"]),
        graph.prune_entities(),
    ):
        await write
        versions.add((await graph.neighbourhood([], [], ALL)).version)
    assert len(versions) == 7


async def test_a_part_has_no_version(graph: GraphStore) -> None:
    await small_wiki(graph)
    assert (await graph.neighbourhood(["farm"], [], NeighbourhoodBounds(max_nodes=3))).version == ""


HOSTILE = [
    "x` SET n.pwned=1 //",
    "'; DROP TABLE entities; --",
    '"',
    "%",
    "_",
    "AC/DC",
    "tb-",
    "a" * 5000,
    "北京",
    "é",
    "{}",
]


async def test_names_are_data(graph: GraphStore) -> None:
    entities = [Entity(id=name, name=name, keys=(name,), titled=True) for name in HOSTILE]
    await graph.set_entities(entities)
    await graph.put_pages(
        [
            GraphPage(
                page_id=name, title_entity=name, chunk_ids=(f"c{name}",), link_entities=(name,), categories=(name,)
            )
            for name in HOSTILE
        ]
    )
    await graph.set_mentions({f"c{name}": [Mention(entity_id=name, count=1)] for name in HOSTILE})
    size = len(HOSTILE)
    assert await graph.counts() == GraphCounts(
        pages=size, chunks=size, entities=size, mentions=size, links=size, categories=size
    )
    assert await graph.find_entities(HOSTILE) == {entity.id: (entity,) for entity in entities}
    assert await graph.ids() == (set(HOSTILE), {f"c{name}" for name in HOSTILE})
    assert (await graph.neighbourhood([], [], ALL)).entity_ids == tuple(sorted(HOSTILE))
    await graph.remove_pages(HOSTILE[:1])
    assert (await graph.counts()).pages == size - 1


# --- a graph larger than the bounds ----------------------------------------------------------------------------------


async def put_random_wiki(graph: GraphStore, seed: int, order: int = 0) -> None:
    """Forty pages of three chunks, thirty entities of very different frequency, written in any order."""
    known, shuffle = random.Random(seed), random.Random(order)
    names = [f"e{number:02}" for number in range(30)]
    pages, mentions = [], {}
    for number in range(40):
        chunks = tuple(f"p{number}c{part}" for part in range(3))
        links = tuple(sorted({known.choice(names) for _ in range(known.randrange(4))}))
        pages.append(
            GraphPage(page_id=f"p{number}", title_entity=names[number % 35 % 30], chunk_ids=chunks, link_entities=links)
        )
        for chunk in chunks:
            found = {names[int(30 * known.random() ** 3)]: known.randrange(1, 4) for _ in range(5)}
            mentions[chunk] = counted(**found)
    entities = [thing(name) for name in names]
    written = list(mentions.items())
    for rows in (pages, entities, written):
        shuffle.shuffle(rows)
    half = shuffle.randrange(len(pages))
    await graph.set_entities(entities[:half])
    await graph.put_pages(pages[:half])
    await graph.put_pages(pages[half:])
    await graph.set_entities(entities[half:])
    for start in range(0, len(written), 50):
        await graph.set_mentions(dict(written[start : start + 50]))


@pytest.mark.parametrize("bounds", [(20, 500_000), (50_000, 60), (60, 200), (1, 1), (0, 0), (149, 10_000)])
async def test_a_part_keeps_within_its_bounds_and_is_whole_in_itself(
    graph: GraphStore, bounds: tuple[int, int]
) -> None:
    await put_random_wiki(graph, seed=1)
    whole = await graph.neighbourhood([], [], ALL)
    part = await graph.neighbourhood(
        ["e20", "nobody"], ["p7c1", "none"], NeighbourhoodBounds(max_nodes=bounds[0], max_edges=bounds[1])
    )
    assert len(part.entity_ids) + len(part.chunk_ids) <= bounds[0]
    assert len(part.mention_chunk) + len(part.title_chunk) + len(part.link_chunk) <= bounds[1]
    assert list(part.entity_ids) == sorted(part.entity_ids)
    assert list(part.chunk_ids) == sorted(part.chunk_ids)
    nodes = {*part.entity_ids, *part.chunk_ids}
    mentions, titles, links = edges(whole)
    assert edges(part) == (
        {edge: count for edge, count in mentions.items() if nodes.issuperset(edge)},
        {edge for edge in titles if nodes.issuperset(edge)},
        {edge for edge in links if nodes.issuperset(edge)},
    )
    frequency = dict(zip(whole.entity_ids, whole.chunk_frequency.tolist(), strict=True))
    assert part.chunk_frequency.tolist() == [frequency[entity_id] for entity_id in part.entity_ids]
    assert part.chunk_total == whole.chunk_total == 120
    if bounds[0] >= 20:
        assert "e20" in part.entity_ids
        assert "p7c1" in part.chunk_ids


async def test_the_nearest_come_first_and_among_them_the_rarest(graph: GraphStore) -> None:
    await graph.set_entities([thing("Asked"), thing("Rare"), thing("Hub"), thing("Far")])
    await graph.put_pages([GraphPage(page_id=f"p{number}", chunk_ids=(f"c{number}",)) for number in range(9)])
    await graph.set_mentions(
        {
            "c0": counted(asked=1, hub=1, rare=1),
            "c1": counted(rare=1, far=1),
            **{f"c{number}": counted(hub=1) for number in range(2, 9)},
        }
    )
    expected = [["asked"], ["c0"], ["rare"], ["hub"], ["c1"], ["c2"], ["c3"]]
    for size in range(1, 8):
        part = await graph.neighbourhood(["asked"], [], NeighbourhoodBounds(max_nodes=size))
        assert sorted([*part.entity_ids, *part.chunk_ids]) == sorted(node for step in expected[:size] for node in step)


async def test_a_walk_does_not_leave_its_island(graph: GraphStore) -> None:
    await graph.set_entities([thing(name) for name in ("A", "B")])
    await graph.put_pages([GraphPage(page_id=f"p{name}", title_entity=name, chunk_ids=(f"c{name}",)) for name in "ab"])
    part = await graph.neighbourhood(["a"], [], NeighbourhoodBounds(max_nodes=3))
    assert (part.entity_ids, part.chunk_ids) == (("a",), ("ca",))


async def test_no_time_is_no_neighbourhood(graph: GraphStore) -> None:
    await put_random_wiki(graph, seed=1)
    if isinstance(graph, FakeGraph):
        pytest.skip("the fake has no clock")
    part = await graph.neighbourhood(["e20"], [], NeighbourhoodBounds(max_nodes=100, milliseconds=0.0))
    assert part.chunk_ids == ()


@pytest.mark.parametrize("backend", BACKENDS)
@settings(max_examples=8, deadline=None)
@given(order=st.integers(1, 1000), nodes=st.integers(1, 150), limit=st.integers(1, 900))
async def test_the_order_of_writing_does_not_show(backend: str, order: int, nodes: int, limit: int) -> None:
    found = []
    for turn in (0, order):
        with quick_folder() as folder:
            graph = BACKENDS[backend](folder)
            await put_random_wiki(graph, seed=3, order=turn)
            bounds = NeighbourhoodBounds(max_nodes=nodes, max_edges=limit, milliseconds=60_000)
            parts = [await graph.neighbourhood(["e29", "e11"], ["p3c0"], each) for each in (ALL, bounds)]
            named = await graph.find_entities(["e01", "e02"])
            found.append(([seen(part) for part in parts], await graph.counts(), named))
            await graph.close()
    assert found[0] == found[1]
