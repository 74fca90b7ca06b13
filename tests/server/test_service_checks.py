"""`trivet doctor` on servers: what was configured where, what was found, and the command that mends it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from pydantic import SecretStr

from config.settings import (
    EmbedderSettings,
    GraphSettings,
    LLMSettings,
    RerankSettings,
    Settings,
    VectorSettings,
    WebSettings,
)
from graph.knowledge import WIKI
from graph.model import VectorPoint, chunk_id
from graph.qdrant_server_store import QdrantServer
from server.check import Check
from server.service_checks import check_services
from tests.contracts.neo4j_backend import empty_neo4j_graph, in_neo4j
from tests.server.web.site import JSON, Reply, serving
from tests.services.environment import service
from tests.services.qdrant_stand_in import running_qdrant

NO_RERANKER = RerankSettings(enabled=False)


async def faults(home: Path, **sections: object) -> dict[str, Check]:
    settings = Settings(home=home, **{"rerank": NO_RERANKER, **sections})  # type: ignore[arg-type]
    return {check.name: check for check in await check_services(settings) if not check.ok}


async def test_the_default_needs_no_service(tmp_path: Path) -> None:
    assert await faults(tmp_path) == {}


# --- Qdrant ---------------------------------------------------------------------------------------------------------


async def test_qdrant_that_is_away(tmp_path: Path) -> None:
    (name, check), *more = (await faults(tmp_path, vectors=VectorSettings(qdrant_url="http://127.0.0.1:1"))).items()
    assert (name, more) == ("vectors", [])
    assert "http://127.0.0.1:1" in check.detail
    assert "vectors.qdrant_url" in check.detail
    assert check.fix == "docker compose -f docker/compose.yaml up -d qdrant"


async def test_qdrant_wants_another_key(tmp_path: Path) -> None:
    async with running_qdrant(api_key="right") as url:
        chosen = VectorSettings(qdrant_url=url, qdrant_api_key=SecretStr("wrong-key"))
        found = await faults(tmp_path, vectors=chosen)
    assert "vectors.qdrant_api_key" in found["vectors"].detail
    assert "wrong-key" not in str(found)


async def test_a_collection_of_another_model_is_named_and_left_alone(tmp_path: Path) -> None:
    async with running_qdrant() as url:
        other = QdrantServer(url, dimension=4, language="english", model="other", home="f" * 16)
        point = VectorPoint(chunk_id=chunk_id("w:a", "x", 0), dense=np.array([1, 0, 0, 0], np.float32), text="a lamp")
        await other.upsert(WIKI, [point])
        found = await faults(tmp_path, vectors=VectorSettings(qdrant_url=url))
        assert await other.ids(WIKI) == {point.chunk_id}
        await other.close()
    assert url in found["vectors"].detail
    assert "vectors.qdrant_prefix" in found["vectors"].detail


# --- Neo4j ----------------------------------------------------------------------------------------------------------


def neo4j(**changes: object) -> GraphSettings:
    login = {"neo4j_url": service("NEO4J_URL"), "neo4j_password": SecretStr(service("NEO4J_PASSWORD"))}
    return GraphSettings(**{**login, **changes})  # type: ignore[arg-type]


async def test_neo4j_that_is_away_or_no_neo4j(tmp_path: Path) -> None:
    away = await faults(tmp_path, graph=GraphSettings(neo4j_url="bolt://127.0.0.1:1"))
    assert "bolt://127.0.0.1:1" in away["graph"].detail
    assert "docker compose -f docker/compose.yaml up -d neo4j" in away["graph"].fix
    wrong = await faults(tmp_path, graph=GraphSettings(neo4j_url="http://127.0.0.1:7474"))
    assert "graph.neo4j_url must look like bolt://" in wrong["graph"].detail


async def test_neo4j_refuses_the_password(tmp_path: Path) -> None:
    found = await faults(tmp_path, graph=neo4j(neo4j_password=SecretStr("not-this-one")))
    assert "graph.neo4j_password" in found["graph"].detail
    assert "cypher-shell -a" in found["graph"].fix
    assert "not-this-one" not in str(found)


async def test_somebody_else_s_graph_is_named_and_left_alone(tmp_path: Path) -> None:
    empty_neo4j_graph()
    in_neo4j("CREATE (:Film {name: 'Metropolis'})")
    found = await faults(tmp_path, graph=neo4j())
    assert "holds somebody else's graph" in found["graph"].detail
    assert "graph.neo4j_database" in found["graph"].detail
    assert in_neo4j("MATCH (n) RETURN labels(n)") == [[["Film"]]]
    in_neo4j("MATCH (n) DETACH DELETE n")
    assert await faults(tmp_path, graph=neo4j()) == {}
    empty_neo4j_graph()


# --- models ---------------------------------------------------------------------------------------------------------


async def test_an_embedding_model_that_is_not_pulled(tmp_path: Path) -> None:
    chosen = EmbedderSettings(provider="ollama", url=service("OLLAMA_URL"), name="bge-m3")
    found = await faults(tmp_path, embedder=chosen)
    assert "`ollama pull bge-m3`" in found["embedder"].detail


async def test_a_language_model_that_is_not_pulled(tmp_path: Path) -> None:
    chosen = LLMSettings(provider="ollama", url=service("OLLAMA_URL"), model="qwen3:4b")
    found = await faults(tmp_path, llm=chosen)
    assert "has no model “qwen3:4b”; it has smollm2" in found["llm"].detail
    assert found["llm"].fix == "ollama pull qwen3:4b"


async def test_a_reranker_with_the_wrong_count_of_scores(tmp_path: Path) -> None:
    body = json.dumps([{"index": 0, "score": 1.0}, {"index": 1, "score": 2.0}]).encode()
    async with serving(lambda _: Reply(headers=JSON, body=body)) as site:
        found = await faults(tmp_path, rerank=RerankSettings(provider="tei", url=site.url))
    assert "2" in found["reranker"].detail
    assert "rerank.url" in found["reranker"].detail
    assert found["reranker"].fix == f"curl -i {site.url}/rerank"


# --- the web --------------------------------------------------------------------------------------------------------


async def test_searxng_without_json(tmp_path: Path) -> None:
    found = await faults(tmp_path, web=WebSettings(searxng_url=service("SEARXNG_NO_JSON_URL")))
    assert "add json to search.formats" in found["web"].detail
    assert found["web"].fix.startswith("curl -i http://127.0.0.1:")


@pytest.mark.parametrize("url", ["http://no-such-host.invalid", "http://127.0.0.1:1"])
async def test_searxng_that_is_away(tmp_path: Path, url: str) -> None:
    found = await faults(tmp_path, web=WebSettings(searxng_url=url))
    assert url in found["web"].detail
    assert "web.searxng_url" in found["web"].detail
