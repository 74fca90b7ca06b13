"""Markdown to cleaned text: headings, lists, rows and code stay; links go to the graph; hidden things go."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Protocol

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from mdit_py_plugins.anchors.index import slugify
from mdit_py_plugins.footnote import footnote_plugin

from graph.model import Link
from ingestion.clean import CleanedText, TextAssembly, one_line, table_rows
from ingestion.html_text import VisibleText

logger = logging.getLogger(__name__)

MAX_PARSED = 200_000
"""Characters; markdown-it-py takes a second for 160,000 to 1,000,000 of them, and a page may take one."""
MAX_PLAIN = 250_000
MAX_BRACKETS = 100
"""Depth of `[` within a paragraph; markdown-it-py takes the square of it in time."""
BRACKET = re.compile(r"[\[\]]")
MAX_WIKI_LINK = 1_000
MAX_COLUMN_NAME = 200
"""It is repeated in each row: a hostile table of 200 kB would make a gigabyte."""
IMAGE = re.compile(r"\.(?:png|jpe?g|gif|svg|webp|bmp|avif|mp[34]|m4a|ogg|wav|webm|mov|pdf|canvas)$", re.IGNORECASE)
ATTRIBUTES = re.compile(r"\{:?(?:[ \t]?[.#][\w-]+)+[ \t]?\}$")
"""`{.links-list}`, `{#anchor}`: for the renderer."""
ALERT = re.compile(r"^\[!([\w-]+)(?:\|[^\]\n]{0,80})?\][+-]?[^\S\n]*\n?")
"""`[!NOTE]` of GitHub, `[!note|right]- Title` of Obsidian."""
BLOCK_ID = re.compile(r"(?:^|(?<=\s))\^(?=[\d-]{0,64}[a-zA-Z])[a-zA-Z0-9-]{2,64}$")
"""Obsidian's name of a block, at its end."""
HASHTAG = re.compile(r"(?:^|(?<=[\s(]))#(?=[\d/-]{0,64}[^\W\d])([\w/-]{1,100})")
PLAIN_LINK = re.compile(r"!?\[\[([^\[\]\n]{1,500})\]\]")
OBSIDIAN_COMMENT = re.compile(r"`[^`\n]+`|%%.*?%%", re.DOTALL)
"""Or code, in which it is none."""
ATX_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+|$)")
SETEXT_LINE = re.compile(r" {0,3}(=+|-+)[ \t]*$")
CODE_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


class LinkResolver(Protocol):
    """Knows the titles of the other pages; both answer "" for what is no page's name."""

    def wiki_link(self, name: str, shown: str) -> str:
        """The title that `[[name|shown]]` means; of an unknown page, its name."""
        ...

    def path_link(self, href: str) -> str:
        """The title of the page that a link's address leads to; "" for other sites and for files."""
        ...


@cache
def _parser() -> MarkdownIt:
    # maxNesting: at the preset's 20, what is nested deeper than ten lists is silently left out.
    parser = MarkdownIt("commonmark", {"maxNesting": 100}).enable(["table", "strikethrough"]).use(footnote_plugin)
    parser.inline.ruler.before("link", "wikilink", _wiki_link_rule)
    return parser


def _wiki_link_rule(state: StateInline, silent: bool) -> bool:
    """`[[page#heading|alias]]` and `![[page]]`."""
    embed = state.src.startswith("![[", state.pos)
    if not embed and not state.src.startswith("[[", state.pos):
        return False
    start = state.pos + (3 if embed else 2)
    end = state.src.find("]]", start, min(state.posMax, start + MAX_WIKI_LINK))
    inner = state.src[start:end]
    if end < 0 or not inner.strip() or "\n" in inner or "[[" in inner:
        return False
    if not silent:
        token = state.push("wikilink", "", 0)
        token.content = inner
        token.meta = {"embed": embed}
    state.pos = end + 2
    return True


def first_heading(head: str) -> str:
    """The words of a page's first heading if that is one of level 1; `head` may be cut anywhere."""
    lines = head.split("\n")
    fence = ""
    for number, line in enumerate(lines):
        marks = CODE_FENCE.match(line)
        if fence:
            fence = "" if marks and marks[1].startswith(fence) else fence
        elif marks:
            fence = marks[1]
        elif atx := ATX_HEADING.match(line):
            words = line[atx.end() :].rstrip()
            closed = words.rstrip("#")
            words = closed if closed != words and closed[-1:] in ("", " ", "\t") else words
            return plain_line(words) if atx[1] == "#" else ""
        elif number and (setext := SETEXT_LINE.match(line)) and lines[number - 1].strip():
            return plain_line(lines[number - 1]) if setext[1][0] == "=" else ""
    return ""


