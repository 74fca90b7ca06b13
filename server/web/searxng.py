"""Web search through a SearXNG instance's JSON API."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping, Sequence, Set
from typing import Any, NoReturn

import httpx
import msgspec

from graph.breaker import Breaker, retry_after
from graph.errors import (
    DependencyBusyError,
    DependencyDownError,
    DependencyError,
    DependencyFaultError,
    QuestionError,
    SettingsError,
)
from graph.model import WebResult, WebResults

DEPENDENCY = "searxng"
MAX_RESPONSE_BYTES = 4_000_000
MAX_QUERY_CHARS = 500
GIVEN_UP_LATE = 0.5
"""Who cancels a search after this share of its deadline gave it up because it was slow."""
COMMAND = re.compile(r"(?<!\S)[!:?<]+(?=\S)")
"""What SearXNG reads as a command at the start of a word: `!engine`, `!!external`, `:language`, `<timeout`."""
TIME_RANGES = frozenset({"day", "week", "month", "year"})
LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")


class SearXNG:
    """One SearXNG instance; connections are kept open between searches."""

    def __init__(self, url: str, *, seconds: float = 5.0, breaker: Breaker | None = None) -> None:
        """`seconds` is the deadline of a whole search. `url` is the instance's address, with its path if it has one."""
        self._base, self._shown = _checked_address(url)
        self._seconds = seconds
        self._breaker = breaker or Breaker(DEPENDENCY)
        self._client = httpx.AsyncClient(
            timeout=httpx.Timeout(seconds),
            follow_redirects=False,
            trust_env=False,
            headers={"Accept": "application/json", "User-Agent": "Trivet"},
        )

    async def search(
        self,
        query: str,
        *,
        language: str,
        limit: int,
        page: int = 1,
        time_range: str = "",
        categories: Sequence[str] = (),
    ) -> WebResults:
        """The first `limit` results of that page. A query without anything to search for is refused before any request.

        Raises `DependencyDownError` where nothing was found because none of SearXNG's engines answered.
        """
        plain = plain_query(query)
        if not plain:
            raise QuestionError("The web search was given an empty query.")
        params = {"q": plain, "format": "json", "language": language if LANGUAGE.fullmatch(language) else "all"}
        params |= {"pageno": str(page)} if page > 1 else {}
        params |= {"time_range": time_range} if time_range in TIME_RANGES else {}
        # In a category's name a comma would end it.
        params |= {"categories": ",".join(name.replace(",", " ") for name in categories)} if categories else {}
        begun = time.monotonic()
        with self._breaker.watch():
            try:
                body = await self._get(self._base, params)
            except asyncio.CancelledError:
                # The web leg's own deadline comes first: without this, one that hangs would never be left alone.
                if time.monotonic() - begun > GIVEN_UP_LATE * self._seconds:
                    self._breaker.failed(self._slow(time.monotonic() - begun))
                raise
            found = self._results(body, limit)
        if page == 1 and not found.results and found.unresponsive:
            await self._check_engines(found.unresponsive, set(categories) or {"general"})
        return found

    async def close(self) -> None:
        await self._client.aclose()

    async def _check_engines(self, unresponsive: Sequence[str], categories: Set[str]) -> None:
        """Whether any engine was there to find nothing. Where SearXNG does not tell its engines, one is believed in."""
        try:
            engines = _engines(
                await self._get(self._base.copy_with(path=self._base.path.removesuffix("search") + "config"), {})
            )
        except DependencyError:
            return
        asked = {name for name, found_in in engines.items() if found_in & categories}
        if asked and asked <= {said.partition(": ")[0] for said in unresponsive}:
            raise DependencyDownError(
                f"No search engine of SearXNG at {self._shown} answered ({'; '.join(unresponsive)[:300]}); "
                "search again later, or enable others in its settings.yml.",
                dependency=DEPENDENCY,
            )

    async def _get(self, url: httpx.URL, params: Mapping[str, str]) -> bytes:
        try:
            async with (
                asyncio.timeout(self._seconds),
                self._client.stream("GET", url, params=params) as response,
            ):
                if response.status_code != httpx.codes.OK:
                    self._refuse(response)
                if "html" in response.headers.get("content-type", ""):
                    self._fault(
                        "answers with a web page instead of JSON",
                        "check that web.searxng_url is a SearXNG and that search.formats in its settings.yml has json",
                    )
                return await self._read(response)
        except (TimeoutError, httpx.TimeoutException):
            raise self._slow(self._seconds) from None
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            raise DependencyDownError(
                f"SearXNG at {self._shown} cannot be reached ({type(error).__name__}); "
                "check that it runs and that web.searxng_url is right.",
                dependency=DEPENDENCY,
            ) from error

    async def _read(self, response: httpx.Response) -> bytes:
        body = bytearray()
        async for piece in response.aiter_bytes():
            body += piece
            if len(body) > MAX_RESPONSE_BYTES:
                self._fault(f"sent more than {MAX_RESPONSE_BYTES:,} bytes", "check what answers there")
        return bytes(body)

    def _refuse(self, response: httpx.Response) -> NoReturn:
        """Say what a status other than 200 means. The body is never shown: it is somebody else's text."""
        status = response.status_code
        if status == httpx.codes.TOO_MANY_REQUESTS:
            wait = retry_after(response.headers)
            raise DependencyBusyError(
                f"SearXNG at {self._shown} asks for a pause of {wait:g} s (429); "
                "server.limiter in its settings.yml is for public instances.",
                dependency=DEPENDENCY,
                retry_after=wait,
            )
        if status == httpx.codes.FORBIDDEN:
            self._fault("refuses JSON (403)", "add json to search.formats in its settings.yml and restart it")
        if status == httpx.codes.UNAUTHORIZED:
            self._fault("asks for a login (401)", "put the user and password into web.searxng_url")
        if response.is_redirect:
            self._fault(f"redirects elsewhere ({status})", "set web.searxng_url to the address it leads to")
        self._fault(f"answers with status {status}", "look into its log")

    def _results(self, body: bytes, limit: int) -> WebResults:
        try:
            answer = msgspec.json.decode(body)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            self._fault("answers with something that is not JSON", "check what answers there")
        if not isinstance(answer, dict) or not isinstance(answer.get("results"), list):
            self._fault("answers with JSON that holds no results", "check what answers there")
        found = [_result(entry) for entry in answer["results"] if isinstance(entry, dict)]
        return WebResults(
            results=tuple(result for result in found if result.url)[:limit],
            unresponsive=_unresponsive(answer.get("unresponsive_engines")),
        )

    def _slow(self, seconds: float) -> DependencyDownError:
        return DependencyDownError(
            f"SearXNG at {self._shown} did not answer within {round(seconds, 2):g} s.", dependency=DEPENDENCY
        )

    def _fault(self, what: str, fix: str) -> NoReturn:
        raise DependencyFaultError(f"SearXNG at {self._shown} {what}; {fix}.", dependency=DEPENDENCY)


