"""The whole product on servers: a dump into Neo4j and Qdrant, and an answer over SearXNG and Ollama, streamed."""

from __future__ import annotations

import bz2
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from tests.contracts.neo4j_backend import empty_neo4j_graph, in_neo4j
from tests.server.cli_runner import Cli
from tests.services.environment import service
from tests.services.qdrant_stand_in import running_qdrant

pytestmark = [pytest.mark.services, pytest.mark.slow]

PAGES = {
    "Osterley": "'''Osterley''' is a harbour town on [[Hollin]]. The ferry to [[Vray]] leaves from its quay.",
    "Vray": "'''Vray''' is an island off [[Hollin]]. The keeper of its lighthouse is [[Ines Calder]].",
    "Hollin": "'''Hollin''' is the largest island of the archipelago.\n\n== Towns ==\n[[Osterley]] is the largest.",
    "Ines Calder": "'''Ines Calder''' was born in [[Osterley]] in 1951 and has kept the light of [[Vray]] since 1980.",
}
TWO_HOPS = "In which town was the keeper of the lighthouse on Vray born?"
FERRY = "At what times does the winter ferry between Osterley and Vray sail?"


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    pages = "".join(
        f"<page><title>{title}</title><ns>0</ns><id>{n}</id><revision><id>{n}</id>"
        f"<timestamp>2025-01-02T03:04:05Z</timestamp><text>{text}</text></revision></page>"
        for n, (title, text) in enumerate(PAGES.items(), 1)
    )
    info = "<siteinfo><sitename>Hollin</sitename><base>https://wiki.hollin/wiki/Main_Page</base></siteinfo>"
    path = tmp_path / "hollin.xml.bz2"
    path.write_bytes(bz2.compress(f'<mediawiki version="0.11" xml:lang="en">{info}{pages}</mediawiki>'.encode()))
    return path


@pytest.fixture
async def servers() -> AsyncIterator[dict[str, str]]:
    """The settings of an owner who has all four, as environment."""
    empty_neo4j_graph()
    async with running_qdrant(api_key="a-key") as qdrant:
        yield {
            "TRIVET_GRAPH__NEO4J_URL": service("NEO4J_URL"),
            "TRIVET_GRAPH__NEO4J_USER": service("NEO4J_USER"),
            "TRIVET_GRAPH__NEO4J_PASSWORD": service("NEO4J_PASSWORD"),
            "TRIVET_VECTORS__QDRANT_URL": qdrant,
            "TRIVET_VECTORS__QDRANT_API_KEY": "a-key",
            "TRIVET_WEB__SEARXNG_URL": service("SEARXNG_URL"),
            "TRIVET_WEB__ALLOW_PRIVATE": "true",
            "TRIVET_SEARCH__WEB_SECONDS": "30",
            "TRIVET_LLM__PROVIDER": "ollama",
            "TRIVET_LLM__URL": service("OLLAMA_URL"),
            "TRIVET_LLM__MODEL": service("OLLAMA_MODEL"),
            "TRIVET_LLM__FIRST_TOKEN_SECONDS": "300",
        }
    empty_neo4j_graph()


@contextmanager
def serving(cli: Cli, environment: dict[str, str]) -> Iterator[str]:
    with cli.start("serve", "--port", "0", environment=environment) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert "http://127.0.0.1:" in line, line + process.communicate(timeout=60)[1]
            yield line.split()[-1]
        finally:
            process.terminate()
            try:
                process.communicate(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()


async def test_from_a_dump_to_a_streamed_answer(tmp_path: Path, dump: Path, servers: dict[str, str]) -> None:
    cli = Cli(home=tmp_path / "home", folder=tmp_path)
    ended = cli.process("ingest", dump, "--json", environment=servers)
    assert ended.code == 0, ended.err
    assert ended.json["added"] == len(PAGES)
    assert in_neo4j("MATCH (p:TrivetPage) RETURN count(p)") == [[len(PAGES)]]
    assert not (tmp_path / "home" / "graph.db").exists()
    assert not (tmp_path / "home" / "vectors").exists()

    checked = cli.process("doctor", "--json", environment=servers)
    found = {check["name"]: check for check in checked.json["checks"]}
    assert {name for name, check in found.items() if not check["ok"]} == set()
    assert f"with {len(PAGES)} vectors" in found["vectors"]["detail"]
    assert f"with {len(PAGES)} pages" in found["graph"]["detail"]
    verified = cli.process("verify", "--json", environment=servers)
    assert verified.json["clean"], verified.out

    with serving(cli, servers) as url:
        async with httpx.AsyncClient(base_url=url, timeout=120) as client:
            assert (await client.get("/readyz")).json()["status"] == "ready"
            hops = (await client.post("/api/search", json={"question": TWO_HOPS, "web": False})).json()
            assert {item["title"] for item in hops["evidence"][:3]} >= {"Vray", "Ines Calder"}
        chat = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none", timeout=180, max_retries=0)
        text, finish = "", None
        about: dict[str, Any] = {}
        sources: list[dict[str, Any]] = []
        stream = await chat.chat.completions.create(
            model="trivet", messages=[{"role": "user", "content": FERRY}], stream=True, max_tokens=60, temperature=0
        )
        async for chunk in stream:
            about = getattr(chunk, "trivet", None) or about
            sources = getattr(chunk, "search_results", None) or sources
            for choice in chunk.choices:
                text += choice.delta.content or ""
                finish = choice.finish_reason or finish
        await chat.close()
    assert text.strip()
    assert finish in {"stop", "length"}
    assert about["mode"] == "generated"
    assert about["legs"]["vector"] == about["legs"]["graph"] == about["legs"]["llm"] == "ok"
    assert about["legs"]["web"].startswith("ok")
    found_at = [source["url"] for source in sources]
    assert any(url.startswith("https://wiki.hollin/wiki/") for url in found_at)
    assert any(url.startswith(service("TRIVET_TEST_SITE_URL")) for url in found_at)


async def test_the_same_question_on_servers_and_in_the_folder(
    tmp_path: Path, dump: Path, servers: dict[str, str]
) -> None:
    """The same pages and settings but for the addresses: the same hits in the same order."""
    rankings = []
    for name, environment in (("folder", {}), ("servers", servers)):
        cli = Cli(home=tmp_path / name, folder=tmp_path)
        ended = cli.process("ingest", dump, environment=environment)
        assert ended.code == 0, ended.err
        asked = cli.process("search", TWO_HOPS, "--no-web", "--json", environment=environment)
        assert asked.code == 0, asked.err
        rankings.append([(item["title"], item["text"]) for item in asked.json["evidence"]])
    assert rankings[0] == rankings[1]
    assert len(rankings[0]) == len(PAGES)
