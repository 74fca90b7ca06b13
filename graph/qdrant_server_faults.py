"""A Qdrant server's address, and what each way it can fail is called. No body and no key is in any message."""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

import httpx

from graph.breaker import retry_after
from graph.errors import (
    DependencyBusyError,
    DependencyDownError,
    DependencyFaultError,
    SettingsError,
    StoreFullError,
    TrivetError,
)

DEPENDENCY = "qdrant"
OLDEST = (1, 16)
"""The first with metadata of a collection, which our mark is in. The query API came with 1.10."""
PORT = 6333
BUSY = (httpx.codes.TOO_MANY_REQUESTS, httpx.codes.SERVICE_UNAVAILABLE)
SLOW = (httpx.codes.REQUEST_TIMEOUT, httpx.codes.GATEWAY_TIMEOUT)
FULL = b"No space left"


class QdrantAddress:
    """Where the server is. Its methods make the errors; the caller raises them."""

    def __init__(self, url: str, *, has_key: bool, seconds: float) -> None:
        """Raises `SettingsError` where `url` is none of a Qdrant."""
        self.url = _checked(url)
        self.shown = f"Qdrant at {self.url}"
        self._has_key = has_key
        self._seconds = seconds

    def too_late(self) -> DependencyDownError:
        return self._down(
            f"did not answer within {self._seconds:g} s; check that it is well, or raise vectors.qdrant_seconds"
        )

    def check_version(self, version: str) -> None:
        numbers = re.match(r"v?(\d+)\.(\d+)", version)
        if numbers and (int(numbers[1]), int(numbers[2])) < OLDEST:
            raise self._fault(
                f"is version {numbers[0]} and Trivet needs {OLDEST[0]}.{OLDEST[1]} or newer; update the server"
            )

    def unreadable(self) -> DependencyFaultError:
        return self._fault(
            "answers, but not as Qdrant's HTTP API does; check that vectors.qdrant_url is a Qdrant "
            f"(its port is usually {PORT}; 6334 is for gRPC)"
        )

    def unreachable(self, cause: BaseException) -> TrivetError:
        """For a request that got no answer, or half of one."""
        if isinstance(cause, httpx.TimeoutException):
            return self.too_late()
        chain = list(_causes(cause))
        if any(isinstance(each, socket.gaierror) for each in chain):
            return self._down("cannot be found: nothing knows this host; check vectors.qdrant_url")
        if any(isinstance(each, ssl.SSLError) for each in chain):
            return self._down(
                "does not agree on encryption; check its certificate, and whether vectors.qdrant_url is to begin with "
                "https:// or http://"
            )
        if is_dropped(cause):
            return self._down("broke off the connection; check that it runs, and its log")
        if isinstance(cause, (httpx.NetworkError, httpx.ProxyError)):
            return self._down("cannot be reached; check that it runs, and the host and port in vectors.qdrant_url")
        return self.unreadable()

    def refused(self, status: int, headers: Mapping[str, str], content: bytes) -> TrivetError:
        """For an answer of another status than 200. `content` is searched, never shown."""
        if status in BUSY:
            return self.busy(retry_after(headers), status)
        if status in SLOW:
            return self._down(f"gave up after too long ({status}); check its load")
        if status in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
            if self._has_key:
                return self._fault(
                    f"refuses the key ({status}); set vectors.qdrant_api_key to one that may read and write"
                )
            return self._fault(f"asks for a key ({status}); set vectors.qdrant_api_key")
        if status == httpx.codes.INSUFFICIENT_STORAGE or FULL in content:
            return StoreFullError(f"{self.shown} has no space left; free some on its disk.")
        if status == httpx.codes.REQUEST_ENTITY_TOO_LARGE:
            return self._fault("takes no request of this size (413); raise service.max_request_size_mb in its settings")
        if 300 <= status < 400:
            return self._fault(f"redirects elsewhere ({status}); set vectors.qdrant_url to where it leads")
        if status == httpx.codes.NOT_FOUND:
            return self._fault("has nothing at this address (404); check the path and port in vectors.qdrant_url")
        return self._fault(f"answers with status {status}; its log says why")

    def busy(self, wait: float, status: int = httpx.codes.TOO_MANY_REQUESTS) -> DependencyBusyError:
        return DependencyBusyError(
            f"{self.shown} is busy ({status}) and asks for a pause of {wait:g} s; try again then.",
            dependency=DEPENDENCY,
            retry_after=wait,
        )

    def _down(self, what: str) -> DependencyDownError:
        return DependencyDownError(f"{self.shown} {what}.", dependency=DEPENDENCY)

    def _fault(self, what: str) -> DependencyFaultError:
        return DependencyFaultError(f"{self.shown} {what}.", dependency=DEPENDENCY)


def is_dropped(cause: BaseException) -> bool:
    """Whether a connection ended before its answer was whole, as one kept open does when the server restarts."""
    if isinstance(cause, httpx.RemoteProtocolError):
        return "disconnected" in str(cause) or "closed connection" in str(cause)
    return isinstance(cause, (httpx.ReadError, httpx.WriteError, httpx.CloseError))


def checked_key(key: str) -> str:
    """The key if a header can carry it; it is not shown."""
    if not (key.isascii() and key.isprintable()):
        raise SettingsError("vectors.qdrant_api_key has characters that no HTTP header can carry; copy it once more.")
    return key


def _checked(url: str) -> str:
    """With the port that is used. A password in it is refused, since it is shown in messages."""
    url = url.strip().rstrip("/")
    example = f"vectors.qdrant_url must look like http://127.0.0.1:{PORT} or https://qdrant.example:{PORT}"
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        httpx.URL(url)
    except (ValueError, httpx.InvalidURL):
        raise SettingsError(f"{example}; the one that is set is none.") from None
    if "@" in parts.netloc:
        raise SettingsError(f"{example}; the key goes into vectors.qdrant_api_key.")
    if not usable or parts.query or parts.fragment:
        raise SettingsError(f"{example}, not {url!r}.")
    place = parts.netloc if parts.port else f"{parts.netloc.rstrip(':')}:{PORT}"
    return f"{parts.scheme}://{place}{parts.path}"


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__ or seen.__context__
