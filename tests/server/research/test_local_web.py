"""Research and deep research with the real SearXNG, fetcher, cross-encoder and stores, over 60 real pages.

Only the model that asks what is missing is scripted, and the embedder is a fake one.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpcore
import pytest

from config.domains import Domains, Rule, shipped_domains
from config.settings import ResearchSettings, Settings
from graph.qdrant_edge_store import QdrantEdge
from graph.research import Topic, TopicState
from graph.sqlite_research import SqliteResearch
from server.open_models import open_reranker
from server.research.found import ResearchTools
from server.research.plan import RunProgress
from server.research.shelf import Shelf
from server.research.web_research import WebResearch
from server.web.fetcher import WebFetcher
from server.web.searxng import SearXNG
from tests.fake_chat import FakeChat
from tests.fakes import HashEmbedder
from tests.server.research.local_web import LocalWeb, build
from tests.server.web.site import PUBLIC, ToSite, serving
from tests.services import searxng_server
from tests.services.processes import free_port, stop_process

pytestmark = [
    pytest.mark.data,
    pytest.mark.slow,
    pytest.mark.services,
    pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning"),  # SearXNG's, stopped by its id
]

BLOCKED_ADDRESS = "93.184.215.66"
TOPIC = Topic(
    slug="boot",
    title="Booting Linux on Apple silicon Macs",
    focus="boot loader stages and boot policy",
    category="asahi",
)
QUESTIONS = [
    "Which secure enclave mailbox endpoints matter for Apple silicon at boot?",
    "What do NVRAM variables say about the boot volume of Apple silicon Macs?",
    "How does m1n1 boot the macOS kernel with the Apple device tree?",
    "How is a Linux install deleted or its stub partition resized?",
]


class TrappedNetwork(ToSite):
    """The public address is the local site; every other one is a trap, which counts who comes."""

    def __init__(self, site: int, trap: int) -> None:
        super().__init__(site)
        self._trap = trap

    async def connect_tcp(self, host: str, port: int, *args: Any, **kwargs: Any) -> httpcore.AsyncNetworkStream:
        if host != PUBLIC:
            self.asked.append(f"{host}:{port}")
            return await httpcore.AnyIOBackend().connect_tcp("127.0.0.1", self._trap, *args, **kwargs)
        return await super().connect_tcp(host, port, *args, **kwargs)


async def resolve(host: str, _port: int) -> Sequence[str]:
    if host == "inside.example":
        return ["127.0.0.1"]
    return [BLOCKED_ADDRESS] if "spam" in host else [host if host[0].isdigit() or ":" in host else PUBLIC]


def domains() -> Domains:
    shipped = shipped_domains()
    rules = {
        f"spam{number}.example": Rule(domain=f"spam{number}.example", category="blocked", reason="spam", file=Path("x"))
        for number in range(4)
    }
    return Domains(boosts=shipped.boosts, rules={**shipped.rules, **rules})


@asynccontextmanager
async def searxng(site_port: int) -> AsyncIterator[SearXNG]:
    """The real one, whose only working engine is the local site."""
    if not searxng_server.READY.exists():
        if os.environ.get("TRIVET_REQUIRE_SERVICES") != "1":
            pytest.skip("SearXNG is not built; see `python -m tests.services.run start searxng`")
        await asyncio.to_thread(searxng_server.prepare)
    port = free_port()
    process = await asyncio.to_thread(searxng_server.launch, "searxng-research", port=port, site_port=site_port)
    engine = SearXNG(f"http://127.0.0.1:{port}", seconds=10)
    try:
        yield engine
    finally:
        await engine.close()
        await asyncio.to_thread(stop_process, *process)


@asynccontextmanager
async def shelf(folder: Path) -> AsyncIterator[Shelf]:
    embedder = HashEmbedder()  # the real one takes a minute for 200 passages where others use the cores too
    store = SqliteResearch(folder / "research.sqlite")
    vectors = QdrantEdge(folder / "vectors", dimension=embedder.dimension, language="english")
    try:
        yield Shelf(store, vectors, embedder)
    finally:
        await vectors.close()
        store.close()


def kept_of(web: LocalWeb, urls: set[str]) -> list[str]:
    """The pages about the topic of which one is kept: itself or a copy."""
    return [url for url in web.topic if urls & {url, *web.groups.get(url, ())}]


async def test_a_topic_goes_from_thin_to_ok(data_dir: Path, tmp_path: Path) -> None:
    web = build(data_dir / "wikis")
    assert (len(web.pages), len(web.topic), sum(map(len, web.groups.values())), len(web.forbidden)) == (60, 20, 10, 10)
    reports: list[RunProgress] = []
    async with serving(web.handle) as site, serving(web.handle) as trap:
        network = TrappedNetwork(site.port, trap.port)
        fetcher = WebFetcher(
            resolve=resolve, backend=network, blocked=domains().is_blocked, host_seconds=0.0, pdf_bytes=1_000_000
        )
        reranker = open_reranker(Settings(home=tmp_path), None)
        assert reranker is not None
        async with searxng(site.port) as engine, shelf(tmp_path) as books:
            books.store.add_topic(TOPIC)
            tools = ResearchTools(
                shelf=books,
                search=engine,
                fetcher=fetcher,
                settings=ResearchSettings(host_seconds=0.0, page_passages=8),
                domains=domains(),
                reranker=reranker,
                chat=FakeChat(json.dumps(QUESTIONS)),
            )
            stages = WebResearch(tools)
            began = asyncio.get_running_loop().time()
            first = await stages.research(TOPIC, seconds=300, report=reports.append)
            before = await stages.judge(TOPIC)
            found_before = kept_of(web, {page.url for page in books.store.pages(TOPIC.slug)})
            await stages.deepen(TOPIC, seconds=300, report=reports.append)
            after = await stages.judge(TOPIC)
            seconds = asyncio.get_running_loop().time() - began
            pages = books.store.pages(TOPIC.slug)
            urls = {page.url for page in pages}
            kept = books.store.ids("research_asahi")
            assert await books._vectors.ids("research_asahi") == kept
        await reranker.close()
        await fetcher.close()
    found_after = kept_of(web, urls)
    print(f"found {len(found_before)} then {len(found_after)} of 20; {len(pages)} pages, {len(kept)} passages")
    print(f"before: {before.reasons}; after: {after.reasons}; {seconds:.0f} s")
    assert before.state is TopicState.THIN, before
    assert after.state is TopicState.OK, after
    assert len(found_after) >= 18, set(web.topic) - set(found_after)
    assert len(found_before) < 15, "the others are found by deep research alone"
    for original, copies in web.groups.items():
        assert len(urls & {original, *copies}) <= 1, original
    assert trap.connections == 0
    assert {place.rpartition(":")[0] for place in network.asked} == {PUBLIC}
    assert not urls & set(web.forbidden)
    hosts = {host for host, _ in web.requests}
    assert not [host for host in hosts if "spam" in host or host == "inside.example" or host[0].isdigit()]
    assert any("closed port" in note for note in first.notes)
