"""One address of a site, asked for as politely as may be, to what a source says of it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import httpx

from graph.errors import SourceError
from graph.feed import FeedItem, GonePage, UnchangedPage
from graph.model import FailedPage, Link, Page, SkippedPage
from ingestion.file_content import FileReader
from ingestion.killable import TooMuchError
from ingestion.main_content import HtmlContent, HtmlReader
from ingestion.page_types import type_of_article
from ingestion.sources.polite_http import BusyFault, PageFault, PoliteClient, Reply
from ingestion.sources.read_folder import file_page
from ingestion.sources.robots import Robots
from ingestion.sources.site_urls import LOGIN_PATH, Scope, canonical_url, name_in

HTML_TYPES = ("text/html", "application/xhtml+xml")
PDF_TYPE = "application/pdf"
LOGIN_CHARACTERS = 1_500
"""A page with a field for a password and no more text than that is a login page."""
NOT_FOUND_CHARACTERS = 1_000
NOT_FOUND = re.compile(
    r"\b404\b|not found|page (?:does not|doesn['’]t) exist|nicht gefunden|introuvable|no encontrada|não encontrada"
    r"|non trovata|niet gevonden|nie znaleziono|не найдена|не е намерена|見つかりません|未找到|找不到",
    re.IGNORECASE,
)
MANY_FAILURES = 25
"""In a row: then the host is in trouble, and asking for the rest would be rude and in vain."""


@dataclass(frozen=True, slots=True)
class Known:
    """What was seen of a page when it was read last."""

    etag: str = ""
    modified: str = ""
    digest: str = ""
    title: str = ""

    @property
    def validators(self) -> Mapping[str, str]:
        found = {"If-None-Match": self.etag, "If-Modified-Since": self.modified}
        return {name: value for name, value in found.items() if value}


@dataclass(slots=True)
class PageVisitor:
    """Reads pages, and remembers of each what the next look needs."""

    source: str
    client: PoliteClient
    robots: Robots
    scope: Scope
    html: HtmlReader
    pdf: FileReader
    known: dict[str, Known] = field(default_factory=dict)
    """By address, which is the page's key."""
    following: bool = False
    """Whether pages were read before, so that what is gone must be told."""
    found: tuple[str, ...] = ()
    """Addresses that the last page links to."""
    unreached: int = 0
    """Pages that the host should have sent and did not."""
    done: set[str] = field(default_factory=set)
    _failures: int = 0

    def visit(self, url: str, *, conditional: bool = True) -> Iterator[FeedItem]:
        """What there is to say of the page at an address, once: it may turn out to be another's second address."""
        self.found = ()
        if url in self.done:
            return
        self.done.add(url)
        if not self.robots.allows(url):
            yield self._forbidden(url)
            return
        known = self.known.get(url, Known())
        try:
            reply = self._get(url, known if conditional else Known())
        except PageFault as fault:
            yield self._fault(url, fault)
            return
        self._failures = 0
        if reply.status == 304:
            yield UnchangedPage(key=url)
            return
        yield from self._read(url, reply)

    def _get(self, url: str, known: Known) -> Reply:
        return self.client.get(url, headers=known.validators, types=(*HTML_TYPES, PDF_TYPE))

    def _forbidden(self, url: str) -> FeedItem:
        reason = "robots.txt forbids to read it"
        return FailedPage(key=url, reason=reason) if url in self.known else SkippedPage(key=url, reason=reason)

    def _fault(self, url: str, fault: PageFault) -> FeedItem:
        if isinstance(fault, BusyFault):
            raise SourceError(f"{fault.reason[:1].upper()}{fault.reason[1:]}; try again after that.") from fault
        if fault.status in {404, 410}:
            self._failures = 0
            if self.following:
                self.known.pop(url, None)
                return GonePage(key=url)
            return SkippedPage(key=url, reason=f"it is not there (status {fault.status})")
        trouble = fault.status >= 500 or isinstance(fault.__cause__, httpx.HTTPError)
        self._failures += trouble
        self.unreached += trouble
        if self._failures >= MANY_FAILURES:
            raise SourceError(
                f"{MANY_FAILURES} pages in a row failed, the last because {fault.reason}; try again later."
            )
        return FailedPage(key=url, reason=fault.reason)

    def _read(self, url: str, reply: Reply) -> Iterator[FeedItem]:
        landed = self.scope.page(reply.url)
        if not landed:
            yield FailedPage(key=url, reason="it leads out of the part of the site that is read")
            return
        if LOGIN_PATH.search(reply.url) and not LOGIN_PATH.search(url):
            yield FailedPage(key=url, reason="it leads to a login page")
            return
        if reply.content_type == PDF_TYPE:
            yield from self._pdf(url, reply)
            return
        try:
            content = self.html.read(reply.text, address=reply.url, name=url)
        except TooMuchError as error:
            yield FailedPage(key=url, reason=str(error))
            return
        if content.asks_password and len(content.text) < LOGIN_CHARACTERS:
            yield FailedPage(key=url, reason="it asks for a password")
            return
        if len(content.text) < NOT_FOUND_CHARACTERS and NOT_FOUND.search(content.title):
            # Status 200 says otherwise, so it is no reason to delete what was stored when it could be read.
            reason = "it says itself that there is no such page"
            yield FailedPage(key=url, reason=reason) if self.following else SkippedPage(key=url, reason=reason)
            return
        self.found = () if "nofollow" in content.robots else content.addresses
        key = self._key(landed, content)
        if key != url:
            yield from self._second_address(url)
            if key in self.done:
                return
            self.done.add(key)
        yield from self._page(key, reply, content)

    def _key(self, landed: str, content: HtmlContent) -> str:
        """The address that the page itself calls its own, unless all pages call the same one theirs, by mistake."""
        canonical = self.scope.page(content.canonical)
        if not canonical or canonical == landed or not self.robots.allows(canonical):
            return landed
        known = self.known.get(canonical)
        other = known is not None and known.title not in {"", content.title}
        by_mistake = name_in(canonical) == "" != name_in(landed)
        return landed if other or by_mistake else canonical

    def _second_address(self, url: str) -> Iterator[FeedItem]:
        if self.following and url in self.known:
            del self.known[url]
            yield GonePage(key=url)

    def _page(self, key: str, reply: Reply, content: HtmlContent) -> Iterator[FeedItem]:
        tag = f"{content.robots} {reply.headers.get('x-robots-tag', '').lower()}"
        reason = "its own robots tag asks that it is not indexed" if "noindex" in tag or "none" in tag.split() else ""
        if reason:
            yield SkippedPage(key=key, reason=reason)
            yield from self._second_address(key)
            return
        if not content.text:
            yield FailedPage(key=key, reason="empty") if self.following else SkippedPage(key=key, reason="empty")
            return
        name = name_in(key)
        title = content.title or name or key
        links = tuple(dict.fromkeys(self._titled(content.links, key, title)))
        page = Page(
            source=self.source,
            key=key,
            title=title,
            text=content.text,
            url=key,
            page_type=type_of_article(title, content.cleaned(links)),
            language=content.language,
            modified=content.modified,
            aliases=(name,) if name and name.casefold() != title.casefold() else (),
            links=links,
            categories=content.categories,
            sections=content.sections,
        )
        yield from self._told(page, reply)

    def _pdf(self, url: str, reply: Reply) -> Iterator[FeedItem]:
        try:
            content = self.pdf.read(reply.body)
        except TooMuchError as error:
            yield FailedPage(key=url, reason=str(error))
            return
        item = file_page(content, source=self.source, key=url, url=url, named=name_in(url) or url)
        yield from self._told(item, reply) if isinstance(item, Page) else [item]

    def _told(self, page: Page, reply: Reply) -> Iterator[FeedItem]:
        digest = hashlib.sha1(repr(page).encode("utf-8", "replace"), usedforsecurity=False).hexdigest()[:16]
        before = self.known.get(page.key)
        headers = reply.headers
        self.known[page.key] = Known(
            headers.get("etag", "")[:200], headers.get("last-modified", "")[:40], digest, page.title
        )
        same = self.following and before is not None and before.digest == digest
        yield UnchangedPage(key=page.key) if same else page

    def _titled(self, links: tuple[Link, ...], own: str, title: str) -> Iterator[Link]:
        """Links within the site, as titles. A page not read yet goes by the name in its address, which is its alias."""
        for link in links:
            url = self.scope.page(link.target)
            if not url or url == own:
                continue
            known = self.known.get(url)
            target = (known.title if known else "") or name_in(url) or link.shown
            if target and target != title and self.scope.worth_following(canonical_url(url)):
                yield Link(target=target, shown=link.shown)
