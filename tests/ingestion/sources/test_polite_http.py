"""HTTP for sources: what it waits for, what it refuses, and what it never says."""

from __future__ import annotations

import asyncio
import gzip
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from graph.errors import SourceError
from ingestion.sources.polite_http import USER_AGENT, BusyFault, PageFault, PoliteClient, Reply
from tests.server.web import site as web
from tests.server.web.site import Request, Site, serving


async def ask(url: str, *, naps: list[float] | None = None, **options: Any) -> Reply:
    """One GET by a client of its own. `naps` gets the seconds that it would have slept."""
    asked = {name: options.pop(name) for name in ("params", "headers", "same_host", "types") if name in options}
    taken: list[float] = [] if naps is None else naps

    def run() -> Reply:
        with closing(PoliteClient(sleep=taken.append, **options)) as client:
            return client.get(url, **asked)

    return await asyncio.to_thread(run)


@contextmanager
def refused(*words: str) -> Iterator[pytest.ExceptionInfo[PageFault]]:
    with pytest.raises(PageFault) as raised:
        yield raised
    for word in words:
        assert word in raised.value.reason
    assert "\n" not in raised.value.reason


def in_turn(*replies: web.Reply) -> Callable[[Request], web.Reply]:
    """One after the other; the last again and again."""
    left = list(replies)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


OK = web.Reply(body=b"fine")


async def test_a_page() -> None:
    async with serving(in_turn(OK)) as site:
        reply = await ask(f"{site.url}/a?b=1", params={"c": "2 3"}, headers={"X-Own": "x"})
    assert (reply.status, reply.text, reply.url) == (200, "fine", f"{site.url}/a?b=1&c=2+3")
    assert reply.content_type == "text/html"
    (request,) = site.requests
    assert request.target == "/a?b=1&c=2+3"
    assert request.headers["user-agent"] == USER_AGENT
    assert USER_AGENT.startswith("Trivet/")
    assert request.headers["x-own"] == "x"


async def test_not_modified_is_an_answer() -> None:
    async with serving(in_turn(web.Reply(status=304, headers={"ETag": '"a"'}))) as site:
        reply = await ask(site.url, headers={"If-None-Match": '"a"'})
    assert (reply.status, reply.headers["etag"]) == (304, '"a"')


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 451, 501])
async def test_a_refusal_is_final(status: int) -> None:
    async with serving(in_turn(web.Reply(status=status, body=b"the secret reason"))) as site:
        with refused(f"answers with status {status}") as raised:
            await ask(f"{site.url}/a?key=hidden")
    assert raised.value.status == status
    assert "secret" not in raised.value.reason
    assert "hidden" not in raised.value.reason
    assert len(site.requests) == 1


@pytest.mark.parametrize(
    "bad", [web.Reply(status=500), web.Reply(status=502), web.Reply(raw=b""), web.Reply(status=429)]
)
async def test_what_may_pass_is_tried_again_ever_later(bad: web.Reply) -> None:
    naps: list[float] = []
    async with serving(in_turn(bad, bad, bad, OK)) as site:
        assert (await ask(site.url, naps=naps)).text == "fine"
    assert [round(nap) for nap in naps[:1]] == [1]
    assert naps == sorted(naps)
    assert len(naps) == 3
    assert 4 <= sum(naps) <= 9


async def test_in_the_end_it_is_given_up() -> None:
    async with serving(in_turn(web.Reply(status=500))) as site:
        with refused("answers with status 500"):
            await ask(site.url, tries=3)
    assert len(site.requests) == 3


@pytest.mark.parametrize("status", [429, 503])
async def test_retry_after_is_honoured(status: int) -> None:
    naps: list[float] = []
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=50), usegmt=True)
    replies = [web.Reply(status=status, headers={"Retry-After": after}) for after in ("7", date, "0")]
    async with serving(in_turn(*replies, OK)) as site:
        assert (await ask(site.url, naps=naps, tries=1)).text == "fine"
    assert naps[0] == 7
    assert 45 <= naps[1] <= 50
    assert naps[2] == 1


async def test_a_longer_pause_is_not_waited_for_and_not_broken() -> None:
    async with serving(in_turn(web.Reply(status=429, headers={"Retry-After": "100"}))) as site:
        naps: list[float] = []

        def run() -> list[PageFault]:
            faults: list[PageFault] = []
            with closing(PoliteClient(sleep=naps.append)) as client:
                for _ in range(3):
                    with pytest.raises(BusyFault) as raised:
                        client.get(site.url)
                    faults.append(raised.value)
            return faults

        faults = await asyncio.to_thread(run)
    assert naps == [100]
    assert len(site.requests) == 2, "the host asked for a pause: it gets one"
    assert "asks for a pause of 100 s" in faults[0].reason
    assert "asked for a pause" in faults[2].reason


