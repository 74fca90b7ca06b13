"""An HTML tree to cleaned text: headings, lists, rows, quotes and code stay, links are noted.

Trees are lxml's, of a page's main content or of a forum post; what is hidden was taken out of them before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from graph.model import Link
from ingestion.clean import CleanedText, TextAssembly, one_line, table_rows
from ingestion.sanitize import clean_text, clean_title

HEADINGS = {f"h{level}": level for level in range(1, 7)}
INLINE = frozenset(
    {"a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i", "img"}
    | {"ins", "kbd", "label", "mark", "math", "q", "rp", "rt", "ruby", "s", "samp", "small", "span", "strike", "strong"}
    | {"sub", "sup", "time", "tt", "u", "var", "wbr", "br"}
)
MARKED = frozenset({"code", "tt", "kbd", "samp"})
"""Shown between backticks, as Markdown has it."""
LISTS = frozenset({"ul", "ol", "dl"})
ITEMS = frozenset({"li", "dt", "dd"})
NOT_TEXT = frozenset(
    {"script", "style", "template", "noscript", "head", "title", "iframe", "object", "svg", "select", "button", "input"}
    | {"textarea", "audio", "video", "canvas", "nav", "form"}
)
MAX_ALT = 200
MAX_SPAN = 20


def _new_assembly() -> TextAssembly:
    # Headings get their own ids below; the assembly only wants something that differs.
    return TextAssembly(make_anchor=lambda _: "", repeat=lambda _, number: str(number))


@dataclass(slots=True)
class HtmlBlocks:
    """Walks one tree once. `title`: a first heading that only repeats it is left out."""

    title: str = ""
    images: bool = False
    """Whether an image's description is text."""
    assembly: TextAssembly = field(default_factory=_new_assembly)
    links: list[Link] = field(default_factory=list)
    """Their targets are addresses as the tree has them."""
    linked: int = 0
    list_items: int = 0

    def cleaned(self, tree: Any) -> CleanedText:
        self._container(tree)
        return CleanedText(
            text=self.assembly.text(),
            sections=tuple(self.assembly.sections),
            links=tuple(dict.fromkeys(self.links)),
            linked=self.linked,
            list_items=self.list_items,
        )

    def _container(self, element: Any) -> None:
        """The blocks of an element; text that stands between them is a paragraph."""
        run: list[str] = []
        for piece in self._pieces(element):
            if isinstance(piece, str):
                run.append(piece)
                continue
            self._paragraph(run)
            self._block(piece)
        self._paragraph(run)

    def _pieces(self, element: Any) -> Iterator[Any]:
        """The element's content in order: words as text, blocks as elements."""
        if element.text:
            yield " ".join(_split(element.text))
        for child in element:
            name = _name(child)
            if name in INLINE and not _holds_blocks(child):
                yield self.inline(child)
            elif name and name not in NOT_TEXT:
                yield child
            if child.tail:
                yield " ".join(_split(child.tail))

    def _paragraph(self, run: list[str]) -> None:
        if words := _lines("".join(run)):
            self.assembly.block(words)
        run.clear()

    def _block(self, element: Any) -> None:
        name = _name(element)
        if name in HEADINGS:
            self._heading(element, HEADINGS[name])
        elif name == "pre":
            self.assembly.code(_code(element), language_of(element))
        elif name in LISTS:
            self.assembly.block("\n".join(self._list(element)))
        elif name == "table":
            self._table(element)
        elif name == "blockquote":
            inner = self._inner(element)
            self.assembly.block("\n".join(f"> {line}".rstrip() for line in inner.split("\n") if inner))
        else:
            self._container(element)

    def _heading(self, element: Any, level: int) -> None:
        words = one_line(self.inline(element)).strip("¶§# ")
        if not words:
            return
        repeats_title = level == 1 and not self.assembly.sections and words.casefold() == self.title.casefold()
        if repeats_title:
            return
        before = len(self.assembly.sections)
        self.assembly.heading(level, words)
        if len(self.assembly.sections) > before:
            self.assembly.sections[-1] = replace(self.assembly.sections[-1], anchor=element.get("id") or "")

    def _inner(self, element: Any, *, itself: bool = False) -> str:
        """The blocks of an element, or it as a block, as text; its headings are no sections of the page."""
        inside = HtmlBlocks(images=self.images)
        if itself:
            inside._block(element)
        else:
            inside._container(element)
        self.links += inside.links
        self.linked += inside.linked
        self.list_items += inside.list_items
        return inside.assembly.text()

    def _list(self, element: Any, indent: str = "") -> Iterator[str]:
        number = int(start) if (start := element.get("start") or "").isdecimal() and len(start) < 9 else 1
        for item in element:
            name = _name(item)
            if name in LISTS:  # a list right inside a list, which is no valid HTML, and common
                yield from self._list(item, f"{indent}  ")
            elif name in ITEMS:
                self.list_items += name == "li"
                mark = {"ol": f"{number}. ", "ul": "- "}.get(_name(element), "" if name == "dt" else "  ")
                yield from self._item(item, indent, mark)
                number += 1
            elif name == "div":  # dl groups
                yield from self._list(item, indent)

    def _item(self, item: Any, indent: str, mark: str) -> Iterator[str]:
        lines: list[str] = []
        run: list[str] = []

        def end_run() -> None:
            if words := _lines("".join(run)):
                lines.extend(words.split("\n"))
            run.clear()

        for piece in self._pieces(item):
            if isinstance(piece, str):
                run.append(piece)
                continue
            end_run()
            if _name(piece) in LISTS:
                lines.extend(self._list(piece))
            else:
                lines.extend(line for line in self._inner(piece, itself=True).split("\n") if line.strip())
        end_run()
        for place, line in enumerate(lines):
            yield f"{indent}{mark if place == 0 else '  '}{line}"

    def _table(self, table: Any) -> None:
        """Rows as `header: value`. A row of header cells alone names the columns of those below it; a row of one
        header cell and one value is a field, as in an infobox."""
        lines = [one_line(self.inline(child)) for child in table if _name(child) == "caption"]
        header: list[str] = []
        rows: list[list[str]] = []
        for row in table.iter("tr"):
            if _table_of(row) is not table:
                continue  # it stands in a cell, whose text has it
            cells = [cell for cell in row if _name(cell) in {"td", "th"}]
            words = [one_line(self._inner(cell)) for cell in cells]
            heads = [_name(cell) == "th" for cell in cells]
            if all(heads) and sum(bool(word) for word in words) > 1:
                lines.append(table_rows(header, rows))
                header, rows = _spread(cells, words), []
            elif heads == [True, False] and words[0] and words[1] and len(header) != 2:
                rows.append([f"{words[0].rstrip(':')}: {words[1]}"] if not header else words)
            else:
                rows.append(_spread(cells, words))
        lines.append(table_rows(header, rows))
        self.assembly.block("\n".join(line for line in lines if line))

    def inline(self, element: Any) -> str:
        """The words of an element, itself included; its links are noted on the way."""
        name = _name(element)
        if not name or name in NOT_TEXT:
            return ""
        if name == "br":
            return "\n"
        if name == "img":
            return _alt(element) if self.images else ""
        seen = [" ".join(_split(element.text))] if element.text else []
        for child in element:
            seen.append(self.inline(child))
            if child.tail:
                seen.append(" ".join(_split(child.tail)))
        words = "".join(seen)
        if name == "a":
            self._note(element.get("href") or "", words)
        elif name in MARKED and words.strip():
            # Within a link or another code it would stand twice.
            return words if _name(element.getparent()) in MARKED else f"`{words.strip()}`"
        return words

    def _note(self, href: str, words: str) -> None:
        shown = one_line(words)
        if href and not href.startswith("#") and shown:
            self.links.append(Link(target=href, shown=shown[:MAX_ALT]))
            self.linked += len(shown)


