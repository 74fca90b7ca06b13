"""What only the Neo4j graph can get wrong: servers, logins, foreign databases, long names, load."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from graph import neo4j_connection
from graph.errors import DependencyDownError, DependencyFaultError, SettingsError, StoreVersionError
from graph.graph_model import Entity, GraphCounts, GraphPage, Mention, NeighbourhoodBounds
from graph.neo4j_connection import Neo4jConnection
from graph.neo4j_store import Neo4jGraph
from graph.sqlite_graph import SqliteGraph
from tests.contracts.neo4j_backend import connection, empty_neo4j_graph, in_neo4j
from tests.contracts.test_graph_store import put_random_wiki, seen
from tests.services.environment import service
from tests.services.processes import free_port
from tests.services.proxy import proxy_to

ALL = NeighbourhoodBounds()
HIDDEN = "hunter2-hunter2"


@pytest.fixture
async def graph() -> AsyncIterator[Neo4jGraph]:
    graph = empty_neo4j_graph()
    yield graph
    await graph.close()


async def fault_of(connected: Neo4jConnection, kind: type[Exception]) -> str:
    graph = Neo4jGraph(connected)
    with pytest.raises(kind) as caught:
        await graph.counts()
    await graph.close()
    assert HIDDEN not in str(caught.value)
    return str(caught.value)


async def put_pages(graph: Neo4jGraph, count: int) -> None:
    await graph.set_entities([Entity(id=f"e{i}", name=f"E{i}", keys=(f"e{i}",), titled=True) for i in range(count)])
    await graph.put_pages(
        [GraphPage(page_id=f"p{i}", title_entity=f"e{i}", chunk_ids=(f"c{i}",)) for i in range(count)]
    )
    await graph.set_mentions({f"c{i}": [Mention(entity_id=f"e{(i + 1) % count}", count=1)] for i in range(count)})


# --- without a server ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url", ["", "127.0.0.1:7687", "http://127.0.0.1:7474", "bolt://", "bolt://x:99999", "neo4j://[::1", "postgres://x"]
)
def test_a_url_of_the_wrong_kind_is_refused_by_name(url: str) -> None:
    with pytest.raises(SettingsError, match=r"graph\.neo4j_url must look like bolt://"):
        Neo4jConnection(url, user="neo4j", password=HIDDEN)


def test_a_password_in_the_url_is_refused_and_not_shown() -> None:
    with pytest.raises(SettingsError, match=r"graph\.neo4j_password") as caught:
        Neo4jConnection(f"bolt://neo4j:{HIDDEN}@127.0.0.1:7687", user="neo4j", password=HIDDEN)
    assert HIDDEN not in str(caught.value)


async def test_a_closed_port_is_down_at_once_and_opening_does_not_ask() -> None:
    port = free_port()
    began = asyncio.get_running_loop().time()
    connected = Neo4jConnection(f"bolt://127.0.0.1:{port}", user="neo4j", password=HIDDEN, retry_seconds=1)
    message = await fault_of(connected, DependencyDownError)
    assert f"bolt://127.0.0.1:{port}" in message
    assert asyncio.get_running_loop().time() - began < 5


async def test_an_unknown_host_is_down() -> None:
    connected = Neo4jConnection("bolt://no-such-host.invalid", user="neo4j", password=HIDDEN, retry_seconds=1)
    assert "no-such-host.invalid" in await fault_of(connected, DependencyDownError)


async def test_something_else_than_neo4j_is_named() -> None:
    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    connected = Neo4jConnection(f"bolt://127.0.0.1:{port}", user="neo4j", password=HIDDEN, retry_seconds=0.5)
    await fault_of(connected, (DependencyDownError, DependencyFaultError))  # type: ignore[arg-type]
    server.close()


# --- on the real one ----------------------------------------------------------------------------------------------

services = pytest.mark.services


@services
async def test_a_wrong_password_is_named_and_not_tried_again() -> None:
    async with proxy_to(urlsplit(service("NEO4J_URL")).port or 0) as proxy:
        graph = Neo4jGraph(connection(url=f"bolt://127.0.0.1:{proxy.port}", user="nobody", password=HIDDEN))
        with pytest.raises(DependencyFaultError, match=r"refuses user 'nobody'; check graph\.neo4j_user"):
            await graph.counts()
        before = proxy.connections
        with pytest.raises(DependencyFaultError, match="refuses user"):
            await graph.find_entities(["a"])
        assert proxy.connections == before
        await graph.close()


@services
async def test_a_database_that_does_not_exist_is_named() -> None:
    message = await fault_of(connection(database="missing"), DependencyFaultError)
    assert "(database 'missing') does not exist" in message
    assert "graph.neo4j_database" in message


@services
async def test_a_server_that_is_too_old_is_refused_with_both_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neo4j_connection, "OLDEST", (99, 1))
    message = await fault_of(connection(), DependencyFaultError)
    assert "Neo4j/5." in message
    assert "Trivet needs Neo4j 99.1 or newer" in message


@services
async def test_somebody_else_s_graph_is_never_touched() -> None:
    in_neo4j("MATCH (node) DETACH DELETE node")
    in_neo4j("CREATE (:Person {name: 'Ada'})-[:LINKS_TO]->(:Film {id: 'x'})")
    graph = Neo4jGraph(connection())
    for call in (
        graph.put_pages([GraphPage(page_id="p", chunk_ids=("c",))]),
        graph.remove_pages(["x"]),
        graph.prune_entities(),
        graph.neighbourhood([], [], ALL),
    ):
        with pytest.raises(
            DependencyFaultError, match=r"somebody else's graph \(2 nodes or more, labels (Film|Person), "
        ):
            await call
    await graph.close()
    assert in_neo4j("MATCH (node) RETURN count(node)") == [[2]]
    assert in_neo4j("MATCH ()-[edge]->() RETURN count(edge)") == [[1]]
    in_neo4j("MATCH (node) DETACH DELETE node")


@services
async def test_what_others_add_later_stays_theirs(graph: Neo4jGraph) -> None:
    await put_pages(graph, 3)
    in_neo4j("CREATE (:Person {id: 'p0'})-[:LINKS_TO]->(:Film {id: 'e0'})")
    await graph.remove_pages(["p0", "p1", "p2"])
    await graph.prune_entities()
    assert in_neo4j("MATCH (a:Person)-[:LINKS_TO]->(b:Film) RETURN a.id, b.id") == [["p0", "e0"]]
    assert (await graph.counts()).pages == 0


@services
async def test_a_newer_format_is_refused(graph: Neo4jGraph) -> None:
    await graph.counts()
    in_neo4j("MATCH (s:TrivetStore) SET s.format = 99")
    other = Neo4jGraph(connection())
    with pytest.raises(StoreVersionError, match="its format is 99, this one knows 1"):
        await other.counts()
    await other.close()


@services
async def test_names_of_any_length_are_kept(graph: Neo4jGraph) -> None:
    names = ["x" * 10_000, "量" * 10_000, "x" * 9_999 + "y", "caf\udc9a", "nul\0"]
    pages = [
        GraphPage(page_id=name, title_entity=name, chunk_ids=(f"c{name}",), link_entities=(name,), categories=(name,))
        for name in names
    ]
    await graph.put_pages(pages)
    await graph.set_entities([Entity(id=name, name=name, keys=(name,), titled=True) for name in names])
    await graph.set_mentions({f"c{name}": [Mention(entity_id=name, count=1)] for name in names})
    assert await graph.counts() == GraphCounts(pages=5, chunks=5, entities=5, mentions=5, links=5, categories=5)
    found = await graph.neighbourhood([], [], ALL)
    kept = sorted(name.replace("\udc9a", "\ufffd").replace("\0", "\ufffd") for name in names)
    assert list(found.entity_ids) == kept
    assert await graph.ids() == (set(kept), {f"c{name}" for name in kept})
    assert set(await graph.find_entities(names)) == set(kept)
    assert await graph.linking_pages(names[:1]) == {names[0]}
    assert await graph.mentions_of([f"c{names[1]}"]) == {f"c{names[1]}": (Mention(entity_id=names[1], count=1),)}


@services
@pytest.mark.parametrize("bounds", [ALL, NeighbourhoodBounds(max_nodes=40, max_edges=150, milliseconds=60_000)])
async def test_neighbourhoods_are_those_of_sqlite(
    graph: Neo4jGraph, tmp_path: Path, bounds: NeighbourhoodBounds
) -> None:
    beside = SqliteGraph(tmp_path / "graph.db")
    await put_random_wiki(beside, seed=5, order=1)
    await put_random_wiki(graph, seed=5, order=2)
    for entities, chunks in ((["e29", "e11"], ["p3c0"]), (["e02"], []), ([], ["p39c2", "none"])):
        found = [seen(await store.neighbourhood(entities, chunks, bounds)) for store in (beside, graph)]
        assert found[0] == found[1]
    await beside.close()


@services
async def test_two_hundred_questions_share_a_pool_of_five(graph: Neo4jGraph) -> None:
    await put_pages(graph, 50)
    few = Neo4jGraph(connection(pool_size=5))

    async def ask(number: int) -> int:
        found = await few.find_entities([f"e{number % 50}"])
        part = await few.neighbourhood(list(found), [], ALL)
        return len(part.chunk_ids)

    assert await asyncio.gather(*(ask(number) for number in range(200))) == [50] * 200
    await few.close()


@services
async def test_writers_do_not_deadlock_and_readers_see_whole_states(graph: Neo4jGraph) -> None:
    await put_pages(graph, 20)
    other = Neo4jGraph(connection())

    async def rewrite(store: Neo4jGraph, turn: int) -> None:
        for _ in range(5):
            await store.set_mentions(
                {
                    f"c{i}": [Mention(entity_id=f"e{i}", count=turn), Mention(entity_id="e0", count=turn)]
                    for i in range(20)
                }
            )

    async def read() -> None:
        for _ in range(10):
            found = await graph.neighbourhood([], [], ALL)
            assert len(set(found.mention_count.tolist())) == 1

    await asyncio.gather(rewrite(graph, 1), rewrite(other, 2), read())
    await other.close()


@services
async def test_a_server_that_goes_away_is_named_and_found_again_when_it_returns(graph: Neo4jGraph) -> None:
    await put_pages(graph, 5)
    async with proxy_to(urlsplit(service("NEO4J_URL")).port or 0) as proxy:
        through = Neo4jGraph(connection(url=f"bolt://127.0.0.1:{proxy.port}", retry_seconds=0.5, acquire_seconds=2))
        assert (await through.neighbourhood([], [], ALL)).chunk_total == 5
        proxy.cut()
        with pytest.raises(DependencyDownError, match="cannot be reached"):
            await through.find_entities(["e1"])
        proxy.restore()
        assert set(await through.find_entities(["e1"])) == {"e1"}
        proxy.stall()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await through.find_entities(["e1"])
        proxy.restore()
        assert (await through.neighbourhood([], [], ALL)).chunk_total == 5
        await through.close()


@services
async def test_a_question_that_runs_out_of_time_lets_the_reading_go_on(graph: Neo4jGraph) -> None:
    await put_pages(graph, 5)
    async with proxy_to(urlsplit(service("NEO4J_URL")).port or 0) as proxy:
        through = Neo4jGraph(connection(url=f"bolt://127.0.0.1:{proxy.port}"))
        await through.counts()
        asking = asyncio.create_task(through.neighbourhood([], [], ALL))
        for _ in range(1000):
            await asyncio.sleep(0.001)
            if loading := through._loading:
                break
        assert loading is not None
        proxy.stall()
        asking.cancel()
        await asyncio.wait([asking])
        proxy.restore()
        await loading
        assert (await through.neighbourhood([], [], ALL)).chunk_total == 5
        await through.close()
