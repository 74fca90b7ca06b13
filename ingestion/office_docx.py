"""Word documents: python-docx opens them and knows styles and links, the text is read from their XML in order.

Its own text of a paragraph leaves out what stands in tracked insertions, content controls and smart tags.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import docx
from docx.opc.constants import RELATIONSHIP_TYPE
from docx.oxml.ns import qn

from ingestion.file_content import FileContent
from ingestion.office_html import FullError, OfficeHtml
from ingestion.office_properties import language_of, moment, real_title

GONE = frozenset(map(qn, ("w:del", "w:moveFrom", "w:instrText", "w:delText"))) | {
    "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
}
"""What was deleted, moved away, or is there for older programs a second time."""
HOLDERS = frozenset(map(qn, ("w:sdt", "w:sdtContent", "w:customXml", "w:ins", "w:moveTo", "w:smartTag")))
MARKS = {qn("w:tab"): " ", qn("w:br"): "\n", qn("w:cr"): "\n", qn("w:noBreakHyphen"): "-", qn("w:ptab"): " "}
HEADING = re.compile(r"heading (\d)", re.IGNORECASE)
DEEPER = re.compile(r"list (?:bullet|number) (\d)", re.IGNORECASE)
"""Word's own styles for lists in lists: each is the first level of a list of its own."""
CONTENTS = re.compile(r"toc(?: heading|\b.*\d)|table of (?:contents|figures)", re.IGNORECASE)
MAX_STYLES = 20
"""Styles that a style may be based on, one on the other."""
UNNUMBERED = frozenset({"bullet", "none"})


def read(data: bytes) -> FileContent:
    document = docx.Document(io.BytesIO(data))
    properties = document.core_properties
    reader = _Reader(document)
    with contextlib.suppress(FullError):
        reader.blocks(document.element.body)
    return reader.html.content(
        title=real_title(properties.title) or reader.title,
        language=language_of(properties.language),
        modified=moment(properties.modified),
    )


