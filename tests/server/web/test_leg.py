"""The web leg as a whole: real sockets under a SearXNG client and a fetcher."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from urllib.parse import urlsplit

import pytest
import pytest_asyncio

from graph.errors import DependencyDownError
from server.web.fetcher import WebFetcher
from server.web.leg import WebPassage, web_passages
from server.web.reader import PageReader
from server.web.searxng import SearXNG
from tests.server.web.site import JSON, Reply, Request, ToSite, article, public, serving
from tests.services.environment import service

pytestmark = pytest.mark.asyncio(loop_scope="module")
SHARED: list[PageReader] = []
FACT = "The beacon of Sallow Point was built by Imre Toller in nine weeks. "
FILLER = "Nothing of interest happens in this paragraph about the weather. " * 16


@pytest_asyncio.fixture(scope="module", loop_scope="module", autouse=True)
async def shared_reader() -> AsyncIterator[None]:
    SHARED.append(PageReader())
    yield
    await SHARED.pop().close()


def result(url: str, snippet: str = "A snippet.") -> dict[str, str]:
    return {"url": url, "title": f"Title of {urlsplit(url).path}", "content": snippet, "engine": "test"}


async def leg(
    results: list[dict[str, str]],
    page: Callable[[Request], Reply],
    *,
    fetch: bool = True,
    limit: int = 5,
    deadline: float = 10.0,
    search_stall: float = 0.0,
    blocked: Callable[[str], bool] = lambda _: False,
) -> tuple[list[WebPassage], list[str], list[str]]:
    """Passages, notes, and the targets that were fetched."""

    def handle(request: Request) -> Reply:
        if request.target.startswith("/search?"):
            body = json.dumps({"results": results, "unresponsive_engines": [["bing", "timeout"]]}).encode()
            return Reply(headers=JSON, body=body, stall=search_stall)
        if request.target == "/config":
            return Reply(status=404)
        return page(request)

    async with serving(handle) as site:
        search = SearXNG(site.url)
        fetcher = WebFetcher(resolve=public, backend=ToSite(site.port), reader=SHARED[0])
        try:
            passages, notes = await web_passages(
                "Who built the Sallow Point beacon?",
                "en",
                search,
                fetcher if fetch else None,
                limit=limit,
                passages_per_page=2,
                deadline=deadline,
                blocked=blocked,
            )
        finally:
            await search.close()
            await fetcher.close()
        return (
            passages,
            notes,
            [request.target for request in site.requests if not request.target.startswith(("/search?", "/config"))],
        )


def page_with_fact(_: Request) -> Reply:
    return Reply(body=article(FILLER, FACT + FILLER, FILLER))


async def test_pages_are_cut_into_their_best_passages() -> None:
    results = [result("http://a.example/1"), result("http://b.example/2")]
    passages, notes, _ = await leg(results, page_with_fact)
    assert [passage.url for passage in passages] == ["http://a.example/1"] * 2 + ["http://b.example/2"] * 2
    assert "Imre Toller" in passages[0].text
    assert passages[0].title == "Title of /1"
    assert passages[0].engine == "test"
    assert not any(passage.from_snippet for passage in passages)
    assert notes == ["search engine bing: timeout"]


async def test_all_fetches_failing_still_gives_snippets_and_says_so() -> None:
    results = [result(f"http://host{i}.example/{i}", f"Snippet {i}.") for i in range(10)]
    passages, notes, _ = await leg(results, lambda _: Reply(status=500), limit=10)
    assert [passage.text for passage in passages] == [f"Snippet {i}." for i in range(10)]
    assert all(passage.from_snippet for passage in passages)
    assert "host3.example left out: its host answers with status 500" in notes
    assert notes[-1] == "no page could be fetched; only the search results' own snippets are used"


async def test_a_page_that_fails_does_not_touch_the_others() -> None:
    def page(request: Request) -> Reply:
        return page_with_fact(request) if request.target == "/good" else Reply(status=404)

    passages, notes, _ = await leg([result("http://a.example/bad"), result("http://b.example/good")], page)
    assert [passage.from_snippet for passage in passages] == [True, False, False]
    assert notes[1:] == ["a.example left out: its host answers with status 404"]


async def test_a_slow_page_is_represented_by_its_snippet_within_the_deadline() -> None:
    def page(request: Request) -> Reply:
        return Reply(body=article(FACT), stall=30 if request.target == "/slow" else 0)

    began = asyncio.get_running_loop().time()
    results = [result("http://a.example/slow"), result("http://b.example/fast")]
    passages, notes, _ = await leg(results, page, deadline=2)
    assert asyncio.get_running_loop().time() - began < 2.5
    assert [passage.from_snippet for passage in passages] == [True, False]
    assert "a.example: The page was not there in time." in notes


async def test_pages_are_fetched_at_the_same_time() -> None:
    began = asyncio.get_running_loop().time()
    results = [result(f"http://host{i}.example/") for i in range(5)]
    passages, _, _ = await leg(results, lambda _: Reply(body=article(FACT), stall=0.5))
    assert len(passages) == 5
    assert asyncio.get_running_loop().time() - began < 2


async def test_blocked_and_private_results_are_dropped_before_any_fetch_and_named() -> None:
    results = [
        result("http://[::1]:7474/"),
        result("javascript:alert(1)"),
        result("http://spam.example/x"),
        result("http://a.example/1"),
        result("http://a.example/1#again"),
    ]
    passages, notes, fetched = await leg(results, page_with_fact, blocked=lambda url: "spam.example" in url)
    assert {passage.url for passage in passages} == {"http://a.example/1"}
    assert fetched == ["/1"]
    assert any("[::1]:7474" in note and "left out" in note for note in notes)
    assert any("javascript" in note and "left out" in note for note in notes)
    assert "spam.example left out: the domain is blocked" in notes


async def test_a_result_that_leads_inside_is_dropped_not_quoted() -> None:
    inside = Reply(status=302, headers={"Location": "http://127.0.0.1:6333/"})
    passages, notes, _ = await leg([result("http://a.example/1")], lambda _: inside)
    assert passages == []
    assert any("left out" in note for note in notes)


async def test_without_a_fetcher_snippets_are_used() -> None:
    passages, _, fetched = await leg([result("http://a.example/1"), result("http://b.example/2", "")], page_with_fact,
                                     fetch=False)  # fmt: skip
    assert [(passage.text, passage.from_snippet) for passage in passages] == [("A snippet.", True)]
    assert fetched == []


async def test_a_search_that_takes_all_the_time_is_down() -> None:
    with pytest.raises(DependencyDownError):
        await leg([], page_with_fact, deadline=0.5, search_stall=3)


async def test_no_results_are_no_error() -> None:
    assert await leg([], page_with_fact) == ([], ["search engine bing: timeout"], [])


@pytest.mark.services
async def test_through_a_real_searxng_and_its_site() -> None:
    search, fetcher = SearXNG(service("SEARXNG_URL")), WebFetcher(allow_private=True, reader=SHARED[0])
    passages, notes = await web_passages(
        "Who built the beacon at Sallow Point?", "en", search, fetcher, limit=3, passages_per_page=1, deadline=10,
        allow_private=True,
    )  # fmt: skip
    await search.close()
    await fetcher.close()
    assert "Imre Toller" in passages[0].text
    assert not passages[0].from_snippet
    assert passages[0].title == "Harbour news: new beacon at Sallow Point"
    assert any(note.startswith("search engine closed port") for note in notes)