async def test_the_delay_lies_between_requests() -> None:
    naps: list[float] = []

    def run(site: Site) -> None:
        with closing(PoliteClient(delay=5, sleep=naps.append)) as client:
            client.get(site.url)
            client.get(site.url)

    async with serving(in_turn(OK)) as site:
        await asyncio.to_thread(run, site)
    assert len(naps) == 1
    assert 4.5 < naps[0] <= 5


async def test_a_dripping_host_is_cut_off_after_the_whole_time() -> None:
    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        try:
            for byte in b"HTTP/1.1 200 OK\r\nX: " + b"x" * 1000:
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(0.05)
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(drip, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    started = time.monotonic()
    with refused("was not sent within 0.6 s"):
        await ask(f"http://127.0.0.1:{port}/", seconds=0.6, tries=1)
    assert time.monotonic() - started < 1.5
    server.close()
    await server.wait_closed()


async def test_a_dripping_body_too() -> None:
    async with serving(in_turn(web.Reply(headers={"Content-Length": "5"}, stall=5))) as site:
        with refused("was not sent within 0.5 s"):
            await ask(site.url, seconds=0.5, tries=1)


async def test_too_large() -> None:
    async with serving(in_turn(web.Reply(body=b"x" * 1001))) as site:
        with refused("is larger than 1,000 bytes"):
            await ask(site.url, max_bytes=1000)


async def test_a_gzip_bomb_is_not_unpacked() -> None:
    bomb = gzip.compress(b"\0" * 50_000_000)
    async with serving(in_turn(web.Reply(headers={"Content-Encoding": "gzip"}, body=bomb))) as site:
        with refused("is larger than 1,000,000 bytes"):
            await ask(site.url, max_bytes=1_000_000)


@pytest.mark.parametrize(("packing", "pack"), [("gzip", gzip.compress), ("deflate", zlib.compress), ("", bytes)])
async def test_packings(packing: str, pack: Callable[[bytes], bytes]) -> None:
    body = b"word " * 10_000
    async with serving(in_turn(web.Reply(headers={"Content-Encoding": packing}, body=pack(body)))) as site:
        assert (await ask(site.url)).body == body


@pytest.mark.parametrize(
    ("packing", "body", "words"),
    [
        ("br", b"x", "is packed in a way that was not asked for"),
        ("gzip", b"no gzip at all", "is not packed the way it says"),
        ("gzip", gzip.compress(b"word " * 1000)[:-20], "breaks off in the middle"),
    ],
)
async def test_broken_packings(packing: str, body: bytes, words: str) -> None:
    async with serving(in_turn(web.Reply(headers={"Content-Encoding": packing}, body=body))) as site:
        with refused(words):
            await ask(site.url)


async def test_a_body_cut_short() -> None:
    cut = web.Reply(raw=b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
    async with serving(in_turn(cut)) as site:
        with refused("the connection to 127.0.0.1", "broke"):
            await ask(site.url, tries=2)
    assert len(site.requests) == 2


@pytest.mark.parametrize("raw", [b"garbage\r\n\r\n", b"HTTP/9.9 abc\r\n\r\n", b"\0" * 100, b"HTTP/1.1 99999 x\r\n\r\n"])
async def test_what_is_no_http(raw: bytes) -> None:
    async with serving(in_turn(web.Reply(raw=raw))) as site:
        with refused("127.0.0.1"):
            await ask(site.url, tries=1)


async def test_types() -> None:
    async with serving(in_turn(web.Reply(headers={"Content-Type": "image/png; a=b"}))) as site:
        with refused("is image/png, not text/html"):
            await ask(site.url, types=["text/html"])


async def test_redirects_on_the_same_host() -> None:
    def handle(request: Request) -> web.Reply:
        return OK if request.target == "/c" else web.Reply(status=302, headers={"Location": "/c"})

    async with serving(handle) as site:
        reply = await ask(f"{site.url}/a")
    assert reply.url == f"{site.url}/c"


async def test_redirects_without_end() -> None:
    async with serving(in_turn(web.Reply(status=302, headers={"Location": "/a"}))) as site:
        with refused("redirects in circles or more than 5 times"):
            await ask(f"{site.url}/a")
    assert len(site.requests) == 6


@pytest.mark.parametrize(
    ("location", "words"),
    [
        ("http://user:hidden@login.example/x?key=hidden", "leads away, to http://login.example/x"),
        ("//login.example/", "leads away, to http://login.example/"),
        ("file:///etc/passwd", 'begins with "file:"'),
        ("http://[", "leads away, to http://%5b"),
        ("http://xn--/", "cannot be asked for"),
        ("http://127.0.0.1:1/", "leads away, to http://127.0.0.1:1/"),
    ],
)
async def test_redirects_elsewhere(location: str, words: str) -> None:
    async with serving(in_turn(web.Reply(status=302, headers={"Location": location}))) as site:
        with refused(words) as raised:
            await ask(site.url)
    assert "hidden" not in raised.value.reason


async def test_another_host_gets_no_password() -> None:
    async with serving(in_turn(OK)) as other:
        there = other.url.replace("127.0.0.1", "localhost")
        async with serving(in_turn(web.Reply(status=302, headers={"Location": f"{there}/x"}))) as site:
            url = site.url.replace("//", "//user:hidden@")
            reply = await ask(url, same_host=False, headers={"Api-Key": "hidden"})
    assert site.requests[0].headers["authorization"].startswith("Basic ")
    assert site.requests[0].headers["api-key"] == "hidden"
    assert not {"authorization", "api-key"} & other.requests[0].headers.keys()
    assert reply.url == f"{there}/x"


async def test_a_password_in_the_url_is_never_told() -> None:
    async with serving(in_turn(web.Reply(status=401))) as site:
        with refused("answers with status 401") as raised:
            await ask(site.url.replace("//", "//user:hidden@"))
    assert "hidden" not in raised.value.reason
    assert "user" not in raised.value.reason


async def test_nobody_there() -> None:
    naps: list[float] = []
    with pytest.raises(SourceError, match=r"^127\.0\.0\.1:9 cannot be reached \(no connection\); check the URL"):
        await ask("http://user:hidden@127.0.0.1:9/", naps=naps)
    assert len(naps) == 3


async def test_a_host_that_a_redirect_leads_to_is_not_the_wiki() -> None:
    async with serving(in_turn(web.Reply(status=302, headers={"Location": "http://127.0.0.1:9/"}))) as site:
        with refused("it leads to 127.0.0.1:9, which cannot be reached"):
            await ask(site.url, same_host=False)


async def test_no_tls_there() -> None:
    async def refuse(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    with pytest.raises(SourceError, match=r"cannot be trusted \(no TLS there\)"):
        await ask(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/", tries=1)
    server.close()
    await server.wait_closed()


@pytest.mark.parametrize(
    "url",
    ["ftp://a/", "javascript:alert(1)", "", "nonsense", "http://", "http://xn--/", "http://a:99999/"],
)
async def test_what_is_no_url(url: str) -> None:
    with refused("its URL"):
        await ask(url, tries=1)


@pytest.mark.parametrize(
    ("body", "kind", "text"),
    [
        ("é".encode(), "text/html", "é"),
        ("é".encode("latin-1"), "text/html; charset=ISO-8859-1", "é"),
        ("é".encode("latin-1"), "text/html", "é"),
        (b'<meta charset="koi8-r">' + "вода".encode("koi8-r"), "text/html", '<meta charset="koi8-r">вода'),
        ("é".encode(), "text/html; charset=klingon", "é"),
        ("é".encode(), "text/html; charset=rot13", "é"),
        ("é".encode("utf-16"), "text/html", "\ufeffé"),
        (b"\xef\xbb\xbf" + "é".encode(), "text/html; charset=latin-1", "é"),
        (b"\x81\xff", "text/html", "\ufffdÿ"),
    ],
)
def test_charsets(body: bytes, kind: str, text: str) -> None:
    assert Reply(200, {"content-type": kind}, body, "").text.lstrip("\ufeff") == text.lstrip("\ufeff")


async def test_no_cookies_are_kept_unless_asked_for() -> None:
    def run(site: Site, keep: bool) -> None:
        with closing(PoliteClient(keep_cookies=keep)) as client:
            client.get(site.url)
            client.get(site.url)

    for keep in (False, True):
        async with serving(in_turn(web.Reply(headers={"Set-Cookie": "a=b"}))) as site:
            await asyncio.to_thread(run, site, keep)
        assert ("cookie" in site.requests[1].headers) is keep
