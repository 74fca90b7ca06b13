"""Sitemaps: the addresses of a site's pages, from XML or plain text, packed or not, and from files that name others."""

from __future__ import annotations

import html
import re
import zlib
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from graph.errors import SourceError
from ingestion.sources.polite_http import PageFault, PoliteClient
from ingestion.sources.reply_body import decode
from ingestion.sources.site_urls import Scope

MAX_SITEMAPS = 1_000
MAX_UNPACKED = 60_000_000
"""Bytes; the protocol allows 50 MB."""
GZIP = b"\x1f\x8b"
ROOT = re.compile(r"<(?:([A-Za-z][\w.-]{0,30}):)?(urlset|sitemapindex)\b")
PLAIN_URL = re.compile(r"https?://\S{1,2000}")


@dataclass(frozen=True, slots=True)
class Sitemap:
    """One file's addresses: of pages, or of other sitemaps."""

    urls: tuple[str, ...] = ()
    sitemaps: tuple[str, ...] = ()


@dataclass(slots=True)
class SitemapReader:
    """Reads sitemaps and what they name. After reading, it knows how much was left out and why."""

    client: PoliteClient
    scope: Scope
    limit: int
    elsewhere: int = 0
    """Addresses of other hosts, or not below the start."""
    truncated: bool = False
    _seen: set[str] = field(default_factory=set)

    def urls(self, sitemaps: Sequence[str], *, guessed: bool) -> Iterator[str] | None:
        """Canonical addresses, each once. None where there is no sitemap at a place that was only `guessed`.

        A sitemap that cannot be read though another, or robots.txt, names it, raises `SourceError`: with half of the
        addresses, the other half would seem to be gone.
        """
        first: list[Sitemap] = []
        named: list[str] = []
        for url in sitemaps:
            if not self.scope.same_host(url):
                self.elsewhere += 1
                continue
            try:
                first.append(self._fetch(url))
            except PageFault as fault:
                if not guessed and fault.status not in {404, 410}:
                    raise _unreadable(fault) from fault
            named.append(url)
        if not any(sitemap.urls or sitemap.sitemaps for sitemap in first):
            return None
        return self._walk(first, named)

    def _walk(self, first: Sequence[Sitemap], named: Sequence[str]) -> Iterator[str]:
        waiting = deque(first)
        asked = set(named)
        while waiting:
            sitemap = waiting.popleft()
            for url in sitemap.urls:
                canonical = self.scope.page(url)
                if not canonical:
                    self.elsewhere += 1
                elif canonical not in self._seen:
                    if len(self._seen) >= self.limit:
                        self.truncated = True
                        return
                    self._seen.add(canonical)
                    yield canonical
            for url in sitemap.sitemaps:
                if not self.scope.same_host(url):
                    self.elsewhere += 1
                elif url not in asked and len(asked) < MAX_SITEMAPS:
                    asked.add(url)
                    try:
                        waiting.append(self._fetch(url))
                    except PageFault as fault:
                        raise _unreadable(fault) from fault

    def _fetch(self, url: str) -> Sitemap:
        reply = self.client.get(url)
        try:
            return parse_sitemap(reply.body, reply.headers.get("content-type", ""))
        except ValueError as error:
            raise PageFault(f"{url[:200]} {error}") from error


def parse_sitemap(data: bytes, content_type: str = "") -> Sitemap:
    """Empty for what is no sitemap, a page of HTML for one. Raises ValueError for a file that is damaged or a bomb."""
    if data.startswith(GZIP):
        data = _unpacked(data)
    text = decode(data, content_type)
    root = ROOT.search(text[:5000])
    if root is None:
        return Sitemap() if "<" in text[:1000] else Sitemap(urls=tuple(PLAIN_URL.findall(text)))
    # By pattern, not by a parser: sitemaps are flat, often not well-formed, and may carry entity bombs.
    prefix = f"{root[1]}:" if root[1] else ""
    location = re.compile(rf"<{prefix}loc>\s{{0,99}}(?:<!\[CDATA\[\s{{0,99}})?([^<>\s\]]{{1,2048}})")
    found = tuple(html.unescape(match[1]) for match in location.finditer(text))
    if f"</{prefix}{root[2]}>" not in text[-500:]:
        raise ValueError("breaks off in the middle")
    return Sitemap(urls=found) if root[2] == "urlset" else Sitemap(sitemaps=found)


def _unpacked(data: bytes) -> bytes:
    unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        text = unpacker.decompress(data, MAX_UNPACKED + 1)
    except zlib.error as error:
        raise ValueError("is not packed the way it says") from error
    if len(text) > MAX_UNPACKED:
        raise ValueError(f"unpacks to more than {MAX_UNPACKED:,} bytes")
    if not unpacker.eof:
        raise ValueError("breaks off in the middle")
    return text


def _unreadable(fault: PageFault) -> SourceError:
    return SourceError(f"A sitemap cannot be read: {fault.reason}; nothing was changed, try again later.")
