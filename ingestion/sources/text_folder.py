"""A folder of files as a wiki: how they are found, read and followed; and its plainest kind, a folder of text files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from graph.errors import SourceError
from graph.feed import Checkpoint, FeedItem, GonePage, UnchangedPage
from graph.model import FailedPage, Page, SkippedPage, SourceItem
from graph.protocols import Source
from ingestion.clean import CleanedText, TextAssembly
from ingestion.page_types import type_of_article
from ingestion.sanitize import clean_key, clean_text, clean_title, decode_bytes
from ingestion.sources.folder_titles import (
    READ_AGAIN,
    FolderTitles,
    Look,
    Mark,
    file_start,
    look_through,
    title_of_path,
)
from ingestion.sources.kinds import Place, SourceOptions

MAX_FILE_BYTES = 8 * 2**20
HEAD_BYTES = 65_536
"""How much of a file the first pass reads, for its title and aliases."""
MAX_CURSOR = 16 * 2**20
CLEANING = 1
"""Counted up when the same file gives another page: then a cursor of before leads to a full read."""


@dataclass(frozen=True, slots=True)
class FileFolder:
    """What all folders of files have in common; a kind says which files are pages, and makes a page of one.

    Symbolic links are never followed: inside the folder they would double pages, outside they leave it.
    """

    root: Path
    name: str
    base_url: str = ""
    kind: str = ""

    def is_page(self, path: str) -> bool:
        raise NotImplementedError

    def left_out(self, path: str) -> str:
        """Why a page is not read, judged by its path; "" if it is."""
        return ""

    def key_of(self, path: str) -> str:
        return clean_key(path)

    def learn(self, path: str, head: str, titles: FolderTitles) -> None:
        """Notes title and aliases of the page that begins with `head`."""
        raise NotImplementedError

    def page(self, path: str, text: str, titles: FolderTitles) -> Page | SkippedPage:
        raise NotImplementedError

    def read(self) -> Iterator[FeedItem]:
        look = self._look()
        if not look.files and not look.others:
            raise SourceError(f"The folder {self.root} holds no page of this kind; check the path, or mount its disk.")
        titles = self._titles(look)
        marks: dict[str, Mark] = {}
        for path in look.files:
            item = self._item(path, titles)
            marks[path] = _mark_after(look, path, item)
            yield item
        yield from look.others
        yield Checkpoint(cursor=self._cursor(look, marks, titles.digest()))

    def changes(self, cursor: str) -> Iterator[FeedItem] | None:
        known = self._known(cursor)
        return None if known is None else self._changes(*known)

    def pages(self, keys: Sequence[str]) -> Iterator[FeedItem]:
        look = self._look()
        if keys and not look.files:
            raise self._vanished(len(keys))
        titles = self._titles(look)
        wanted = dict.fromkeys(keys)
        for path in look.files:
            if (key := self.key_of(path)) in wanted:
                del wanted[key]
                yield from hidden_too(self._item(path, titles))
        for other in look.others:
            if other.key in wanted:
                del wanted[other.key]
                yield other
        for key in wanted:
            unknown = any(key.startswith(self.key_of(folder)) for folder in look.unlisted)
            yield FailedPage(key=key, reason="its folder cannot be listed") if unknown else GonePage(key=key)

    def _changes(self, known: Mapping[str, Mark], digest: str) -> Iterator[FeedItem]:
        look = self._look()
        if known and not look.files:
            raise self._vanished(len(known))
        changed = {path for path, mark in look.files.items() if known.get(path) != mark}
        missing = [path for path in known if path not in look.files]
        others = {other.key for other in look.others}
        stored = {self.key_of(path) for path in known}
        marks = {path: look.mark(path) for path in look.files}
        titles: FolderTitles | None = None
        if changed or missing:
            titles = self._titles(look)
            if titles.digest() != digest:
                changed = set(look.files)  # a link on any page may lead elsewhere now
        for path in look.files:
            if titles is None or path not in changed:
                yield UnchangedPage(key=self.key_of(path))
                continue
            item = self._item(path, titles)
            marks[path] = _mark_after(look, path, item)
            yield from hidden_too(item) if path in known else [item]
        for path in missing:
            if look.hides(path):
                marks[path] = (known[path][0], READ_AGAIN)
                yield FailedPage(key=self.key_of(path), reason="its folder cannot be listed")
            elif self.key_of(path) not in others:
                yield GonePage(key=self.key_of(path))
        for other in look.others:
            yield from hidden_too(other) if other.key in stored else [other]
        yield Checkpoint(cursor=self._cursor(look, marks, titles.digest() if titles else digest))

    def _cursor(self, look: Look, marks: Mapping[str, Mark], digest: str) -> str:
        cursor = json.dumps({"as": self._settings(), "titles": digest, "files": marks}, separators=(",", ":"))
        return cursor if len(cursor) <= MAX_CURSOR else ""  # then each look is a full read

    def _known(self, cursor: str) -> tuple[dict[str, Mark], str] | None:
        """Files and digest of a cursor; None for one that is not ours, or of other settings."""
        try:
            found = json.loads(cursor)
            if found["as"] != self._settings():
                return None
            return {str(path): (int(mark[0]), int(mark[1])) for path, mark in found["files"].items()}, found["titles"]
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
            return None

    def _settings(self) -> list[str]:
        return [self.kind, self.base_url, str(CLEANING)]

    def _vanished(self, count: int) -> SourceError:
        return SourceError(
            f"The folder {self.root} held {count:,} pages and now holds none; check that its disk is mounted, "
            "or remove the source if they are meant to be gone."
        )

    def _look(self) -> Look:
        return look_through(self.root, self)

    def _titles(self, look: Look) -> FolderTitles:
        titles = FolderTitles()
        for path in look.files:
            try:
                head = clean_text(decode_bytes(file_start(self.root / path, HEAD_BYTES)[0], cut=True))
            except (OSError, ValueError):
                head = ""  # reading the page says what is wrong with it
            self.learn(path, head, titles)
        return titles

    def _item(self, path: str, titles: FolderTitles) -> SourceItem:
        key = self.key_of(path)
        try:
            data, size = file_start(self.root / path, MAX_FILE_BYTES)
            if size > MAX_FILE_BYTES:
                return FailedPage(key=key, reason=f"{size:,} bytes; a page may have {MAX_FILE_BYTES:,}")
            text = clean_text(decode_bytes(data))
        except OSError as error:
            return FailedPage(key=key, reason=f"cannot be read: {error.strerror or error}")
        except ValueError as error:
            return FailedPage(key=key, reason=str(error))
        return self.page(path, text, titles) if text.strip() else SkippedPage(key=key, reason="empty")


def _mark_after(look: Look, path: str, item: SourceItem) -> Mark:
    """What could not be read is read again, though its time and size stay: its permissions may be mended."""
    return (look.files[path][0], READ_AGAIN) if isinstance(item, FailedPage) else look.mark(path)


def hidden_too(item: SourceItem) -> Iterator[FeedItem]:
    """An item; and where it is left out now, also that what is stored of it must go."""
    yield item
    if isinstance(item, SkippedPage):
        yield GonePage(key=item.key)


# Plain text.

SUFFIXES = frozenset({".txt", ".text", ".rst", ".adoc", ".asciidoc", ".org"})
MAX_HEADING_LINE = 100
MARKED_HEADING = {".org": re.compile(r"(\*{1,8})[ \t]+(?=\S)"), ".adoc": re.compile(r"(={1,6})[ \t]+(?=\S)")}
UNDERLINE = re.compile(r"([=\-~^\"*+#])\1{2,}$")
SPREAD = re.compile(r"\t|\S {2,}\S")
"""In a line that is more like a table's header than a heading."""
UNSEEN = {
    ".org": re.compile(r"[ \t]*(?:#\+\w+.*|# .*|:[\w-]+:.*|[\w-]+:: .*)$"),
    ".adoc": re.compile(r"(?://.*|:[\w!-]+:(?: .*)?|\[[\w#., =\"%'-]*\]|[-.=_*]{4,})$"),
    ".rst": re.compile(r"(?:\.\. [_\w-].*|\.\.)$"),
}
"""Lines that are not shown: settings, drawers, comments, delimiters. Of directives the text below them stays."""
ORG_LINK = re.compile(r"\[\[(?:[^\[\]\n]{1,2000}\]\[)?([^\[\]\n]{1,500})\]\]")
ORG_MACRO = re.compile(r"\{\{[^{}\n]{0,500}\}\}\}?")
ORG_TITLE = re.compile(r"^#\+TITLE:[ \t]*(\S.*)$", re.IGNORECASE | re.MULTILINE)


