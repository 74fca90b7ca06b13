"""HTTP for sources: one request at a time, as slow as the host wishes, bounded in bytes, seconds and redirects."""

from __future__ import annotations

import random
import re
import ssl
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import NoReturn

import certifi
import httpcore
import httpx

from graph.breaker import retry_after
from graph.errors import SourceError
from ingestion.sanitize import printable_name
from ingestion.sources.reply_body import decode, unpacked

MAX_REDIRECTS = 5
MAX_ASKED_WAIT = 120.0
"""Seconds of `Retry-After` that one request waits for, in total."""
MAX_BACKOFF = 30.0
REDIRECTS = frozenset({301, 302, 303, 307, 308})
FINAL_SERVER_ERRORS = frozenset({501, 505})
"""Asking again would not help."""
USER_AGENT = f"Trivet/{version('trivet')} (+wiki ingestion)"


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer with status 2xx or 304. Header names are in lower case; `body` is unpacked; `url` is the last hop's."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    url: str

    @property
    def text(self) -> str:
        """By the charset that the answer names, else UTF-8, else Windows-1252; never raises."""
        return decode(self.body, self.headers.get("content-type", ""))

    @property
    def content_type(self) -> str:
        return _content_type(self.headers)


class PageFault(Exception):  # noqa: N818 - not an error of the run: one page fails, the run goes on
    """This one request failed. `reason` has no password, key or text from the host in it, and no full stop."""

    def __init__(self, reason: str, *, status: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status
        """The HTTP status, where one came: 404 and 410 say that the page is gone."""


class BusyFault(PageFault):
    """The host asks for a longer pause than is waited for. Until that is over, it is not asked again."""

    def __init__(self, reason: str, *, status: int, wait: float) -> None:
        super().__init__(reason, status=status)
        self.wait = wait


class PoliteClient:
    """For one source. A host that cannot be reached at all raises `SourceError`, all else `PageFault`."""

    def __init__(
        self,
        *,
        delay: float = 0.0,
        seconds: float = 30.0,
        max_bytes: int = 20_000_000,
        tries: int = 4,
        headers: Mapping[str, str] = {},
        keep_cookies: bool = False,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`seconds` are for one try with its redirects; `headers` are sent to the asked host only, never past it."""
        self._delay = delay
        self._seconds = seconds
        self._max_bytes = max_bytes
        self._tries = max(1, tries)
        self._headers = dict(headers)
        self._keep_cookies = keep_cookies
        self._sleep = sleep
        self._lock = threading.Lock()
        self._last = float("-inf")
        self._not_before: dict[str, float] = {}
        self._network = _TimedNetwork()
        self._client = httpx.Client(trust_env=False, timeout=seconds, transport=_TimedTransport(self._network))
        self._client.headers = httpx.Headers({"User-Agent": USER_AGENT, "Accept": "*/*", "Accept-Encoding": "gzip"})

    def get(
        self,
        url: str,
        *,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        same_host: bool = True,
        types: Collection[str] = (),
    ) -> Reply:
        """`params` are added to the URL's own. `types`, if any, are the content types wanted ("text/html")."""
        return self._ask(_Asked("GET", url, params or {}, None, headers or {}, same_host, types))

    def post(
        self,
        url: str,
        *,
        data: Mapping[str, str],
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        same_host: bool = True,
        types: Collection[str] = (),
    ) -> Reply:
        """A form. It may be sent more than once, so it must not be one that changes something."""
        return self._ask(_Asked("POST", url, params or {}, data, headers or {}, same_host, types))

    def close(self) -> None:
        self._client.close()

    def _ask(self, asked: _Asked) -> Reply:
        with self._lock:
            first, auth = _parsed(asked.url, asked.params)
            self._check_pause(first)
            failed, waited = 0, 0.0
            while True:
                try:
                    return self._follow(asked, first, auth)
                except _AgainError as again:
                    pause = again.wait
                    if pause is None:
                        failed += 1
                        if failed >= self._tries:
                            raise again.final from again.__cause__
                        pause = min(2.0 ** (failed - 1), MAX_BACKOFF) * random.uniform(0.75, 1.25)  # noqa: S311
                    else:
                        waited += pause
                        if waited > MAX_ASKED_WAIT:
                            self._refuse(first, again)
                self._sleep(pause)

    def _refuse(self, url: httpx.URL, again: _AgainError) -> NoReturn:
        assert again.wait is not None
        self._not_before[url.host] = time.monotonic() + again.wait
        raise BusyFault(
            f"{_host(url)} asks for a pause of {again.wait:.0f} s (status {again.final_status})",
            status=again.final_status,
            wait=again.wait,
        )

    def _check_pause(self, url: httpx.URL) -> None:
        left = self._not_before.get(url.host, 0.0) - time.monotonic()
        if left > 0:
            raise BusyFault(f"{_host(url)} asked for a pause, of which {left:.0f} s are left", status=429, wait=left)

    def _follow(self, asked: _Asked, url: httpx.URL, auth: tuple[str, str] | None) -> Reply:
        first, method = url, asked.method
        self._network.begin(self._seconds)
        for _ in range(MAX_REDIRECTS + 1):
            own = _same_host(first, url)
            reply = self._once(asked, method, url, auth if own else None, own)
            location = reply.headers.get("location", "")
            if reply.status not in REDIRECTS or not location:
                return reply
            url = _joined(url, location)
            if asked.same_host and not _same_host(first, url):
                raise PageFault(f"{_shown(first)} leads away, to {_shown(url)}", status=reply.status)
            if reply.status not in {307, 308}:
                method = "GET"
        raise PageFault(f"{_shown(first)} redirects in circles or more than {MAX_REDIRECTS} times")

    def _once(self, asked: _Asked, method: str, url: httpx.URL, auth: tuple[str, str] | None, own: bool) -> Reply:
        if (wait := self._last + self._delay - time.monotonic()) > 0:
            self._sleep(wait)
            self._network.extend(wait)
        headers = {**self._headers, **asked.headers} if own else {}
        data = dict(asked.data) if method == "POST" and asked.data is not None else None
        try:
            with _again_if_cut_off(url, self._seconds, own=own):
                request = self._client.build_request(method, url, headers=headers, data=data)
                response = self._client.send(request, stream=True, auth=auth)
                try:
                    return self._read(response, url, asked.types)
                finally:
                    response.close()
        finally:
            self._last = time.monotonic()
            if not self._keep_cookies:
                self._client.cookies.clear()

    def _read(self, response: httpx.Response, url: httpx.URL, types: Collection[str]) -> Reply:
        headers = {name.lower(): value for name, value in response.headers.items()}
        status = response.status_code
        _check_status(status, headers, url)
        if status in REDIRECTS or status == 304:
            return Reply(status, headers, b"", str(url))
        if types and (kind := _content_type(headers)) not in types:
            raise PageFault(f"{_shown(url)} is {printable_name(kind[:60]) or 'of no type'}, not {' or '.join(types)}")
        too_large = PageFault(f"{_shown(url)} is larger than {self._max_bytes:,} bytes")
        length = headers.get("content-length", "")
        if length.isascii() and length.isdigit() and int(length[:20]) > self._max_bytes:
            raise too_large
        body = bytearray()
        try:
            for piece in unpacked(response.iter_raw(), headers.get("content-encoding", ""), self._max_bytes):
                body += piece
                if len(body) > self._max_bytes:
                    raise too_large
        except ValueError as error:
            raise PageFault(f"{_shown(url)} {error}") from error
        return Reply(status, headers, bytes(body), str(url))


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request as the caller wants it."""

    method: str
    url: str
    params: Mapping[str, str]
    data: Mapping[str, str] | None
    headers: Mapping[str, str]
    same_host: bool
    types: Collection[str]


class _AgainError(Exception):
    """Worth another try: after `wait` seconds where the host said so. `final` is raised when there is none left."""

    def __init__(self, final: PageFault | SourceError, *, wait: float | None = None) -> None:
        super().__init__(str(final))
        self.final = final
        self.wait = wait
        self.final_status = final.status if isinstance(final, PageFault) else 0


def _check_status(status: int, headers: Mapping[str, str], url: httpx.URL) -> None:
    if 200 <= status < 300 or status == 304 or (status in REDIRECTS and headers.get("location")):
        return
    fault = PageFault(f"{_shown(url)} answers with status {status}", status=status)
    if status in {429, 503} and "retry-after" in headers:
        raise _AgainError(fault, wait=max(1.0, retry_after(headers)))
    if status == 429 or (status >= 500 and status not in FINAL_SERVER_ERRORS):
        raise _AgainError(fault)
    raise fault


@contextmanager
def _again_if_cut_off(url: httpx.URL, seconds: float, *, own: bool) -> Iterator[None]:
    """`own`: whether it is the asked host, without which nothing can be read."""
    try:
        yield
    except (httpx.ConnectError, httpx.ConnectTimeout) as error:
        if not own:
            raise PageFault(f"it leads to {_host(url)}, which cannot be reached") from error
        raise _AgainError(SourceError(_unreachable(url, error))) from error
    except httpx.TimeoutException as error:
        raise _AgainError(PageFault(f"{_shown(url)} was not sent within {seconds:g} s")) from error
    except (httpx.LocalProtocolError, httpx.UnsupportedProtocol, httpx.InvalidURL, UnicodeError) as error:
        raise PageFault(f"{_shown(url)} cannot be asked for ({type(error).__name__})") from error
    except (httpx.TransportError, httpx.StreamError) as error:
        raise _AgainError(PageFault(f"the connection to {_host(url)} broke ({type(error).__name__})")) from error


def _unreachable(url: httpx.URL, error: Exception) -> str:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            why = getattr(cause, "verify_message", "") or "no TLS there"
            return f"{_host(url)} cannot be trusted ({why}); check the URL, or the certificates of this machine."
        cause = cause.__cause__ or cause.__context__
    why = "no answer in time" if isinstance(error, httpx.ConnectTimeout) else "no connection"
    return f"{_host(url)} cannot be reached ({why}); check the URL, and that the site is up."


def _parsed(url: str, params: Mapping[str, str]) -> tuple[httpx.URL, tuple[str, str] | None]:
    """The URL without its user and password, and these."""
    try:
        parsed = httpx.URL(url)
        if params:
            parsed = parsed.copy_merge_params(dict(params))
        host = parsed.host
    except (httpx.InvalidURL, UnicodeError, ValueError) as error:
        raise PageFault("its URL is not valid") from error
    if parsed.scheme not in {"http", "https"}:
        raise PageFault(f'its URL begins with "{printable_name(parsed.scheme[:20])}:", not with http: or https:')
    if not host or (parsed.port or 0) > 65_535:
        raise PageFault("its URL names no host" if not host else "its URL names a port that cannot be")
    auth = (parsed.username, parsed.password) if parsed.userinfo else None
    return parsed.copy_with(userinfo=b"", fragment=None), auth


def _joined(url: httpx.URL, location: str) -> httpx.URL:
    try:
        joined = url.join(location)
    except (httpx.InvalidURL, UnicodeError, ValueError) as error:
        raise PageFault(f"{_shown(url)} leads to a URL that is not valid") from error
    return _parsed(str(joined), {})[0]


def _same_host(first: httpx.URL, url: httpx.URL) -> bool:
    """An upgrade from http to https is no other host; a downgrade is, so that no password leaks."""
    if first.host.lower() != url.host.lower():
        return False
    return (first.scheme, first.port) == (url.scheme, url.port) or (first.scheme, url.scheme) == ("http", "https")


def _shown(url: httpx.URL) -> str:
    """For messages: without the query, where keys may be."""
    return printable_name(f"{url.scheme}://{_host(url)}{url.path}"[:200])


def _host(url: httpx.URL) -> str:
    return printable_name(url.netloc.decode("ascii", "replace"))


def _content_type(headers: Mapping[str, str]) -> str:
    return re.split("[;,]", headers.get("content-type", ""), maxsplit=1)[0].strip().lower()


class _TimedNetwork(httpcore.NetworkBackend):
    """Sockets that share one deadline: httpx has time limits for each read only, so a host could drip for hours."""

    def __init__(self) -> None:
        self._plain = httpcore.SyncBackend()
        self._end = 0.0

    def begin(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    def extend(self, seconds: float) -> None:
        self._end += seconds

    def left(self, timeout: float | None, error: type[httpcore.TimeoutException]) -> float:
        left = self._end - time.monotonic()
        if left <= 0:
            raise error("the time is up")
        return left if timeout is None else min(timeout, left)

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        left = self.left(timeout, httpcore.ReadTimeout)  # if none is left, earlier hops took it: the host is there
        return _TimedStream(self, self._plain.connect_tcp(host, port, left, local_address, socket_options))


class _TimedStream(httpcore.NetworkStream):
    def __init__(self, network: _TimedNetwork, plain: httpcore.NetworkStream) -> None:
        self._network = network
        self._plain = plain

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._plain.read(max_bytes, self._network.left(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._plain.write(buffer, self._network.left(timeout, httpcore.WriteTimeout))

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        left = self._network.left(timeout, httpcore.ConnectTimeout)
        return _TimedStream(self._network, self._plain.start_tls(ssl_context, server_hostname, left))

    def get_extra_info(self, info: str) -> object:
        return self._plain.get_extra_info(info)

    def close(self) -> None:
        self._plain.close()


class _TimedTransport(httpx.HTTPTransport):
    def __init__(self, network: _TimedNetwork) -> None:
        self._pool = httpcore.ConnectionPool(
            ssl_context=_trusted(), max_connections=4, keepalive_expiry=15.0, network_backend=network
        )


@cache
def _trusted() -> ssl.SSLContext:
    """Certifi's authorities, and the machine's own: wikis of a company often have theirs."""
    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    return context