@dataclass(slots=True)
class _Reader:
    document: Any
    html: OfficeHtml = field(default_factory=OfficeHtml)
    title: str = ""
    """The first paragraph of the style "Title"."""
    _styles: dict[str, Any] = field(init=False)
    _lists: dict[str, Any] = field(default_factory=dict)
    """Levels of a list, by its number and depth."""

    def __post_init__(self) -> None:
        self._styles = {style.get(qn("w:styleId")): style for style in self.document.styles.element.iter(qn("w:style"))}
        for relation in self.document.part.rels.values():
            if relation.reltype == RELATIONSHIP_TYPE.NUMBERING:
                self._learn_lists(relation.target_part.element)

    def _learn_lists(self, numbering: Any) -> None:
        kinds = {found.get(qn("w:abstractNumId")): found for found in numbering.iter(qn("w:abstractNum"))}
        for number in numbering.iter(qn("w:num")):
            kind = kinds.get(_value(number, "w:abstractNumId"))
            for level in kind.iter(qn("w:lvl")) if kind is not None else ():
                self._lists[f"{number.get(qn('w:numId'))}/{level.get(qn('w:ilvl'))}"] = _value(level, "w:numFmt")

    def blocks(self, holder: Any) -> None:
        for element in holder:
            if element.tag == qn("w:p"):
                self._paragraph(element)
            elif element.tag == qn("w:tbl"):
                self._table(element)
            elif element.tag in HOLDERS and not _is_contents(element):
                self.blocks(element)

    def _paragraph(self, paragraph: Any) -> None:
        styles = list(self._based_on(paragraph))
        names = [_value(style, "w:name") for style in styles]
        if any(CONTENTS.fullmatch(name) for name in names[:1]):
            return
        if names[:1] in (["Title"], ["title"]) and not self.title:
            self.title = " ".join("".join(words for words, _ in self._words(paragraph)).split())
            return
        level = self._level(paragraph, styles, names)
        if level:
            into = self.html.heading(level)
        elif (found := self._list(paragraph, styles)) is not None:
            depth, ordered = found
            if match := next(filter(None, map(DEEPER.fullmatch, names)), None):
                depth += int(match[1]) - 1
            into = self.html.item(depth, ordered=ordered)
        else:
            into = self.html.block("p")
        for words, href in self._words(paragraph):
            self.html.add(into, words, href)

    def _based_on(self, paragraph: Any) -> Iterator[Any]:
        """The paragraph's style, the one it is based on, and so on."""
        wanted = _value(paragraph.find(qn("w:pPr")), "w:pStyle")
        for _ in range(MAX_STYLES):
            style = self._styles.get(wanted)
            if style is None:
                return
            yield style
            wanted = _value(style, "w:basedOn")

    def _level(self, paragraph: Any, styles: list[Any], names: list[str]) -> int:
        """Of a heading, from 1; 0 for other text."""
        for holder in (paragraph, *styles):
            outline = _value(holder.find(qn("w:pPr")), "w:outlineLvl")
            if outline.isdecimal():
                return int(outline) + 1 if int(outline) < 9 else 0
        return next((int(match[1]) for name in names if (match := HEADING.fullmatch(name))), 0)

    def _list(self, paragraph: Any, styles: list[Any]) -> tuple[int, bool] | None:
        """Depth, and whether it counts; None for what is no item of a list."""
        for holder in (paragraph, *styles):
            properties = holder.find(qn("w:pPr"))
            marked = properties.find(qn("w:numPr")) if properties is not None else None
            if marked is None:
                continue
            number, level = _value(marked, "w:numId"), _value(marked, "w:ilvl") or "0"
            if number == "0":
                return None
            kind = self._lists.get(f"{number}/{level}", "bullet")
            return int(level) if level.isdecimal() else 0, kind not in UNNUMBERED
        return None

    def _words(self, element: Any, href: str = "") -> Iterator[tuple[str, str]]:
        """Words in order, each with the address it leads to."""
        for child in element:
            if child.tag in GONE or (child.tag == qn("w:r") and _is_hidden(child)):
                continue
            if child.tag == qn("w:t"):
                yield child.text or "", href
            elif child.tag in MARKS:
                yield MARKS[child.tag], href
            elif child.tag == qn("w:hyperlink"):
                yield _joined(self._words(child)), self._address(child)
            elif child.tag == qn("w:p"):  # in a text box
                yield "\n", ""
                yield from self._words(child, href)
            else:
                yield from self._words(child, href)

    def _address(self, link: Any) -> str:
        relation = self.document.part.rels.get(link.get(qn("r:id")) or "")
        return str(relation.target_ref) if relation is not None and relation.is_external else ""

    def _table(self, table: Any) -> None:
        rows = [row for row in _within(table, "w:tr") if not row.findall(f"{qn('w:trPr')}/{qn('w:del')}")]
        cells = [list(_within(row, "w:tc")) for row in rows]
        if len(rows) == 1 and len(cells[0]) == 1:  # a frame around text
            self.blocks(cells[0][0])
            return
        into = self.html.block("table")
        for number, row in enumerate(cells):
            line = self.html.row(into)
            for cell in row:
                span = _value(cell.find(qn("w:tcPr")), "w:gridSpan")
                wide = int(span) if span.isdecimal() and len(span) < 4 else 1
                self._cell(self.html.cell(line, names=number == 0 and len(rows) > 1, span=wide), cell)

    def _cell(self, into: Any, cell: Any) -> None:
        for number, paragraph in enumerate(cell.iter(qn("w:p"))):
            if number:
                self.html.add(into, "\n")
            for words, href in self._words(paragraph):
                self.html.add(into, words, href)


def _within(element: Any, name: str) -> Iterator[Any]:
    """Children of that name, also those in content controls; none of a table in a cell."""
    for child in element:
        if child.tag == qn(name):
            yield child
        elif child.tag in HOLDERS:
            yield from _within(child, name)


def _joined(words: Iterator[tuple[str, str]]) -> str:
    return "".join(part for part, _ in words)


def _value(element: Any, name: str) -> str:
    found = element.find(qn(name)) if element is not None else None
    return (found.get(qn("w:val")) or "") if found is not None else ""


def _is_hidden(run: Any) -> bool:
    vanish = run.find(f"{qn('w:rPr')}/{qn('w:vanish')}")
    return vanish is not None and vanish.get(qn("w:val")) not in {"0", "false", "off"}


def _is_contents(element: Any) -> bool:
    """A table of contents is a content control of its own kind."""
    kinds = element.iterfind(f"{qn('w:sdtPr')}/{qn('w:docPartObj')}/{qn('w:docPartGallery')}")
    return any("Table of Contents" in (kind.get(qn("w:val")) or "") for kind in kinds)
