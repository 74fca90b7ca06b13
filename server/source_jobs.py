"""The jobs that fill the store: following a source, reading it anew, single pages, forgetting a source."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from graph.errors import NotFoundError
from graph.feed import FeedItem, GonePage
from graph.jobs import Job
from graph.model import Page
from graph.registry import RegisteredSource, Registry
from ingestion.clean import CleanedText
from ingestion.ingest import ingest
from ingestion.markdown import clean_markdown
from ingestion.page_types import type_of_article
from ingestion.report import IngestReport, Progress
from ingestion.sanitize import clean_key, clean_text, clean_title
from ingestion.sources.detect import reopen
from ingestion.sync import follow, forget, now, retry
from server.backends import Backends
from server.jobs import Report, Work, plain

PUSHED = "pushed"
"""The kind of sources whose pages come by `POST /api/pages`."""


@dataclass(frozen=True, slots=True)
class Filling:
    """What the jobs work on."""

    backends: Backends
    registry: Registry


def work_on(backends: Backends, registry: Registry) -> Mapping[str, Work]:
    """By kind of job."""
    to = Filling(backends, registry)
    return {
        "sync": _bound(to, _sync),
        "retry": _bound(to, _retry),
        "pages": _bound(to, _pages),
        "forget": _bound(to, _forget),
    }


def _bound(to: Filling, work: Callable[[Filling, Job, Report], Awaitable[Mapping[str, Any]]]) -> Work:
    return lambda job, report: work(to, job, report)


def registered(registry: Registry, name: str) -> RegisteredSource:
    """Raises `NotFoundError` with the names there are."""
    found = registry.source(name)
    if found is None:
        names = ", ".join(source.name for source in registry.sources()) or "none"
        raise NotFoundError(f"There is no source {name!r}; there are: {names}.")
    return found


async def _sync(to: Filling, job: Job, report: Report) -> Mapping[str, Any]:
    source = registered(to.registry, str(job.payload["source"]))
    if source.kind == PUSHED:
        return {}
    done = await follow(
        source,
        reopen,
        to.backends.knowledge,
        to.registry,
        to.backends.settings.ingestion,
        whole=bool(job.payload.get("whole")),
        prune=bool(job.payload.get("prune", True)),
        on_progress=_telling(report),
    )
    return _result(done)


async def _retry(to: Filling, job: Job, report: Report) -> Mapping[str, Any]:
    source = registered(to.registry, str(job.payload["source"]))
    done = await retry(
        source,
        reopen,
        to.backends.knowledge,
        to.registry,
        to.backends.settings.ingestion,
        on_progress=_telling(report),
    )
    return _result(done) if done else {}


async def _pages(to: Filling, job: Job, report: Report) -> Mapping[str, Any]:
    name = str(job.payload["source"])
    if to.registry.source(name) is None:
        to.registry.put_source(RegisteredSource(name=name, kind=PUSHED, location="HTTP", added=now()))
    items: list[FeedItem] = [page_of(name, page) for page in job.payload.get("pages", ())]
    items += [GonePage(key=key) for key in job.payload.get("gone", ())]
    source = PushedPages(name=name, items=items)
    done = await ingest(
        source, to.backends.knowledge, to.backends.settings.ingestion, only=[], on_progress=_telling(report)
    )
    return _result(done)


async def _forget(to: Filling, job: Job, report: Report) -> Mapping[str, Any]:
    return {"removed": await forget(str(job.payload["source"]), to.backends.knowledge, to.registry)}


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


def _result(done: IngestReport) -> dict[str, Any]:
    return plain(done)


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
