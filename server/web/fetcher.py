"""Fetches web pages for their text: only from checked addresses, only so much, only for so long.

Proxies from the environment are not used: the address check would be theirs to make.
"""

from __future__ import annotations

import asyncio
import re
import ssl
import time
from collections.abc import AsyncIterable, Callable, Mapping

import certifi
import httpcore

from graph.breaker import retry_after
from graph.errors import DependencyBusyError, DependencyDownError, DependencyFaultError
from ingestion.sources.reply_body import decode
from server.web.addresses import BLOCKED_DOMAIN, AddressError, WebAddress, follow, nothing_blocked, parse_url
from server.web.decoding import decompressed, visible
from server.web.network import CheckedNetwork, Resolve, SystemResolver
from server.web.reader import PageReader, Readable

DEPENDENCY = "web"
MAX_REDIRECTS = 5
MAX_HOSTS_WAITED_FOR = 1000
READABLE_TYPES = frozenset({"text/html", "application/xhtml+xml", "text/plain"})
REDIRECTS = frozenset({301, 302, 303, 307, 308})
LEAST_CHARS = 35
"""Shorter texts are no page (mission.md §1.9 draws the same line for posts)."""
LOGIN_CHARS = 1000
"""A page that asks for a password and says no more than this is a login page."""
WALL = re.compile(
    r"just a moment|attention required|access denied|are you (?:a )?(?:human|robot)|captcha|verify you are human"
    r"|(?:log|sign) ?in\b|enable javascript|403 forbidden|404 not found|page not found",
    re.IGNORECASE,
)
"""Titles of what stands in place of a page; believed only where there is little text."""


