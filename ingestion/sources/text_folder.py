"""A folder of plain text as a wiki, and how its headings are told."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from graph.model import Page
from graph.protocols import Source
from ingestion.clean import CleanedText, TextAssembly
from ingestion.page_types import type_of_article
from ingestion.sanitize import clean_title
from ingestion.sources.file_folder import TextFileFolder, folder_of
from ingestion.sources.folder_titles import FolderTitles, title_of_path
from ingestion.sources.kinds import Place, SourceOptions

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
class TextFolder(TextFileFolder):
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
