"""Which braces, brackets and tags of a page's wikitext belong together: found in one linear pass.

mwparserfromhell tries every opener and, where its closer is missing, goes back and reads on: 4,000 `{{a|` cost it ten
seconds. So what has no partner is taken out before it sees the text. A page that is nested deeper than it can follow
is not shown to it at all: `plain` makes do with the marks alone.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from ingestion.html_text import is_hidden

MAX_DEPTH = 30
"""Levels of nesting; mwparserfromhell gives up at 40, and then slowly."""
REACH = 200
"""How many open tags a closing one looks past for its own."""
OPAQUE = frozenset(
    {"nowiki", "pre", "math", "chem", "ce", "syntaxhighlight", "source", "score", "timeline", "templatedata", "graph"}
    | {"gallery", "hiero", "imagemap", "inputbox", "categorytree", "section"}
)
"""Tags between which nothing is wikitext."""
MAX_UNCLOSED_TABLES = 5
"""Often a template closes a table; more than these are no tables."""
SINGLE_TAGS = frozenset({"br", "wbr", "hr", "meta", "link", "img", "col"})
REWRITTEN = {"tr": "\n|-\n", "td": "\n| ", "th": "\n! ", "caption": "\n|+ ", "li": "\n* ", "dt": "\n; ", "dd": "\n: "}
"""HTML that needs no closer, which mwparserfromhell then takes for text; as wikitext it understands it."""
DROPPED_TAGS = frozenset({"tbody", "thead", "tfoot", "colgroup"})
MAX_BRACES = 9
"""Longer runs of braces are no templates within templates, but drawing or malice."""
UNREAD_TAGS = frozenset(
    {"ref", "references", "templatestyles", "style", "script", "timeline", "score", "graph", "hiero", "imagemap"}
    | {"section", "includeonly", "mapframe", "maplink", "categorytree", "inputbox", "templatedata", "indicator"}
    | {"dynamicpagelist", "rss"}
)
"""What nobody reads as text."""
TOKEN = re.compile(
    r"<!--|\{\{+|\}\}+|\[\[|\]\]"
    r"|\[(?=(?:https?|ftps?|ircs?)://|//|mailto:)(?!(?:[^\[\]\n]|\[(?!\w+:)){0,1000}\])"
    r"|(?:(?<=\n)|\A)[ \t:]*(?P<table>\{\||\|\}(?!\}))"
    r"|<(?P<slash>/?)(?P<tag>[a-zA-Z][a-zA-Z0-9]{0,20})(?![a-zA-Z0-9])(?P<attributes>[^<>]{0,2000})>"
    r"|<(?=/?[a-zA-Z])"
)
BROKEN_TAG = re.compile(
    r"</?(?:ref|references|nowiki|div|span|gallery|br|small|su[bp]|table|t[dhr]|li)\b", re.IGNORECASE
)
"""A tag that never ends: `<ref name="`. Of others ("a <b and c") only the `<` is meant."""
BARRIERS = {"{": frozenset[str](), "[": frozenset({"{"}), "{|": frozenset({"{"})}
"""What a closer cannot reach across; tags cannot reach across any of these three."""
TAG_BARRIERS = frozenset({"{", "[", "{|"})
NEXT_CELL = re.compile(r" ?(?:\|\||!!)(?:[^|\[\]{}\n]{0,200}=[^|\[\]{}\n]{0,200}\|(?!\|))?\s*")
TABLE_STARTS = ("{", "|", "!")
TABLE_MARKUP = re.compile(
    r"^[ \t:]*(?:\{\|.*|\|\}|\|-.*|[|!](?:[^|\[\]{}\n]{0,200}=[^|\[\]{}\n]{0,200}\|(?!\|))?)", re.MULTILINE
)


@dataclass(slots=True)
class Opener:
    kind: str
    """"{" for braces, "[", "{|", or a tag's name."""
    start: int
    end: int
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class Pair:
    """An opener (`start` to `inner`) and its closer (`outer` to `end`)."""

    kind: str
    start: int
    inner: int
    outer: int
    end: int
    hidden: bool = False


