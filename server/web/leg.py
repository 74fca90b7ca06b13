"""The web leg: search, leave out what is blocked, fetch the rest at once, cut it into passages."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from graph.errors import DependencyDownError, DependencyError
from graph.model import WebResult, WebResults
from graph.protocols import PageFetcher, WebSearch
from server.web.addresses import BLOCKED_DOMAIN, AddressError, nothing_blocked, refusal
from server.web.page_check import PageError
from server.web.passages import best_passages, split_passages

MARGIN = 0.1
"""Of the deadline is kept back, so that what was found is returned before the caller's own deadline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebPassage:
    """A passage of a web page, or a search result's snippet where the page could not be had."""

    url: str
    title: str
    text: str
    published: str = ""
    engine: str = ""
    from_snippet: bool = False


async def web_passages(
    query: str,
    language: str,
    search: WebSearch,
    fetcher: PageFetcher | None,
    *,
    limit: int,
    passages_per_page: int,
    deadline: float,
    blocked: Callable[[str], bool] = nothing_blocked,
    allow_private: bool = False,
) -> tuple[list[WebPassage], list[str]]:
    """Passages in the order of the results, and notes on what is missing and why.

    `limit` counts pages. `deadline` is in seconds from now: a page that is not there by then is represented by
    its snippet. `blocked` is asked for each URL before anything is fetched. Raises what the search raises.
    """
    loop = asyncio.get_running_loop()
    end = loop.time() + deadline * (1 - MARGIN)
    try:
        async with asyncio.timeout_at(end):
            found = await search.search(query, language=language, limit=2 * limit)
    except TimeoutError:
        raise DependencyDownError(f"The web search took more than {deadline:g} s.", dependency="searxng") from None
    notes = [f"search engine {engine}" for engine in found.unresponsive]
    results = _usable(found, blocked, allow_private=allow_private, notes=notes)[:limit]
    if fetcher is None:
        return _snippets(results, notes), notes
    tasks = [asyncio.create_task(_page(result, query, fetcher, passages_per_page)) for result in results]
    try:
        if tasks:
            await asyncio.wait(tasks, timeout=max(0.0, end - loop.time()))
    finally:
        for task in tasks:
            task.cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    passages: list[WebPassage] = []
    for result, outcome in zip(results, outcomes, strict=True):
        passages += _outcome(result, outcome, notes)
    if results and all(passage.from_snippet for passage in passages):
        notes.append("no page could be fetched; only the search results' own snippets are used")
    return passages, notes


def _usable(
    found: WebResults, blocked: Callable[[str], bool], *, allow_private: bool, notes: list[str]
) -> list[WebResult]:
    """Results that may be fetched and cited, each URL once."""
    kept: dict[str, WebResult] = {}
    for result in found.results:
        if why := refusal(result.url, allow_private=allow_private):
            notes.append(f"result {result.url[:100]!r} left out: {why}")
        elif blocked(result.url):
            notes.append(f"{_host(result.url)} left out: {BLOCKED_DOMAIN}")
        else:
            kept.setdefault(result.url.partition("#")[0], result)
    return list(kept.values())


async def _page(result: WebResult, query: str, fetcher: PageFetcher, count: int) -> list[WebPassage]:
    title, text = await fetcher.fetch(result.url)
    best = await asyncio.to_thread(_best, text, query, count)
    return [
        WebPassage(
            url=result.url,
            title=result.title or title,
            text=passage,
            published=result.published,
            engine=result.engine,
        )
        for passage in best
    ]


def _best(text: str, query: str, count: int) -> list[str]:
    return best_passages(split_passages(text), query, count)


def _outcome(result: WebResult, outcome: list[WebPassage] | BaseException, notes: list[str]) -> list[WebPassage]:
    """A page's passages; its snippet where it could not be had; nothing where it must not be had."""
    if isinstance(outcome, list):
        return outcome
    if isinstance(outcome, AddressError):
        notes.append(f"result {result.url[:100]!r} left out: {outcome.why}")
        return []
    if isinstance(outcome, PageError):
        notes.append(f"{_host(result.url)} left out: {outcome.why}")
    elif isinstance(outcome, DependencyError):
        notes.append(f"{_host(result.url)}: {outcome}")
    elif isinstance(outcome, asyncio.CancelledError):
        notes.append(f"{_host(result.url)}: The page was not there in time.")
    else:
        raise outcome
    return _snippets([result], notes)


def _snippets(results: Iterable[WebResult], notes: list[str]) -> list[WebPassage]:
    passages: list[WebPassage] = []
    for result in results:
        if not result.snippet:
            notes.append(f"{_host(result.url)} left out: there is neither page nor snippet")
            continue
        passages.append(
            WebPassage(
                url=result.url,
                title=result.title or _host(result.url),
                text=result.snippet,
                published=result.published,
                engine=result.engine,
                from_snippet=True,
            )
        )
    return passages


def _host(url: str) -> str:
    return urlsplit(url).hostname or url[:60]
