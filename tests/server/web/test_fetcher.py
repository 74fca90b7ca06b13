"""Fetching pages from a real server that plays the public web, with the address check in between."""

from __future__ import annotations

import asyncio
import gzip
import resource
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio

from graph.errors import DependencyBusyError, DependencyDownError, DependencyError, DependencyFaultError
from server.web.addresses import AddressError, nothing_blocked
from server.web.fetcher import WebFetcher
from server.web.network import Resolve, SystemResolver
from server.web.reader import PageReader
from tests.server.web.site import HTML, PUBLIC, Reply, Request, Site, ToSite, article, public, serving

LONG = "The beacon of Sallow Point is fourteen metres tall and was built by Imre Toller in nine weeks. " * 3
PAGE = article(LONG, "It replaces the mast.", title="Harbour news")


pytestmark = pytest.mark.asyncio(loop_scope="module")
SHARED: list[PageReader] = []
"""One reader for all tests here: starting its child takes half a second."""


@pytest_asyncio.fixture(scope="module", loop_scope="module", autouse=True)
async def shared_reader() -> AsyncIterator[None]:
    SHARED.append(PageReader())
    yield
    await SHARED.pop().close()


@asynccontextmanager
async def fetching(
    handle: Callable[[Request], Reply],
    resolve: Resolve = public,
    *,
    seconds: float = 10.0,
    max_bytes: int = 5_000_000,
    dead: str = "",
    blocked: Callable[[str], bool] = nothing_blocked,
) -> AsyncIterator[tuple[WebFetcher, Site, ToSite]]:
    """A fetcher to which that server is the whole web, but for the address `dead`."""
    async with serving(handle) as site:
        network = ToSite(site.port, dead)
        fetcher = WebFetcher(
            resolve=resolve,
            backend=network,
            seconds=seconds,
            max_bytes=max_bytes,
            reader=SHARED[0],
            blocked=blocked,
        )
        yield fetcher, site, network
        await fetcher.close()


async def refusal_of(
    reply: Reply, url: str = "http://ok.example/page", *, seconds: float = 10.0, max_bytes: int = 5_000_000
) -> DependencyError:
    """The error that a page ends in which always replies so."""
    async with fetching(lambda _: reply, seconds=seconds, max_bytes=max_bytes) as (fetcher, _, _):
        with pytest.raises(DependencyError) as caught:
            await fetcher.fetch(url)
        assert caught.value.dependency == "web"
        return caught.value


async def test_a_page_is_fetched_and_read() -> None:
    async with fetching(lambda _: Reply(body=PAGE)) as (fetcher, site, network):
        title, text = await fetcher.fetch("http://ok.example/page?x=1#part")
        await fetcher.fetch("http://ok.example/again")
    assert title == "Harbour news"
    assert "fourteen metres tall" in text
    assert "Home About" not in text
    request = site.requests[0]
    assert request.target == "/page?x=1"
    assert request.headers["host"] == "ok.example"
    assert set(request.headers) == {"host", "user-agent", "accept", "accept-encoding"}
    assert network.asked == [f"{PUBLIC}:80"], "one connection, to the address that was checked"


async def test_no_cookie_goes_from_one_page_to_the_next() -> None:
    async with fetching(lambda _: Reply(headers={**HTML, "Set-Cookie": "a=b"}, body=PAGE)) as (fetcher, site, _):
        await fetcher.fetch("http://ok.example/1")
        await fetcher.fetch("http://ok.example/2")
    assert all("cookie" not in request.headers for request in site.requests)


# --- where it may go ----------------------------------------------------------------------------------------------


async def resolves_to(*addresses: str) -> list[str]:
    """The addresses that were connected to, when every name resolves to these."""

    async def resolve(_host: str, _port: int) -> list[str]:
        return list(addresses)

    async with fetching(lambda _: Reply(body=PAGE), resolve) as (fetcher, site, network):
        with pytest.raises(AddressError):
            await fetcher.fetch("http://ok.example/")
        assert site.connections == 0
        return network.asked


async def test_a_name_with_a_private_address_among_its_addresses_is_refused() -> None:
    assert await resolves_to("127.0.0.1") == []
    assert await resolves_to(PUBLIC, "10.0.0.1") == []
    assert await resolves_to("64:ff9b::a9fe:a9fe") == []


async def test_a_redirect_to_a_private_address_is_blocked_at_that_hop() -> None:
    for location in ("http://127.0.0.1:6333/", "http://127.0.0.1/", "file:///etc/passwd", "http://[::1]/", "//0/"):
        async with fetching(lambda _, to=location: Reply(status=302, headers={"Location": to})) as (fetcher, site, _):
            with pytest.raises(AddressError):
                await fetcher.fetch("https://ok.example/".replace("https", "http"))
            assert len(site.requests) == 1


async def test_a_redirect_to_a_blocked_domain_ends_there() -> None:
    def blocked(url: str) -> bool:
        return "spam.example" in url

    reply = Reply(status=302, headers={"Location": "http://spam.example/"})
    async with fetching(lambda _: reply, blocked=blocked) as (fetcher, site, _):
        for url, requests in (("http://ok.example/", 1), ("http://spam.example/", 1)):
            with pytest.raises(AddressError, match="the domain is blocked"):
                await fetcher.fetch(url)
            assert len(site.requests) == requests


