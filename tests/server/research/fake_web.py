"""A small web in memory: a search engine over its pages, and a fetcher that remembers what it was asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from config.domains import Domains, shipped_domains
from config.settings import ResearchSettings
from graph.errors import DependencyError
from graph.model import WebResult, WebResults
from graph.names import words
from graph.protocols import ChatModel, Reranker
from graph.research import Topic
from graph.web_page import WebPage
from server.research.found import ResearchTools
from server.research.plan import RunProgress
from server.research.shelf import Shelf
from tests.fake_research import FakeResearch
from tests.fakes import FakeVectors, HashEmbedder

PAGE_SIZE = 10
TOPIC = Topic(slug="beacons", title="Beacons of Sallow Point", focus="how the lenses are cleaned")


@dataclass
class FakeWeb:
    """Search engine and fetcher in one. `faults` are raised in place of the page of that URL."""

    pages: dict[str, tuple[str, str]] = field(default_factory=dict)
    """URL → (title, text)."""
    faults: dict[str, DependencyError] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)
    extra: list[WebResult] = field(default_factory=list)
    """Results of every search, before the others."""
    unresponsive: tuple[str, ...] = ()
    search_fault: DependencyError | None = None
    page_seconds: float = 0.0
    fetched: list[str] = field(default_factory=list)
    searched: list[tuple[str, int]] = field(default_factory=list)
    asked: list[dict[str, object]] = field(default_factory=list)

    def add(self, url: str, text: str, title: str = "A page") -> None:
        self.pages[url] = (title, text)

    async def search(
        self,
        query: str,
        *,
        language: str,
        limit: int,
        page: int = 1,
        time_range: str = "",
        categories: Sequence[str] = (),
    ) -> WebResults:
        self.searched.append((query, page))
        self.asked.append({"language": language, "time_range": time_range, "categories": tuple(categories)})
        if self.search_fault is not None:
            raise self.search_fault
        wanted = set(words(query))
        scores = {url: len(wanted & set(words(f"{title} {text}"))) for url, (title, text) in self.pages.items()}
        ranked = sorted((url for url in scores if scores[url]), key=lambda url: (-scores[url], url))
        results = [
            WebResult(url=url, title=self.pages[url][0], snippet=self.pages[url][1][:200], engine="fake")
            for url in ranked[(page - 1) * PAGE_SIZE : page * PAGE_SIZE]
        ]
        results = [*self.extra, *results] if page == 1 else results
        return WebResults(results=tuple(results[:limit]), unresponsive=self.unresponsive)

    async def fetch(self, url: str) -> tuple[str, str]:
        page = await self.read(url)
        return page.title, page.text

    async def read(self, url: str) -> WebPage:
        self.fetched.append(url)
        await asyncio.sleep(self.page_seconds)
        if url in self.faults:
            raise self.faults[url]
        url = self.moved.get(url, url)
        title, text = self.pages[url]
        return WebPage(url=url, title=title, text=text, published="2024-03-05", language="en")

    async def close(self) -> None: ...


@dataclass
class Bench:
    """Tools over a fake web, an own shelf, and what was reported."""

    web: FakeWeb
    shelf: Shelf
    tools: ResearchTools
    vectors: FakeVectors
    reports: list[RunProgress] = field(default_factory=list)

    def report(self, progress: RunProgress) -> None:
        self.reports.append(progress)

    def urls(self, slug: str = TOPIC.slug) -> list[str]:
        return sorted(page.url for page in self.shelf.store.pages(slug))


def bench(
    web: FakeWeb,
    topic: Topic = TOPIC,
    *,
    settings: ResearchSettings | None = None,
    domains: Domains | None = None,
    chat: ChatModel | None = None,
    reranker: Reranker | None = None,
) -> Bench:
    store, vectors = FakeResearch(), FakeVectors()
    store.add_topic(topic)
    shelf = Shelf(store, vectors, HashEmbedder())
    tools = ResearchTools(
        shelf=shelf,
        search=web,
        fetcher=web,
        settings=settings or ResearchSettings(),
        domains=domains or shipped_domains(),
        chat=chat,
        reranker=reranker,
    )
    return Bench(web, shelf, tools, vectors)
