"""From searches to kept pages: filter, fetch, cut into passages, drop copies, put on the shelf."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

from graph.errors import DependencyBusyError, DependencyDownError, DependencyError
from graph.research import ResearchPage, Topic
from graph.timestamps import now
from graph.web_page import WebPage
from ingestion.language import detect_language
from server.research.budget import Budget
from server.research.candidates import Candidate, admit, by_host, merged, page_key, waves
from server.research.copies import Copies, Signature, signature
from server.research.found import Found, LeftOut, ResearchTools
from server.research.gate import question_of
from server.research.plan import Report, RunProgress
from server.research.queries import topic_queries
from server.web.addresses import AddressError
from server.web.page_check import PageError
from server.web.passages import best_passages, split_passages

MOST_RESULT_PAGES = 10
NO_TIME = "there was no time left for it"
Keep = Callable[[WebPage], str]
"""Why a page that was read is not kept; "" where it is."""


async def research(topic: Topic, tools: ResearchTools, *, budget: Budget, report: Report) -> Found:
    """Search for a topic's title and focus, and put on the shelf what is found.

    What is stored and fresh is not fetched again, so what was cut short goes on. Raises `DependencyError` where the
    search is down and nothing was found.
    """
    collector = Collector(topic, tools, budget, report, stage="researching")
    await collector.begin()
    searches = []
    for query in topic_queries(topic, await collector.names(question_of(topic)), tools.settings.queries):
        if budget.spent:
            break
        searches.append(await collector.search(query))
    collector.check_search()
    await collector.take(merged(searches))
    return collector.found()


async def topic_language(topic: Topic, tools: ResearchTools) -> str:
    """ISO 639-1; "" where title and focus do not tell."""
    return tools.settings.language or await asyncio.to_thread(detect_language, question_of(topic))


class Collector:
    """One step of research for one topic."""

    def __init__(self, topic: Topic, tools: ResearchTools, budget: Budget, report: Report, *, stage: str) -> None:
        self._topic = topic
        self._tools = tools
        self._budget = budget
        self._report = report
        self._stage = stage
        self._known: set[str] = set()
        """Keys of pages that are stored or were looked at."""
        self._pages: dict[str, ResearchPage] = {}
        self._aside: dict[str, tuple[WebPage, str]] = {}
        """Pages that were read and not kept, and why: another question may want them."""
        self._copies = Copies(tools.settings.copy_similarity)
        self._left_out = LeftOut()
        self._notes: dict[str, None] = {}
        self._failure: DependencyError | None = None
        self._searches = self._results = self._fetched = self._kept = self._chunks = self._copied = 0
        self.language = ""

    async def begin(self) -> None:
        """Look up what is there."""
        self.language = await topic_language(self._topic, self._tools)
        oldest = (datetime.now(UTC) - timedelta(days=self._tools.settings.fresh_days)).isoformat()
        for page in await asyncio.to_thread(self._tools.shelf.store.pages, self._topic.slug):
            if page.fetched and page.fetched < oldest:
                continue  # read again, and replaced, where the search still finds it
            self._pages[page.url] = page
            self._known.update(map(page_key, (page.url, *page.copies)))
            self._copies.add(page.url, await asyncio.to_thread(signature, "\n".join(page.passages)))

    async def names(self, text: str) -> Sequence[str]:
        """What is named in a text, by the recogniser."""
        return (await asyncio.to_thread(self._tools.names_of, [text], self.language))[0]

    async def search(self, query: str) -> list[Candidate]:
        """Results that may be fetched and are not known yet, over as many pages as there are to be looked at."""
        wanted, found, seen = self._tools.settings.results_per_query, list[Candidate](), set[str]()
        looked = 0
        for number in range(1, MOST_RESULT_PAGES + 1):
            if looked >= wanted or self._budget.seconds <= 0:
                break
            self._say(query)
            try:
                count, new = await self._search_page(query, number, wanted - looked)
            except DependencyError as error:
                self._failure = error
                self.note(f"{query[:60]!r} was not searched for: {error}")
                break
            looked += len(new)  # others cost nothing, and must not crowd out what may be fetched
            fresh = [candidate for candidate in new if candidate.key not in seen]
            seen.update(candidate.key for candidate in fresh)
            found += fresh
            if not count or (new and not fresh):  # the end, or an engine that knows no pages
                break
        return [candidate for candidate in found if candidate.key not in self._known]

    async def _search_page(self, query: str, number: int, limit: int) -> tuple[int, list[Candidate]]:
        """How many results there were, and those that may be fetched."""
        settings, domains = self._tools.settings, self._tools.domains
        found = await self._tools.search.search(
            query,
            language=self.language or "all",
            limit=limit,
            page=number,
            time_range=settings.time_range,
            categories=settings.categories,
        )
        self._searches += 1
        self._results += len(found.results)
        for engine in found.unresponsive:
            self.note(f"search engine {engine}")
        admitted = admit(
            found.results,
            query,
            blocked=domains.is_blocked,
            boost_of=lambda url: domains.judge(url).boost,
            allow_private=self._tools.allow_private,
            leave_out=self._left_out.add,
        )
        return len(found.results), admitted

    def check_search(self) -> None:
        """Raises why nothing was searched, where no search succeeded; says so where none found anything."""
        if self._failure is not None and not self._searches:
            raise self._failure
        if not self._results:
            self.note("the search found nothing")

    async def take(self, candidates: Sequence[Candidate], keep: Keep = lambda page: "") -> None:
        """Fetch them, as far as the budget goes, and put on the shelf those that are to be kept."""
        new = [candidate for candidate in candidates if candidate.key not in self._known]
        if len(new) > self._budget.pages:
            self.note(f"{len(new) - self._budget.pages} results were not looked at: the budget has no more pages")
        for wave in waves(new[: self._budget.pages], 2 * self._tools.settings.parallel):
            if self._budget.spent:
                self._leave_out_all(wave, NO_TIME)
                continue
            for candidate, outcome in await self._fetch(wave):
                await self._judge(candidate, outcome, keep)
            await self._store_copies()

    async def _fetch(self, wave: Sequence[Candidate]) -> list[tuple[Candidate, WebPage | DependencyError]]:
        """All of a wave, hosts at the same time; those that are not there when the time is up are left out."""
        free = asyncio.Semaphore(self._tools.settings.parallel)
        outcomes: dict[str, WebPage | DependencyError] = {}

        async def one_host(candidates: Sequence[Candidate]) -> None:
            async with free:
                for candidate in candidates:
                    if candidate.key in self._aside:
                        outcomes[candidate.key] = self._aside[candidate.key][0]
                        continue
                    self._say(candidate.url)
                    self._budget.take_page()
                    self._fetched += 1
                    try:
                        outcomes[candidate.key] = await self._tools.fetcher.read(candidate.url)
                    except DependencyError as error:
                        outcomes[candidate.key] = error

        tasks = [asyncio.create_task(one_host(candidates)) for candidates in by_host(wave).values()]
        try:
            await asyncio.wait(tasks, timeout=self._budget.seconds)
        finally:
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
        for end in ended:
            if isinstance(end, BaseException) and not isinstance(end, asyncio.CancelledError):
                raise end
        self._leave_out_all([candidate for candidate in wave if candidate.key not in outcomes], NO_TIME)
        return [(candidate, outcomes[candidate.key]) for candidate in wave if candidate.key in outcomes]

    async def _judge(self, candidate: Candidate, outcome: WebPage | DependencyError, keep: Keep) -> None:
        if isinstance(outcome, DependencyError):
            self._known.add(candidate.key)
            self._left_out.add(reason_of(outcome), candidate.url)
            return
        key = page_key(outcome.url)
        if key != candidate.key and key in self._known:
            self._known.add(candidate.key)
            return  # it led to a page that is there
        if candidate.key in self._aside:
            self._left_out.take_back(self._aside.pop(candidate.key)[1], outcome.url)
        if why := keep(outcome):
            self._left_out.add(why, outcome.url)
            self._aside[candidate.key] = (outcome, why)
            return
        self._known |= {candidate.key, key}
        passages, made = await asyncio.to_thread(self._cut, outcome.text)
        if original := self._copies.original(made):
            self._copied += 1
            self._pages[original] = _with_copy(self._pages[original], outcome.url)
            self._left_out.add("it is a copy of another page", outcome.url)
            return
        await self._put(candidate, outcome, passages)
        self._copies.add(outcome.url, made)

    def _cut(self, text: str) -> tuple[list[str], Signature]:
        """Blocking. The passages that are kept, in the page's order; those of a long page that fit the topic best."""
        passages = split_passages(text)
        most = self._tools.settings.page_passages
        if len(passages) > most:
            best = set(best_passages(passages, question_of(self._topic), most))
            passages = [passage for passage in passages if passage in best][:most]
        return passages, signature("\n".join(passages))

    async def _put(self, candidate: Candidate, page: WebPage, passages: Sequence[str]) -> None:
        # Where it redirected, the address that was found is another name of the page: it need not be fetched again.
        moved = (candidate.url,) if page_key(page.url) != candidate.key else ()
        made = ResearchPage(
            url=page.url,
            title=page.title,
            passages=tuple(passages),
            author=page.author,
            published=page.published or candidate.published,
            language=page.language,
            query=candidate.query,
            fetched=now(),
            copies=moved,
        )
        self._chunks += await self._tools.shelf.put_page(self._topic, made)
        self._pages[made.url] = made
        self._kept += 1
        self._say(made.url)

    async def _store_copies(self) -> None:
        """Which pages others repeat. Their passages stay as they are, so no vector changes."""
        store, slug = self._tools.shelf.store, self._topic.slug
        stored = {page.url: page for page in await asyncio.to_thread(store.pages, slug)}
        for url, page in self._pages.items():
            if url in stored and stored[url].copies != page.copies:
                passages = await asyncio.to_thread(partial(store.passages_of, slug, url=url))
                await asyncio.to_thread(store.put_page, slug, page, passages)

    def found(self) -> Found:
        return Found(
            pages=self._kept,
            chunks=self._chunks,
            fetched=self._fetched,
            searches=self._searches,
            results=self._results,
            copies=self._copied,
            left_out=self._left_out.urls,
            counts=dict(self._left_out.counts),
            notes=tuple(self._notes),
        )

    def note(self, text: str) -> None:
        self._notes[text] = None

    def _leave_out_all(self, candidates: Sequence[Candidate], why: str) -> None:
        for candidate in candidates:
            self._left_out.add(why, candidate.url)

    def _say(self, detail: str) -> None:
        self._report(
            RunProgress(
                topic=self._topic.slug, stage=self._stage, detail=detail[:200], pages=self._kept, chunks=self._chunks
            )
        )


def reason_of(error: DependencyError) -> str:
    """Why a page could not be had, in words that do not name its host: reasons are gathered over hosts."""
    match error:
        case AddressError() | PageError():
            return error.why
        case DependencyBusyError():
            return "its host asked for a pause"
        case DependencyDownError():
            return "its host could not be reached, or not in time"
    return str(error).rstrip(".")


def _with_copy(page: ResearchPage, url: str) -> ResearchPage:
    return page if url in page.copies or url == page.url else replace(page, copies=(*page.copies, url))
