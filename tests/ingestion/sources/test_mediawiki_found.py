"""Whether a URL is a MediaWiki's, and where its API is."""

from __future__ import annotations

import asyncio

import pytest

from graph.errors import SourceError
from ingestion.sources.kinds import Place, SourceOptions
from ingestion.sources.mediawiki_api import KIND, MediaWikiApi
from tests.ingestion.sources.fake_mediawiki import FakeWiki
from tests.server.web.site import HTML, Reply, Request, serving

PAGE = '<html><head><link rel="EditURI" type="application/rsd+xml" href="{}"></head></html>'


@pytest.mark.parametrize(
    ("path", "body", "sure"),
    [
        ("/wiki/Norvik", PAGE.format("/w/api.php?action=rsd"), 95),
        ("/wiki/Norvik", PAGE.format("//{host}/w/api.php?action=rsd&amp;x=y"), 95),
        ("/", "<html><p>No link at all</html>", 95),
        ("/", PAGE.format("//elsewhere.example/w/api.php?action=rsd"), 95),
        ("/", PAGE.format("/xmlrpc.php?rsd"), 95),
        ("/w/index.php?title=Norvik", "<html>", 95),
        ("/w/api.php", "", 95),
        ("/other/api.php", "<html>", 0),
        ("/other/index.php", "<html>", 0),
    ],
)
async def test_where_a_wiki_is_seen(path: str, body: str, sure: int) -> None:
    wiki = FakeWiki()

    def handle(request: Request) -> Reply:
        if "/w/api.php" in request.target:
            return wiki(request)
        return Reply(headers=HTML, body=body.replace("{host}", request.headers["host"]).encode())

    async with serving(handle) as site:
        place = Place(shown=site.url, url=site.url + path)
        assert await asyncio.to_thread(KIND.fits, place) == sure
        if sure:
            opened = await asyncio.to_thread(KIND.open, place, SourceOptions(name="hollin"))
            assert isinstance(opened, MediaWikiApi)
            assert opened.url == f"{site.url}/w/api.php"


async def test_what_is_no_wiki() -> None:
    async with serving(lambda _: Reply(headers=HTML, body=b"<html><p>A shop</html>")) as site:
        place = Place(shown=site.url, url=site.url)
        assert await asyncio.to_thread(KIND.fits, place) == 0
        with pytest.raises(SourceError, match=r"answers with a web page \(HTML\), not JSON"):
            await asyncio.to_thread(KIND.open, place, SourceOptions(name="hollin"))
    assert KIND.fits(Place(shown="x", url="http://127.0.0.1:9/")) == 0
    assert KIND.fits(Place(shown="a file")) == 0


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ({"pasword": "hidden"}, 'has no option "pasword"; it has: namespaces, password, user'),
        ({"password": "hidden"}, "user and password go together"),
        ({"namespaces": "0,talk"}, "takes numbers with commas"),
        ({"namespaces": "1" * 99}, "takes numbers with commas"),
    ],
)
def test_options(extra: dict[str, str], words: str) -> None:
    with pytest.raises(SourceError, match=words.replace("?", r"\?")) as raised:
        KIND.open(Place(shown="x", url="http://127.0.0.1:9/"), SourceOptions(name="hollin", extra=extra))
    assert "hidden" not in str(raised.value)
