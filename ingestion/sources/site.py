"""A web site as a wiki: crawled by its sitemap, or from link to link, as its robots.txt allows."""

from __future__ import annotations

import base64
import json
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urljoin

import httpx

from graph.errors import SourceError
from graph.feed import Checkpoint, FeedItem
from graph.model import SkippedPage
from graph.protocols import Source
from ingestion.main_content import HtmlReader
from ingestion.sources.kinds import Place, SourceOptions
from ingestion.sources.pdf_folder import pdf_reader
from ingestion.sources.polite_http import PageFault, PoliteClient
from ingestion.sources.robots import fetch_robots
from ingestion.sources.site_pages import HTML_TYPES, PDF_TYPE, Known, PageVisitor
from ingestion.sources.site_urls import Scope, canonical_url
from ingestion.sources.sitemap import SitemapReader

logger = logging.getLogger(__name__)

MAX_PAGES = 50_000
POLITE_DELAY = 1.0
CHECKPOINT_EVERY = 1_000
"""Pages; a cursor holds all of them."""
MAX_CURSOR = 16 * 2**20
FORM = 1
"""Of the cursor; counted up when the same page is read differently, so that all are read again."""


@dataclass(frozen=True, slots=True)
class SiteCrawl:
    """Reads the pages of one host below the start's folder. `start` may also be a sitemap itself."""

    start: str
    name: str
    delay: float = 0.0
    max_pages: int = MAX_PAGES
    formulas: bool = False
    kind: str = "site"
    sleep: Callable[[float], None] = field(default=time.sleep, compare=False, repr=False)

    def read(self) -> Iterator[FeedItem]:
        with self._visiting({}) as crawl:
            yield from crawl.all()
            yield crawl.checkpoint()
            if crawl.by_links and crawl.visitor.unreached:
                raise SourceError(
                    f"{crawl.visitor.unreached:,} pages of {crawl.start} could not be read, so what only they "
                    "link to is not known; nothing was taken for gone, read it again later."
                )

    def changes(self, cursor: str) -> Iterator[FeedItem] | None:
        known = self._known(cursor)
        return None if known is None else self._changes(known)

    def _changes(self, known: dict[str, Known]) -> Iterator[FeedItem]:
        with self._visiting(known) as crawl:
            crawl.visitor.following = True
            for number, item in enumerate(crawl.all(), start=1):
                yield item
                if number % CHECKPOINT_EVERY == 0:
                    yield crawl.checkpoint()
            yield crawl.checkpoint()

    def pages(self, keys: Sequence[str]) -> Iterator[FeedItem]:
        with self._visiting({}) as crawl:
            crawl.visitor.following = True
            for key in keys:
                yield from crawl.visitor.visit(key, conditional=False)

    @contextmanager
    def _visiting(self, known: dict[str, Known]) -> Iterator[Crawl]:
        start, headers = canonical_url(self.start), _authorization(self.start)
        client = PoliteClient(delay=self._delay, headers=headers, sleep=self.sleep)
        html, pdf = HtmlReader(formulas=self.formulas), pdf_reader()
        try:
            robots = fetch_robots(client, start)
            if robots.delay > self._delay:
                client.close()
                client = PoliteClient(delay=robots.delay, headers=headers, sleep=self.sleep)
            scope, is_sitemap = _scope(client, start)
            visitor = PageVisitor(self.name, client, robots, scope, html, pdf, known)
            reader = SitemapReader(client, scope, self.max_pages)
            yield Crawl(self, start, visitor, reader, is_sitemap=is_sitemap)
        finally:
            client.close()
            html.close()
            pdf.close()

    @property
    def _delay(self) -> float:
        host = httpx.URL(canonical_url(self.start)).host
        local = host == "localhost" or host == "::1" or host.startswith("127.")
        return self.delay or (0.0 if local else POLITE_DELAY)

    def _known(self, cursor: str) -> dict[str, Known] | None:
        """What a cursor holds; None for one that is not of this crawl."""
        try:
            found = json.loads(cursor)
            if found["as"] != self._settings():
                return None
            return {str(url): Known(*map(str, known)) for url, known in found["pages"].items()}
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return None

    def _settings(self) -> list[str]:
        return [canonical_url(self.start), str(self.formulas), str(FORM)]

    def cursor(self, known: dict[str, Known]) -> str:
        pages = {url: [seen.etag, seen.modified, seen.digest, seen.title] for url, seen in known.items()}
        cursor = json.dumps({"as": self._settings(), "pages": pages}, separators=(",", ":"), ensure_ascii=False)
        return cursor if len(cursor.encode("utf-8", "replace")) <= MAX_CURSOR else ""  # then all is read each time


