"""DokuWiki's syntax to cleaned text: headings, lists, rows and code stay; links go to the graph; plugins' marks go.

Everything here takes linear time: pairs of marks are looked for with `str.find`, and a mark without its partner ends
the search for that kind. What must not be read as markup is held aside, with a zero byte on either side of its number.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from graph.model import Link
from ingestion.clean import CleanedText, TextAssembly, one_line, table_rows
from ingestion.html_text import VisibleText

logger = logging.getLogger(__name__)

MAX_PARSED = 500_000
MAX_REPEATED = 200
RAW = re.compile(r"<(code|file|nowiki|html|php)\b([^<>\n]{0,200})>|%%", re.IGNORECASE)
HELD = re.compile("\x00(\\d+)\x00")
HELD_ALONE = re.compile("[ \t]*\x00(\\d+)\x00[ \t]*$")
REDIRECT = re.compile(r"~~(?:REDIRECT|GOTO)>[ \t]*([^~\n]{1,500})~~|^#REDIRECT[ \t]+(\S[^\n]{0,500})", re.I | re.M)
MACRO = re.compile(r"~~[A-Z][\w-]{0,40}(?:[:>=!|( ][^~\n]{0,500})?~~")
LIST_ITEM = re.compile(r"( {2,}|\t+)([*-])(?![*-])[ \t]*")
INDENTED = re.compile(r"(?: {2}|\t)(?=[ \t]*\S)")
RULE = re.compile(r"[ \t]*-{4,}[ \t]*$")
QUOTE = re.compile(r">+[ \t]?")
URL = re.compile(r"\b(?:https?|ftps?|irc|gopher|telnet|file)://[^\s|^<>\"\x00\[\]*']+", re.IGNORECASE)
WEB_TARGET = re.compile(r"[a-z][a-z0-9+.-]*://|mailto:|[^\s@|]+@[^\s@|]+\.\w|\\\\|[\w.-]+>|tel:", re.IGNORECASE)
"""Other sites, mail, Windows shares and interwiki links (`wp>Eel`)."""
TAG_NAMES = """
WRAP wrap block inline div span note box color fs fc fg bg del sub sup hidden spoiler tab tabs tabbox accordion alert
panel callout grid col row well badge btn button lead nav pane slider tooltip popover caption figure columns column
newcolumn bootnote typo key kbd hi font center left right sortable datatables datatable searchtable html php u s b i
tt small big br abbr collapse blockquote cite poem markdown textcolor hide folded columns
"""
TAG = re.compile(rf"</?(?:{'|'.join(TAG_NAMES.split())})(?=[\s>/:#.])[^<>\n]{{0,500}}>", re.IGNORECASE)
LINE_BREAK = re.compile(r"\\\\(?:[ \t]|$)", re.MULTILINE)
TAG_WORD = re.compile(r'"([^"\n]{1,200})"|(\S+)')
CELL = re.compile(r"([|^])([^|^]*)")
NAME_OF_FILE = re.compile(r"[^/:|?]*\.(?:png|jpe?g|gif|svg|webp|bmp|mp[34]|ogg|pdf|zip)\b", re.IGNORECASE)


class PageNames(Protocol):
    """Knows the other pages."""

    def page_link(self, target: str) -> str:
        """The title of the page that `[[target]]` leads to; of an unknown page, its name; "" for this page itself."""
        ...


def redirect_of(text: str) -> str:
    """Where a page leads to, as it is written; "" for a page that leads nowhere, or to another site."""
    found = REDIRECT.search(_without_raw(text)) if "REDIRECT" in text or "GOTO" in text else None
    target = (found[1] or found[2]).strip().strip("[]").partition("|")[0] if found else ""
    return "" if WEB_TARGET.match(target) else target


def first_heading(text: str) -> str:
    """The words of a page's first heading, of whatever level."""
    for line in _without_raw(text).split("\n"):
        if heading := _heading(line):
            return one_line(_Page(text="", names=_NoPages()).words(heading[1]))
    return ""


