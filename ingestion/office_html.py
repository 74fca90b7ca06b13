"""An Office document as an HTML tree, so that headings, lists, tables and links become text as those of a page do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from lxml import etree

from ingestion.file_content import FileContent
from ingestion.html_blocks import HtmlBlocks
from ingestion.sanitize import clean_text, clean_title

MAX_DEPTH = 8
"""Of lists in lists."""
MAX_CHARACTERS = 4_000_000
MAX_SPAN = 20


class FullError(Exception):
    """The document has as much text as is read of one."""


@dataclass(slots=True)
class OfficeHtml:
    """Takes the blocks of a document in order; what each returns is filled with `add`."""

    root: Any = field(default_factory=lambda: etree.Element("div"))
    _lists: list[Any] = field(default_factory=list)
    """Lists that are open, the innermost last."""
    _room: int = MAX_CHARACTERS

    def block(self, tag: str) -> Any:
        self._lists.clear()
        return etree.SubElement(self.root, tag)

    def heading(self, level: int) -> Any:
        """Levels count from 1, which becomes `##`: `#` is the page's title."""
        return self.block(f"h{min(max(level, 1) + 1, 6)}")

    def item(self, depth: int, *, ordered: bool = False) -> Any:
        """An item of the list that is open at that depth, from 0, or of a new one in the last item before it."""
        depth = min(max(depth, 0), MAX_DEPTH)
        del self._lists[depth + 1 :]
        tag = "ol" if ordered else "ul"
        if len(self._lists) == depth + 1 and self._lists[-1].tag != tag:
            self._lists.pop()
        while len(self._lists) <= depth:
            above = self._lists[-1] if self._lists else None
            holder = self.root if above is None else above[-1] if len(above) else etree.SubElement(above, "li")
            self._lists.append(etree.SubElement(holder, tag))
        return etree.SubElement(self._lists[-1], "li")

    def row(self, table: Any) -> Any:
        return etree.SubElement(table, "tr")

    def cell(self, row: Any, *, names: bool, span: int = 1) -> Any:
        """`names`: it says what stands below it. `span`: how many places it takes."""
        cell = etree.SubElement(row, "th" if names else "td")
        if span > 1:
            cell.set("colspan", str(min(span, MAX_SPAN)))
        return cell

    def rows(self, rows: Sequence[Sequence[str]]) -> None:
        """A table of plain words, whose first row names the columns where there is a second."""
        table = self.block("table")
        for number, words in enumerate(rows):
            row = self.row(table)
            for word in words:
                self.add(self.cell(row, names=number == 0 and len(rows) > 1), word)

    def add(self, element: Any, text: str, href: str = "") -> None:
        """Words at the end of an element. Raises `FullError` where there are too many."""
        text = clean_text(text)
        self._room -= len(text)
        if self._room < 0:
            raise FullError
        if href and text.strip():
            etree.SubElement(element, "a", href=clean_title(href)).text = text
            return
        for number, line in enumerate(text.split("\n")):
            if number:
                etree.SubElement(element, "br")
            if len(element):
                element[-1].tail = (element[-1].tail or "") + line
            else:
                element.text = (element.text or "") + line

    def content(self, *, title: str = "", language: str = "", modified: str = "") -> FileContent:
        cleaned = HtmlBlocks(title=title).cleaned(self.root)
        return FileContent(
            title=title,
            text=cleaned.text,
            sections=cleaned.sections,
            links=cleaned.links,
            list_items=cleaned.list_items,
            language=language,
            modified=modified,
        )