def plain_line(markup: str) -> str:
    """One line of Markdown without its markup."""
    rendering = _Rendering(resolver=_NoPages())
    return one_line(
        "".join(rendering.inline(token) for token in _parser().parseInline(ATTRIBUTES.sub("", markup.strip())))
    )


def clean_markdown(
    text: str, resolver: LinkResolver, *, title: str = "", name: str = "", words_first: bool = False, tags: bool = False
) -> CleanedText:
    """The cleaned text of a page. A first heading that only repeats the page's title is left out.

    `name` is for the log: pages that cannot be parsed in time are read as plain text, and named. `words_first`:
    `[[words|page]]`, as GitHub's wikis have it. `tags`: `#tag` in the text is a category.
    """
    rendering = _Rendering(resolver=resolver, title=title, words_first=words_first, tags={} if tags else None)
    if len(text) > MAX_PARSED:
        logger.warning("%s: longer than %s characters; read as plain text", name or "a page", f"{MAX_PARSED:,}")
        rendering.plain(text)
    else:
        rendering.blocks(_parser().parse(_tamed(text)))
    assembly = rendering.assembly
    return CleanedText(
        text=assembly.text(),
        sections=tuple(assembly.sections),
        links=tuple(dict.fromkeys(rendering.links)),
        categories=tuple(rendering.tags or ()),
        linked=rendering.linked,
        list_items=rendering.list_items,
    )


def _tamed(text: str) -> str:
    """Text whose brackets cost markdown-it no more than linear time: where they nest too deep they are no links."""
    if text.count("[") <= MAX_BRACKETS:
        return text
    parts = text.split("\n\n")
    return "\n\n".join(part.replace("[", "\\[") if _bracket_depth(part) > MAX_BRACKETS else part for part in parts)


def _bracket_depth(text: str) -> int:
    deepest = depth = 0
    for bracket in BRACKET.findall(text):
        depth = depth + 1 if bracket == "[" else max(0, depth - 1)
        deepest = max(deepest, depth)
    return deepest


def _new_assembly() -> TextAssembly:
    return TextAssembly(make_anchor=slugify, repeat=lambda anchor, number: f"{anchor}-{number}")


class _NoPages:
    def wiki_link(self, name: str, shown: str) -> str:
        return ""

    def path_link(self, href: str) -> str:
        return ""


