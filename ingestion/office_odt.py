"""OpenDocument texts, read from their XML: it is laid down in one standard, and lxml is there anyway."""

from __future__ import annotations

import contextlib
import io
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from lxml import etree

from ingestion.file_content import FileContent
from ingestion.office_content import LOCKED
from ingestion.office_html import FullError, OfficeHtml
from ingestion.office_properties import language_of, moment, real_title

NAMESPACES = {
    "office": "urn:oasis:names:tc:opendocument:xmlns:office:1.0",
    "text": "urn:oasis:names:tc:opendocument:xmlns:text:1.0",
    "table": "urn:oasis:names:tc:opendocument:xmlns:table:1.0",
    "draw": "urn:oasis:names:tc:opendocument:xmlns:drawing:1.0",
    "style": "urn:oasis:names:tc:opendocument:xmlns:style:1.0",
    "meta": "urn:oasis:names:tc:opendocument:xmlns:meta:1.0",
    "manifest": "urn:oasis:names:tc:opendocument:xmlns:manifest:1.0",
    "dc": "http://purl.org/dc/elements/1.1/",
    "xlink": "http://www.w3.org/1999/xlink",
}
MAX_REPEATS = 100
MAX_BLANKS = 20


def _named(*names: str) -> frozenset[str]:
    return frozenset(_tag(name) for name in names)


def _tag(name: str) -> str:
    prefix, _, local = name.partition(":")
    return f"{{{NAMESPACES[prefix]}}}{local}"


GONE = _named(
    *("text:tracked-changes", "text:note", "office:annotation", "text:hidden-text", "text:hidden-paragraph"),
    *("text:table-of-content", "text:alphabetical-index", "text:illustration-index", "text:bibliography"),
    *("office:forms", "text:sequence-decls", "text:variable-decls", "draw:image", "draw:object", "text:ruby-text"),
)
"""What was deleted, is hidden or a comment, repeats the headings, or stands below the page."""
ROW_HOLDERS = _named("table:table-header-rows", "table:table-rows", "table:table-row-group")


def read(data: bytes) -> FileContent:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = set(archive.namelist())
        manifest = _parsed(archive.read("META-INF/manifest.xml")) if "META-INF/manifest.xml" in names else None
        if manifest is not None and next(manifest.iter(_tag("manifest:encryption-data")), None) is not None:
            return FileContent(problem=LOCKED)
        body = _parsed(archive.read("content.xml")).find("office:body/office:text", NAMESPACES)
        about = _parsed(archive.read("meta.xml")) if "meta.xml" in names else None
    if body is None:
        return FileContent(problem="it is an OpenDocument file, but no text")
    reader = _Reader()
    with contextlib.suppress(FullError):
        reader.blocks(body)
    return reader.html.content(
        title=real_title(_said(about, "dc:title")) or reader.title,
        language=language_of(_said(about, "dc:language")),
        modified=moment(_said(about, "dc:date")),
    )


def _parsed(xml: bytes) -> Any:
    return etree.fromstring(xml, etree.XMLParser(resolve_entities=False, no_network=True))


def _said(about: Any, name: str) -> str:
    found = about.find(f".//{name}", NAMESPACES) if about is not None else None
    return (found.text or "") if found is not None else ""


@dataclass(slots=True)
class _Reader:
    html: OfficeHtml = field(default_factory=OfficeHtml)
    title: str = ""
    """The first paragraph of the style "Title"."""

    def blocks(self, holder: Any) -> None:
        for element in holder:
            if element.tag in GONE:
                continue
            if element.tag == _tag("text:h"):
                level = element.get(_tag("text:outline-level")) or "1"
                self._fill(self.html.heading(int(level) if level.isdecimal() else 1), element)
            elif element.tag == _tag("text:p"):
                self._paragraph(element)
            elif element.tag == _tag("text:list"):
                self._list(element, 0)
            elif element.tag == _tag("table:table"):
                self._table(element)
            elif isinstance(element.tag, str):  # sections, frames
                self.blocks(element)

    def _paragraph(self, paragraph: Any) -> None:
        if not self.title and paragraph.get(_tag("text:style-name")) == "Title":
            self.title = " ".join("".join(words for words, _ in _words(paragraph)).split())
            return
        self._fill(self.html.block("p"), paragraph)

    def _fill(self, into: Any, element: Any) -> None:
        for words, href in _words(element):
            self.html.add(into, words, href)

    def _list(self, listed: Any, depth: int) -> None:
        """Whether a list counts is a matter of styles here, and makes no difference to what is found."""
        for item in listed:
            into = None
            for element in item if item.tag in _named("text:list-item", "text:list-header") else ():
                if element.tag == _tag("text:list"):
                    self._list(element, depth + 1)
                elif element.tag in _named("text:p", "text:h"):
                    if into is None:
                        into = self.html.item(depth)
                    else:
                        self.html.add(into, "\n")
                    self._fill(into, element)

    def _table(self, table: Any) -> None:
        rows = list(_rows(table))
        into = self.html.block("table")
        for number, row in enumerate(rows):
            line = self.html.row(into)
            for cell in row:
                if cell.tag not in _named("table:table-cell", "table:covered-table-cell"):
                    continue
                for _ in range(min(_number(cell, "table:number-columns-repeated"), MAX_REPEATS)):
                    made = self.html.cell(line, names=number == 0 and len(rows) > 1)
                    for count, paragraph in enumerate(cell.iter(_tag("text:p"), _tag("text:h"))):
                        self.html.add(made, "\n" if count else "")
                        self._fill(made, paragraph)


def _rows(table: Any) -> Iterator[Any]:
    for child in table:
        if child.tag == _tag("table:table-row"):
            yield child
        elif child.tag in ROW_HOLDERS:
            yield from _rows(child)


def _words(element: Any, href: str = "") -> Iterator[tuple[str, str]]:
    """Words in order, each with the address it leads to. White space counts as one blank, as the standard says."""
    if element.text:
        yield element.text, href
    for child in element:
        if child.tag == _tag("text:s"):
            yield " " * min(_number(child, "text:c"), MAX_BLANKS), href
        elif child.tag == _tag("text:tab"):
            yield " ", href
        elif child.tag == _tag("text:line-break"):
            yield "\n", ""
        elif child.tag == _tag("text:a"):
            yield "".join(words for words, _ in _words(child)), child.get(_tag("xlink:href")) or ""
        elif isinstance(child.tag, str) and child.tag not in GONE:
            yield from _words(child, href)
        if child.tail:
            yield child.tail, href


def _number(element: Any, name: str) -> int:
    said = element.get(_tag(name)) or "1"
    return int(said) if said.isdecimal() and len(said) < 9 else 1
