"""A MediaWiki XML dump (.xml, .bz2, .gz, .xz, .7z) as a wiki, streamed: a bounded part in memory whatever its size."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from graph.errors import SourceError
from graph.model import FailedPage, Page, PageType, SkippedPage, SourceItem
from ingestion.page_types import type_of_namespace
from ingestion.sanitize import clean_key, clean_title, printable_name
from ingestion.sources.dump_stream import PACKED, xml_text
from ingestion.sources.dump_xml import PageRecord, Revision, SiteInfo, read_dump
from ingestion.sources.kinds import Place, SourceKind, SourceOptions
from ingestion.wiki_site import WikiSite, WikiTitle
from ingestion.wikitext_worker import Draft, finish_pages

MAX_PAGE_CHARACTERS = 4_000_000
"""MediaWiki itself allows 2 MB by default."""
DUMP_FILE = re.compile(
    r"(?:\d{1,6})?\.xml(?:-p\d{1,18}p\d{1,18}(?:-[a-z]{1,20})?)?(?:\.(?:bz2|gz|xz|7z|lzma))?$", re.IGNORECASE
)
"""The end of a dump's name, `…-pages-articles2.xml-p41243p151573.bz2`; what stands before it is common to its parts."""
NUMBER = re.compile(r"(\d+)")
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
    """A file, or a folder of one dump's parts."""
    name: str
    base_url: str = ""
    kind: str = "mediawiki-xml"

    def read(self) -> Iterator[SourceItem]:
        for file in dump_files(self.path):
            yield from self._read_file(file)

    def _read_file(self, file: Path) -> Iterator[SourceItem]:
        records = read_dump(file, xml_text(file), max_text=MAX_PAGE_CHARACTERS)
        first = next(records, None)
        if first is None:
            return
        assert isinstance(first, SiteInfo)
        site = WikiSite(
            first.namespaces,
            base=self.base_url or first.base,
            language=first.language.partition("-")[0].lower(),
            first_letter=first.first_letter,
        )
        pages = (self.draft(record, site) for record in records if isinstance(record, PageRecord))
        yield from finish_pages(pages, site)

    def draft(self, record: PageRecord, site: WikiSite) -> Draft | SourceItem:
        """A page whose text is still to be cleaned, or what there is to say of it without."""
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
        page = self._page(key, title, revision, site)
        if target := _redirect(record, revision.text, site):
            return replace(page, page_type=PageType.REDIRECT, redirect_to=target)
        if revision.model not in ("wikitext", ""):
            return SkippedPage(key=key, reason=f"its content is {clean_title(revision.model)}, not wikitext")
        if not revision.text.strip():
            is_stub = revision.size and not revision.text
            return SkippedPage(key=key, reason="this dump holds no texts (it is a stub dump)" if is_stub else "empty")
        return Draft(page=page, name=title.name, wikitext=revision.text)

    def _page(self, key: str, title: WikiTitle, revision: Revision, site: WikiSite) -> Page:
        return Page(
            source=self.name,
            key=key,
            title=title.full,
            url=site.url(title.full),
            page_type=type_of_namespace(title.namespace),
            wiki_language=site.language,
            revision=str(revision.id or ""),
            modified=revision.timestamp,
        )


@dataclass(frozen=True, slots=True)
class MediaWikiXmlKind:
    """Dumps, as `dumpBackup.php`, Wikimedia and Special:Export make them."""

    name: str = "mediawiki-xml"
    about: str = "a MediaWiki XML dump (.xml, .bz2, .gz, .xz, .7z), or a folder of one dump's parts"

    def fits(self, place: Place) -> int:
        if place.path is None:
            return 0
        if place.names:
            return 60 if any(DUMP_FILE.search(name) and "pages" in name for name in place.names) else 0
        if place.head.startswith(PACKED):
            return 90 if ".xml" in place.path.name.lower() else 40
        # Without its zero bytes, UTF-16 looks like ASCII here.
        head = place.head.replace(b"\0", b"").lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n")
        if b"<mediawiki" in head:
            return 100
        # Its own reader says best what another kind of XML is.
        return 20 if head.startswith(b"<?xml") else 5 if head.startswith(b"<") else 0

    def open(self, place: Place, options: SourceOptions) -> MediaWikiXml:
        if place.path is None:
            raise SourceError(f"{place.shown} is a URL, and a MediaWiki dump is a file; download it and give its path.")
        if place.path.is_dir():
            dump_files(place.path)
        return MediaWikiXml(path=place.path, name=options.name, base_url=options.base_url)


KIND: SourceKind = MediaWikiXmlKind()


def dump_files(path: Path) -> list[Path]:
    """The files of one dump, in order. Raises `SourceError` for a folder that holds none, or several."""
    if not path.is_dir():
        return [path]
    try:
        found = [(match, file) for file in path.iterdir() if (match := DUMP_FILE.search(file.name)) and file.is_file()]
    except OSError as error:
        raise SourceError(f"The folder {path} cannot be listed ({error.strerror or error}); check it.") from error
    dumps = sorted({file.name[: match.start()] for match, file in found})
    if not dumps:
        raise SourceError(f"The folder {path} holds no MediaWiki dump (.xml, .xml.bz2, .xml.gz, .xml.xz or .xml.7z).")
    if len(dumps) > 1:
        shown = ", ".join(printable_name(name) for name in dumps[:5])
        raise SourceError(f"The folder {path} holds several dumps ({shown}); give the path of one of its files.")
    return [file for _, file in sorted(found, key=lambda pair: _numbers(pair[1].name))]


def _numbers(name: str) -> list[tuple[int, str]]:
    """Sorts part 10 after part 2."""
    return [(int(part[:18]), "") if part.isdecimal() else (-1, part) for part in NUMBER.split(name)]


def _numbered(site: WikiSite, written: str, namespace: int) -> WikiTitle:
    """A title whose namespace the dump gives: "Re: zero" is an article, whatever it looks like."""
    if namespace == 0:
        return WikiTitle(name=written, full=written)
    return WikiTitle(namespace=namespace, name=written.partition(":")[2].strip() or written, full=written)


def _redirect(record: PageRecord, text: str, site: WikiSite) -> str:
    """Where a page leads: the dump says so, or, in old dumps, `#REDIRECT [[…]]` in whatever language."""
    if record.redirect:
        return site.parse(record.redirect).full
    match = REDIRECT.match(text[:1000])
    if not match:
        return ""
    word = match["word"]
    # In a language not listed: `#` and a word all in capitals. A list item would be written "# word".
    is_word = word.casefold() in REDIRECT_WORDS or (word.isalpha() and word == word.upper())
    return site.parse(match["target"]).full if is_word or record.is_redirect else ""