@dataclass(slots=True)
class Crawl:
    """One look at a site."""

    site: SiteCrawl
    start: str
    visitor: PageVisitor
    sitemaps: SitemapReader
    is_sitemap: bool = False
    by_links: bool = False
    _queued: set[str] = field(default_factory=set)
    _left_out: int = 0

    def all(self) -> Iterator[FeedItem]:
        """Every page by the sitemap, else by links; and those known before, wherever they are named now."""
        listed = self._listed()
        known = list(self.visitor.known)
        if listed is None:
            self.by_links = True
            logger.info("%s has no sitemap; links are followed", self.start)
            yield from self._followed([self.start, *known])
        else:
            for url in self._each([*([] if self.is_sitemap else [self.start]), *listed, *known]):
                yield from self.visitor.visit(url)
        yield from self._remarks()

    def checkpoint(self) -> Checkpoint:
        return Checkpoint(cursor=self.site.cursor(self.visitor.known))

    def _listed(self) -> list[str] | None:
        """All addresses of the sitemap before the first page: one that breaks off must not cost any page."""
        named = [self.start] if self.is_sitemap else self.visitor.robots.sitemaps
        guessed = not named
        urls = self.sitemaps.urls(named or [urljoin(self.start, "/sitemap.xml")], guessed=guessed)
        if urls is None and not guessed and not self.is_sitemap:
            urls = self.sitemaps.urls([urljoin(self.start, "/sitemap.xml")], guessed=True)
        if urls is None and self.is_sitemap:
            raise SourceError(f"{self.start} names no page below {self.sitemaps.scope.path}; give the site's own URL.")
        return (list(urls) or None) if urls is not None else None

    def _followed(self, first: Iterable[str]) -> Iterator[FeedItem]:
        """Breadth first, so that what is near the start comes first if there is too much."""
        waiting = deque(self._each(first))
        while waiting:
            yield from self.visitor.visit(waiting.popleft())
            scope = self.visitor.scope
            found = (url for address in self.visitor.found if (url := scope.page(address)))
            waiting.extend(self._each(url for url in found if scope.worth_following(url)))

    def _each(self, urls: Iterable[str]) -> Iterator[str]:
        """Those not met yet, as long as there are not too many."""
        for url in urls:
            if url in self._queued:
                continue
            if len(self._queued) >= self.site.max_pages and url not in self.visitor.known:
                self._left_out += 1
                continue
            self._queued.add(url)
            yield url

    def _remarks(self) -> Iterator[FeedItem]:
        if self._left_out or self.sitemaps.truncated:
            most = f"{self.site.max_pages:,}"
            reason = f"the site has more than {most} pages, of which {most} were read; --option max_pages=… allows more"
            logger.warning("%s: %s", self.start, reason)
            yield SkippedPage(key=f"{self.start}#more", reason=reason)
        if self.sitemaps.elsewhere:
            count = f"{self.sitemaps.elsewhere:,}"
            reason = f"its sitemap names {count} addresses of other hosts or outside of {self.visitor.scope.path}"
            yield SkippedPage(key=f"{self.start}#elsewhere", reason=reason)


def _scope(client: PoliteClient, start: str) -> tuple[Scope, bool]:
    """What is to be read, by where the start leads; and whether the start is a sitemap."""
    try:
        reply = client.get(start)
    except PageFault as fault:
        raise SourceError(f"The site cannot be read: {fault.reason}; check the URL.") from fault
    if reply.content_type in {"application/xml", "text/xml", "application/gzip", "application/x-gzip", "text/plain"}:
        return Scope(Scope.of(reply.url).host, "/"), True
    if reply.content_type not in {*HTML_TYPES, PDF_TYPE}:
        raise SourceError(f"{start} is {reply.content_type or 'of no type'}, not a web page; give a site's first page.")
    return Scope.of(canonical_url(reply.url)), False


def _authorization(url: str) -> dict[str, str]:
    """A user and password in the URL, as the header they are meant for."""
    userinfo = httpx.URL(url).userinfo
    if not userinfo:
        return {}
    parsed = httpx.URL(url)
    return {"Authorization": "Basic " + base64.b64encode(f"{parsed.username}:{parsed.password}".encode()).decode()}


@dataclass(frozen=True, slots=True)
class SiteKind:
    """Options: `max_pages`, `formulas=yes` (pictures of formulas are read as TeX)."""

    name: str = "site"
    about: str = "a web site, by its sitemap or its links"

    def fits(self, place: Place) -> int:
        """Any web address may be a site; other kinds that know one by its API are surer."""
        return 20 if canonical_url(place.url) else 0

    def open(self, place: Place, options: SourceOptions) -> Source:
        if not canonical_url(place.url):
            raise SourceError(f"{place.shown} is no web address; a site begins with http:// or https://.")
        given = options.extra.get("max_pages", str(MAX_PAGES))
        if not (given.isascii() and given.isdigit() and 0 < int(given[:9]) <= 10_000_000):
            raise SourceError(f'"{given[:20]}" is no number of pages; --option max_pages= takes 1 to 10000000.')
        formulas = options.extra.get("formulas", "no").lower() in {"yes", "true", "1", "on"}
        return SiteCrawl(place.url, options.name, options.delay, int(given), formulas)


KIND = SiteKind()