async def test_a_redirect_to_a_name_with_a_private_address_is_blocked() -> None:
    async def resolve(host: str, _port: int) -> list[str]:
        return ["169.254.169.254"] if host == "inside.example" else [PUBLIC]

    reply = Reply(status=301, headers={"Location": "http://inside.example/latest/meta-data"})
    async with fetching(lambda _: reply, resolve) as (fetcher, _, network):
        with pytest.raises(AddressError, match=r"169\.254\.169\.254"):
            await fetcher.fetch("http://ok.example/")
    assert network.asked == [f"{PUBLIC}:80"]


async def test_a_name_that_changes_its_address_is_only_ever_connected_to_where_it_was_checked() -> None:
    answers = iter([[PUBLIC], ["127.0.0.1"]])

    async def resolve(_host: str, _port: int) -> list[str]:
        return next(answers)

    async with fetching(lambda _: Reply(headers={**HTML, "Connection": "close"}, body=PAGE), resolve) as (
        f,
        _,
        network,
    ):
        await f.fetch("http://ok.example/")
        with pytest.raises(AddressError):
            await f.fetch("http://ok.example/")
    assert network.asked == [f"{PUBLIC}:80"]


async def test_redirects_are_followed_and_counted() -> None:
    def handle(request: Request) -> Reply:
        step = int(request.target.strip("/"))
        return Reply(body=PAGE) if step == 0 else Reply(status=302, headers={"Location": f"/{step - 1}"})

    async with fetching(handle) as (fetcher, site, _):
        assert (await fetcher.fetch("http://ok.example/5"))[0] == "Harbour news"
        assert len(site.requests) == 6
        with pytest.raises(DependencyFaultError, match="more than 5 times"):
            await fetcher.fetch("http://ok.example/21")
        assert len(site.requests) == 12


async def test_a_redirect_loop_stops() -> None:
    def handle(request: Request) -> Reply:
        return Reply(status=307, headers={"Location": "/b" if request.target == "/a" else "/a"})

    async with fetching(handle) as (fetcher, site, _):
        with pytest.raises(DependencyFaultError, match="in circles"):
            await fetcher.fetch("http://ok.example/a")
        assert len(site.requests) == 2


async def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9/")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9/")
    async with fetching(lambda _: Reply(body=PAGE)) as (fetcher, _, network):
        await fetcher.fetch("http://ok.example/")
    assert network.asked == [f"{PUBLIC}:80"]


async def test_nothing_that_a_page_refers_to_is_fetched() -> None:
    body = (
        b"<html><head><meta http-equiv=refresh content='0;url=http://169.254.169.254/'><base href='http://127.0.0.1/'>"
        b"<link rel=stylesheet href='/style.css'></head><body><p>" + LONG.encode() + b"</p>"
        b"<img src='http://169.254.169.254/'><iframe src='http://127.0.0.1:7474/'></iframe></body></html>"
    )
    async with fetching(lambda _: Reply(body=body)) as (fetcher, site, network):
        assert "fourteen metres" in (await fetcher.fetch("http://ok.example/"))[1]
    assert (len(site.requests), len(network.asked)) == (1, 1)


async def test_the_owner_may_open_the_private_network() -> None:
    async with serving(lambda _: Reply(body=PAGE)) as site:
        fetcher = WebFetcher(allow_private=True, reader=SHARED[0])
        assert (await fetcher.fetch(f"{site.url}/"))[0] == "Harbour news"
        assert (await fetcher.fetch(f"{site.url.replace('127.0.0.1', 'localhost')}/"))[0] == "Harbour news"
        await fetcher.close()
        closed = WebFetcher(reader=SHARED[0])
        with pytest.raises(AddressError):
            await closed.fetch(f"{site.url}/")
        await closed.close()


async def test_the_real_resolver_knows_this_machine_and_refuses_nonsense() -> None:
    resolver = SystemResolver()
    assert "127.0.0.1" in await resolver("localhost", 80)
    for name in ("no-such-name.invalid", "a" * 300):
        with pytest.raises(OSError, match=r".+"):
            await resolver(name, 80)
    resolver.close()


# --- how much and for how long ------------------------------------------------------------------------------------


async def test_a_gzip_bomb_is_stopped_while_it_is_unpacked() -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    bomb = b"".join(packer.compress(bytes(1_000_000)) for _ in range(100)) + packer.flush()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    error = await refusal_of(Reply(headers={**HTML, "Content-Encoding": "gzip"}, body=bomb), max_bytes=1_000_000)
    assert "larger than" in str(error)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60_000


