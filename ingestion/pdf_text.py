"""The child process that reads PDF files: pypdf's text, put in order as our pages have it."""

from __future__ import annotations

import io
import logging
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import UTC
from typing import Any

import msgspec
import pypdf
from pypdf.errors import PyPdfError

from graph.model import Section
from ingestion.clean import TextAssembly
from ingestion.file_content import FileContent
from ingestion.killable import serve
from ingestion.sanitize import clean_text, clean_title

MAX_PAGES = 2_000
MAX_CHARACTERS = 4_000_000
MAX_OUTLINE = 2_000
MAX_LEVEL = 6
MAX_TITLE_LINE = 150
HYPHENATED = re.compile(r"(?<=[^\W\d_])[-\u00ad\u2010]\n[ \t]*(?=[a-zß-ÿ])")
"""A word torn at a line's end. After a soft or plain hyphen only a small letter goes on with it."""
PAGE_NUMBER = re.compile(r"(?:page |seite |p\. ?)?[-–]? ?\d{1,4} ?[-–]?(?: ?(?:/|of|von|de) ?\d{1,4})?", re.IGNORECASE)
SENTENCE_END = (".", "!", "?", ":", ";", "。", "！", "？", "”", "»", '"')
LIST_LINE = re.compile(r"(?:[-–—•▪◦*·‣]|\(?\d{1,3}[.)]|[a-z]\))\s")
RUNNING_LINES = 2
MIN_REPEATS = 3
"""Lines at the top or bottom of that many pages, and of half of all, are running heads."""
FAULTS = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError, AssertionError, OSError)
"""What pypdf raises on one damaged file or another, beside its own errors."""


def read(data: bytes) -> FileContent:
    reader = pypdf.PdfReader(io.BytesIO(data))
    if reader.is_encrypted and not reader.decrypt(""):
        return FileContent(skipped="it is encrypted, and needs a password")
    pages = [_page_text(page) for page in _some(reader.pages)]
    if not any(text.strip() for text in pages):
        return FileContent(skipped="it has no text, only pictures; let a program for text recognition read it")
    lines = _without_running_heads([text.split("\n") for text in pages])
    title = _title(reader, lines)
    text, sections = _assembled(lines, _outline(reader), title)
    return FileContent(
        title=title, text=text, sections=sections, language=_language(reader), modified=_modified(reader)
    )


def _some(pages: Sequence[pypdf.PageObject]) -> Iterator[pypdf.PageObject]:
    for number in range(min(len(pages), MAX_PAGES)):
        yield pages[number]


def _page_text(page: pypdf.PageObject) -> str:
    """One page; what is wrong with it costs that page alone."""
    try:
        return clean_text(page.extract_text())[:MAX_CHARACTERS]
    except (PyPdfError, *FAULTS):
        return ""


