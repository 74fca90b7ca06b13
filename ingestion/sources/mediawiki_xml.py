"""A MediaWiki XML dump (.xml, .bz2, .gz) as a wiki, streamed: one page in memory whatever its size."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from graph.model import FailedPage, Page, PageType, SkippedPage, SourceItem
from ingestion.page_types import type_of_article, type_of_namespace
from ingestion.sanitize import clean_key, clean_text, clean_title
from ingestion.sources.dump_stream import xml_text
from ingestion.sources.dump_xml import PageRecord, Revision, SiteInfo, read_dump
from ingestion.wiki_site import WikiSite, WikiTitle
from ingestion.wikitext import clean_wikitext

MAX_PAGE_CHARACTERS = 4_000_000
"""MediaWiki itself allows 2 MB by default."""
REDIRECT = re.compile(
    r"\s*#(?P<word>[^\s#:\[\]{}<>|]{2,30})\s*:?\s*\[\[(?P<target>[^\[\]|{}<>\n]{1,300})(?:\|[^\[\]]*)?\]\]"
)
REDIRECT_WORDS = frozenset(
    {"redirect", "redirection", "weiterleitung", "redirección", "redireccion", "rinvia", "doorverwijzing", "patrz"}
    | {"przekieruj", "omdirigering", "omdiriger", "ohjaus", "uudelleenohjaus", "перенаправление", "перенапр", "виж"}
    | {"перенаправлення", "пренасочване", "преусмери", "preusmjeri", "přesměruj", "presmeruj", "átirányítás", "alih"}
    | {"yönlendirme", "redirecionamento", "birzuzendu", "suuna", "peradresavimas", "đổi", "redirecció", "tilvísun"}
)


@dataclass(frozen=True, slots=True)
class MediaWikiXml:
    """Reads a dump. `base_url`, up to its last `/`, replaces the dump's own idea of where the wiki is.

    A dump that breaks off raises its `SourceError` after the pages before the break.
    """

    path: Path
    name: str
    base_url: str = ""
    kind: str = "mediawiki-xml"

    def read(self) -> Iterator[SourceItem]:
        site = WikiSite()
        for record in read_dump(self.path, xml_text(self.path), max_text=MAX_PAGE_CHARACTERS):
            if isinstance(record, SiteInfo):
                site = WikiSite(
                    record.namespaces,
                    base=self.base_url or record.base,
                    language=record.language.partition("-")[0].lower(),
                    first_letter=record.first_letter,
                )
            else:
                yield self._item(record, site)

    def _item(self, record: PageRecord, site: WikiSite) -> SourceItem:
        written = clean_title(record.title)
        title = site.parse(written) if record.namespace is None else _numbered(site, written, record.namespace)
        key = clean_key(record.title)
        if not title.name:
            return FailedPage(key=key or f"page {record.id}", reason="it has no title")
        revision = record.latest
        if revision is None or revision.text is None:
            return SkippedPage(key=key, reason="its text was deleted" if revision else "it has no revision")
        if revision.too_long:
            return FailedPage(key=key, reason=f"more than {MAX_PAGE_CHARACTERS:,} characters")
        if target := _redirect(record, revision, site):
            return self._page(key, title, revision, site, redirect_to=target)
        if revision.model not in ("wikitext", ""):
            return SkippedPage(key=key, reason=f"its content is {clean_title(revision.model)}, not wikitext")
        if not revision.text.strip():
            return SkippedPage(key=key, reason="empty")
        return self._page(key, title, revision, site)

    def _page(self, key: str, title: WikiTitle, revision: Revision, site: WikiSite, *, redirect_to: str = "") -> Page:
        page_type = PageType.REDIRECT if redirect_to else type_of_namespace(title.namespace)
        cleaned = clean_wikitext("" if redirect_to else clean_text(revision.text or ""), site, name=key)
        if page_type is PageType.ARTICLE:
            page_type = type_of_article(title.name, cleaned)
        return Page(
            source=self.name,
            key=key,
            title=title.full,
            text=cleaned.text,
            url=site.url(title.full),
            page_type=page_type,
            wiki_language=site.language,
            revision=str(revision.id or ""),
            modified=revision.timestamp,
            redirect_to=redirect_to,
            links=tuple(link for link in cleaned.links if link.target != title.full),
            categories=cleaned.categories,
            sections=cleaned.sections,
        )


def _numbered(site: WikiSite, written: str, namespace: int) -> WikiTitle:
    """A title whose namespace the dump gives: "Re: zero" is an article, whatever it looks like."""
    if namespace == 0:
        return WikiTitle(name=written, full=written)
    return WikiTitle(namespace=namespace, name=written.partition(":")[2].strip() or written, full=written)


def _redirect(record: PageRecord, revision: Revision, site: WikiSite) -> str:
    """Where a page leads: the dump says so, or, in old dumps, `#REDIRECT [[…]]` in whatever language."""
    if record.redirect:
        return site.parse(record.redirect).full
    match = REDIRECT.match((revision.text or "")[:1000])
    if not match:
        return ""
    word = match["word"]
    # In a language not listed: `#` and a word all in capitals. A list item would be written "# word".
    is_word = word.casefold() in REDIRECT_WORDS or (word.isalpha() and word == word.upper())
    return site.parse(match["target"]).full if is_word else ""
