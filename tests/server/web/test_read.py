"""Reading pages for research: what they say of themselves, politeness towards hosts, and what is no page."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpcore
import pytest
import pytest_asyncio

from graph.errors import DependencyBusyError, DependencyDownError, DependencyError
from graph.web_page import WebPage
from server.web.addresses import AddressError, address_refusal
from server.web.fetcher import WebFetcher
from server.web.network import Resolve
from server.web.page_check import PageError
from server.web.reader import PageReader
from tests.server.web.site import HTML, PUBLIC, Handler, Reply, Request, Site, ToSite, article, public, serving

LONG = "The beacon of Sallow Point is fourteen metres tall and was built by Imre Toller in nine weeks. " * 3
PAGE = article(LONG, "It replaces the mast.", title="Harbour news")
VECTORS = Path(__file__).parent / "vectors"
SHARED: list[PageReader] = []

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module", autouse=True)
async def shared_reader() -> AsyncIterator[None]:
    SHARED.append(PageReader())
    yield
    await SHARED.pop().close()


def robots_or(handle: Callable[[Request], Reply], robots: str = "") -> Handler:
    def answer(request: Request) -> Reply:
        if request.target == "/robots.txt":
            return Reply(headers={"Content-Type": "text/plain"}, body=robots.encode())
        return handle(request)

    return answer


@asynccontextmanager
async def reading(
    handle: Handler,
    resolve: Resolve = public,
    *,
    host_seconds: float = 0.0,
    robots: bool = False,
    seconds: float = 10.0,
) -> AsyncIterator[tuple[WebFetcher, Site, ToSite]]:
    """A fetcher to which that server is the whole web."""
    async with serving(handle) as site:
        network = ToSite(site.port)
        fetcher = WebFetcher(
            resolve=resolve,
            backend=network,
            reader=SHARED[0],
            host_seconds=host_seconds,
            respect_robots=robots,
            pdf_bytes=5_000_000,
            seconds=seconds,
        )
        yield fetcher, site, network
        await fetcher.close()


async def outcome(
    reply: Reply | Callable[[Request], Reply], url: str = "http://ok.example/page"
) -> WebPage | DependencyError:
    """What a page comes to where a server replies so."""
    async with reading(reply if callable(reply) else lambda _: reply) as (fetcher, _, _):
        try:
            return await fetcher.read(url)
        except DependencyError as error:
            return error


# --- what it says of itself ---------------------------------------------------------------------------------------


async def test_a_page_says_who_wrote_it_when_and_in_which_language() -> None:
    head = (
        "<meta name=author content='Ansa Brekke'>"
        "<meta property='article:published_time' content='2024-03-05T10:00:00Z'>"
    )
    body = PAGE.decode().replace("<html>", "<html lang='en-GB'>").replace("</title>", f"</title>{head}").encode()
    page = await outcome(Reply(body=body), "http://ok.example/page?x=1#part")
    assert isinstance(page, WebPage)
    assert page.url == "http://ok.example/page?x=1"
    assert (page.title, page.author, page.published, page.language) == (
        "Harbour news",
        "Ansa Brekke",
        "2024-03-05",
        "en",
    )
    assert "fourteen metres tall" in page.text


async def test_the_language_is_found_where_the_page_names_another() -> None:
    french = "Le phare de la pointe a été construit en neuf semaines par les habitants du village voisin. " * 3
    page = await outcome(Reply(body=article(french).replace(b"<html>", b"<html lang=en>")))
    assert isinstance(page, WebPage)
    assert page.language == "fr"


async def test_a_pdf_is_read_by_its_own_process() -> None:
    pdf = small_pdf("The beacon of Sallow Point is fourteen metres tall and was built in nine weeks.")
    page = await outcome(Reply(headers={"Content-Type": "application/pdf"}, body=pdf), "http://ok.example/a/report.pdf")
    assert isinstance(page, WebPage), page
    assert "fourteen metres tall" in page.text
    for broken in (b"%PDF-1.7 nothing", b"", b"%PDF-1.4\n" + b"[" * 100_000):
        why = await outcome(Reply(headers={"Content-Type": "application/pdf"}, body=broken))
        assert isinstance(why, PageError), why


def small_pdf(text: str) -> bytes:
    stream = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET".encode()
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d>>stream\n%s\nendstream" % (len(stream), stream),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    made = b"%PDF-1.4\n"
    places = []
    for number, content in enumerate(objects, 1):
        places.append(len(made))
        made += b"%d 0 obj%s endobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    start = len(made)
    return made + b"xref\n0 6\n0000000000 65535 f \n%strailer<</Size 6/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (
        table,
        start,
    )


# --- what is no page ----------------------------------------------------------------------------------------------

BANNER = "We use cookies to improve your experience. " * 3 + "Accept all cookies. Manage consent. Read on."


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (Reply(body=article("Sorry, the page you look for is gone. Try a search.", title="Page not found")), "no such"),
        (Reply(body=article("Seite nicht gefunden", "Die gesuchte Seite gibt es leider nicht mehr.")), "no such page"),
        (
            Reply(body=article("Sorry!", "The document could not be found, please go back to the start.")),
            "no such page",
        ),
        (Reply(body=article(BANNER, title="Harbour news")), "cookie banner"),
        (Reply(body=b"<title>News</title><p>Members only, please.</p><input type=password>"), "login page"),
        (Reply(body=article("Subscribe to continue reading this story.", title="Subscribe to read")), "instead of"),
        (Reply(headers={"Content-Type": "image/png"}, body=b"x"), "image/png"),
        (Reply(headers={"Content-Type": "application/zip"}, body=b"x"), "application/zip"),
        (Reply(headers={**HTML, "Content-Length": "500000000"}, body=b"x" * 100), "larger than"),
        (Reply(headers={"Content-Type": "application/pdf", "Content-Length": "500000000"}), "larger than"),
        (Reply(status=404, body=PAGE), "status 404"),
        (Reply(status=302, headers={"Location": "/page"}), "in circles"),
        (Reply(body=b"<p>.</p>"), "nothing to read"),
    ],
)
async def test_what_is_no_page_is_left_out_and_named(reply: Reply, why: str) -> None:
    error = await outcome(reply)
    assert isinstance(error, PageError), error
    assert why in error.why
    assert "ok.example" not in error.why, "reasons are gathered over hosts"


async def test_long_pages_about_cookies_logins_and_errors_are_pages() -> None:
    for title in ("404 errors", "What cookies do", "How to sign in safely"):
        text = f"{title}: cookies and consent are explained here at length, with all that a page not found means. "
        assert isinstance(await outcome(Reply(body=article(text * 20, title=title))), WebPage)


async def test_a_redirect_to_the_front_page_or_to_a_login_is_none() -> None:
    def handle(request: Request) -> Reply:
        return Reply(body=PAGE) if request.target in {"/", "/login?next=page"} else Reply(status=302, headers=to)

    to: Mapping[str, str] = {"Location": "/"}
    front = await outcome(handle)
    assert isinstance(front, PageError)
    assert "front page" in front.why
    to = {"Location": "/login?next=page"}
    login = await outcome(handle)
    assert isinstance(login, PageError)
    assert "login" in login.why


async def test_500_megabytes_without_a_length_are_cut_off() -> None:
    sent = 0

    async def pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n")
        try:
            while sent < 500_000_000:
                writer.write(b"<p>words " * 10_000)
                await writer.drain()
                sent += 90_000
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(pour, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    fetcher = WebFetcher(resolve=public, backend=ToSite(port), reader=SHARED[0], respect_robots=False, host_seconds=0)
    with pytest.raises(PageError, match="larger than"):
        await fetcher.read("http://ok.example/big")
    await fetcher.close()
    server.close()
    await server.wait_closed()
    assert sent < 20_000_000


# --- politeness ---------------------------------------------------------------------------------------------------


async def test_one_request_at_a_time_and_a_pause_between_two() -> None:
    loop = asyncio.get_running_loop()
    open_now, times = 0, []

    async def handle(request: Request) -> Reply:
        nonlocal open_now
        open_now += 1
        times.append((request.headers["host"], loop.time()))
        assert open_now <= 2, "one for each host"
        await asyncio.sleep(0.05)
        open_now -= 1
        return Reply(body=PAGE)

    async with reading(handle, host_seconds=0.3) as (fetcher, _, _):
        pages = [fetcher.read(f"http://{host}.example/{i}") for i in range(3) for host in "ab"]
        await asyncio.gather(*pages)
    for host in ("a.example", "b.example"):
        at = [when for name, when in times if name == host]
        assert len(at) == 3
        assert all(later - earlier > 0.3 for earlier, later in itertools.pairwise(at))


async def test_the_wait_for_its_turn_is_no_part_of_a_page_s_time() -> None:
    async with reading(lambda _: Reply(body=PAGE), host_seconds=0.8, seconds=1.0) as (fetcher, _, _):
        pages = await asyncio.gather(*(fetcher.read(f"http://ok.example/{i}") for i in range(4)))
    assert len(pages) == 4


async def test_a_short_pause_that_a_host_asks_for_is_waited_for_and_a_long_one_not() -> None:
    replies = [Reply(status=503, headers={"Retry-After": "1"}), Reply(body=PAGE)]
    async with reading(lambda _: replies.pop(0)) as (fetcher, site, _):
        assert (await fetcher.read("http://ok.example/")).title == "Harbour news"
        assert len(site.requests) == 2
    async with reading(lambda _: Reply(status=429, headers={"Retry-After": "600"})) as (fetcher, site, _):
        for _ in range(2):
            with pytest.raises(DependencyBusyError):
                await fetcher.read("http://ok.example/")
        assert len(site.requests) == 1


async def test_robots_txt_is_asked_for_once_and_respected() -> None:
    rules = "User-agent: *\nDisallow: /\n\nUser-agent: Trivet\nDisallow: /secret\nAllow: /secret/open\n"
    async with reading(robots_or(lambda _: Reply(body=PAGE), rules), robots=True) as (fetcher, site, _):
        await fetcher.read("http://ok.example/page")
        await fetcher.read("http://ok.example/secret/open.html")
        for path in ("/secret", "/secret/files?a=1"):
            with pytest.raises(PageError, match=r"robots\.txt keeps it from us"):
                await fetcher.read(f"http://ok.example{path}")
        assert [request.target for request in site.requests] == ["/robots.txt", "/page", "/secret/open.html"]


async def test_robots_txt_of_a_redirect_s_host_counts_too() -> None:
    def handle(request: Request) -> Reply:
        if request.target == "/robots.txt":
            closed = request.headers["host"] == "closed.example"
            return Reply(headers={"Content-Type": "text/plain"}, body=b"User-agent: *\nDisallow: /" if closed else b"")
        return Reply(status=301, headers={"Location": "http://closed.example/page"})

    async with reading(handle, robots=True) as (fetcher, site, _):
        with pytest.raises(PageError, match=r"robots\.txt"):
            await fetcher.read("http://ok.example/page")
        assert [request.headers["host"] for request in site.requests] == ["ok.example", "ok.example", "closed.example"]


@pytest.mark.parametrize(
    ("reply", "allowed"),
    [
        (Reply(status=404), True),
        (Reply(status=403), True),
        (Reply(body=b"<html>User-agent: *<br>Disallow: /</html>"), True),
        (Reply(body=b"\xff\xfe\x00" * 100), True),
        (Reply(body=b"User-agent: *\nDisallow: /\n" + b"#" * 2_000_000), False),
        (Reply(status=302, headers={"Location": "http://127.0.0.1/robots.txt"}), True),
        (Reply(status=302, headers={"Location": "/robots.txt"}), True),
        (Reply(status=500), False),
        (Reply(status=429), False),
        (Reply(raw=b""), False),
    ],
)
async def test_robots_txt_that_is_none(reply: Reply, *, allowed: bool) -> None:
    def handle(request: Request) -> Reply:
        return reply if request.target == "/robots.txt" else Reply(body=PAGE)

    async with reading(handle, robots=True) as (fetcher, _, network):
        if allowed:
            await fetcher.read("http://ok.example/page")
        else:
            with pytest.raises(PageError, match=r"robots\.txt"):
                await fetcher.read("http://ok.example/page")
        assert set(network.asked) == {f"{PUBLIC}:80"}


async def test_a_page_that_has_not_changed_is_not_sent_again() -> None:
    def handle(request: Request) -> Reply:
        known = request.headers.get("if-none-match") == '"v1"'
        return Reply(status=304, headers={}) if known else Reply(headers={**HTML, "ETag": '"v1"'}, body=PAGE)

    async with reading(handle) as (fetcher, site, _):
        first = await fetcher.read("http://ok.example/page")
        assert await fetcher.read("http://ok.example/page") == first
        assert [request.headers.get("if-none-match") for request in site.requests] == [None, '"v1"']
        await fetcher.read("http://ok.example/other")
        assert "if-none-match" not in site.requests[2].headers


async def test_a_304_that_nobody_asked_for_is_no_page() -> None:
    assert isinstance(await outcome(Reply(status=304, headers={})), DependencyError)


# --- where it may go ----------------------------------------------------------------------------------------------


def payloads(name: str) -> list[str]:
    cases = [json.loads(line) for line in (VECTORS / name).read_text(encoding="utf-8").splitlines()]
    return [case.get("url") or case["addr"] for case in cases if case["verdict"] == "block"]


async def test_no_payload_is_connected_to_directly_by_redirect_or_by_its_name() -> None:
    addresses = payloads("ssrf_addresses.jsonl")
    urls = payloads("ssrf_urls.jsonl") + [f"http://[{a}]/" if ":" in a else f"http://{a}/" for a in addresses]
    location = ""
    resolved: list[str] = []

    async def resolve(host: str, _port: int) -> list[str]:
        return resolved if host == "inside.example" else [PUBLIC]

    async with reading(lambda _: Reply(status=302, headers={"Location": location}), resolve, robots=False) as (
        fetcher,
        site,
        network,
    ):
        for url in urls:
            with pytest.raises(DependencyError):
                await fetcher.read(url)
        assert site.requests == []
        for location in urls:
            if location.isascii() and location.isprintable():
                with pytest.raises(DependencyError):
                    await fetcher.read("http://ok.example/")
        assert set(network.asked) <= {f"{PUBLIC}:80"}
        assert all(request.headers["host"] == "ok.example" for request in site.requests)
        for address in addresses:
            resolved = [address]
            with pytest.raises((AddressError, DependencyDownError)):
                await fetcher.read("http://inside.example/")
        assert set(network.asked) <= {f"{PUBLIC}:80"}
    assert len(urls) > 60


URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/{0,3}[^\s`\"<>]+|//[^\s`\"<>]+")
INSIDE = re.compile(
    r"(?:localhost|localtest\.me|localdomain\.pw|spoofed|rbndr|1u\.ms|internal|nip\.io|metadata|instance-data)"
)


def collected(data_dir: Path) -> list[str]:
    """Every URL of the payload collections, and every line that may be taken for one."""
    folder = data_dir / "fuzz" / "payloadsallthethings"
    texts = [
        (folder / name).read_text(encoding="utf-8")
        for name in ("ssrf_README.md", "ssrf_cloud.md", "dns_rebinding.md", "open_redirect.txt")
    ]
    cases = json.loads((data_dir / "fuzz" / "urltestdata" / "urltestdata.json").read_text(encoding="utf-8"))
    inputs = [case["input"] for case in cases if isinstance(case, dict)]
    found = [url for text in texts for url in (*URL.findall(text), *text.splitlines()[:5000])]
    return list(dict.fromkeys([*found, *inputs]))


class Recording(ToSite):
    """Nothing speaks TLS here."""

    async def connect_tcp(self, host: str, port: int, *args: Any, **kwargs: Any) -> httpcore.AsyncNetworkStream:
        if port != 80:
            self.asked.append(f"{host}:{port}")
            raise httpcore.ConnectError("no TLS here")
        return await super().connect_tcp(host, port, *args, **kwargs)


async def as_attackers_wish(host: str, _port: int) -> list[str]:
    """Numbers as the operating system reads them, names of the inside to the inside, all others to the public."""
    try:
        return [str(socket.getaddrinfo(host, 80, flags=socket.AI_NUMERICHOST)[0][4][0])]
    except (OSError, UnicodeError):
        return ["169.254.169.254"] if INSIDE.search(host) else [PUBLIC]


@pytest.mark.data
@pytest.mark.slow
async def test_no_collected_payload_gets_through_directly_or_by_redirect(data_dir: Path) -> None:
    location = ""

    def handle(request: Request) -> Reply:
        if request.headers["host"] == "first.example":
            return Reply(status=302, headers={"Location": location})
        return Reply(body=PAGE)

    urls = collected(data_dir)
    async with serving(handle) as site:
        network = Recording(site.port)
        fetcher = WebFetcher(
            resolve=as_attackers_wish, backend=network, reader=SHARED[0], host_seconds=0, respect_robots=False
        )
        refused = 0
        for url in urls:
            ways = [url]
            if url.isprintable() and (sent := url.encode("utf-8").decode("latin-1")).isprintable():
                location = sent
                ways.append("http://first.example/")
            for way in ways:
                try:
                    await fetcher.read(way)
                except DependencyError:
                    refused += 1
        await fetcher.close()
    reached = {place.rpartition(":")[0] for place in network.asked}
    assert [address for address in reached if address_refusal(address)] == []
    assert {place.rpartition(":")[2] for place in network.asked} <= {"80", "443"}
    assert len(urls) > 500
    assert refused > 500


async def test_robots_txt_is_no_way_into_the_private_network() -> None:
    async def resolve(host: str, _port: int) -> list[str]:
        return ["10.0.0.1"] if host == "inside.example" else [PUBLIC]

    reply = Reply(status=302, headers={"Location": "http://inside.example/robots.txt"})
    async with reading(lambda _: reply, resolve, robots=True) as (fetcher, _, network):
        with pytest.raises(DependencyError):
            await fetcher.read("http://ok.example/page")
        with pytest.raises(AddressError):
            await fetcher.read("http://inside.example/page")
    assert network.asked == [f"{PUBLIC}:80"]