def _without_running_heads(pages: list[list[str]]) -> list[list[str]]:
    """Pages without page numbers, and without the lines that stand at the top or bottom of most of them."""
    pages = [[line.rstrip() for line in lines if line.strip()] for lines in pages]
    seen = Counter(_faceless(line) for lines in pages for line in {*lines[:1], *lines[-1:]})
    often = {line for line, count in seen.items() if count >= max(MIN_REPEATS, len(pages) // 2)}
    return [_trimmed(lines, often) for lines in pages]


def _trimmed(lines: list[str], often: Collection[str]) -> list[str]:
    def goes(line: str) -> bool:
        return _faceless(line) in often or bool(PAGE_NUMBER.fullmatch(line.strip()))

    for _ in range(RUNNING_LINES):
        lines = lines[1:] if lines and goes(lines[0]) else lines
        lines = lines[:-1] if lines and goes(lines[-1]) else lines
    return lines


def _faceless(line: str) -> str:
    return re.sub(r"\d+", "#", " ".join(line.split()).casefold())


def _assembled(
    pages: list[list[str]], outline: dict[int, list[tuple[int, str]]], title: str
) -> tuple[str, tuple[Section, ...]]:
    """All pages as one text, a heading for each entry of the outline where its line stands, else at its page's top."""
    assembly = TextAssembly(make_anchor=lambda anchor: anchor, repeat=lambda anchor, _: f"{anchor}'")
    anchors: list[str] = []
    waiting: list[str] = []

    def end_paragraphs() -> None:
        for paragraph in _paragraphs(waiting):
            assembly.block(paragraph)
        waiting.clear()

    length = 0
    for number, lines in enumerate(pages):
        entries = {_key(words): (level, words) for level, words in outline.get(number, [])}
        here = {_key(line) for line in lines}
        for key in [key for key in entries if key not in here]:
            end_paragraphs()
            _heading(assembly, *entries.pop(key), title, number, anchors)
        for line in lines:
            if entry := entries.pop(_key(line), None):
                end_paragraphs()
                _heading(assembly, *entry, title, number, anchors)
            else:
                waiting.append(line)
                length += len(line)
        if length > MAX_CHARACTERS:
            break
    end_paragraphs()
    # A PDF's address opens a page by its number.
    found = zip(assembly.sections, anchors, strict=True)
    return assembly.text(), tuple(replace(section, anchor=anchor) for section, anchor in found)


def _heading(assembly: TextAssembly, level: int, words: str, title: str, number: int, anchors: list[str]) -> None:
    if not assembly.sections and not assembly.text() and words.casefold() == title.casefold():
        return
    before = len(assembly.sections)
    assembly.heading(level, words)
    anchors += [f"page={number + 1}"] * (len(assembly.sections) - before)


def _key(line: str) -> str:
    """Equal for an outline's entry and its line in the text: without numbers before it, and without blanks."""
    return re.sub(r"^[\d.\s]+|\s", "", line.casefold())


def _paragraphs(lines: list[str]) -> Iterator[str]:
    """Lines joined to paragraphs: one ends with a line that is short, or that ends a sentence before a capital."""
    if not lines:
        return
    text = HYPHENATED.sub("", "\n".join(lines))
    whole = text.split("\n")
    wide = sorted(len(line) for line in whole)[int(0.9 * (len(whole) - 1))]
    held: list[str] = []
    for line in whole:
        if held and (LIST_LINE.match(line) or _ends(held[-1], line, wide)):
            yield " ".join(held)
            held = []
        held.append(" ".join(line.split()))
    if held:
        yield " ".join(held)


def _ends(line: str, following: str, wide: int) -> bool:
    short = len(line) < 0.75 * wide
    return short and (line.endswith(SENTENCE_END) or not following[:1].islower())


# --- what the file says of itself ---------------------------------------------------------------------------------


def _title(reader: pypdf.PdfReader, pages: list[list[str]]) -> str:
    """From the metadata, unless a program put a file's name there; else the first line, if it is short enough."""
    try:
        given = clean_title(str((reader.metadata and reader.metadata.title) or ""))
    except (PyPdfError, *FAULTS):
        given = ""
    if given and not re.search(
        r"\.(?:docx?|odt|tex|dvi|indd|qxd|ps|pdf|pptx?|xlsx?)$|^untitled|^\(", given, re.IGNORECASE
    ):
        return given.removeprefix("Microsoft Word - ")
    first = next((line for lines in pages for line in lines if any(ch.isalpha() for ch in line)), "")
    return clean_title(first) if len(first) <= MAX_TITLE_LINE else ""


def _modified(reader: pypdf.PdfReader) -> str:
    try:
        when = reader.metadata and (reader.metadata.modification_date or reader.metadata.creation_date)
        utc = when and (when if when.tzinfo else when.replace(tzinfo=UTC)).astimezone(UTC)
        return utc.strftime("%Y-%m-%dT%H:%M:%SZ") if utc else ""
    except (PyPdfError, *FAULTS):
        return ""


def _language(reader: pypdf.PdfReader) -> str:
    try:
        code = str(reader.root_object.get("/Lang", "")).lower()[:2]
    except (PyPdfError, *FAULTS):
        return ""
    return code if len(code) == 2 and code.isascii() and code.isalpha() else ""


def _outline(reader: pypdf.PdfReader) -> dict[int, list[tuple[int, str]]]:
    """Page number from 0 → (heading level, words) of the bookmarks that open it."""
    found: dict[int, list[tuple[int, str]]] = {}
    try:
        for level, entry in _entries(reader.outline, 2):
            number = reader.get_destination_page_number(entry)
            if number is not None and number >= 0 and (words := clean_title(str(entry.title or ""))):
                found.setdefault(number, []).append((level, words))
    except (PyPdfError, *FAULTS):
        return found  # a damaged outline is no reason to lose the text
    return found


def _entries(outline: Any, level: int) -> Iterator[tuple[int, Any]]:
    """`outline` is a list of bookmarks; a list after one holds those below it."""
    waiting = [iter(outline)]
    count = 0
    while waiting and count < MAX_OUTLINE:
        entry = next(waiting[-1], None)
        if entry is None:
            waiting.pop()
        elif isinstance(entry, list):
            waiting.append(iter(entry))
        else:
            count += 1
            yield min(level + len(waiting) - 1, MAX_LEVEL), entry


# --- the child process --------------------------------------------------------------------------------------------


def answer(payload: bytes) -> bytes:
    try:
        content = read(payload)
    except MemoryError:
        content = FileContent(problem="it takes too much memory to read")
    except (PyPdfError, *FAULTS) as error:
        content = FileContent(problem=f"it is damaged, or no PDF ({type(error).__name__})")
    return msgspec.msgpack.encode(content)


def main() -> None:
    logging.disable()  # pypdf reports every small fault of a file
    serve(answer)


if __name__ == "__main__":
    main()
