"""The array walk takes exactly the nodes that the rule, written out in `FakeGraph`, takes."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from graph.graph_model import Entity, GraphPage, Mention, NeighbourhoodBounds
from graph.sqlite_graph import SqliteGraph
from tests.contracts.test_graph_store import seen
from tests.fakes import FakeGraph
from tests.places import quick_folder

ENTITIES = [f"e{number}" for number in range(8)]
some_entities = st.lists(st.sampled_from(ENTITIES), max_size=4, unique=True)
pages = st.lists(
    st.tuples(st.sampled_from(["", *ENTITIES]), some_entities, st.lists(some_entities, max_size=3)), max_size=8
)


@settings(max_examples=60, deadline=None)
@given(
    wiki=pages,
    existing=some_entities,
    starts=some_entities,
    chunks=st.lists(st.sampled_from(["0.0", "1.0", "2.1", "none"]), max_size=2),
    nodes=st.integers(0, 25),
    edges=st.integers(0, 40),
)
async def test_the_walk_follows_the_rule(
    wiki: list[tuple[str, list[str], list[list[str]]]],
    existing: list[str],
    starts: list[str],
    chunks: list[str],
    nodes: int,
    edges: int,
) -> None:
    bounds = NeighbourhoodBounds(max_nodes=nodes, max_edges=edges, milliseconds=60_000)
    named = {name for _, _, texts in wiki for names in texts for name in names}
    with quick_folder() as folder:
        sqlite, fake = SqliteGraph(folder / "g.db"), FakeGraph()
        found = []
        for graph in (sqlite, fake):
            await graph.put_pages(
                [
                    GraphPage(
                        page_id=f"p{number}",
                        title_entity=title,
                        chunk_ids=tuple(f"{number}.{part}" for part in range(len(texts))),
                        link_entities=tuple(sorted(links)),
                    )
                    for number, (title, links, texts) in enumerate(wiki)
                ]
            )
            await graph.set_entities([Entity(id=name, name=name, keys=(), titled=True) for name in {*existing, *named}])
            await graph.set_mentions(
                {
                    f"{number}.{part}": [Mention(entity_id=name, count=1) for name in names]
                    for number, (_, _, texts) in enumerate(wiki)
                    for part, names in enumerate(texts)
                }
            )
            found.append(seen(await graph.neighbourhood(starts, chunks, bounds)))
        await sqlite.close()
    assert found[0] == found[1]
