"""HTML inside Markdown and wikitext: what a reader would see of it.

Pages hold loose tags, not documents: a tag opened in one block closes in another, or never. So tags are met one by
one, with a pattern that is linear on any input.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field

TAG = re.compile(r"<!--.*?(?:-->|\Z)|<(/?)([a-zA-Z][a-zA-Z0-9:-]{0,30})(?![a-zA-Z0-9:-])([^<>]{0,4000})>", re.DOTALL)
HIDDEN = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0(?![.\d])|opacity\s*:\s*0(?![.\d])"
    r"|(?:^|\s)hidden(?=[\s=/]|$)|aria-hidden\s*=\s*[\"']?true",
    re.IGNORECASE,
)
ALT = re.compile(r"\balt\s*=\s*(?:\"([^\"]*)\"|'([^']*)')", re.IGNORECASE)
UNSEEN_TAGS = frozenset(
    {"script", "style", "template", "head", "title", "noscript", "object", "svg", "iframe", "select"}
)
VOID_TAGS = frozenset({"br", "hr", "img", "input", "meta", "link", "wbr", "area", "base", "col", "embed", "source"})
BLOCK_TAGS = frozenset(
    {"p", "div", "li", "ul", "ol", "tr", "table", "h1", "h2", "h3", "h4", "h5", "h6", "section", "article", "summary"}
    | {"details", "blockquote", "pre", "dl", "dt", "dd", "center", "figure", "figcaption", "br", "hr"}
)
CELL_TAGS = frozenset({"td", "th"})


def is_hidden(attributes: str) -> bool:
    """Whether a tag's attributes say that it is not shown."""
    return bool(HIDDEN.search(attributes))


@dataclass(slots=True)
class VisibleText:
    """Remembers, from fragment to fragment of a page, whether a hidden element is still open."""

    _open: list[str] = field(default_factory=list)
    """Names of open elements, from the outermost hidden one on."""

    @property
    def hidden(self) -> bool:
        return bool(self._open)

    def feed(self, fragment: str) -> str:
        """What is visible of a fragment: block tags as line ends, table cells set apart by `; `."""
        seen: list[str] = []
        end = 0
        for tag in TAG.finditer(fragment):
            self._text(seen, fragment[end : tag.start()])
            end = tag.end()
            if tag[2]:
                self._tag(seen, tag[1] == "/", tag[2].lower(), tag[3])
        self._text(seen, fragment[end:])
        return "".join(seen)

    def _text(self, seen: list[str], text: str) -> None:
        if not self._open:
            seen.append(html.unescape(text))

    def _tag(self, seen: list[str], closing: bool, name: str, attributes: str) -> None:
        if self._open:
            self._inside_hidden(closing, name, attributes)
        elif name in VOID_TAGS or attributes.endswith("/"):
            if name == "img" and (alt := ALT.search(attributes)) and not is_hidden(attributes):
                seen.append(html.unescape(alt[1] or alt[2] or ""))
            elif name in BLOCK_TAGS:
                seen.append("\n")
        elif not closing and (name in UNSEEN_TAGS or is_hidden(attributes)):
            self._open.append(name)
        elif name in BLOCK_TAGS:
            seen.append("\n")
        elif name in CELL_TAGS and closing:
            seen.append("; ")

    def _inside_hidden(self, closing: bool, name: str, attributes: str) -> None:
        if not closing:
            if name == self._open[0] and not attributes.endswith("/"):
                self._open.append(name)
        elif name == self._open[0]:
            self._open.pop()