def plain_query(query: str) -> str:
    """The query on one line, without SearXNG's commands, cut to a length that engines accept."""
    text = COMMAND.sub("", " ".join(query.split()))
    if len(text) > MAX_QUERY_CHARS:
        text = text[: MAX_QUERY_CHARS + 1].rsplit(" ", 1)[0][:MAX_QUERY_CHARS]
    return text if any(ch.isalnum() for ch in text) else ""


def _checked_address(url: str) -> tuple[httpx.URL, str]:
    """The search address, and how it is shown: without credentials."""
    try:
        base = httpx.URL(url.strip())
    except (httpx.InvalidURL, UnicodeError) as error:
        raise SettingsError(f"web.searxng_url {url!r} is not a URL ({error}).") from error
    if base.scheme not in {"http", "https"} or not base.raw_host:
        raise SettingsError(f"web.searxng_url must look like http://127.0.0.1:8080, not {url!r}.")
    path = base.path.rstrip("/").removesuffix("/search")
    shown = str(base.copy_with(username=None, password=None, path=path or "/", query=None, fragment=None))
    return base.copy_with(path=f"{path}/search", query=None, fragment=None), shown.rstrip("/")


def _result(entry: Mapping[str, Any]) -> WebResult:
    def text(key: str) -> str:
        value = entry.get(key)
        return " ".join(value.split()) if isinstance(value, str) else ""

    return WebResult(
        url=text("url"),
        title=text("title"),
        snippet=text("content"),
        engine=text("engine"),
        published=text("publishedDate"),
    )


def _engines(body: bytes) -> Mapping[str, Set[str]]:
    """The categories of each engine that is enabled, from SearXNG's `/config`; empty where it says something else."""
    try:
        answer = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return {}
    entries = answer.get("engines") if isinstance(answer, dict) else None
    found: dict[str, Set[str]] = {}
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and entry.get("enabled") and isinstance(entry.get("categories"), list):
            found[str(entry.get("name"))] = {str(category) for category in entry["categories"]}
    return found


def _unresponsive(entries: Any) -> tuple[str, ...]:
    """SearXNG gives pairs of engine and reason."""
    if not isinstance(entries, list):
        return ()
    pairs = (entry for entry in entries if isinstance(entry, list) and entry)
    return tuple(": ".join(str(part) for part in pair[:2]) for pair in pairs)
