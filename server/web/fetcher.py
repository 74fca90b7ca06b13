"""Fetches web pages for their text: only from checked addresses, only so much, only for so long."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass

import httpcore

from graph.errors import DependencyBusyError, DependencyDownError
from graph.web_page import WebPage
from ingestion.file_content import FileReader
from ingestion.killable import TooMuchError
from ingestion.language import detect_language
from ingestion.sources.pdf_folder import pdf_reader
from ingestion.sources.reply_body import decode
from server.web.addresses import WebAddress, follow, nothing_blocked, parse_url
from server.web.decoding import visible
from server.web.download import DEPENDENCY, Download, Downloader
from server.web.kept_pages import KeptPages
from server.web.manners import Manners
from server.web.network import Resolve
from server.web.page_check import PageError, leads_to_front, why_no_page
from server.web.reader import PageReader, Readable
from server.web.robots_rules import RobotsRules

MAX_REDIRECTS = 5
HTML = ("text/html", "application/xhtml+xml", "text/plain")
PDF = "application/pdf"
PDF_SECONDS = 30.0
"""pypdf reads some ten to fifty dense pages a second."""
Turn = Callable[[WebAddress], AbstractAsyncContextManager[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """The last hop of a page."""

    address: WebAddress
    download: Download
    seconds_left: float


class WebFetcher:
    """Pages of the open web as text: `fetch` one for a question that waits, `read` many for research."""

    def __init__(
        self,
        *,
        seconds: float = 10.0,
        max_bytes: int = 5_000_000,
        allow_private: bool = False,
        blocked: Callable[[str], bool] = nothing_blocked,
        pdf_bytes: int = 0,
        host_seconds: float = 1.0,
        respect_robots: bool = True,
        resolve: Resolve | None = None,
        backend: httpcore.AsyncNetworkBackend | None = None,
        reader: PageReader | None = None,
    ) -> None:
        """`seconds` is for a whole page, with redirects and reading but without the time that it waits for its turn;
        `max_bytes` counts decoded bytes. `blocked` is asked for each URL, also for one that a redirect leads to.
        `pdf_bytes`, `host_seconds` and `respect_robots` are for `read` alone."""
        self._seconds = seconds
        self._allow_private = allow_private
        self._limits = dict.fromkeys(HTML, max_bytes)
        self._read_limits = {**self._limits, PDF: pdf_bytes}
        self._reader = reader or PageReader()
        self._owns_reader = reader is None
        self._pdf_reader: FileReader | None = None
        self._downloader = Downloader(allow_private=allow_private, blocked=blocked, resolve=resolve, backend=backend)
        robots = RobotsRules(self._downloader, allow_private=allow_private) if respect_robots else None
        self._manners = Manners(robots, host_seconds=host_seconds)
        self._kept = KeptPages()

    async def fetch(self, url: str) -> tuple[str, str]:
        """(title, main text)."""
        address = parse_url(url, allow_private=self._allow_private)
        self._reader.prepare()
        found = await self._follow(address, self._limits, {}, lambda _: nullcontext())
        async with _deadline(found.address.host, found.seconds_left, self._seconds):
            page = await self._readable(found, about=False)
        if why := why_no_page(page, asked=address.url, url=found.address.url):
            raise PageError(found.address.host, why)
        return page.title or found.address.host, page.text

    async def read(self, url: str) -> WebPage:
        """With what it says of itself; HTML, plain text or PDF. It waits for its turn, and for as long as a busy host
        asks, once."""
        address = parse_url(url, allow_private=self._allow_private)
        self._reader.prepare()
        try:
            return await self._polite(address)
        except DependencyBusyError as error:
            await self._manners.bear(error)
            return await self._polite(address)

    async def close(self) -> None:
        await self._downloader.close()
        if self._pdf_reader is not None:
            await asyncio.to_thread(self._pdf_reader.close)
        if self._owns_reader:
            await self._reader.close()

    async def _polite(self, address: WebAddress) -> WebPage:
        found = await self._follow(address, self._read_limits, self._kept.headers(address.url), self._manners.turn)
        if found.download.status == 304 and (kept := self._kept.get(address.url)):
            return kept
        host = found.address.host
        if leads_to_front(address.url, found.address.url):
            raise PageError(host, "its host leads to its front page instead")
        is_pdf = found.download.kind == PDF
        left = PDF_SECONDS if is_pdf else found.seconds_left
        async with _deadline(host, left, left if is_pdf else self._seconds):
            page = await (self._pdf(found) if is_pdf else self._readable(found, about=True))
            if why := why_no_page(page, asked=address.url, url=found.address.url):
                raise PageError(host, why)
            language = await asyncio.to_thread(detect_language, page.text, default=page.language)
        made = WebPage(
            url=found.address.url,
            title=page.title or host,
            text=page.text,
            author=page.author,
            published=page.published,
            language=language,
        )
        self._kept.put(address.url, made, found.download.headers)
        return made

    async def _follow(
        self, address: WebAddress, limits: Mapping[str, int], headers: Mapping[str, str], turn: Turn
    ) -> _Found:
        """Download it, redirects followed. `headers` are for the first hop alone."""
        loop = asyncio.get_running_loop()
        left = self._seconds
        first, seen = address, set[str]()
        while address.url not in seen and len(seen) <= MAX_REDIRECTS:
            seen.add(address.url)
            async with turn(address):
                begun = loop.time()
                async with _deadline(address.host, left, self._seconds):
                    sent = headers if address is first else {}
                    download = await self._downloader.get(address, limits=limits, headers=sent)
                left = max(left - (loop.time() - begun), 0.0)
            if not download.location:
                return _Found(address=address, download=download, seconds_left=left)
            address = follow(address, download.location, allow_private=self._allow_private)
        raise PageError(address.host, f"it redirects in circles or more than {MAX_REDIRECTS} times")

    async def _readable(self, found: _Found, *, about: bool) -> Readable:
        text = decode(found.download.body, found.download.headers.get("content-type", ""))
        if found.download.kind == "text/plain":
            name = found.address.target.partition("?")[0].rsplit("/", 1)[-1]
            return Readable(title=name or found.address.host, text=visible(text).strip())
        page = await self._reader.read(text, about=about)
        if page.problem:
            raise PageError(found.address.host, page.problem)
        return page

    async def _pdf(self, found: _Found) -> Readable:
        if self._pdf_reader is None:
            self._pdf_reader = pdf_reader()
        try:
            content = await asyncio.to_thread(self._pdf_reader.read, found.download.body)
        except TooMuchError as error:
            raise PageError(found.address.host, str(error)) from error
        if why := content.problem or content.skipped:
            raise PageError(found.address.host, why)
        name = found.address.target.partition("?")[0].rsplit("/", 1)[-1]
        return Readable(
            title=visible(content.title) or name,
            text=visible(content.text),
            published=content.modified,
            language=content.language,
        )


@asynccontextmanager
async def _deadline(host: str, seconds: float, told: float) -> AsyncIterator[None]:
    """What is not there in time, or whose connection breaks, is down; `told` is the whole page's time."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except (TimeoutError, httpcore.TimeoutException):
        raise DependencyDownError(f"{host} did not send the page within {told:g} s.", dependency=DEPENDENCY) from None
    except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.UnsupportedProtocol, OSError) as error:
        raise DependencyDownError(
            f"{host} cannot be reached ({type(error).__name__}).", dependency=DEPENDENCY
        ) from error