def plain_title(head: str, suffix: str) -> str:
    """The first line of a text, if it can only be its title; "" where it may be prose already."""
    if suffix == ".org":  # an outline: its first item is no title
        named = ORG_TITLE.search(head)
        return clean_title(named[1]) if named else ""
    for _, words, _ in _headings(head.lstrip("\n").split("\n")[:4], suffix):
        return clean_title(words)
    first, _, rest = head.lstrip("\n").partition("\n")
    alone = not rest.partition("\n")[0].strip() and bool(rest.strip())
    prose = first.rstrip().endswith((".", ",", ";", ":")) or len(first) > MAX_HEADING_LINE or SPREAD.search(first)
    return clean_title(first) if alone and not prose and first[:1].strip() else ""


def clean_plain(text: str, suffix: str, *, title: str = "") -> CleanedText:
    """Paragraphs as they are, headings where nothing else can be meant."""
    assembly = TextAssembly(make_anchor=slug, repeat=lambda anchor, number: f"{anchor}-{number}")
    if suffix == ".org":
        text = ORG_MACRO.sub("", ORG_LINK.sub(r"\1", text))
    lines = text.split("\n")
    if unseen := UNSEEN.get(suffix):
        headings = {at for at, _, _ in _headings(lines, suffix)}
        lines = ["" if at not in headings and unseen.match(line) else line for at, line in enumerate(lines)]
    done = 0
    for at, words, level in _headings(lines, suffix):
        over = at > done and bool(UNDERLINE.match(lines[at - 1].rstrip()))
        _paragraphs(assembly, lines[done : at - over], title)
        if assembly.text() or words.casefold() != title.casefold():
            assembly.heading(level, words)
        done = at + (1 if suffix in MARKED_HEADING else 2)
    _paragraphs(assembly, lines[done:], title)
    return CleanedText(text=assembly.text(), sections=tuple(assembly.sections))


