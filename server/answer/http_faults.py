"""What HTTP faults of a model's server are called: without its body, a password or a key."""

from __future__ import annotations

import email.utils
import time

import httpx

from graph.errors import SettingsError

DEFAULT_RETRY = 1.0
LONGEST_RETRY = 3600.0


def shown_url(url: str) -> str:
    """The address as messages may show it: without user, password and query."""
    try:
        return str(httpx.URL(url).copy_with(userinfo=b"", query=None, fragment=None)).rstrip("/")
    except (httpx.InvalidURL, ValueError):
        return "the address in llm.url"


def checked_url(url: str) -> str:
    """The address without a slash at its end; `SettingsError` where it is none."""
    try:
        parsed = httpx.URL(url)
        usable = parsed.scheme in ("http", "https") and parsed.host != ""
    except (httpx.InvalidURL, ValueError, TypeError):
        usable = False
    if not usable:
        raise SettingsError(f"llm.url is {url!r}: it must be an address like http://127.0.0.1:11434")
    return url.rstrip("/")


def reason_of(error: httpx.HTTPError) -> str:
    """In words of ours: httpx's own may be empty, or repeat a header."""
    if isinstance(error, httpx.ConnectTimeout | httpx.PoolTimeout):
        return "no connection in time"
    if isinstance(error, httpx.TimeoutException):
        return "no answer in time"
    if isinstance(error, httpx.ConnectError):
        return "no connection"
    return "the connection broke"


def retry_after(response: httpx.Response) -> float:
    """Seconds, from a number or a date; 1 where it says nothing that can be used."""
    value = response.headers.get("retry-after", "")
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(value).timestamp() - time.time()
        except ValueError:
            return DEFAULT_RETRY
    return min(max(seconds, 0.0), LONGEST_RETRY) if seconds == seconds else DEFAULT_RETRY