def language_of(pre: Any) -> str:
    """The programming language of a code block, by its class (`language-py`, `lang-py`, `highlight-py`)."""
    for element in (pre, *pre.iter("code")):
        for name in (element.get("class") or "").split():
            for prefix in ("language-", "lang-", "highlight-source-", "brush:"):
                if name.startswith(prefix):
                    language = name[len(prefix) :]
                    return "" if language in {"auto", "none", "plaintext", "text", "nohighlight"} else language[:30]
    return ""


def _name(element: Any) -> str:
    """A tag's name; "" for comments and processing instructions."""
    return element.tag.lower() if element is not None and isinstance(element.tag, str) else ""


def _split(text: str) -> list[str]:
    """Words; an empty one at either end keeps the white space there as one blank."""
    text = clean_text(text)  # again: numeric entities may name characters that show nothing
    words = text.split()
    if not words:
        return ["", ""] if text else []
    return [*([""] if text[0].isspace() else []), *words, *([""] if text[-1].isspace() else [])]


def _lines(text: str) -> str:
    lines = (" ".join(line.split()) for line in text.split("\n"))
    return "\n".join(line for line in lines if line)


def _holds_blocks(element: Any) -> bool:
    """Whether an inline element has block elements in it: `<a><div>…</div></a>`."""
    return any(_name(inside) not in INLINE and _name(inside) not in NOT_TEXT for inside in element.iterdescendants("*"))


def _code(pre: Any) -> str:
    for line_break in pre.iter("br"):
        line_break.tail = "\n" + (line_break.tail or "")
    return clean_text("".join(pre.itertext()))


def _alt(element: Any) -> str:
    return clean_title(element.get("alt") or "")[:MAX_ALT]


def _spread(cells: list[Any], words: list[str]) -> list[str]:
    """One place per column: a cell that spans several is followed by empty ones."""
    spread: list[str] = []
    for cell, word in zip(cells, words, strict=True):
        span = cell.get("colspan") or "1"
        wide = int(span) if span.isdecimal() and len(span) < 3 else 1
        spread += [word, *[""] * (min(wide, MAX_SPAN) - 1)]
    return spread


def _table_of(row: Any) -> Any:
    return next(row.iterancestors("table"), None)
