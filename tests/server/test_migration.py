"""`trivet migrate`: the same answers from other stores, and nothing lost wherever it stops."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from config.settings import GraphSettings, RerankSettings, SearchSettings, Settings, VectorSettings
from graph.errors import DependencyDownError, SettingsError, StoreBusyError, StoreCorruptError, StoreVersionError
from graph.home import GRAPH_FILE, VECTORS_FOLDER, HomeLock, HomeStamp
from graph.knowledge import WIKI
from ingestion.verify import verify
from server.migration import migrate_store
from server.model import Question, SearchResult
from server.open import open_backends
from server.search import search
from tests.contracts.neo4j_backend import empty_neo4j_graph, in_neo4j
from tests.services.environment import service
from tests.services.qdrant_stand_in import running_qdrant

QUESTIONS = ("Who keeps the lighthouse?", "When was the harbour built?", "Which ship carried the bell of the chapel?")
PATIENT = SearchSettings(vector_seconds=60, graph_seconds=60)


@pytest.fixture
def home(sample_home: Path, tmp_path: Path) -> Path:
    shutil.copytree(sample_home / "home", tmp_path / "home")
    return tmp_path / "home"


@pytest.fixture
def neo4j() -> Iterator[GraphSettings]:
    empty_neo4j_graph()
    yield GraphSettings(
        neo4j_url=service("NEO4J_URL"),
        neo4j_user=service("NEO4J_USER"),
        neo4j_password=SecretStr(service("NEO4J_PASSWORD")),
    )
    empty_neo4j_graph()


def settings_for(home: Path, graph: GraphSettings | None = None, qdrant_url: str = "") -> Settings:
    return Settings(
        home=home,
        graph=graph or GraphSettings(),
        vectors=VectorSettings(qdrant_url=qdrant_url),
        search=PATIENT,
        rerank=RerankSettings(enabled=False),
    )


async def asked(settings: Settings) -> list[SearchResult]:
    """What is found, after a look that all stores agree."""
    backends = await open_backends(settings, command="test")
    try:
        report = await verify(backends.knowledge)
        assert report.clean, report
        return [await search(Question(text=text, use_web=False), backends) for text in QUESTIONS]
    finally:
        await backends.close()


def ranked(found: list[SearchResult]) -> list[list[tuple[str, tuple[str, ...], float]]]:
    return [
        [(item.key, item.provenance.path, pytest.approx(item.score, abs=1e-5)) for item in result.evidence]  # type: ignore[misc]
        for result in found
    ]


async def test_there_and_back_the_answers_are_the_same(home: Path, neo4j: GraphSettings) -> None:
    before = await asked(settings_for(home))
    async with running_qdrant() as url:
        servers = settings_for(home, neo4j, url)
        done = await migrate_store(servers, "servers")
        assert done.moved == ("vectors", "graph")
        assert done.left_behind == ""
        assert done.report is not None
        assert done.report.chunks > 30
        assert not (home / GRAPH_FILE).exists()
        assert not (home / VECTORS_FOLDER).exists()
        there = await asked(servers)
        assert ranked(there) == ranked(before)
        assert all(result.legs["vector"] == result.legs["graph"] == "ok" for result in there)
        assert (await migrate_store(servers, "servers")).moved == ()
        back = await migrate_store(servers, "embedded")
        assert back.moved == ("vectors", "graph")
    assert ranked(await asked(settings_for(home))) == ranked(before)
    assert in_neo4j("MATCH (n) WHERE NOT n:TrivetStore RETURN count(n)") == [[0]]


async def test_the_graph_alone_is_moved_where_only_neo4j_is_set(home: Path, neo4j: GraphSettings) -> None:
    before = await asked(settings_for(home))
    with pytest.raises(StoreVersionError, match=r"graph\.neo4j_url is set; .*`trivet migrate --to servers`"):
        await asked(settings_for(home, neo4j))
    assert (await migrate_store(settings_for(home, neo4j), "servers")).moved == ("graph",)
    assert ranked(await asked(settings_for(home, neo4j))) == ranked(before)
    with pytest.raises(StoreVersionError, match=r"graph\.neo4j_url is not set"):
        await asked(settings_for(home))
    with pytest.raises(SettingsError, match=r"graph\.neo4j_url is not set, so what is there cannot be fetched"):
        await migrate_store(settings_for(home), "embedded")


async def test_a_server_that_is_down_leaves_the_store_as_it_was(home: Path) -> None:
    before = await asked(settings_for(home))
    down = settings_for(home, GraphSettings(neo4j_url="bolt://127.0.0.1:1", neo4j_password=SecretStr("x")))
    with pytest.raises(DependencyDownError, match=r"Neo4j at bolt://127\.0\.0\.1:1 .* cannot be reached"):
        await migrate_store(down, "servers")
    assert ranked(await asked(settings_for(home))) == ranked(before)


async def test_a_store_that_lacks_vectors_is_not_moved(home: Path) -> None:
    backends = await open_backends(settings_for(home), command="test")
    await backends.vectors.delete(WIKI, sorted(await backends.vectors.ids(WIKI))[:3])
    await backends.close()
    async with running_qdrant() as url:
        with pytest.raises(StoreCorruptError, match=r"3 live chunks have no vector; run `trivet verify --repair`"):
            await migrate_store(settings_for(home, qdrant_url=url), "servers")
    stamp = HomeStamp.read(home)
    assert stamp is not None
    assert stamp.vectors == "edge"


async def test_what_cannot_be_moved_is_said(home: Path, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"No server is set; set vectors\.qdrant_url"):
        await migrate_store(settings_for(home), "servers")
    with pytest.raises(SettingsError, match="There is no store in"):
        await migrate_store(settings_for(tmp_path / "empty", qdrant_url="http://127.0.0.1:1"), "servers")
    assert (await migrate_store(settings_for(home), "embedded")).moved == ()
    with HomeLock.acquire(home, command="serve"), pytest.raises(StoreBusyError, match="in use by `serve`"):
        await migrate_store(settings_for(home), "embedded")


async def test_two_wikis_never_share_a_graph(
    home: Path, sample_home: Path, tmp_path: Path, neo4j: GraphSettings
) -> None:
    await migrate_store(settings_for(home, neo4j), "servers")
    counts = in_neo4j("MATCH (n) RETURN count(n)")
    shutil.copytree(sample_home / "home", tmp_path / "other")
    stamp = HomeStamp.read(tmp_path / "other")
    assert stamp is not None
    (tmp_path / "other" / "store.json").write_text((home / "store.json").read_text().replace(stamp.id, "f" * 16))
    with pytest.raises(StoreVersionError, match=r"holds the graph of another wiki's store .*graph\.neo4j_database"):
        await asked(settings_for(tmp_path / "other", neo4j))
    assert in_neo4j("MATCH (n) RETURN count(n)") == counts