@dataclass(slots=True)
class _Rendering:
    """Walks the tokens of one page once."""

    resolver: LinkResolver
    title: str = ""
    words_first: bool = False
    tags: dict[str, None] | None = None
    assembly: TextAssembly = field(default_factory=_new_assembly)
    links: list[Link] = field(default_factory=list)
    linked: int = 0
    list_items: int = 0
    html: VisibleText = field(default_factory=VisibleText)
    lists: list[int] = field(default_factory=list)
    """Of each open list the number of its next item, 0 for one with bullets."""
    new_list: bool = False
    """Whether a list has begun of which nothing is written yet."""
    marker: str = ""
    """What the next line of a list starts with; "" once it is written."""

    def blocks(self, tokens: Sequence[Token]) -> None:
        at = 0
        while at < len(tokens):
            token = tokens[at]
            if token.type == "table_open":
                end = next(i for i in range(at, len(tokens)) if tokens[i].type == "table_close")
                self._table(tokens[at:end])
                at = end
            elif token.type == "heading_open":
                self._heading(int(token.tag[1]), self.inline(tokens[at + 1]))
                at += 2
            else:
                self._block(token)
            at += 1

    def plain(self, text: str) -> None:
        """What takes too long to be parsed: its beginning with headings and links, the rest without."""
        for paragraph in text[:MAX_PLAIN].split("\n\n"):
            heading = ATX_HEADING.match(paragraph)
            words = PLAIN_LINK.sub(lambda link: self._wiki_link(link[1]), self.html.feed(paragraph))
            if heading and "\n" not in paragraph.strip():
                self._heading(len(heading[1]), words.strip("# "))
            else:
                self.assembly.block(words)
        if len(text) > MAX_PLAIN:
            self.assembly.block(PLAIN_LINK.sub(r"\1", self.html.feed(text[MAX_PLAIN:])))

    def _block(self, token: Token) -> None:
        match token.type:
            case "inline":
                self._paragraph(self.inline(token))
            case "fence" | "code_block":
                if not self.html.hidden:
                    self.assembly.code(token.content, token.info)
            case "html_block":
                source = token.content if "<pre" in token.content else " ".join(token.content.split())
                seen = self.html.feed(source)
                self._paragraph("\n".join(line.strip(" ;") for line in seen.split("\n")))
            case "bullet_list_open" | "ordered_list_open":
                start = token.attrGet("start") or 1
                self.new_list = not self.lists
                self.lists.append(int(start) if token.tag == "ol" else 0)
            case "bullet_list_close" | "ordered_list_close":
                self.lists.pop()
                self.marker = ""
            case "list_item_open":
                self.list_items += 1
                self.marker = f"{self.lists[-1]}. " if self.lists[-1] else "- "
                self.lists[-1] += bool(self.lists[-1])
            case _:
                pass

    def _heading(self, level: int, words: str) -> None:
        words = one_line(ATTRIBUTES.sub("", words.strip()))
        repeats_title = level == 1 and not self.assembly.sections and words.casefold() == self.title.casefold()
        if not repeats_title:
            self.assembly.heading(level, words)

    def _paragraph(self, words: str) -> None:
        words = ALERT.sub(lambda kind: f"{kind[1].capitalize()}: ", ATTRIBUTES.sub("", words.strip()))
        words = BLOCK_ID.sub(
            "", OBSIDIAN_COMMENT.sub(lambda found: found[0] if found[0][0] == "`" else "", words).strip()
        ).rstrip()
        if not words:
            return
        if not self.lists:
            self.assembly.block(words)
            return
        indent = "  " * (len(self.lists) - 1)
        lines = words.split("\n")
        first = f"{indent}{self.marker or '  '}{lines[0]}"
        rest = [f"{indent}  {line}" for line in lines[1:]]
        self.assembly.block("\n".join([first, *rest]), close_up=not self.new_list)
        self.marker, self.new_list = "", False

    def _table(self, tokens: Sequence[Token]) -> None:
        header: list[str] = []
        rows: list[list[str]] = []
        row: list[str] = []
        for token in tokens:
            if token.type == "tr_open":
                row = []
            elif token.type == "inline":
                row.append(self.inline(token))
            elif token.type == "thead_close":
                header, row = [one_line(name)[:MAX_COLUMN_NAME] for name in row], []
            elif token.type == "tr_close" and header:
                rows.append(row)
        self.assembly.block(table_rows(header, rows))

    def inline(self, token: Token) -> str:
        """The words of a paragraph, heading, cell or image description; its links are noted on the way."""
        seen: list[str] = []
        opened: list[tuple[str, int]] = []
        children = token.children or []
        callout = bool(children) and children[0].type == "text" and ALERT.match(children[0].content) is not None
        for child in children:
            if child.type == "html_inline":
                seen.append(self.html.feed(child.content))
            elif self.html.hidden:
                continue
            elif child.type == "link_open":
                opened.append((str(child.attrGet("href") or ""), len(seen)))
            elif child.type == "link_close" and opened:
                href, first = opened.pop()
                self._note(self.resolver.path_link(href), "".join(seen[first:]))
            elif callout and child.type == "softbreak":
                callout = False
                seen.append("\n")  # the first line of a callout is its title
            else:
                seen.append(self._words(child))
        return "".join(seen)

    def _words(self, token: Token) -> str:
        match token.type:
            case "text":
                if self.tags is not None and "#" in token.content:
                    self.tags.update(dict.fromkeys(HASHTAG.findall(token.content)))
                return token.content
            case "code_inline":
                return f"`{token.content}`"
            case "softbreak":
                return " "
            case "hardbreak":
                return "\n"
            case "image":
                return self.inline(token)
            case "wikilink":
                return self._wiki_link(token.content, embed=bool(token.meta.get("embed")))
            case _:
                return ""

    def _wiki_link(self, inner: str, *, embed: bool = False) -> str:
        address, _, alias = inner.replace("\\|", "|").partition("|")
        if self.words_first and alias and not embed:
            address, alias = alias, address
        name, _, heading = address.partition("#")
        name, alias = name.strip(), one_line(alias)
        if embed and IMAGE.search(name):
            return "" if re.fullmatch(r"[\dx]*", alias) else alias
        shown = alias or name or heading.strip("# ^")
        if name:
            self._note(self.resolver.wiki_link(name, alias), shown)
        return shown

    def _note(self, target: str, shown: str) -> None:
        if target:
            self.links.append(Link(target=target, shown=one_line(shown)))
            self.linked += len(shown)
