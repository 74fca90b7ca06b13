"""Wikitext and HTML tables as rows of `header: value`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from mwparserfromhell.nodes import Tag
from mwparserfromhell.wikicode import Wikicode

from ingestion.clean import one_line, table_rows

MAX_SPAN = 100
MAX_CELLS = 50_000
LAYOUT_CELL = 500
"""A table without headers whose cells are longer than this on average lays out text, and is read as text."""

Words = Callable[[Wikicode], str]


@dataclass(frozen=True, slots=True)
class Cell:
    text: str
    header: bool
    columns: int = 1
    rows: int = 1


def rendered_table(table: Tag, words: Words, is_shown: Callable[[Tag], bool]) -> str:
    """One line per row, the caption first; or, of a table that only lays out text, its cells as paragraphs."""
    captions: list[str] = []
    rows = [row for row in _rows(table, words, is_shown, captions) if row]
    grid = _grid(rows)
    header_rows = 0
    while header_rows < len(grid) and _is_header(grid[header_rows]):
        header_rows += 1
    captions += [row[0].text for row in grid[:header_rows] if _is_title(row)]
    header = _joined_headers([row for row in grid[:header_rows] if not _is_title(row)])
    body = grid[header_rows:]
    cells = [cell.text for row in rows for cell in row if cell.text]
    if not header and (sum(map(len, cells)) > LAYOUT_CELL * max(1, len(cells)) or max(map(len, rows), default=0) == 1):
        return "\n".join([*captions, *cells])
    lines = [one_line(caption) for caption in captions]
    if header:
        lines.append(table_rows(header, [[cell.text for cell in row] for row in _without_repeats(body)]))
    else:
        lines += [_labelled(row) for row in _without_repeats(body)]
    return "\n".join(line for line in lines if line)


def _rows(table: Tag, words: Words, is_shown: Callable[[Tag], bool], captions: list[str]) -> Iterator[list[Cell]]:
    loose: list[Cell] = []
    for node in table.contents.nodes if table.contents else ():
        if not isinstance(node, Tag) or not is_shown(node):
            continue
        name = str(node.tag).strip().lower()
        if name == "caption" or str(node).startswith("|+"):
            captions.append(words(node.contents).lstrip("+ "))
        elif name in ("td", "th"):
            loose.append(_cell(node, name, words))
        elif name == "tr":
            yield loose
            loose = []
            cells = (n for n in (node.contents.nodes if node.contents else ()) if isinstance(n, Tag) and is_shown(n))
            yield [_cell(n, tag, words) for n in cells if (tag := str(n.tag).strip().lower()) in ("td", "th")]
        elif name in ("thead", "tbody", "tfoot"):
            yield from _rows(node, words, is_shown, captions)
    yield loose


def _cell(node: Tag, name: str, words: Words) -> Cell:
    return Cell(
        text=words(node.contents) if node.contents else "",
        header=name == "th",
        columns=_span(node, "colspan"),
        rows=_span(node, "rowspan"),
    )


def _span(node: Tag, name: str) -> int:
    if not node.has(name):
        return 1
    digits = "".join(ch for ch in str(node.get(name).value or "") if ch.isdecimal() and ch.isascii())
    return min(MAX_SPAN, max(1, int(digits[:4] or 1)))


def _grid(rows: list[list[Cell]]) -> list[list[Cell]]:
    """Rows with spanning cells repeated in every place that they cover."""
    grid: list[list[Cell]] = []
    pending: dict[int, tuple[Cell, int]] = {}
    placed = 0
    for row in rows:
        line: list[Cell] = []
        waiting = list(row)
        while waiting or len(line) in pending:
            if len(line) in pending:
                cell, left = pending.pop(len(line))
                if left > 1:
                    pending[len(line)] = (cell, left - 1)
                line.append(cell)
                continue
            cell = waiting.pop(0)
            for _ in range(cell.columns):
                if cell.rows > 1:
                    pending[len(line)] = (cell, cell.rows - 1)
                line.append(cell)
        grid.append(line)
        placed += len(line)
        if placed > MAX_CELLS:
            break
    return grid


def _is_header(row: list[Cell]) -> bool:
    return len(row) > 1 and all(cell.header for cell in row)


def _is_title(row: list[Cell]) -> bool:
    """One cell over the whole width."""
    return all(cell is row[0] for cell in row)


def _joined_headers(rows: list[list[Cell]]) -> list[str]:
    """Of several header rows, one: "Height" over "m" becomes "Height m"."""
    width = max(map(len, rows), default=0)
    header = []
    for column in range(width):
        names = [one_line(row[column].text) for row in rows if column < len(row)]
        header.append(" ".join(dict.fromkeys(name for name in names if name)))
    return header


def _without_repeats(grid: list[list[Cell]]) -> Iterator[list[Cell]]:
    """A cell that spans several columns is said once."""
    blank = Cell("", header=False)
    for row in grid:
        yield [blank if column and row[column - 1] is cell else cell for column, cell in enumerate(row)]


def _labelled(row: list[Cell]) -> str:
    """A row of a table without header row: a header cell names the cells after it."""
    parts: list[str] = []
    label = ""
    for cell in row:
        text = one_line(cell.text)
        if cell.header:
            if label:
                parts.append(label)
            label = text.rstrip(":")
        elif text:
            parts.append(f"{label}: {text}" if label else text)
            label = ""
    if label:
        parts.append(label)
    return "; ".join(parts)