class WebFetcher:
    """Pages of the open web as text. Nothing is sent but the request: no cookies, no referrer."""

    def __init__(
        self,
        *,
        seconds: float = 10.0,
        max_bytes: int = 5_000_000,
        allow_private: bool = False,
        blocked: Callable[[str], bool] = nothing_blocked,
        resolve: Resolve | None = None,
        backend: httpcore.AsyncNetworkBackend | None = None,
        reader: PageReader | None = None,
    ) -> None:
        """`seconds` is for a whole page, redirects and reading included; `max_bytes` counts decoded bytes. `blocked` is
        asked for each URL, also for one that a redirect leads to."""
        self._seconds = seconds
        self._max_bytes = max_bytes
        self._allow_private = allow_private
        self._blocked = blocked
        self._reader = reader or PageReader()
        self._owns_reader = reader is None
        self._wait_until: dict[str, float] = {}
        self._network = CheckedNetwork(
            resolve or SystemResolver(), backend or httpcore.AnyIOBackend(), allow_private=allow_private
        )
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=ssl.create_default_context(cafile=certifi.where()),
            max_connections=20,
            max_keepalive_connections=10,
            keepalive_expiry=15.0,
            network_backend=self._network,
        )

    async def fetch(self, url: str) -> tuple[str, str]:
        """(title, main text)."""
        address = parse_url(url, allow_private=self._allow_private)
        self._reader.prepare()
        try:
            async with asyncio.timeout(self._seconds):
                return await self._read(address)
        except (TimeoutError, httpcore.TimeoutException):
            raise DependencyDownError(
                f"{address.host} did not send the page within {self._seconds:g} s.", dependency=DEPENDENCY
            ) from None
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.UnsupportedProtocol, OSError) as error:
            raise DependencyDownError(
                f"{address.host} cannot be reached ({type(error).__name__}).", dependency=DEPENDENCY
            ) from error

    async def close(self) -> None:
        await self._pool.aclose()
        self._network.close()
        if self._owns_reader:
            await self._reader.close()

    async def _read(self, address: WebAddress) -> tuple[str, str]:
        seen: set[str] = set()
        while address.url not in seen and len(seen) <= MAX_REDIRECTS:
            seen.add(address.url)
            if self._blocked(address.url):
                raise AddressError(address.url, BLOCKED_DOMAIN)
            self._check_wait(address.host)
            request = self._pool.stream("GET", _core_url(address), headers=_headers(address))
            async with request as response:
                headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}
                if response.status in REDIRECTS and "location" in headers:
                    address = follow(address, headers["location"], allow_private=self._allow_private)
                    continue
                self._check_status(address.host, response.status, headers)
                kind = _content_type(headers)
                body = await self._body(response.aiter_stream(), headers)
            return await self._text(address, kind, decode(body, headers.get("content-type", "")))
        raise _fault(f"{address.host} redirects in circles or more than {MAX_REDIRECTS} times")

    async def _body(self, pieces: AsyncIterable[bytes], headers: Mapping[str, str]) -> bytes:
        length = headers.get("content-length", "")
        if length.isascii() and length.isdigit() and int(length[:20]) > self._max_bytes:
            raise _fault(f"the page is larger than {self._max_bytes:,} bytes")
        body = bytearray()
        async for piece in decompressed(pieces, headers.get("content-encoding", ""), self._max_bytes):
            body += piece
            if len(body) > self._max_bytes:
                raise _fault(f"the page is larger than {self._max_bytes:,} bytes")
        return bytes(body)

    async def _text(self, address: WebAddress, kind: str, text: str) -> tuple[str, str]:
        if kind == "text/plain":
            page = Readable(title=address.target.rsplit("/", 1)[-1] or address.host, text=visible(text).strip())
        else:
            page = await self._reader.read(text)
        if page.problem:
            raise _fault(f"the page of {address.host} was left out: {page.problem}")
        if page.asks_password and len(page.text) < LOGIN_CHARS:
            raise _fault(f"{address.host} shows a login page")
        if len(page.text) < LOGIN_CHARS and WALL.search(page.title):
            raise _fault(f"{address.host} shows {page.title[:60]!r} instead of a page")
        if len(page.text) < LEAST_CHARS:
            raise _fault(f"there is nothing to read on the page of {address.host}")
        return page.title or address.host, page.text

    def _check_status(self, host: str, status: int, headers: Mapping[str, str]) -> None:
        if status == 429 or (status == 503 and "retry-after" in headers):
            wait = retry_after(headers)
            if len(self._wait_until) >= MAX_HOSTS_WAITED_FOR:
                self._wait_until.clear()
            self._wait_until[host] = time.monotonic() + wait
            raise DependencyBusyError(
                f"{host} asks for a pause of {wait:g} s ({status}).", dependency=DEPENDENCY, retry_after=wait
            )
        if status in {401, 403, 407}:
            raise _fault(f"{host} does not let us in ({status})")
        if not 200 <= status < 300:
            raise _fault(f"{host} answers with status {status}")

    def _check_wait(self, host: str) -> None:
        wait = self._wait_until.get(host, 0.0) - time.monotonic()
        if wait > 0:
            raise DependencyBusyError(
                f"{host} asked for a pause, {wait:.0f} s of it are left.", dependency=DEPENDENCY, retry_after=wait
            )


def _core_url(address: WebAddress) -> httpcore.URL:
    host = f"[{address.host}]" if ":" in address.host else address.host
    return httpcore.URL(scheme=address.scheme, host=host, port=address.port, target=address.target)


def _headers(address: WebAddress) -> Mapping[bytes | str, bytes | str]:
    default = 443 if address.scheme == "https" else 80
    host = f"[{address.host}]" if ":" in address.host else address.host
    return {
        "Host": host if address.port == default else f"{host}:{address.port}",
        "User-Agent": "Trivet (self-hosted question answering)",
        "Accept": "text/html, application/xhtml+xml, text/plain;q=0.8",
        "Accept-Encoding": "gzip",
    }


def _content_type(headers: Mapping[str, str]) -> str:
    kind = headers.get("content-type", "").split(";")[0].strip().lower()
    if kind not in READABLE_TYPES:
        raise _fault(f"the page is {kind[:60] or 'of no named type'}, not HTML or plain text")
    return kind


def _fault(why: str) -> DependencyFaultError:
    return DependencyFaultError(f"{why[:1].upper()}{why[1:]}.", dependency=DEPENDENCY)
