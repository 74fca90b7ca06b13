"""One HTTP request for a page: only to checked addresses, only so much. Proxies from the environment are not used:
the address check would be theirs to make.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import AsyncIterable, Callable, Mapping
from dataclasses import dataclass

import certifi
import httpcore

from graph.breaker import retry_after
from graph.errors import DependencyBusyError
from server.web.addresses import BLOCKED_DOMAIN, AddressError, WebAddress, nothing_blocked
from server.web.decoding import decompressed
from server.web.network import CheckedNetwork, Resolve, SystemResolver
from server.web.page_check import PageError

DEPENDENCY = "web"
MAX_HOSTS_WAITED_FOR = 1000
REDIRECTS = frozenset({301, 302, 303, 307, 308})
ANY_TYPE = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Download:
    """An answer. Header names are in lower case; `body` is unpacked, and empty for a redirect or a 304."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""

    @property
    def location(self) -> str:
        """Where it redirects to; "" where it does not."""
        return self.headers.get("location", "") if self.status in REDIRECTS else ""

    @property
    def kind(self) -> str:
        return self.headers.get("content-type", "").split(";")[0].strip().lower()


class Downloader:
    """Nothing is sent but the request: no cookies, no referrer. A host that asked for a pause gets it."""

    def __init__(
        self,
        *,
        allow_private: bool = False,
        blocked: Callable[[str], bool] = nothing_blocked,
        resolve: Resolve | None = None,
        backend: httpcore.AsyncNetworkBackend | None = None,
    ) -> None:
        """`blocked` is asked for each URL, also for one that a redirect leads to."""
        self._blocked = blocked
        self._wait_until: dict[str, float] = {}
        self._network = CheckedNetwork(
            resolve or SystemResolver(), backend or httpcore.AnyIOBackend(), allow_private=allow_private
        )
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=ssl.create_default_context(cafile=certifi.where()),
            max_connections=20,
            max_keepalive_connections=10,
            keepalive_expiry=15.0,
            # httpcore does not tell an HTTP/2 server that the rest of a body is not wanted. After a page that was cut
            # off, what nobody reads uses up all that the connection lets through, and the next page never comes.
            http2=False,
            network_backend=self._network,
        )

    async def get(
        self, address: WebAddress, *, limits: Mapping[str, int], headers: Mapping[str, str] = {}, cut: bool = False
    ) -> Download:
        """One request; a redirect is returned, not followed. `limits`: content type → bytes of its decoded body, of
        which more is an error, or cut off. Raises `DependencyError`, and what httpcore raises."""
        if self._blocked(address.url):
            raise AddressError(address.url, BLOCKED_DOMAIN)
        self._check_wait(address.host)
        request = self._pool.stream("GET", _core_url(address), headers=_headers(address, headers))
        async with request as response:
            found = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}
            download = Download(status=response.status, headers=found)
            if download.location or response.status == 304:
                return download
            self._check_status(address.host, response.status, found)
            limit = limits.get(download.kind, limits.get(ANY_TYPE, 0))
            if not limit:
                why = f"it is {download.kind[:60] or 'of no named type'}, not HTML or plain text"
                raise PageError(address.host, why)
            body = await _body(address.host, response.aiter_stream(), found, limit, cut=cut)
        return Download(status=download.status, headers=found, body=body)

    async def close(self) -> None:
        await self._pool.aclose()
        self._network.close()

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
            raise StatusError(host, status, f"its host does not let us in ({status})")
        if not 200 <= status < 300:
            raise StatusError(host, status, f"its host answers with status {status}")

    def _check_wait(self, host: str) -> None:
        wait = self._wait_until.get(host, 0.0) - time.monotonic()
        if wait > 0:
            raise DependencyBusyError(
                f"{host} asked for a pause, {wait:.0f} s of it are left.", dependency=DEPENDENCY, retry_after=wait
            )


class StatusError(PageError):
    """An answer that is an error."""

    def __init__(self, host: str, status: int, why: str) -> None:
        super().__init__(host, why)
        self.status = status


async def _body(host: str, pieces: AsyncIterable[bytes], headers: Mapping[str, str], limit: int, *, cut: bool) -> bytes:
    too_large = PageError(host, f"it is larger than {limit:,} bytes")
    length = headers.get("content-length", "")
    if length.isascii() and length.isdigit() and int(length[:20]) > limit and not cut:
        raise too_large
    body = bytearray()
    async for piece in decompressed(pieces, headers.get("content-encoding", ""), limit):
        body += piece
        if len(body) > limit:
            if cut:
                break
            raise too_large
    return bytes(body[:limit])


def _core_url(address: WebAddress) -> httpcore.URL:
    host = f"[{address.host}]" if ":" in address.host else address.host
    return httpcore.URL(scheme=address.scheme, host=host, port=address.port, target=address.target)


def _headers(address: WebAddress, more: Mapping[str, str]) -> Mapping[bytes | str, bytes | str]:
    default = 443 if address.scheme == "https" else 80
    host = f"[{address.host}]" if ":" in address.host else address.host
    sent: dict[bytes | str, bytes | str] = {
        "Host": host if address.port == default else f"{host}:{address.port}",
        "User-Agent": "Trivet (self-hosted question answering)",
        "Accept": "text/html, application/xhtml+xml, text/plain;q=0.8",
        "Accept-Encoding": "gzip",
    }
    return sent | dict(more.items())
