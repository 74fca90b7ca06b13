"""The SearXNG client against recorded answers, faulty servers and, where it runs, the real SearXNG."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.breaker import Breaker
from graph.errors import (
    DependencyBusyError,
    DependencyDownError,
    DependencyError,
    DependencyFaultError,
    QuestionError,
    SettingsError,
)
from graph.model import WebResults
from server.web.searxng import MAX_QUERY_CHARS, SearXNG, plain_query
from tests.server.web.site import JSON, Reply, Request, serving
from tests.services.environment import service

RECORDED = Path(__file__).parent / "recorded"
ANSWER = (RECORDED / "searxng_lighthouse_beacon.json").read_bytes()
NO_JSON = (RECORDED / "searxng_no_json_403.html").read_bytes()


async def asked_once(reply: Reply, *, seconds: float = 5.0) -> DependencyError:
    """The error that one search of a server that always replies so ends in."""
    async with serving(lambda _: reply) as site:
        engine = SearXNG(site.url, seconds=seconds)
        with pytest.raises(DependencyError) as caught:
            await engine.search("lighthouse", language="en", limit=5)
        await engine.close()
        assert caught.value.dependency == "searxng"
        assert site.url in str(caught.value)
        return caught.value


async def test_a_recorded_answer_becomes_results_and_names_the_engine_that_failed() -> None:
    async with serving(lambda _: Reply(headers=JSON, body=ANSWER)) as site:
        engine = SearXNG(f"{site.url}/sub/", seconds=5)
        found = await engine.search("lighthouse beacon", language="en", limit=2)
        await engine.search("lighthouse beacon", language="nonsense!", limit=2)
        await engine.close()
    assert [result.title for result in found.results] == [
        "Harbour news: new beacon at Sallow Point",
        "How lighthouse lenses are cleaned",
    ]
    first = found.results[0]
    assert first.url == "http://127.0.0.1:8080/harbour-news.html"
    assert first.engine == "local site"
    assert first.snippet.startswith("# Harbour news")
    assert first.published == ""
    assert found.unresponsive == ("closed port: HTTP connection error",)
    asked = [urlsplit(request.target) for request in site.requests]
    assert asked[0].path == "/sub/search"
    assert parse_qs(asked[0].query) == {"q": ["lighthouse beacon"], "format": ["json"], "language": ["en"]}
    assert parse_qs(asked[1].query)["language"] == ["all"]


async def test_what_is_looked_for_is_asked_for() -> None:
    async with serving(lambda _: Reply(headers=JSON, body=ANSWER)) as site:
        engine = SearXNG(site.url)
        await engine.search(
            "beacon", language="fr", limit=1, page=3, time_range="year", categories=("news", "science, new")
        )
        await engine.search("beacon", language="fr", limit=1, time_range="yesterday&format=html")
        await engine.close()
    first, second = (parse_qs(urlsplit(request.target).query) for request in site.requests)
    assert {name: value[0] for name, value in first.items()} == {
        "q": "beacon",
        "format": "json",
        "language": "fr",
        "pageno": "3",
        "time_range": "year",
        "categories": "news,science  new",
    }
    assert set(second) == {"q", "format", "language"}


NOTHING = b'{"results": [], "unresponsive_engines": [["bing", "timeout"], ["mojeek", "access denied"]]}'


async def nothing_found(config: Reply, *, page: int = 1) -> WebResults | DependencyError:
    """What a search comes to that found nothing, while two engines did not answer."""

    def handle(request: Request) -> Reply:
        return config if urlsplit(request.target).path == "/sub/config" else Reply(headers=JSON, body=NOTHING)

    async with serving(handle) as site:
        engine = SearXNG(f"{site.url}/sub")
        try:
            return await engine.search("beacon", language="en", limit=5, page=page)
        except DependencyError as error:
            return error
        finally:
            await engine.close()


def engines(*names: str, category: str = "general") -> Reply:
    listed = [{"name": name, "enabled": True, "categories": [category]} for name in names]
    listed += [{"name": "off", "enabled": False, "categories": ["general"]}, {"name": "x", "categories": 5}]
    return Reply(headers=JSON, body=json.dumps({"engines": listed}).encode())


async def test_nothing_found_is_told_apart_from_nobody_answering() -> None:
    down = await nothing_found(engines("bing", "mojeek"))
    assert isinstance(down, DependencyDownError)
    assert "No search engine" in str(down)
    assert "bing: timeout; mojeek: access denied" in str(down)
    for config in (
        engines("bing", "mojeek", "qwant"),
        Reply(status=404),
        Reply(headers=JSON, body=b'{"engines": 1}'),
        Reply(headers=JSON, body=b"["),
        engines("bing", "mojeek", category="images"),
    ):
        found = await nothing_found(config)
        assert isinstance(found, WebResults), found
        assert found.unresponsive == ("bing: timeout", "mojeek: access denied")
    assert isinstance(await nothing_found(engines("bing", "mojeek"), page=2), WebResults), "later pages just end"


async def test_connections_are_used_again() -> None:
    async with serving(lambda _: Reply(headers=JSON, body=ANSWER)) as site:
        engine = SearXNG(site.url)
        for _ in range(5):
            await engine.search("lighthouse", language="en", limit=1)
        await engine.close()
        assert (len(site.requests), site.connections) == (5, 1)


@pytest.mark.parametrize("query", ["", "  \n ", "?!…", "!!", "\u200b"])
async def test_an_empty_query_is_refused_before_any_request(query: str) -> None:
    async with serving(lambda _: Reply(headers=JSON, body=ANSWER)) as site:
        engine = SearXNG(site.url)
        with pytest.raises(QuestionError):
            await engine.search(query, language="en", limit=5)
        await engine.close()
        assert site.requests == []


async def test_403_names_the_setting_that_is_missing() -> None:
    error = await asked_once(Reply(status=403, body=NO_JSON))
    assert isinstance(error, DependencyFaultError)
    assert "search.formats" in str(error)


async def test_429_is_busy_for_as_long_as_it_says_and_nothing_is_sent_meanwhile() -> None:
    async with serving(lambda _: Reply(status=429, headers={"Retry-After": "60"})) as site:
        engine = SearXNG(site.url)
        with pytest.raises(DependencyBusyError) as caught:
            await engine.search("lighthouse", language="en", limit=5)
        with pytest.raises(DependencyDownError, match=r"not asked again for (59|60) s"):
            await engine.search("lighthouse", language="en", limit=5)
        await engine.close()
        assert caught.value.retry_after == 60
        assert len(site.requests) == 1


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (Reply(status=500, body=b"secret trace"), "status 500"),
        (Reply(body=b"<html>hello"), "web page"),
        (Reply(headers=JSON, body=b""), "not JSON"),
        (Reply(headers=JSON, body=b'{"results": ['), "not JSON"),
        (Reply(headers=JSON, body=b"[" * 100_000), "not JSON"),
        (Reply(headers=JSON, body=b"\xff\xfe"), "not JSON"),
        (Reply(headers=JSON, body=b"[]"), "no results"),
        (Reply(headers=JSON, body=b'{"results": null}'), "no results"),
        (Reply(headers=JSON, body=b" " * 5_000_000), "more than"),
        (Reply(status=302, headers={"Location": "https://elsewhere.example/"}), "redirects"),
        (Reply(status=401), "login"),
    ],
)
async def test_what_is_no_answer_is_a_fault_and_its_body_is_not_shown(reply: Reply, words: str) -> None:
    error = await asked_once(reply)
    assert isinstance(error, DependencyFaultError)
    assert words in str(error)
    assert "secret" not in str(error)


async def test_odd_entries_are_left_out() -> None:
    body = b'{"results": [1, {"url": 5}, {"title": "x"}, {"url": "https://a.example/", "content": null}], ' \
           b'"unresponsive_engines": ["x", ["bing", "timeout"], []]}'  # fmt: skip
    async with serving(lambda _: Reply(headers=JSON, body=body)) as site:
        engine = SearXNG(site.url)
        found = await engine.search("x", language="en", limit=5)
        await engine.close()
    assert [(result.url, result.snippet) for result in found.results] == [("https://a.example/", "")]
    assert found.unresponsive == ("bing: timeout",)


@pytest.mark.parametrize("raw", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{}", b"SSH-2.0-OpenSSH\r\n"])
async def test_a_broken_connection_is_down(raw: bytes) -> None:
    assert isinstance(await asked_once(Reply(raw=raw)), DependencyDownError)


async def test_the_deadline_is_for_the_whole_search() -> None:
    def drip(_: Request) -> Reply:
        return Reply(headers={**JSON, "Content-Length": "100"}, body=b"{", stall=0.1)

    async with serving(drip) as site:
        engine = SearXNG(site.url, seconds=0.3)
        began = asyncio.get_running_loop().time()
        with pytest.raises(DependencyDownError, match=r"within 0\.3 s"):
            await engine.search("lighthouse", language="en", limit=5)
        assert asyncio.get_running_loop().time() - began < 1.5
        await engine.close()


async def test_a_closed_port_is_down_and_then_left_alone_until_it_comes_back() -> None:
    now = [0.0]
    async with serving(lambda _: Reply()) as gone:
        pass
    engine = SearXNG(gone.url, breaker=Breaker("searxng", clock=lambda: now[0]))
    for words in ["cannot be reached"] * 3 + ["not asked again"]:
        with pytest.raises(DependencyDownError, match=words):
            await engine.search("lighthouse", language="en", limit=5)
    await engine.close()


async def test_nothing_of_the_password_is_shown() -> None:
    async with serving(lambda _: Reply(status=500)) as site:
        engine = SearXNG(site.url.replace("://", "://me:hunter2@"))
        with pytest.raises(DependencyFaultError) as caught:
            await engine.search("lighthouse", language="en", limit=5)
        await engine.close()
        assert "hunter2" not in str(caught.value)
        assert site.requests[0].headers["authorization"].startswith("Basic ")


@pytest.mark.parametrize("url", ["", "localhost:8080", "ftp://x/", "http://", "http://[::1", "not a url"])
def test_a_url_that_is_none_is_refused_by_name(url: str) -> None:
    with pytest.raises(SettingsError, match=r"web\.searxng_url"):
        SearXNG(url)


@given(st.text(max_size=2000))
def test_no_query_holds_a_command_or_is_too_long(text: str) -> None:
    query = plain_query(text)
    assert len(query) <= MAX_QUERY_CHARS
    assert "\n" not in query
    assert not any(word[0] in "!:?<" for word in query.split() if len(word) > 1)


def test_commands_lose_their_marks() -> None:
    assert plain_query("!!g :fr <3 what is C++?") == "g fr 3 what is C++?"


@pytest.fixture
async def real() -> AsyncIterator[SearXNG]:
    engine = SearXNG(service("SEARXNG_URL"))
    yield engine
    await engine.close()


@pytest.mark.services
async def test_a_real_searxng_answers(real: SearXNG) -> None:
    found = await real.search("Sallow Point beacon", language="en", limit=3)
    assert found.results[0].title == "Harbour news: new beacon at Sallow Point"
    assert any(engine.startswith("closed port") for engine in found.unresponsive)


@pytest.mark.services
async def test_a_real_searxng_takes_commands_as_words(real: SearXNG) -> None:
    assert (await real.search("!!wp lighthouse :zz-xx", language="en", limit=3)).results


@pytest.mark.services
async def test_a_real_searxng_without_json_is_named() -> None:
    engine = SearXNG(service("SEARXNG_NO_JSON_URL"))
    with pytest.raises(DependencyFaultError, match=r"search\.formats"):
        await engine.search("lighthouse", language="en", limit=3)
    await engine.close()
