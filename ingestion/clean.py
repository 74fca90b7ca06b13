"""The cleaned text of a page as it is put together, whatever its markup was: headings, blocks, rows and code."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from graph.model import Link, Section

MAX_HEADING = 300
SPACES = re.compile(r"[^\S\n]+")
LIST_ITEM = re.compile(r"(?:-|1\.)(?: +|$)")
BLANK_LINES = re.compile(r"\n{3,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanedText:
    """A page's text without markup, and what the markup said."""

    text: str = ""
    sections: tuple[Section, ...] = ()
    links: tuple[Link, ...] = ()
    categories: tuple[str, ...] = ()
    templates: tuple[str, ...] = ()
    """Names of the templates used, lower-cased, in order; none in Markdown."""
    linked: int = 0
    """How many characters of the text are the words of links."""
    list_items: int = 0


@dataclass(slots=True)
class TextAssembly:
    """Takes the pieces of a page in order.

    `make_anchor` turns a heading into its anchor; `repeat` numbers those that are taken, from 1.
    """

    make_anchor: Callable[[str], str]
    repeat: Callable[[str, int], str]
    sections: list[Section] = field(default_factory=list)
    _parts: list[str] = field(default_factory=list)
    _length: int = 0
    _anchors: set[str] = field(default_factory=set)
    _repeats: Counter[str] = field(default_factory=Counter)

    def heading(self, level: int, title: str) -> None:
        title = " ".join(title.split())[:MAX_HEADING].rstrip()
        if not title:
            return
        anchor = self._new_anchor(self.make_anchor(title))
        start = self._add(f"{'#' * level} {title}", gap="\n\n")
        self.sections.append(Section(start=start, level=level, title=title, anchor=anchor))

    def _new_anchor(self, plain: str) -> str:
        anchor = plain
        while anchor in self._anchors:
            self._repeats[plain] += 1
            anchor = self.repeat(plain, self._repeats[plain])
        self._anchors.add(anchor)
        return anchor

    def block(self, text: str, *, close_up: bool = False) -> None:
        """A paragraph, list or set of rows, its spaces and blank lines put in order; indented lines stay so.

        `close_up` puts it right under what is there (the next item of a list), else a blank line stands between.
        """
        lines = (_tidy(line) for line in text.split("\n"))
        if tidy := BLANK_LINES.sub("\n\n", "\n".join(lines)).strip("\n"):
            self._add(tidy, gap="\n" if close_up else "\n\n")

    def code(self, code: str, language: str = "") -> None:
        """A code fence, longer than any run of backticks in it."""
        code = code.strip("\n").rstrip()
        if not code.strip():
            return
        marks = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`{3,}", code)), default=0))
        self._add(f"{marks}{' '.join(language.split()[:1])}\n{code}\n{marks}", gap="\n\n")

    def text(self) -> str:
        return "".join(self._parts)

    def _add(self, piece: str, *, gap: str) -> int:
        if self._parts:
            self._parts.append(gap)
            self._length += len(gap)
        else:
            piece = piece.lstrip()
        start = self._length
        self._parts.append(piece)
        self._length += len(piece)
        return start


def _tidy(line: str) -> str:
    indent = len(line) - len(line.lstrip(" "))
    return line[:indent] + SPACES.sub(" ", line[indent:]).strip() if line.strip() else ""


def one_line(text: str) -> str:
    """The text of a table cell, a field or a heading; the items of a list in it are set apart by commas."""
    lines = [" ".join(line.split()) for line in text.split("\n")]
    if any(LIST_ITEM.match(line) for line in lines):
        return ", ".join(item for line in lines if (item := LIST_ITEM.sub("", line)))
    return " ".join(line for line in lines if line)


def table_rows(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """One line per row: `header: value; header: value`, a value without a header alone, an empty one left out."""
    lines = []
    for row in rows:
        cells = []
        for number, cell in enumerate(row):
            value = one_line(cell)
            name = one_line(header[number]).rstrip(":") if number < len(header) else ""
            if value:
                cells.append(f"{name}: {value}" if name and name != value else value)
        if cells:
            lines.append("; ".join(cells))
    if not lines and any(header):
        lines.append("; ".join(one_line(name) for name in header if name.strip()))
    return "\n".join(lines)
