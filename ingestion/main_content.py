"""Web pages to their main text, headings, links and title, read in a child process that can be killed."""

from __future__ import annotations

import logging

import msgspec

from graph.model import Link, Section
from ingestion.clean import CleanedText
from ingestion.killable import KillableWorker, TooMuchError
from ingestion.sanitize import clean_text

logger = logging.getLogger(__name__)

MEMORY_BYTES = 400_000_000
BASE_SECONDS = 0.8
SECONDS_PER_MEGABYTE = 2.5
"""Measured: Trafilatura takes 1.3 s for a Wikipedia page of 1 MB; what is hostile is small or takes minutes."""
PLAIN_SECONDS = 2.0
MAX_HTML = 8 * 2**20
MAX_LINKS = 20_000
"""Addresses of one page that a crawl looks at."""


class HtmlRequest(msgspec.Struct, frozen=True):
    """A page on its way to the child. `address` is what its links are relative to; `plain`: no more than its text."""

    html: str
    address: str
    plain: bool = False
    formulas: bool = False
    """Whether pictures of formulas (MediaWiki's) are read as TeX."""


class HtmlContent(msgspec.Struct, frozen=True, kw_only=True):
    """What a reader would see of a page. `problem` says why it was read as plain text, or could not be read."""

    title: str = ""
    text: str = ""
    sections: tuple[Section, ...] = ()
    links: tuple[Link, ...] = ()
    """Of the main text; targets are whole addresses."""
    addresses: tuple[str, ...] = ()
    """All that the page links to, for a crawl."""
    categories: tuple[str, ...] = ()
    language: str = ""
    modified: str = ""
    canonical: str = ""
    robots: str = ""
    """What the page's own `<meta name="robots">` says, lower-cased."""
    linked: int = 0
    list_items: int = 0
    asks_password: bool = False
    problem: str = ""

    def cleaned(self, links: tuple[Link, ...]) -> CleanedText:
        """For `type_of_article`, with links that are titles already."""
        return CleanedText(
            text=self.text,
            sections=self.sections,
            links=links,
            categories=self.categories,
            linked=self.linked,
            list_items=self.list_items,
        )


class HtmlReader:
    """Reads one page after the other; a page that is too much costs its child, and is read as plain text."""

    def __init__(self, *, formulas: bool = False, memory_bytes: int = MEMORY_BYTES) -> None:
        self._formulas = formulas
        self._worker = KillableWorker("ingestion.html_extract", memory_bytes=memory_bytes)

    def read(self, html: str, *, address: str, name: str) -> HtmlContent:
        """`name` is for the log. Raises `TooMuchError` where not even its plain text can be had."""
        html = clean_text(html)
        if len(html) > MAX_HTML:
            raise TooMuchError(f"it has {len(html):,} characters; a page may have {MAX_HTML:,}")
        request = HtmlRequest(html, address, formulas=self._formulas)
        try:
            content = self._ask(request, BASE_SECONDS + SECONDS_PER_MEGABYTE * len(html) / 1e6)
        except TooMuchError as error:
            logger.warning("%s: %s; read as plain text", name, error)
            return self._ask(HtmlRequest(html, address, plain=True), PLAIN_SECONDS)
        if content.problem:
            logger.warning("%s: %s; read as plain text", name, content.problem)
            self._worker.restart()  # what it grew to may leave no room for the next page
        return content

    def close(self) -> None:
        self._worker.close()

    def _ask(self, request: HtmlRequest, seconds: float) -> HtmlContent:
        answer = self._worker.call(msgspec.msgpack.encode(request), seconds=seconds)
        try:
            return msgspec.msgpack.decode(answer, type=HtmlContent)
        except msgspec.MsgspecError as error:
            raise TooMuchError("it cannot be read") from error