def clean_dokuwiki(text: str, names: PageNames, *, title: str = "", name: str = "") -> CleanedText:
    """The cleaned text of a page. A first heading that only repeats the page's title is left out.

    `name` is for the log: of a page that is too long to be read in time, only the beginning is read as markup.
    """
    rest = ""
    if len(text) > MAX_PARSED:
        logger.warning("%s: longer than %s characters; the rest is read as plain text", name, f"{MAX_PARSED:,}")
        cut = text.rfind("\n", 0, MAX_PARSED) + 1 or MAX_PARSED
        text, rest = text[:cut], text[cut:]
    page = _Page(text=text, names=names, title=title)
    page.read()
    for paragraph in rest.split("\n\n"):
        page.assembly.block(paragraph)
    return CleanedText(
        text=page.assembly.text(),
        sections=tuple(page.assembly.sections),
        links=tuple(dict.fromkeys(page.links)),
        categories=tuple(page.tags),
        linked=page.linked,
        list_items=page.list_items,
    )


def section_anchor(title: str) -> str:
    return re.sub(r"[^\w-]+", "_", title.lower()).strip("_") or "section"


def _new_assembly() -> TextAssembly:
    return TextAssembly(make_anchor=section_anchor, repeat=lambda anchor, number: f"{anchor}{number}")


def _heading(line: str) -> tuple[int, str] | None:
    """Level and words: six `=` are level 1, two level 5."""
    line = line.strip()
    if not (line.startswith("==") and line.endswith("==")):
        return None
    words = line.strip("=").strip()
    marks = len(line) - len(line.lstrip("="))
    return (max(1, 7 - marks), words) if words else None


def in_pairs(text: str, opening: str, closing: str, change: Callable[[str], str]) -> str:
    """The text with each innermost `opening … closing` changed."""
    parts: list[str] = []
    at = 0
    while (start := text.find(opening, at)) >= 0:
        end = text.find(closing, start + len(opening))
        if end < 0:
            break
        start = text.rfind(opening, start, end) if opening != closing else start
        parts += [text[at:start], change(text[start + len(opening) : end])]
        at = end + len(closing)
    return "".join([*parts, text[at:]])


def _split_raw(text: str) -> list[tuple[str, str, str]]:
    """(kind, what its tag says, content) in order; kind "" is text. A tag that never closes is text."""
    parts: list[tuple[str, str, str]] = []
    unclosed: set[str] = set()
    at = begun = 0
    while found := RAW.search(text, at):
        kind = (found[1] or "%%").lower()
        closing = "%%" if kind == "%%" else f"</{found[1]}>"
        end = -1 if closing in unclosed else text.find(closing, found.end())
        if end < 0:
            unclosed.add(closing)
            at = found.end()
            continue
        parts += [("", "", text[begun : found.start()]), (kind, found[2] or "", text[found.end() : end])]
        at = begun = end + len(closing)
    return [*parts, ("", "", text[begun:])]


def _without_raw(text: str) -> str:
    return "\n".join(content for kind, _, content in _split_raw(text) if not kind)


class _NoPages:
    def page_link(self, target: str) -> str:
        return ""


