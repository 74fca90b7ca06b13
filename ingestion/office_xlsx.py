"""Excel workbooks: a section for each sheet that can be seen, its rows as `header: value`, formulas as their values."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time
from itertools import islice
from typing import Any

import openpyxl

from ingestion.file_content import FileContent
from ingestion.office_html import FullError, OfficeHtml
from ingestion.office_properties import language_of, moment, real_title

MAX_ROWS = 100_000
MAX_COLUMNS = 500


def read(data: bytes) -> FileContent:
    book = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True, keep_links=False)
    html = OfficeHtml()
    with contextlib.suppress(FullError):
        for sheet in book.worksheets:
            if sheet.sheet_state == "visible":
                _sheet(html, sheet)
    properties = book.properties
    return html.content(
        title=real_title(properties.title),
        language=language_of(properties.language),
        modified=moment(properties.modified),
    )


def _sheet(html: OfficeHtml, sheet: Any) -> None:
    sheet.reset_dimensions()  # files of other programs say wrong ones
    rows = (_words(row[:MAX_COLUMNS]) for row in islice(sheet.iter_rows(values_only=True), MAX_ROWS))
    tables = _tables(rows)
    if (first := next(tables, None)) is None:
        return
    html.add(html.heading(1), sheet.title)
    _table(html, first)
    for table in tables:
        _table(html, table)


def _tables(rows: Iterator[list[str]]) -> Iterator[list[list[str]]]:
    """An empty row ends a table."""
    held: list[list[str]] = []
    for row in rows:
        if any(row):
            held.append(row)
        elif held:
            yield held
            held = []
    if held:
        yield held


def _table(html: OfficeHtml, rows: Sequence[list[str]]) -> None:
    """Rows of a single cell at the top say what follows; the first one after them names the columns."""
    start = 0
    while start < len(rows) and sum(map(bool, rows[start])) == 1:
        html.add(html.block("p"), "".join(rows[start]))
        start += 1
    if rows[start:]:
        html.rows(rows[start:])


def _words(row: Sequence[object]) -> list[str]:
    words = [_word(value) for value in row]
    while words and not words[-1]:
        words.pop()
    return words


def _word(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else f"{value:.10g}"
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time() == time() else value.isoformat(" ", "minutes")
    if isinstance(value, date | time):
        return value.isoformat()
    return " ".join(str(value).split())
