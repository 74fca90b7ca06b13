"""The MediaWiki API source: what it tells of a wiki that works, and what it says of one that does not."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta

import pytest

from graph.errors import SourceError
from graph.feed import Checkpoint, FeedItem, GonePage
from graph.model import FailedPage, Page
from graph.protocols import ChangingSource
from ingestion.sources.mediawiki_api import MediaWikiApi, find_api
from tests.ingestion.sources.fake_mediawiki import START, FakeWiki, Query, answer, error
from tests.server.web.site import HTML, JSON, Reply, Site, serving


async def told(feed: Callable[[], Iterator[FeedItem] | None]) -> list[FeedItem]:
    """Read in a thread, as sources are."""

    def read() -> list[FeedItem]:
        items = feed()
        assert items is not None
        return list(items)

    return await asyncio.to_thread(read)


def source(site: Site, naps: list[float] | None = None, user: str = "") -> MediaWikiApi:
    sleep = ([] if naps is None else naps).append
    password = "hidden" if user else ""
    return MediaWikiApi(url=f"{site.url}/w/api.php", name="hollin", sleep=sleep, user=user, password=password)


def short(items: list[FeedItem]) -> list[str]:
    shown = []
    for item in items:
        if isinstance(item, Page):
            shown.append(f"{item.key} = {item.text or item.redirect_to}")
        elif not isinstance(item, Checkpoint):
            shown.append(f"{item.key} {'gone' if isinstance(item, GonePage) else 'failed'}")
    return shown


def last(items: list[FeedItem]) -> str:
    point = items[-1]
    assert isinstance(point, Checkpoint)
    return point.cursor


async def broken(awaitable: Awaitable[object]) -> str:
    """The one sentence that it ends with."""
    with pytest.raises(SourceError) as raised:
        await awaitable
    sentence = str(raised.value)
    assert "\n" not in sentence
    assert "hidden" not in sentence
    assert "words of the wiki's own" not in sentence
    assert "127.0.0.1" in sentence
    return sentence


async def test_it_is_a_changing_source() -> None:
    async with serving(FakeWiki()) as site:
        assert isinstance(source(site), ChangingSource)


async def test_reading_all() -> None:
    wiki = FakeWiki(limit=7, texts=3)
    for number in range(120):
        wiki.edit(f"Page {number:03}", f"Text {number}.")
    wiki.edit("Old name", "#NEUES WORT [[page 003#Part|x]]")
    async with serving(wiki) as site:
        items = await told(source(site).read)
    assert short(items) == ["Old name = Page 003", *(f"Page {n:03} = Text {n}." for n in range(120))]
    page = items[1]
    assert isinstance(page, Page)
    assert (page.id, page.url, page.wiki_language) == ("hollin:Page 000", "http://wiki.hollin/wiki/Page_000", "en")
    assert all(query["maxlag"] == "5" for query in wiki.asked)


async def test_changes_in_many_windows_are_told_once_and_can_be_taken_up_at_each_checkpoint() -> None:
    wiki = FakeWiki(limit=4)
    async with serving(wiki) as site:
        start = last(await told(source(site).read))
        for number in range(30):
            wiki.edit(f"Page {number:02}", "Text.", seconds=number % 3)
            if number % 4 == 3:
                wiki.edit("Norvik", f"Text {number}.")
            if number % 5 == 4:
                wiki.delete(f"Page {number - 2:02}")
        items = await told(lambda: source(site).changes(start))
        kept = [f"{title} = {text}" for title, (_, text) in wiki.pages.items()]
        gone = [f"Page {number - 2:02} gone" for number in range(4, 30, 5)]
        assert sorted(short(items)) == sorted(kept + gone)
        points = [(place, item) for place, item in enumerate(items) if isinstance(item, Checkpoint)]
        assert len(points) > 3
        for place, point in points:
            rest = short(await told(lambda cursor=point.cursor: source(site).changes(cursor)))  # type: ignore[misc]
            assert set(short(items[place:])) <= set(rest), "nothing is lost"
            assert len(rest) <= len(set(short(items[place:]))) + 1, "Norvik may be told again"
        assert short(await told(lambda: source(site).changes(last(items)))) == []


async def test_many_changes_in_one_second() -> None:
    wiki = FakeWiki(limit=3)
    async with serving(wiki) as site:
        start = last(await told(source(site).read))
        for number in range(20):
            wiki.edit(f"Page {number:02}", "Text.", seconds=0)
        items = await told(lambda: source(site).changes(start))
        assert sorted(short(items)) == [f"Page {number:02} = Text." for number in range(20)]
        wiki.edit("One more", "Text.", seconds=0)
        assert short(await told(lambda: source(site).changes(last(items)))) == ["One more = Text."]


async def test_a_change_that_becomes_visible_late() -> None:
    wiki = FakeWiki()
    wiki.edit("First", "Text.")
    async with serving(wiki) as site:
        start = last(await told(source(site).read))
        wiki.now += timedelta(seconds=10)
        wiki.edit("Late", "Text.", told_at=START - timedelta(seconds=20))
        assert short(await told(lambda: source(site).changes(start))) == ["Late = Text."]


async def test_a_clock_that_was_set_back() -> None:
    wiki = FakeWiki(now=START + timedelta(days=1))
    wiki.edit("Page", "Text.")
    async with serving(wiki) as site:
        cursor = last(await told(source(site).read))
        wiki.now -= timedelta(seconds=2)
        assert await told(lambda: source(site).changes(cursor))
        wiki.now -= timedelta(hours=1)
        assert await asyncio.to_thread(source(site).changes, cursor) is None


async def test_what_is_not_found_is_gone_only_if_the_wiki_knows_of_its_end() -> None:
    wiki = FakeWiki()
    for title in ("Moved", "Hidden", "Stays"):
        wiki.edit(title, "Text.")
    async with serving(wiki) as site:
        start = last(await told(source(site).read))
        wiki.edit("Hidden", "Other text.")
        wiki.edit("Moved", "Other text.")
        del wiki.pages["Hidden"]  # removed where we may not look, or not yet copied to the database that was asked
        del wiki.pages["Moved"]
        wiki.log("move", "Moved", target_ns=2, target_title="User:Ansa/Moved")
        items = await told(lambda: source(site).changes(start))
        assert sorted(short(items)) == ["Hidden failed", "Moved gone"]


async def test_a_log_that_hides_its_title_or_has_odd_parameters() -> None:
    wiki = FakeWiki()
    wiki.edit("Page", "Text.")
    async with serving(wiki) as site:
        start = last(await told(source(site).read))
        wiki.log("delete", "Page")
        wiki.log("rights", "Page", a=[1])
        wiki.log("move", "Page", target_ns="x", target_title=3)
        del wiki.logs[0]["title"]
        wiki.logs[1]["params"] = ["odd"]
        assert short(await told(lambda: source(site).changes(start))) == ["Page = Text."]


async def test_one_bad_page_fails_alone() -> None:
    wiki = FakeWiki(fault=lambda query: Reply(status=500) if "Bad" in query.get("titles", "") else None)
    for number in range(60):
        wiki.edit("Bad" if number == 17 else f"Page {number:02}", "Text.")
    async with serving(wiki) as site:
        items = await told(source(site).read)
    assert len(short(items)) == 60
    (failed,) = [item for item in items if isinstance(item, FailedPage)]
    assert failed.key == "Bad"
    assert failed.reason.endswith("/w/api.php answers with status 500")


@pytest.mark.parametrize(
    "bad", [Reply(status=500), Reply(headers=HTML, body=b"<html>Fatal"), error("internal_api_error")]
)
async def test_a_wiki_that_fails_half_way(bad: Reply) -> None:
    """Field issue 23: the run breaks off; what could not be read is not gone."""
    wiki = FakeWiki()
    wiki.fault = lambda query: bad if query.get("titles", "").partition("|")[0] >= "Page 07" else None
    for number in range(200):
        wiki.edit(f"Page {number:03}", "Text.")
    items: list[FeedItem] = []

    def read(feed: Iterator[FeedItem]) -> None:
        for item in feed:
            items.append(item)

    async with serving(wiki) as site:
        assert "cannot be read: it answers with" in await broken(asyncio.to_thread(read, source(site).read()))
    assert short(items)[:50] == [f"Page {number:03} = Text." for number in range(50)]
    assert not [item for item in items if isinstance(item, GonePage | Checkpoint)]


def _first(wiki: FakeWiki) -> Query:
    """Of the requests for texts."""
    return next(query for query in wiki.asked if "titles" in query)


async def test_the_feed_fails_half_way() -> None:
    """What came before the last checkpoint counts."""
    wiki = FakeWiki(limit=3)
    wiki.edit("First", "Text.")
    items: list[FeedItem] = []

    def read(feed: Iterator[FeedItem] | None) -> None:
        assert feed is not None
        for item in feed:
            items.append(item)
            if len(items) == 5:
                wiki.fault = lambda _: Reply(status=502)

    async with serving(wiki) as site:
        start = last(await told(source(site).read))
        for number in range(9):
            wiki.edit(f"Page {number}", "Text.")
        feed = await asyncio.to_thread(source(site).changes, start)
        assert "answers with status 502" in await broken(asyncio.to_thread(read, feed))
        wiki.fault = lambda _: None
        points = [place for place, item in enumerate(items) if isinstance(item, Checkpoint)]
        assert points
        before = items[: points[-1] + 1]
        after = await told(lambda: source(site).changes(last(before)))
    assert sorted(short(before) + short(after)) == [f"Page {number} = Text." for number in range(9)]


LOGIN_WALL = b'<html><form action="/login"><input type="password" name="p"></form></html>'


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (Reply(headers=HTML, body=b"<html><p>Welcome"), "it answers with a web page (HTML), not JSON"),
        (Reply(headers=HTML, body=LOGIN_WALL), "it shows a login page, not JSON"),
        (Reply(headers=HTML, body=b"<title>Just a moment...</title>"), "it shows a captcha or a check for robots"),
        (Reply(headers=HTML, body=b"MediaWiki API is not enabled for this site."), "its API switched off"),
        (Reply(headers={"Content-Type": "application/pdf"}, body=b"{}"), "it answers as application/pdf, not as JSON"),
        (Reply(headers={}, body=b"{}"), "it answers as nothing known, not as JSON"),
        (Reply(headers=JSON, body=b'{"query": {"general": '), "answers with JSON that is none, or not a MediaWiki's"),
        (Reply(headers=JSON, body=b"[" * 100_000), "answers with JSON that is none, or not a MediaWiki's"),
        (Reply(headers=JSON, body=b"[]"), "answers with JSON that is none, or not a MediaWiki's"),
        (Reply(headers=JSON, body=b"{}"), "answers with JSON that is none, or not a MediaWiki's"),
        (answer({}, "yesterday"), "answers with JSON that is none, or not a MediaWiki's"),
        (answer({}), "the wiki's answer has no general"),
        (answer({"query": {"general": {"generator": 5}}}), "the wiki's general have a form that no MediaWiki gives"),
        (answer({"query": {"general": {"generator": "WordPress"}}}), "does not say that it is a MediaWiki"),
        (answer({"query": {"general": {"generator": "MediaWiki 1.19.2"}}}), "is MediaWiki 1.19, which is too old"),
        (error("readapidenied"), "lets only its users read (readapidenied); give --option user="),
        (error("internal_api_error_DBQueryError"), "it answers with the error internal_api_error_DBQueryError"),
        (error("<script>hidden"), "it answers with the error unnamed"),
        (Reply(status=401), "asks for a password (401); write it into the URL"),
        (Reply(status=403), "does not let us in (403)"),
        (Reply(status=404), "There is nothing at"),
        (Reply(status=500), "it answers with status 500"),
        (Reply(status=302, headers={"Location": "https://login.example/?key=hidden"}), "leads away, to https://login.ex"),
        (Reply(status=429, headers={"Retry-After": "3600"}), "asks for a pause of 3600 s"),
    ],
)  # fmt: skip
async def test_what_answers_in_its_place_is_named(reply: Reply, words: str) -> None:
    wiki = FakeWiki(fault=lambda _: reply)
    async with serving(wiki) as site:
        assert words in await broken(asyncio.to_thread(source(site).check))
        assert words in await broken(told(source(site).read))
        if reply.status < 429:
            wiki.fault = lambda query: reply if "allpages" in query.get("list", "") else None
            if "general" not in words and "MediaWiki 1" not in words and "does not say" not in words:
                assert words in await broken(told(source(site).read)), "in the middle, too"


async def test_maxlag_is_waited_for() -> None:
    left = [error("maxlag", **{"Retry-After": "7"}), error("maxlag"), error("ratelimited", **{"Retry-After": "9"})]
    wiki = FakeWiki(fault=lambda query: left.pop(0) if left and "titles" in query else None)
    wiki.edit("Page", "Text.")
    naps: list[float] = []
    async with serving(wiki) as site:
        assert short(await told(source(site, naps).read)) == ["Page = Text."]
    assert naps == [7, 5, 9]


@pytest.mark.parametrize(
    ("code", "words"),
    [("maxlag", "is overloaded: its databases have lagged over 5 s behind for 120 s (maxlag); run it again later"),
     ("ratelimited", "lets us ask no more for now (ratelimited); run it again later")],
)  # fmt: skip
async def test_in_the_end_it_is_given_up(code: str, words: str) -> None:
    wiki = FakeWiki(fault=lambda _: error(code, **{"Retry-After": "40"}))
    naps: list[float] = []
    async with serving(wiki) as site:
        assert words in await broken(told(source(site, naps).read))
    assert naps == [40, 40, 40]


async def test_an_answer_that_never_ends() -> None:
    again = answer({"query": {"allpages": []}, "continue": {"apcontinue": "A", "continue": "-||"}})
    wiki = FakeWiki(fault=lambda query: again if query.get("list") == "allpages" else None)
    async with serving(wiki) as site:
        assert "gives the same part of its allpages again and again" in await broken(told(source(site).read))


async def test_texts_that_never_come() -> None:
    wiki = FakeWiki(texts=0)
    wiki.edit("Page", "Text.")
    async with serving(wiki) as site:
        items = await told(source(site).read)
    assert [item.reason for item in items if isinstance(item, FailedPage)] == ["the wiki gives no text of it"]


async def test_a_session_that_ends_is_opened_again() -> None:
    sessions: list[str] = []
    ends = [error("assertuserfailed")]

    def fault(query: Query) -> Reply | None:
        if query.get("meta") == "tokens":
            return answer({"query": {"tokens": {"logintoken": "abc+\\"}}})
        if not query:  # the form
            sessions.append("new")
            return answer({"login": {"result": "Success"}}, **{"Set-Cookie": f"session={len(sessions)}"})
        assert query["assert"] == "user"
        return ends.pop() if ends and "titles" in query else None

    wiki = FakeWiki(fault=fault)
    wiki.edit("Page", "Text.")
    async with serving(wiki) as site:
        assert short(await told(source(site, user="Ansa@bot").read)) == ["Page = Text."]
        assert "hidden" not in "".join(request.target for request in site.requests)
        assert site.requests[-1].headers["cookie"] == "session=2"
    assert len(sessions) == 2


async def test_a_password_for_the_web_server() -> None:
    wiki = FakeWiki()
    wiki.edit("Page", "Text.")
    async with serving(wiki) as site:
        url = site.url.replace("//", "//user:hidden@") + "/w/api.php"
        found = await asyncio.to_thread(find_api, url)
        assert found == url
        items = await told(MediaWikiApi(url=found, name="hollin").read)
        assert short(items) == ["Page = Text."]
        assert all(request.headers["authorization"] == "Basic dXNlcjpoaWRkZW4=" for request in site.requests)


@pytest.mark.parametrize(
    ("general", "url"),
    [
        ({"server": "https://a.example", "articlepath": "/$1"}, "https://a.example/Caf%C3%A9_%26_bar"),
        ({"articlepath": "/index.php?title=$1"}, "http://wiki.hollin/index.php?title=Caf%C3%A9_%26_bar"),
        ({"server": ""}, "http://wiki.hollin/wiki/Caf%C3%A9_%26_bar"),
        ({"articlepath": "", "base": "http://b.example/x/Main"}, "http://b.example/x/Caf%C3%A9_%26_bar"),
    ],
)
async def test_addresses_of_pages(general: dict[str, str], url: str) -> None:
    wiki = FakeWiki(general=general)
    wiki.edit("Café & bar", "Text.")
    async with serving(wiki) as site:
        page = (await told(source(site).read))[0]
    assert isinstance(page, Page)
    assert page.url == url