@dataclass(slots=True)
class _Page:
    """Goes through the lines of one page once."""

    text: str
    names: PageNames
    title: str = ""
    assembly: TextAssembly = field(default_factory=_new_assembly)
    links: list[Link] = field(default_factory=list)
    tags: dict[str, None] = field(default_factory=dict)
    linked: int = 0
    list_items: int = 0
    held: list[str] = field(default_factory=list)
    code: dict[int, tuple[str, str]] = field(default_factory=dict)
    """Of what is held, what is a block of code: its language and the code."""
    paragraph: list[str] = field(default_factory=list)
    items: list[str] = field(default_factory=list)
    rows: list[str] = field(default_factory=list)
    indented: list[str] = field(default_factory=list)
    numbers: dict[int, int] = field(default_factory=dict)

    def read(self) -> None:
        for line in self._set_aside().split("\n"):
            self._line(line)
        self._settle()

    def _set_aside(self) -> str:
        """The page with code and unread text held."""
        parts: list[str] = []
        in_row = False
        for kind, said, content in _split_raw(self.text):
            if not kind:
                parts.append(content)
                if "\n" in content:
                    content = content[content.rfind("\n") + 1 :]
                    in_row = content[:1] in ("|", "^")
                elif len(parts) == 1:
                    in_row = content[:1] in ("|", "^")
            elif kind in ("code", "file") and not in_row:
                language = said.split()[0] if said.split() else ""
                self.code[len(self.held)] = ("" if language == "-" else language, content)
                parts.append(f"\n{self.hold('')}\n")
            elif kind in ("code", "file"):
                parts.append(self.hold(f"`{one_line(content)}`"))
            elif kind == "html":
                parts.append(self.hold(one_line(VisibleText().feed(content))))
            elif kind != "php":
                parts.append(self.hold(content))
        return "".join(parts)

    def hold(self, words: str) -> str:
        self.held.append(words)
        return f"\x00{len(self.held) - 1}\x00"

    def _line(self, line: str) -> None:
        alone = HELD_ALONE.match(line)
        if alone and int(alone[1]) in self.code:
            self._settle()
            self.assembly.code(*reversed(self.code[int(alone[1])]))
        elif not line.strip():
            self._settle(but="indented")
            if self.indented:
                self.indented.append("")
        elif heading := _heading(line):
            self._settle()
            self._heading(*heading)
        elif item := LIST_ITEM.match(line):
            self._settle(but="items")
            self._item(item, line[item.end() :])
        elif line[0] in "|^" and len(line) > 1:
            self._settle(but="rows")
            self.rows.append(line)
        elif INDENTED.match(line):
            self._settle(but="indented")
            self.indented.append(line[1 if line[0] == "\t" else 2 :])
        elif RULE.match(line):
            self._settle()
        else:
            self._settle(but="paragraph")
            self.paragraph.append(QUOTE.sub("", line, count=1) if line[0] == ">" else line)

    def _settle(self, but: str = "") -> None:
        """Writes what has been gathered, but for one kind that may go on."""
        if self.paragraph and but != "paragraph":
            self.assembly.block(self.words("\n".join(self.paragraph)))
            self.paragraph.clear()
        if self.items and but != "items":
            self.assembly.block("\n".join(self.items))
            self.items.clear()
            self.numbers.clear()
        if self.rows and but != "rows":
            self._table([self._cells(row) for row in self.rows])
            self.rows.clear()
        if self.indented and but != "indented":
            self.assembly.code("\n".join(self._restored(line) for line in self.indented))
            self.indented.clear()

    def _heading(self, level: int, words: str) -> None:
        words = one_line(self.words(words))
        if self.assembly.sections or self.assembly.text() or words.casefold() != self.title.casefold():
            self.assembly.heading(level, words)

    def _item(self, item: re.Match[str], words: str) -> None:
        depth = max(0, len(item[1].expandtabs(2)) // 2 - 1)
        mark = "- "
        if item[2] == "-":
            self.numbers[depth] = self.numbers.get(depth, 0) + 1
            mark = f"{self.numbers[depth]}. "
        self.numbers = {level: number for level, number in self.numbers.items() if level <= depth}
        self.list_items += 1
        indent = "  " * depth
        self.items.append(indent + mark + self.words(words).strip().replace("\n", f"\n{indent}  "))

    def _cells(self, row: str) -> list[tuple[bool, str]]:
        """(is it a header, its words) of each cell; what spans several columns is followed by empty ones."""
        cells = [(mark == "^", words) for mark, words in CELL.findall(self._marks(row.rstrip()))]
        if cells and not cells[-1][1].strip():
            cells.pop()  # what follows the closing mark
        return [(header, self._restored(self._plain(words))) for header, words in cells]

    def _table(self, table: Sequence[Sequence[tuple[bool, str]]]) -> None:
        header: list[str] = []
        rows: list[list[str]] = []
        above: list[str] = []
        written: list[str] = []
        for cells in table:
            # What is repeated in each row is cut: it would make a gigabyte of a hostile table.
            words = [
                above[n][:MAX_REPEATED] if word.strip() == ":::" and n < len(above) else word
                for n, (_, word) in enumerate(cells)
            ]
            above = words
            if cells and all(is_header for is_header, _ in cells):
                written.append(table_rows(header, rows))
                header, rows = [], []
                spanning = len(words) > 1 and not any(word.strip() for word in words[1:])
                if spanning:  # a caption
                    written.append(one_line(words[0]))
                for word in [] if spanning else words:
                    header.append(one_line(word)[:MAX_REPEATED] if word.strip() or not header else header[-1])
            elif cells and cells[0][0] and not header:
                written.append(table_rows(["", *[words[0][:MAX_REPEATED]] * (len(words) - 1)], [["", *words[1:]]]))
            else:
                rows.append(words)
        written.append(table_rows(header, rows))
        self.assembly.block("\n".join(part for part in written if part))

    def words(self, markup: str) -> str:
        """A paragraph, an item or a heading without its markup; links and tags are noted on the way."""
        return self._restored(self._plain(self._marks(markup)))

    def _marks(self, markup: str) -> str:
        """The markup with what may hold cell marks or slashes of its own held aside."""
        markup = MACRO.sub("", markup)
        markup = in_pairs(markup, "{{", "}}", self._media)
        markup = in_pairs(markup, "[[", "]]", self._link)
        return URL.sub(lambda url: self.hold(url[0]), TAG.sub("", markup))

    def _plain(self, markup: str) -> str:
        for _ in range(2):
            markup = in_pairs(markup, "((", "))", lambda note: f" ({note.strip()})")
        for mark in ("**", "//", "__"):
            markup = in_pairs(markup, mark, mark, lambda inner: inner)
        markup = in_pairs(markup, "''", "''", lambda inner: f"`{inner}`" if inner.strip() else "")
        lines = LINE_BREAK.sub("\x01", markup).replace("\n", " ").split("\x01")
        return "\n".join(" ".join(line.split()) for line in lines)

    def _restored(self, text: str) -> str:
        for _ in range(5):
            if "\x00" not in text:
                break
            text = HELD.sub(lambda mark: self.held[int(mark[1])], text)
        return text

    def _media(self, inner: str) -> str:
        address, _, caption = inner.partition("|")
        name, is_plugin, said = address.strip().partition(">")
        if is_plugin and name.strip().lower() == "tag":
            words = (quoted or bare for quoted, bare in TAG_WORD.findall(f"{said} {caption}".strip()))
            self.tags.update((word.replace("_", " "), None) for word in words)
        elif is_plugin and name.strip().lower() in ("page", "section"):
            return self._link(f"{said.partition('&')[0]}|{caption}" if caption else said.partition("&")[0])
        return "" if is_plugin or not caption.strip() else self.hold(self._plain(caption.strip()))

    def _link(self, inner: str) -> str:
        target, _, shown = inner.partition("|")
        target, shown = target.strip(), shown.strip()
        if WEB_TARGET.match(target):
            name = target.partition(">")[2] if ">" in target and "://" not in target else target
            return self.hold(self._plain(shown) or name)
        page = self.names.page_link(target) if target.partition("#")[0] else ""
        section = target.partition("#")[2].replace("_", " ")
        visible = self._restored(self._plain(shown)).strip()
        if NAME_OF_FILE.fullmatch(visible):
            visible = ""  # a picture's
        visible = visible or page or section
        if page:
            self.links.append(Link(target=page, shown=one_line(visible)))
            self.linked += len(visible)
        return self.hold(visible)
