"""Crawls of real small sites: what is read, what is left alone, and what a second look finds."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

import pytest

from graph.errors import SourceError
from graph.feed import Checkpoint, FeedItem, GonePage, UnchangedPage
from graph.model import FailedPage, Link, Page, SkippedPage
from ingestion.main_content import HtmlReader
from ingestion.sources import site as site_module
from ingestion.sources.kinds import Place, SourceOptions
from ingestion.sources.robots import parse_robots
from ingestion.sources.site import KIND, SiteCrawl
from ingestion.sources.site_urls import canonical_url
from ingestion.sources.sitemap import parse_sitemap
from tests.server.web.site import HTML, Reply, Request, Site, serving

Item = TypeVar("Item")
XML = {"Content-Type": "application/xml"}
PROSE = "Port Lyre lies on the western coast, and its harbour has been in use for more than four hundred years. "


class SharedReader(HtmlReader):
    """One child process for all tests: it takes a second to start."""

    def close(self) -> None:
        pass


@pytest.fixture(scope="module")
def shared_reader() -> Iterator[SharedReader]:
    made = SharedReader()
    yield made
    HtmlReader.close(made)


@pytest.fixture(autouse=True)
def _one_child(shared_reader: SharedReader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site_module, "HtmlReader", lambda **_: shared_reader)


def page(title: str, *links: str, body: str = "", head: str = "") -> bytes:
    anchors = "".join(f'<p>See also <a href="{link}">{link}</a> for more about the coast.</p>' for link in links)
    return (
        f"<html><head><title>{title} - Isle</title>{head}</head><body><main><h1>{title}</h1><p>{PROSE * 2}{body}</p>"
        f"{anchors}</main></body></html>"
    ).encode()


def sitemap(*urls: str, index: bool = False) -> bytes:
    root, item = ("sitemapindex", "sitemap") if index else ("urlset", "url")
    items = "".join(f"<{item}><loc>{url}</loc></{item}>" for url in urls)
    return f'<?xml version="1.0"?><{root} xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{items}</{root}>'.encode()


@dataclass(slots=True)
class Wiki:
    """Pages by path; what changes gets a new ETag, and an unchanged one is answered with 304."""

    pages: dict[str, bytes | Reply | Callable[[Request], Reply]] = field(default_factory=dict)

    def __call__(self, request: Request) -> Reply:
        found = self.pages.get(request.target)
        if found is None:
            return Reply(status=404, body=b"no such page")
        if isinstance(found, bytes):
            tag = f'"{hash(found)}"'
            if request.headers.get("if-none-match") == tag:
                return Reply(status=304, headers={"ETag": tag})
            headers = XML if request.target.endswith(".xml") else HTML
            return Reply(body=found, headers={**headers, "ETag": tag})
        return found if isinstance(found, Reply) else found(request)

    def serving(self) -> AbstractAsyncContextManager[Site]:
        return serving(self)


def crawl(site: Site, path: str = "/", **options: int) -> SiteCrawl:
    return SiteCrawl(f"{site.url}{path}", "isle", max_pages=options.get("max_pages", 100), sleep=lambda _: None)


async def read(source: SiteCrawl) -> list[FeedItem]:
    return await asyncio.to_thread(lambda: list(source.read()))


async def look_again(source: SiteCrawl, items: Sequence[FeedItem]) -> list[FeedItem]:
    cursor = only(items, Checkpoint)[-1].cursor

    def changes() -> list[FeedItem]:
        found = source.changes(cursor)
        assert found is not None
        return list(found)

    return await asyncio.to_thread(changes)


def only(items: Sequence[FeedItem], kind: type[Item]) -> list[Item]:
    return [item for item in items if isinstance(item, kind)]


def paths(site: Site, items: Sequence[Page | FailedPage | SkippedPage | GonePage | UnchangedPage]) -> list[str]:
    return sorted(item.key.removeprefix(site.url) for item in items)


def reasons(site: Site, items: Sequence[FeedItem]) -> dict[str, str]:
    return {
        item.key.removeprefix(site.url): item.reason for item in items if isinstance(item, SkippedPage | FailedPage)
    }


async def test_by_links() -> None:
    wiki = Wiki(
        {
            "/": page("Home", "/norvik.html", "/lyre/#harbour", "https://elsewhere.example/x", "mailto:a@b"),
            "/norvik.html": page("Norvik", "/?utm_source=x", "/deep/fen", "/logo.png", "/norvik.html?action=edit"),
            "/lyre/": page("Port Lyre", "../norvik.html?gclid=1"),
            "/deep/fen": page("The Fen"),
        }
    )
    async with wiki.serving() as site:
        items = await read(crawl(site))
        pages = {found.title: found for found in only(items, Page)}
        asked = [request.target for request in site.requests]
    assert list(pages) == ["Home", "Norvik", "Port Lyre", "The Fen"]
    assert pages["Norvik"].key == pages["Norvik"].url == f"{site.url}/norvik.html"
    assert pages["Port Lyre"].links == (Link(target="Norvik", shown="../norvik.html?gclid=1"),)
    assert pages["Home"].links[1].target in {"lyre", "Port Lyre"}
    assert pages["Port Lyre"].aliases == ("lyre",)  # so that the link of Home, read before, finds it
    assert not {"/logo.png", "/norvik.html?action=edit"} & set(asked)
    assert len(asked) == len(set(asked)) + 1  # "/" is asked for twice: where it leads, and as a page
    assert isinstance(items[-1], Checkpoint)


async def test_below_the_start_only() -> None:
    wiki = Wiki(
        {
            "/wiki/Home": page("Home", "/wiki/A", "/shop/", "/wiki/../shop/"),
            "/wiki/A": page("A"),
            "/shop/": page("Shop"),
        }
    )
    async with wiki.serving() as site:
        assert paths(site, only(await read(crawl(site, "/wiki/Home")), Page)) == ["/wiki/A", "/wiki/Home"]


async def test_by_sitemap_index_and_gzip() -> None:
    wiki = Wiki({"/": page("Home"), "/a": page("A"), "/b?title=B_b": page("B"), "/unlisted": page("U")})
    async with wiki.serving() as site:
        base = site.url
        wiki.pages["/robots.txt"] = f"Sitemap: {base}/maps.xml".encode()
        wiki.pages["/maps.xml"] = sitemap(f"{base}/one.xml", f"{base}/two.xml.gz", "http://other/x.xml", index=True)
        wiki.pages["/one.xml"] = sitemap(f"{base}/a", "https://elsewhere.example/", f"{base}/a#x", "javascript:1")
        two = gzip.compress(sitemap(f"{base}/b?title=B_b&amp;utm_medium=1"))
        wiki.pages["/two.xml.gz"] = Reply(body=two, headers={"Content-Type": "application/gzip"})
        items = await read(crawl(site))
        assert paths(site, only(items, Page)) == ["/", "/a", "/b?title=B_b"]
        assert "3 addresses of other hosts" in reasons(site, items)["/#elsewhere"]


@pytest.mark.parametrize(
    "broken", [b"<html>login</html>", b"<urlset><url><loc>http://x/a</loc>", b"\x1f\x8bgarbage", None]
)
async def test_a_sitemap_that_breaks_off_costs_no_page(broken: bytes | None) -> None:
    wiki = Wiki({"/": page("Home"), "/a": page("A"), "/b": page("B")})
    async with wiki.serving() as site:
        wiki.pages["/sitemap.xml"] = sitemap(f"{site.url}/one.xml", f"{site.url}/two.xml", index=True)
        wiki.pages["/one.xml"] = sitemap(f"{site.url}/a")
        wiki.pages["/two.xml"] = sitemap(f"{site.url}/b")
        items = await read(crawl(site))
        assert len(only(items, Page)) == 3
        wiki.pages["/two.xml"] = Reply(status=500) if broken is None else Reply(body=broken, headers=XML)
        if broken == b"<html>login</html>":
            # An empty sitemap is one: its pages are asked for one by one, and are there.
            assert not only(await look_again(crawl(site), items), GonePage)
            return
        with pytest.raises(SourceError, match="A sitemap cannot be read"):
            await look_again(crawl(site), items)


async def test_a_million_addresses() -> None:
    wiki = Wiki({"/": page("Home"), **{f"/{number}": page(f"P{number}") for number in range(5)}})
    async with wiki.serving() as site:
        wiki.pages["/sitemap.xml"] = sitemap(*(f"{site.url}/{number}" for number in range(100_000)))
        items = await read(crawl(site, max_pages=4))
        assert len(only(items, Page)) <= 4
        assert "more than 4 pages" in reasons(site, items)["/#more"]


async def test_robots() -> None:
    wiki = Wiki({"/": page("Home", "/private/x", "/open"), "/open": page("Open"), "/private/x": page("Private")})
    naps: list[float] = []
    async with wiki.serving() as site:
        wiki.pages["/robots.txt"] = b"User-agent: *\nDisallow: /private/\nCrawl-delay: 7"
        items = await read(replace(crawl(site), sleep=naps.append))
        assert paths(site, only(items, Page)) == ["/", "/open"]
        assert reasons(site, items) == {"/private/x": "robots.txt forbids to read it"}
        assert max(naps) > 6
        wiki.pages["/robots.txt"] = Reply(status=500)
        with pytest.raises(SourceError, match=r"robots\.txt"):
            await read(crawl(site))


async def test_what_is_no_page() -> None:
    login = b"<html><title>Isle</title><form>Name <input name=n> <input type=password></form></html>"
    wiki = Wiki(
        {
            "/": page("Home", "/wall", "/soft", "/away", "/moved", "/secret", "/file", "/gone", "/broken", "/none"),
            "/wall": login,
            "/soft": b"<html><title>Page not found</title><p>Nothing here.</p></html>",
            "/away": Reply(status=302, headers={"Location": "https://elsewhere.example/"}),
            "/moved": Reply(status=301, headers={"Location": "/secret"}),
            "/secret": page("Secret", head='<meta name="robots" content="noindex">'),
            "/file": Reply(body=b"\x00\x01", headers={"Content-Type": "application/octet-stream"}),
            "/broken": Reply(status=500),
            "/none": b"<html></html>",
        }
    )
    items: list[FeedItem] = []
    async with wiki.serving() as site:
        with pytest.raises(SourceError, match="1 pages of"):
            await asyncio.to_thread(lambda: items.extend(crawl(site).read()))
        assert isinstance(items[-1], Checkpoint)
        found = reasons(site, items)
        assert paths(site, only(items, Page)) == ["/"]
    assert "password" in found["/wall"]
    assert "no such page" in found["/soft"]
    assert "leads away" in found["/away"]
    assert "robots tag" in found["/secret"]
    assert "application/octet-stream" in found["/file"]
    assert "status 404" in found["/gone"]
    assert "status 500" in found["/broken"]
    assert found["/none"] == "empty"


async def test_second_addresses_are_one_page() -> None:
    own = '<link rel="canonical" href="/wiki/Port_Lyre">'
    wiki = Wiki(
        {
            "/": page("Home", "/index.php?title=Port_Lyre", "/old", "/wiki/Port_Lyre"),
            "/index.php?title=Port_Lyre": page("Port Lyre", head=own),
            "/wiki/Port_Lyre": page("Port Lyre", head=own),
            "/old": Reply(status=301, headers={"Location": "/wiki/Port_Lyre"}),
        }
    )
    async with wiki.serving() as site:
        assert paths(site, only(await read(crawl(site)), Page)) == ["/", "/wiki/Port_Lyre"]


async def test_a_canonical_address_that_all_pages_share_is_a_mistake() -> None:
    own = '<link rel="canonical" href="/">'
    wiki = Wiki({"/": page("Home", "/a", "/b", head=own), "/a": page("A", head=own), "/b": page("B", head=own)})
    async with wiki.serving() as site:
        assert paths(site, only(await read(crawl(site)), Page)) == ["/", "/a", "/b"]


async def test_changes() -> None:
    wiki = Wiki({"/": page("Home", "/a", "/b", "/c", "/d"), **{f"/{name}": page(name.upper()) for name in "abcd"}})
    async with wiki.serving() as site:
        items = await read(crawl(site))
        assert only(await look_again(crawl(site), items), Page) == []
        wiki.pages["/a"] = page("A", "/new", body="It was edited.")
        wiki.pages["/new"] = page("New")
        del wiki.pages["/b"]
        wiki.pages["/c"] = Reply(status=503)
        wiki.pages["/d"] = b"<title>Login</title><input type=password>"
        found = await look_again(crawl(site), items)
        assert paths(site, only(found, Page)) == ["/a", "/new"]
        assert paths(site, only(found, GonePage)) == ["/b"]
        assert paths(site, only(found, FailedPage)) == ["/c", "/d"]
        assert paths(site, only(found, UnchangedPage)) == ["/"]
        wiki.pages["/c"], wiki.pages["/d"] = page("C"), page("D")
        again = await look_again(crawl(site), found)
        assert paths(site, only(again, UnchangedPage)) == ["/", "/a", "/c", "/d", "/new"]
        assert not only(again, GonePage)


async def test_out_of_the_sitemap_is_not_gone() -> None:
    wiki = Wiki({"/": page("Home"), "/a": page("A"), "/b": page("B")})
    async with wiki.serving() as site:
        wiki.pages["/sitemap.xml"] = sitemap(f"{site.url}/a", f"{site.url}/b")
        items = await read(crawl(site))
        wiki.pages["/sitemap.xml"] = sitemap(f"{site.url}/a")
        assert not only(await look_again(crawl(site), items), GonePage)
        del wiki.pages["/b"]
        assert paths(site, only(await look_again(crawl(site), items), GonePage)) == ["/b"]


async def test_a_host_that_is_down_changes_nothing() -> None:
    wiki = Wiki({"/": page("Home", "/a"), "/a": page("A")})
    async with wiki.serving() as site:
        items = await read(crawl(site))
    with pytest.raises(SourceError, match="cannot be reached"):
        await look_again(crawl(site), items)
    with pytest.raises(SourceError):
        await read(crawl(site))


async def test_a_host_in_trouble_is_left_alone() -> None:
    wiki = Wiki({"/": page("Home", *(f"/{number}" for number in range(60)))})
    wiki.pages |= {f"/{number}": Reply(status=500) for number in range(60)}
    async with wiki.serving() as site:
        with pytest.raises(SourceError, match="25 pages in a row failed"):
            await read(crawl(site))
        wiki.pages |= {f"/{number}": Reply(status=429, headers={"Retry-After": "9999"}) for number in range(60)}
        with pytest.raises(SourceError, match="asks for a pause"):
            await read(crawl(site))


async def test_single_pages_again() -> None:
    wiki = Wiki({"/": page("Home", "/a"), "/a": page("A")})
    async with wiki.serving() as site:
        keys = [f"{site.url}/a", f"{site.url}/b"]
        items = await asyncio.to_thread(lambda: list(crawl(site).pages(keys)))
        assert [type(item) for item in items] == [Page, GonePage]


async def test_cursors_of_others_are_refused() -> None:
    for cursor in ("", "{}", "[]", '{"as":["x"],"pages":{}}', "\x00", '{"as":null}'):
        assert SiteCrawl("http://127.0.0.1:1/", "isle").changes(cursor) is None


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("HTTP://Example.ORG:80/a/../b?utm_source=x&title=A_b&_ga=1#f", "http://example.org/b?title=A_b"),
        ("https://x.org", "https://x.org/"),
        ("https://x.org/a;jsessionid=1A?PHPSESSID=2", "https://x.org/a"),
        ("https://user:pw@x.org/a", "https://x.org/a"),
        ("https://x.org/ä", "https://x.org/%C3%A4"),
        ("javascript:alert(1)", ""),
        ("//x.org/", ""),
        ("http://[::1", ""),
        ("http://x.org/" + "a" * 1000, ""),
    ],
)
def test_canonical_addresses(given: str, wanted: str) -> None:
    assert canonical_url(given) == wanted


@pytest.mark.data
def test_shared_robots_and_sitemaps(data_dir: Path) -> None:
    for path in sorted((data_dir / "fuzz/protego_robots").glob("*.txt")):
        robots = parse_robots(path.read_bytes().decode(errors="replace"))
        assert robots.allows("https://example.org/") in (True, False)
        assert 0 <= robots.delay <= 60
    folder = data_dir / "fuzz/trafilatura"
    assert parse_sitemap((folder / "sitemap.xml").read_bytes()).urls
    assert parse_sitemap((folder / "sitemap2.xml").read_bytes()).sitemaps
    assert parse_sitemap((folder / "sitemap.xml.gz").read_bytes())


def test_the_kind() -> None:
    url = Place(shown="https://x.org/", url="https://x.org/")
    assert 0 < KIND.fits(url) < 50
    assert KIND.fits(Place(shown="x", path=Path("/tmp"))) == 0
    opened = KIND.open(url, SourceOptions(name="x", extra={"max_pages": "7"}))
    assert isinstance(opened, SiteCrawl)
    assert (opened.max_pages, opened._delay) == (7, 1.0)
    with pytest.raises(SourceError, match="no number"):
        KIND.open(url, SourceOptions(name="x", extra={"max_pages": "-1"}))
    with pytest.raises(SourceError, match="no web address"):
        KIND.open(Place(shown="ftp://x", url="ftp://x"), SourceOptions(name="x"))