@dataclass(slots=True)
class Marks:
    """What belongs together in a text, and what has no partner."""

    text: str
    pairs: list[Pair] = field(default_factory=list)
    edits: list[tuple[int, int, str]] = field(default_factory=list)
    """(start, end, replacement): comments and marks without partner."""
    _open: list[Opener] = field(default_factory=list)
    _counts: Counter[str] = field(default_factory=Counter)
    _unclosed: set[str] = field(default_factory=set)
    _unclosed_tables: int = 0

    def scan(self) -> None:
        position = 0
        while match := TOKEN.search(self.text, position):
            position = self._token(match)
        self._drop(0, len(self.text))

    def _token(self, match: re.Match[str]) -> int:
        """Take in one token; where to read on."""
        start, end = match.span()
        mark = match[0]
        if mark == "<!--":
            closed = self.text.find("-->", end)
            end = closed + 3 if closed >= 0 else len(self.text)
            self.edits.append((start, end, ""))
        elif match["table"]:
            if match["table"] == "{|":
                self._push(Opener("{|", match.start("table"), end))
            else:
                self._close("{|", match.start("table"), end)
        elif match["tag"]:
            return self._tag(match)
        elif mark[0] == "{":
            self._push(Opener("{", start, end))
        elif mark[0] == "}":
            self._close_braces(start, end)
        elif mark == "[[":
            self._push(Opener("[", start, end))
        elif mark == "]]":
            self._close("[", start, end)
        elif mark == "[":
            self.edits.append((start, end, ""))
        elif broken := BROKEN_TAG.match(self.text, start):
            end = broken.end()
            self.edits.append((start, end, ""))
        else:
            self.edits.append((start, end, "&lt;"))
        return end

    def _tag(self, match: re.Match[str]) -> int:
        start, end = match.span()
        name, attributes = match["tag"].lower(), match["attributes"]
        if name in REWRITTEN or name in DROPPED_TAGS:
            self._rewrite(name, start, end, attributes, closing=bool(match["slash"]))
            return end
        if name == "table":
            self._html_table(start, end, attributes, closing=bool(match["slash"]))
            return end
        if name in SINGLE_TAGS or (attributes.endswith("/") and not match["slash"]):
            if name in UNREAD_TAGS:
                self.edits.append((start, end, ""))
            return end
        if name in OPAQUE and not match["slash"]:
            closer = None
            if name not in self._unclosed:
                closer = re.compile(rf"</{name}\s*>", re.IGNORECASE).search(self.text, end)
            if closer:
                self.pairs.append(Pair(name, start, end, closer.start(), closer.end()))
                return closer.end()
            self._unclosed.add(name)
            self.edits.append((start, end, ""))
        elif match["slash"]:
            self._close(name, start, end)
        else:
            self._push(Opener(name, start, end, hidden=is_hidden(attributes)))
            if attributes.count('"') % 2:  # an attribute that never ends would swallow the tag's own end
                self.edits.append((start, end, f"<{name}>"))
        return end

    def _rewrite(self, name: str, start: int, end: int, attributes: str, *, closing: bool) -> None:
        """Rows, cells and list items become wikitext."""
        markup = "" if closing else REWRITTEN.get(name, "")
        if name == "li" and markup:
            lists = [opener.kind for opener in self._open[-REACH:] if opener.kind in ("ul", "ol")]
            markup = f"\n{''.join('#' if kind == 'ol' else '*' for kind in lists[-6:]) or '*'} "
        elif name in ("td", "th") and markup and ("span" in attributes or is_hidden(attributes)):
            markup += f"{' '.join(attributes.split())} | "
        self.edits.append((start, end, markup))

    def _html_table(self, start: int, end: int, attributes: str, *, closing: bool) -> None:
        if closing:
            height = self._find("{|")
            self._close("{|", start, end)
            self.edits += [(start, end, "\n|}\n")] if height >= 0 else []
        else:
            self._push(Opener("{|", start, end))
            self.edits.append((start, end, f"\n{{| {' '.join(attributes.split())}\n"))

    def _push(self, opener: Opener) -> None:
        self._open.append(opener)
        self._counts[opener.kind] += 1

    def _find(self, kind: str) -> int:
        """Where in the stack the nearest opener of a kind is that a closer may reach; -1 if none."""
        if not self._counts[kind]:
            return -1
        barriers = BARRIERS.get(kind, TAG_BARRIERS)
        lowest = -1 if kind in BARRIERS else max(-1, len(self._open) - 1 - REACH)
        for height in range(len(self._open) - 1, lowest, -1):
            found = self._open[height].kind
            if found == kind:
                return height
            if found in barriers:
                return -1
        return -1

    def _close(self, kind: str, start: int, end: int) -> None:
        height = self._find(kind)
        if height < 0:
            self.edits.append((start, end, ""))
            return
        self._drop(height + 1, start)
        opener = self._open.pop()
        self._counts[kind] -= 1
        self.pairs.append(Pair(kind, opener.start, opener.end, start, end, opener.hidden))

    def _close_braces(self, start: int, end: int) -> None:
        """`}}`, `}}}` and longer runs close as many braces as were opened, from the innermost on."""
        while end - start >= 2:
            height = self._find("{")
            if height < 0:
                self.edits.append((start, end, ""))
                return
            self._drop(height + 1, start)
            opener = self._open[-1]
            width = min(opener.end - opener.start, end - start)
            if width > MAX_BRACES:
                self.edits += [(opener.end - width, opener.end, ""), (start, start + width, "")]
            else:
                self.pairs.append(Pair("{", opener.end - width, opener.end, start, start + width))
            start += width
            opener.end -= width
            if opener.end - opener.start < 2:
                self._open.pop()
                self._counts["{"] -= 1

    def _drop(self, height: int, position: int) -> None:
        """Openers from `height` up have no partner. Tables and what is hidden end here, at the latest; others go."""
        for opener in reversed(self._open[height:]):
            self._counts[opener.kind] -= 1
            if opener.kind == "{|" and self._unclosed_tables < MAX_UNCLOSED_TABLES:
                self._unclosed_tables += 1
                heading = self.text.find("\n==", opener.end, position)
                self.edits.append((at := heading if heading >= 0 else position, at, "\n|}"))
            elif opener.hidden:
                self.edits.append((opener.start, position, ""))
            else:
                self.edits.append((opener.start, opener.end, ""))
        del self._open[height:]

    def depth(self) -> int:
        """How deep pairs are nested."""
        steps = sorted([*((pair.start, 1) for pair in self.pairs), *((pair.outer, -1) for pair in self.pairs)])
        deepest = level = 0
        for _, step in steps:
            level += step
            deepest = max(deepest, level)
        return deepest

    def repaired(self) -> str:
        """The text without comments, references and hidden parts, and with every opener closed.

        References go here because they are half of many pages, and parsing them takes half the time.
        """
        unread = [(pair.start, pair.end, "") for pair in self.pairs if pair.hidden or pair.kind in UNREAD_TAGS]
        return _edited(self.text, [*self.edits, *unread])

    def plain(self) -> str:
        """The text without templates, references, hidden parts and marks; headings and list marks stay."""
        edits = list(self.edits)
        for pair in self.pairs:
            if pair.hidden or pair.kind in ("{", "gallery") or pair.kind in UNREAD_TAGS:
                edits.append((pair.start, pair.end, ""))
            elif pair.kind == "[":
                bar = self.text.rfind("|", pair.inner, pair.outer)
                edits += [(pair.start, bar + 1 if bar >= 0 else pair.inner, ""), (pair.outer, pair.end, "")]
            elif pair.kind != "{|":
                edits += [(pair.start, pair.inner, ""), (pair.outer, pair.end, "")]
        lines = _edited(self.text, edits).split("\n")
        return "\n".join(_plain_row(line) if line.lstrip(" \t:")[:1] in TABLE_STARTS else line for line in lines)

    def link_targets(self) -> list[tuple[str, str]]:
        """What each link that holds no other mark points to, and the words shown for it."""
        links = (self.text[pair.inner : pair.outer] for pair in self.pairs if pair.kind == "[")
        parts = (link.partition("|") for link in links if len(link) < 2000 and "[[" not in link and "{{" not in link)
        return [(target, shown or target) for target, _, shown in parts]


def _plain_row(line: str) -> str:
    """A line of a table as text; what stands between rows as a blank line."""
    return NEXT_CELL.sub("; ", TABLE_MARKUP.sub("", line)).strip()


def find_marks(text: str) -> Marks:
    marks = Marks(text)
    marks.scan()
    return marks


def _edited(text: str, edits: list[tuple[int, int, str]]) -> str:
    """Edits may overlap: what an earlier one took, a later one takes no more."""
    parts: list[str] = []
    done = 0
    for start, end, replacement in sorted(edits):
        if start < done:
            start, replacement = done, ""
        parts += (text[done:start], replacement)
        done = max(done, end)
    parts.append(text[done:])
    return "".join(parts)
