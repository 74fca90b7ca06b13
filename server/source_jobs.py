"""The jobs of a store: following a source, reading it anew, single pages, forgetting a source, research, writing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any

from graph.feed import FeedItem, GonePage
from graph.jobs import Job
from graph.model import Page
from graph.registry import RegisteredSource
from ingestion.clean import CleanedText
from ingestion.ingest import ingest
from ingestion.markdown import clean_markdown
from ingestion.page_types import type_of_article
from ingestion.report import Progress
from ingestion.sanitize import clean_key, clean_text, clean_title
from ingestion.sync import now
from server.jobs import Report, Work, plain
from server.library import PUSHED, Library
from server.research_jobs import RESEARCH, research
from server.writing_jobs import WRITE, write_piece

OpenLibrary = Callable[[], AbstractAsyncContextManager[Library]]
"""Opens the store for one job. A server, which has it open, hands out its own."""


def work_on(open_library: OpenLibrary) -> Mapping[str, Work]:
    """By kind of job."""
    kinds = {"sync": _sync, "retry": _retry, "pages": _pages, "forget": _forget, RESEARCH: research, WRITE: write_piece}
    return {kind: partial(_work, work, open_library) for kind, work in kinds.items()}


async def _work(
    work: Callable[[Library, Job, Report], Awaitable[Mapping[str, Any]]],
    open_library: OpenLibrary,
    job: Job,
    report: Report,
) -> Mapping[str, Any]:
    async with open_library() as library:
        return await work(library, job, report)


async def _sync(library: Library, job: Job, report: Report) -> Mapping[str, Any]:
    done = await library.follow(
        library.registered(str(job.payload["source"])),
        whole=bool(job.payload.get("whole")),
        prune=bool(job.payload.get("prune", True)),
        on_progress=_telling(report),
    )
    return plain(done) if done else {}


async def _retry(library: Library, job: Job, report: Report) -> Mapping[str, Any]:
    source = library.registered(str(job.payload["source"]))
    done = await library.retry(source, on_progress=_telling(report))
    return plain(done) if done else {}


async def _pages(library: Library, job: Job, report: Report) -> Mapping[str, Any]:
    name = str(job.payload["source"])
    if library.registry.source(name) is None:
        library.registry.put_source(RegisteredSource(name=name, kind=PUSHED, location="HTTP", added=now()))
    items: list[FeedItem] = [page_of(name, page) for page in job.payload.get("pages", ())]
    items += [GonePage(key=key) for key in job.payload.get("gone", ())]
    source = PushedPages(name=name, items=items)
    done = await ingest(
        source, library.backends.knowledge, library.backends.settings.ingestion, only=[], on_progress=_telling(report)
    )
    return plain(done)


async def _forget(library: Library, job: Job, report: Report) -> Mapping[str, Any]:
    return {"removed": await library.forget(str(job.payload["source"]))}


class _AsWritten:
    """Links of pushed pages: a name is a title; what other pages there are is not known."""

    def wiki_link(self, name: str, shown: str) -> str:
        return clean_title(name.partition("#")[0])

    def path_link(self, href: str) -> str:
        return ""


def page_of(source: str, given: Mapping[str, Any]) -> Page:
    """A page as `POST /api/pages` gives it, cleaned like any other."""
    title, key = clean_title(str(given["title"])), clean_key(str(given["key"]))
    text = clean_text(str(given["text"]))
    cleaned = CleanedText(text=text)
    if given.get("format", "markdown") == "markdown":
        cleaned = clean_markdown(text, _AsWritten(), title=title, name=key)
    return Page(
        source=source,
        key=key,
        title=title,
        text=cleaned.text,
        url=str(given.get("url", "")),
        page_type=type_of_article(title, cleaned),
        language=str(given.get("language", "")),
        modified=str(given.get("modified", "")),
        aliases=tuple(map(clean_title, given.get("aliases", ()))),
        links=cleaned.links,
        categories=(*map(clean_title, given.get("categories", ())), *cleaned.categories),
        sections=cleaned.sections,
    )


def _telling(report: Report) -> Callable[[Progress], None]:
    return lambda progress: report(plain(progress))


@dataclass(frozen=True, slots=True, kw_only=True)
class PushedPages:
    """Pages that were given, as a source of which only single pages are read."""

    name: str
    items: list[FeedItem]
    kind: str = PUSHED

    def read(self) -> Iterator[FeedItem]:
        yield from self.items

    def changes(self, cursor: str) -> Iterator[FeedItem] | None:
        return iter(self.items)

    def pages(self, keys: object) -> Iterator[FeedItem]:
        return iter(self.items)