async def test_packed_pages_are_unpacked() -> None:
    for encoding, body in (("gzip", gzip.compress(PAGE)), ("deflate", zlib.compress(PAGE)), ("identity", PAGE)):
        reply = Reply(headers={**HTML, "Content-Encoding": encoding}, body=body)
        async with fetching(lambda _, reply=reply: reply) as (fetcher, _, _):
            assert (await fetcher.fetch("http://ok.example/"))[0] == "Harbour news"


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (Reply(body=b"x" * 200_000), "larger than"),
        (Reply(headers={**HTML, "Content-Length": "99999999999"}), "larger than"),
        (Reply(headers={**HTML, "Content-Encoding": "br"}, body=b"x"), "'br'"),
        (Reply(headers={**HTML, "Content-Encoding": "gzip"}, body=b"not gzip"), "not packed"),
        (Reply(headers={"Content-Type": "application/pdf"}, body=b"%PDF"), "application/pdf"),
        (Reply(headers={}, body=PAGE), "no named type"),
        (Reply(status=404, body=PAGE), "404"),
        (Reply(status=500, body=PAGE), "500"),
        (Reply(status=403, body=PAGE), "does not let us in"),
        (Reply(status=204, headers={}), "no named type"),
        (Reply(body=b""), "nothing to read"),
        (Reply(body=b"<html><body><div id=app></div></body></html>"), "nothing to read"),
        (Reply(body=b"<title>Log in</title><form>Name <input><input type=password>" + b"Sign up. " * 20), "login page"),
        (Reply(body=b"<title>Just a moment...</title><p>" + b"Checking your browser. " * 10), "instead of a page"),
    ],
)
async def test_what_is_no_readable_page_is_named(reply: Reply, words: str) -> None:
    error = await refusal_of(reply, max_bytes=100_000)
    assert isinstance(error, DependencyFaultError)
    assert words in str(error)


async def test_a_page_that_drips_is_cut_off_at_the_total_limit() -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    error = await refusal_of(Reply(headers={**HTML, "Content-Length": "10"}, body=b"x", stall=5), seconds=0.3)
    assert isinstance(error, DependencyDownError)
    assert loop.time() - began < 2


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 50\r\n\r\nx",
        b"SSH-2.0\r\n\r\n",
        b"\x16\x03\x01",
    ],
)
async def test_a_broken_connection_is_down(raw: bytes) -> None:
    assert isinstance(await refusal_of(Reply(raw=raw), seconds=2), DependencyDownError)


async def test_plain_http_behind_an_https_address_is_down() -> None:
    assert isinstance(await refusal_of(Reply(body=PAGE), "https://ok.example/", seconds=0.5), DependencyDownError)


async def test_an_unknown_name_is_down() -> None:
    async def resolve(_host: str, _port: int) -> list[str]:
        raise OSError("Name or service not known")

    async with fetching(lambda _: Reply(), resolve) as (fetcher, _, _):
        with pytest.raises(DependencyDownError, match=r"nowhere\.example cannot be reached"):
            await fetcher.fetch("http://nowhere.example/")


async def test_a_host_that_asks_for_a_pause_gets_it() -> None:
    async with fetching(lambda _: Reply(status=429, headers={"Retry-After": "60"})) as (fetcher, site, _):
        for _ in range(3):
            with pytest.raises(DependencyBusyError):
                await fetcher.fetch("http://ok.example/")
        assert len(site.requests) == 1


async def test_the_second_address_is_tried_when_the_first_is_dead() -> None:
    async def resolve(_host: str, _port: int) -> list[str]:
        return ["93.184.215.1", PUBLIC]

    async with fetching(lambda _: Reply(body=PAGE), resolve, dead="93.184.215.1") as (fetcher, _, network):
        assert (await fetcher.fetch("http://ok.example/"))[0] == "Harbour news"
    assert network.asked == ["93.184.215.1:80", f"{PUBLIC}:80"]


# --- what it says -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("text/html; charset=ISO-8859-1", "<p>Le café fermé, un été à Bergamo et Málaga.</p>".encode("latin-1")),
        ("text/html", "<meta charset=windows-1252><p>Le café fermé, un été à Bergamo et Málaga.</p>".encode("cp1252")),
        ("text/html", "<p>Le café fermé, un été à Bergamo et Málaga.</p>".encode()),
        ("text/html", "<p>Le café fermé, un été à Bergamo et Málaga.</p>".encode("cp1252")),
        ("text/html", "<p>Le café fermé, un été à Bergamo et Málaga.</p>".encode("utf-16")),
        ("text/html; charset=rot13", "<p>Le café fermé, un été à Bergamo et Málaga.</p>".encode()),
        ("text/html; charset=utf-8", "\ufeff<p>Le café fermé, un été à Bergamo et Málaga.</p>".encode()),
        ("text/plain; charset=utf-8", "Le café fermé, un été à Bergamo et Málaga.".encode()),
        ("application/xhtml+xml", "<?xml version='1.0' encoding='utf-8'?><html xmlns='http://www.w3.org/1999/xhtml'>"
         "<body><p>Le café fermé, un été à Bergamo et Málaga.</p></body></html>".encode()),
    ],
)  # fmt: skip
async def test_charsets(content_type: str, body: bytes) -> None:
    async with fetching(lambda _: Reply(headers={"Content-Type": content_type}, body=body)) as (fetcher, _, _):
        _, text = await fetcher.fetch("http://ok.example/page")
    assert text == "Le café fermé, un été à Bergamo et Málaga."