def slug(heading: str) -> str:
    return "-".join(re.findall(r"\w+", heading.lower()))


def _paragraphs(assembly: TextAssembly, lines: Sequence[str], title: str) -> None:
    for paragraph in re.split(r"\n\s*\n", "\n".join(lines)):
        if assembly.text() or clean_title(paragraph).casefold() != title.casefold():
            assembly.block(paragraph)


def _headings(lines: Sequence[str], suffix: str) -> Iterator[tuple[int, str, int]]:
    """Line number, words and level of each heading. Underlines take their levels in the order in which they appear."""
    levels: dict[str, int] = {}
    marked = MARKED_HEADING.get(suffix)
    for at, line in enumerate(lines):
        if marked:
            if mark := marked.match(line):
                yield at, line[mark.end() :].strip(), len(mark[1])
            continue
        under = UNDERLINE.match(lines[at + 1].rstrip()) if at + 1 < len(lines) else None
        words = line.strip()
        if under is None or not line[:1].strip() or UNDERLINE.match(words) or len(words) > MAX_HEADING_LINE:
            continue
        before = lines[at - 1].strip() if at else ""
        length = len(lines[at + 1].rstrip()) - len(words)
        fits = 0 <= length <= 3 if suffix == ".rst" else abs(length) <= 2
        if fits and not SPREAD.search(words) and (not before or before == lines[at + 1].strip()):
            yield at, words, levels.setdefault(under[1], len(levels) + 1)


@dataclass(frozen=True, slots=True)
class TextFolder(FileFolder):
    """Plain text, and the three markups that read like it; a page's title is its first line, or its file's name."""

    kind: str = "text"

    def is_page(self, path: str) -> bool:
        return Path(path).suffix.lower() in SUFFIXES

    def learn(self, path: str, head: str, titles: FolderTitles) -> None:
        titles.add(path, plain_title(head, Path(path).suffix) or title_of_path(path), ())

    def page(self, path: str, text: str, titles: FolderTitles) -> Page:
        title = titles.title_of(path) or title_of_path(path)
        cleaned = clean_plain(text, Path(path).suffix, title=title)
        address = quote(str(Path(path).with_suffix("")))
        return Page(
            source=self.name,
            key=self.key_of(path),
            title=title,
            text=cleaned.text,
            url=f"{self.base_url.rstrip('/')}/{address}" if self.base_url else self.key_of(path),
            page_type=type_of_article(title, cleaned),
            aliases=titles.aliases_of(path),
            sections=cleaned.sections,
        )


def folder_of(place: Place, what: str) -> Path:
    """The folder at a place; raises `SourceError` where there is none."""
    if place.path is None or not place.path.is_dir():
        raise SourceError(f"{place.shown} is no folder; {what} are read from a folder: give the one that holds them.")
    return place.path


@dataclass(frozen=True, slots=True)
class TextKind:
    name: str = "text"
    about: str = "a folder of plain text: .txt, .rst, .adoc, .org"

    def fits(self, place: Place) -> int:
        count = sum(Path(name).suffix.lower() in SUFFIXES for name in place.names)
        return min(40, 15 + count) if count else 0

    def open(self, place: Place, options: SourceOptions) -> Source:
        return TextFolder(root=folder_of(place, "text files"), name=options.name, base_url=options.base_url)


KIND = TextKind()
