"""A folder of HTML files as a wiki: a saved site, a generated manual, an export."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, urlsplit

from graph.errors import SourceError
from graph.model import FailedPage, Link, Page, PageType, SkippedPage, SourceItem
from graph.protocols import Source
from ingestion.killable import TooMuchError
from ingestion.main_content import HtmlContent, HtmlReader
from ingestion.page_types import type_of_article
from ingestion.sanitize import clean_title
from ingestion.sources.file_folder import HEAD_BYTES, MAX_FILE_BYTES, FileFolder, folder_of
from ingestion.sources.folder_titles import FolderTitles, Look, PageResolver, file_start, title_of_path
from ingestion.sources.kinds import Place, SourceOptions
from ingestion.sources.reply_body import decode

SUFFIXES = frozenset({".html", ".htm", ".xhtml"})
ROOT = "file:///"
"""Where the folder is, as its pages' links see it."""
META = re.compile(r"<meta\s[^<>]{0,2000}>", re.IGNORECASE)
PROPERTY = re.compile(r"(?:property|name)\s{0,9}=\s{0,9}[\"']?og:(title|site_name)\b", re.IGNORECASE)
CONTENT = re.compile(r"content\s{0,9}=\s{0,9}(?:\"([^\"<>]{0,1000})\"|'([^'<>]{0,1000})')", re.IGNORECASE)
TITLE = re.compile(r"<title(?:\s[^<>]{0,500})?>([^<]{1,1000})", re.IGNORECASE)
HEADING = re.compile(r"<h1(?:\s[^<>]{0,1000})?>(.{1,400}?)</h1", re.IGNORECASE | re.DOTALL)
TAG = re.compile(r"<[^<>]{0,1000}>")
SUFFIX = re.compile(" (?:[-–—|·»:•]|::) ")
REFRESH = re.compile(
    r"<meta\s[^<>]{0,500}http-equiv\s{0,9}=\s{0,9}[\"']?refresh[\"']?[^<>]{0,500}?url\s{0,9}=\s{0,9}[\"']?([^\"'<>\s]{1,1000})",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class HtmlFolder(FileFolder):
    """Its links are resolved to titles by a first pass over the files' heads, as a Markdown folder's are."""

    kind: str = "html"
    reader: HtmlReader = field(default_factory=HtmlReader, compare=False, repr=False)

    def is_page(self, path: str) -> bool:
        return Path(path).suffix.lower() in SUFFIXES

    def close(self) -> None:
        self.reader.close()

    def learn(self, path: str, head: str, titles: FolderTitles) -> None:
        titles.add(path, head_title(head) or title_of_path(path), ())

    def _titles(self, look: Look) -> FolderTitles:
        titles = FolderTitles()
        for path in look.files:
            try:
                start = file_start(self.root / path, HEAD_BYTES)[0]
            except (OSError, ValueError):
                start = b""  # reading the page says what is wrong with it
            # Cut where no character can be torn.
            self.learn(path, decode(start[: start.rfind(b">") + 1], ""), titles)
        return titles

    def _item(self, path: str, titles: FolderTitles) -> SourceItem:
        key = self.key_of(path)
        try:
            data, size = file_start(self.root / path, MAX_FILE_BYTES)
        except OSError as error:
            return FailedPage(key=key, reason=f"cannot be read: {error.strerror or error}")
        except ValueError as error:
            return FailedPage(key=key, reason=str(error))
        if size > MAX_FILE_BYTES:
            return FailedPage(key=key, reason=f"{size:,} bytes; a page may have {MAX_FILE_BYTES:,}")
        if b"\0" in data and not data.startswith((b"\xff\xfe", b"\xfe\xff")):
            return FailedPage(key=key, reason="not a text file: it has zero bytes")
        text = decode(data, "")
        if (refresh := REFRESH.search(text[:HEAD_BYTES])) and (redirect := self._redirect(path, refresh[1], titles)):
            return redirect
        try:
            content = self.reader.read(text, address=f"{ROOT}{quote(path)}", name=key)
        except TooMuchError as error:
            return FailedPage(key=key, reason=str(error))
        return self._page(path, content, titles) if content.text else SkippedPage(key=key, reason="empty")

    def _page(self, path: str, content: HtmlContent, titles: FolderTitles) -> Page:
        title = titles.title_of(path) or content.title or title_of_path(path)
        resolver = titles.resolver(path, self.base_url)
        links = tuple(dict.fromkeys(_titled(content.links, resolver, title)))
        return Page(
            source=self.name,
            key=self.key_of(path),
            title=title,
            text=content.text,
            url=self._url(path),
            page_type=type_of_article(title, content.cleaned(links)),
            language=content.language,
            modified=content.modified,
            aliases=titles.aliases_of(path),
            links=links,
            categories=content.categories,
            sections=content.sections,
        )

    def _redirect(self, path: str, href: str, titles: FolderTitles) -> Page | None:
        """A page that sends its readers on at once."""
        target = titles.resolver(path, self.base_url).path_link(html.unescape(href))
        title = titles.title_of(path) or title_of_path(path)
        if not target or target == title:
            return None
        key = self.key_of(path)
        page_type = PageType.REDIRECT
        return Page(
            source=self.name, key=key, title=title, redirect_to=target, url=self._url(path), page_type=page_type
        )

    def _url(self, path: str) -> str:
        return f"{self.base_url.rstrip('/')}/{quote(path)}" if self.base_url else self.key_of(path)


def _titled(links: Sequence[Link], resolver: PageResolver, own: str) -> Iterator[Link]:
    """Links within the folder, as titles."""
    for link in links:
        href = link.target
        if href.startswith(ROOT):
            href = urlsplit(href).path
        target = resolver.path_link(href)
        if target and target != own:
            yield Link(target=target, shown=link.shown)


def head_title(head: str) -> str:
    """A page's title, without the site's name, from its first characters; as `html_about.title_of` finds it."""
    named: dict[str, str] = {}
    for meta in META.finditer(head):
        which, content = PROPERTY.search(meta[0]), CONTENT.search(meta[0])
        if which and content:
            named.setdefault(which[1].lower(), _words(content[1] or content[2] or ""))
    site, given = named.get("site_name", ""), named.get("title", "")
    shown = _words(match[1]) if (match := TITLE.search(head)) else ""
    headings = [words for heading in HEADING.finditer(head) if (words := _words(TAG.sub("", heading[1])).strip("¶§# "))]
    if given:
        return _without(given, site)
    for heading in headings:
        if shown.casefold().startswith(heading.casefold()):
            return heading
    if shown:
        cut = _without(shown, site)
        return cut if cut != shown else SUFFIX.split(shown)[0] or shown
    return headings[0] if headings else ""


def _words(markup: str) -> str:
    return clean_title(html.unescape(markup))


def _without(title: str, site: str) -> str:
    for cut in reversed(list(SUFFIX.finditer(title))):
        if site and title[cut.end() :].casefold() == site.casefold() and title[: cut.start()].strip():
            return title[: cut.start()].strip()
    return title


@dataclass(frozen=True, slots=True)
class HtmlFolderKind:
    """Option `formulas=yes`: pictures of formulas are read as TeX."""

    name: str = "html"
    about: str = "a folder of HTML files: a saved site, a generated manual"

    def fits(self, place: Place) -> int:
        if place.path is None or not place.names:
            return 0
        files = [name for name in place.names if not name.endswith("/")]
        pages = sum(Path(name).suffix.lower() in SUFFIXES for name in files)
        if not pages:
            return 0
        # Beside pages of another kind HTML is often what was made of them.
        return 60 if 2 * pages > len(files) or any(name in place.names for name in ("index.html", "index.htm")) else 30

    def open(self, place: Place, options: SourceOptions) -> Source:
        if place.path is not None and place.path.is_file():
            raise SourceError(f"{place.shown} is a file; HTML is read from a folder: give the one that holds it.")
        root = folder_of(place, "HTML files")
        reader = HtmlReader(formulas=options.extra.get("formulas", "no").lower() in {"yes", "true", "1", "on"})
        return HtmlFolder(root=root, name=options.name, base_url=options.base_url, reader=reader)


KIND = HtmlFolderKind()
