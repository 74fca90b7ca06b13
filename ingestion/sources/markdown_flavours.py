"""What each tool that keeps a wiki as Markdown files does its own way: Obsidian, Logseq, Wiki.js, BookStack, GitHub."""

from __future__ import annotations

import datetime
import html
import posixpath
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ingestion.front_matter import FrontMatter, read_front_matter, understood
from ingestion.sanitize import clean_title
from ingestion.sources.folder_titles import WORD_JOIN, stem_of, title_of_path

NAVIGATION = frozenset({"_sidebar", "_footer", "_header", "_navbar", "_toc"})
"""File names, without suffix and in lower case, of what stands around every page."""
FENCE = re.compile(r"[ \t>]*(?:[-*+][ \t]+)?(`{3,}|~{3,})")
CODE_SPAN = re.compile(r"(`{1,3})(?!`)[^`\n]{1,1000}\1(?!`)")
HELD = re.compile("\x00(\\d+)\x00")
SHORTCODE = re.compile(r"\{\{[<%][^{}\n]{0,500}[%>]\}\}")
"""Hugo's, in BookStack's own site."""
INCLUDE = re.compile(r"\{\{@\d{1,12}(?:#[\w-]{0,100})?\}\}")
"""BookStack's, of another page by its number."""
PICTURE_SIZE = re.compile(r"(!\[[^\]\n]{0,300}\]\([^()\s]{1,1000}) =\d{0,5}%?x\d{0,5}%?(?=[ )])")
"""Wiki.js: `![words](map.png =300x)`."""
COMMENT = re.compile(r"%%.*?%%", re.DOTALL)
COMMENT_LINES = re.compile(r"^%%[ \t]*\n.*?^%%[ \t]*$", re.DOTALL | re.MULTILINE)
HTML_PRE = re.compile(
    r"<pre(?:\s[^<>]{0,500})?>(?:<code(?:\s[^<>]{0,500}?language-([\w+-]{1,30})[^<>]{0,500})?>)?", re.IGNORECASE
)
HTML_LINK = re.compile(r"<a\s[^<>]{0,500}?href=\"([^\"<>\s]{1,1000})\"[^<>]{0,500}>([^<>\n]{1,500})</a>", re.IGNORECASE)
HTML_HEADING = re.compile(r"<h([1-6])(?:\s[^<>]{0,500})?>", re.IGNORECASE)
HTML_ITEM = re.compile(r"<li(?:\s[^<>]{0,500})?>", re.IGNORECASE)
HTML_BLOCK = re.compile(r"</h[1-6]>|</?(?:p|div|ul|ol|blockquote|figure|section)(?:\s[^<>]{0,500})?>", re.IGNORECASE)
PROPERTY = re.compile(r"[ \t]*(?:[-*][ \t]+)?([A-Za-z][\w./-]{0,60})::(?:[ \t]+(.*)|[ \t]*$)")
HOUSEKEEPING = re.compile(
    r"id|collapsed|(?:created|updated)[-_]at|heading|template(?:-including-parent)?|background-.*|card-.*|query-.*"
    r"|logseq\..*|ls-type|hl-.*|icon|public|title|alias|filters|exclude-from-graph-view|later|now|done|doing|todo",
    re.IGNORECASE,
)
MACRO = re.compile(r"\{\{\{?[ \t]*([\w-]{1,40})[ \t:]*([^{}\n]{0,1000})\}\}\}?")
QUERY_IN_MACRO = re.compile(r"\{\{\{?[ \t]*query\b[^\n]*")
BLOCK_REFERENCE = re.compile(r"(\[[^\[\]\n]{1,500}\])?\(?\(\([0-9a-fA-F-]{36}\)\)\)?")
PAGE_AS_TARGET = re.compile(r"\[([^\[\]\n]{1,500})\]\(\[\[([^\[\]\n]{1,300})\]\]\)")
NESTED_LINK = re.compile(r"\[\[([^\[\]\n]{0,300})\[\[([^\[\]\n]{1,300})\]\]([^\[\]\n]{0,300})\]\]")
TAG = re.compile(r"(?:^|(?<=\s))#(?:\[\[([^\[\]\n]{1,300})\]\]|([^\W\d_][\w/.-]{0,99}[\w])(?=[\s,.;:!?)]|$))")
PICTURE_MARGIN = re.compile(r"(?<=[)\]])\{:[^{}\n]{1,200}\}")
HICCUP = re.compile(r"\[:\w[^\n]{0,5000}\]$")
ORG_BEGIN = re.compile(r"[ \t]*#\+BEGIN_(\w+)[ \t]*(\w*)", re.IGNORECASE)
ORG_END = re.compile(r"[ \t]*#\+END(?:_\w+)?", re.IGNORECASE)
DRAWER = re.compile(r"[ \t]*(?:- )?:(?!END:)[A-Za-z-]+:[ \t]*$")
BULLET = re.compile(r"([ \t]*)[-*+](?:[ \t]+|$)")
HEADING = re.compile(r"#{1,6} ")
JOURNAL = re.compile(r"(\d{4})[-_](\d\d)[-_](\d\d)")


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """The text with `change` made to what is neither in a fence nor between backticks."""
    parts: list[str] = []
    loose: list[str] = []
    marks = ""

    def settle() -> None:
        if loose:
            parts.append(_around_spans("\n".join(loose), change))
            loose.clear()

    for line in text.split("\n"):
        fence = FENCE.match(line)
        if marks:
            parts.append(line)
            if fence and fence[1].startswith(marks):
                marks = ""
        elif fence:
            settle()
            parts.append(line)
            marks = fence[1]
        else:
            loose.append(line)
    settle()
    return "\n".join(parts)


def _around_spans(text: str, change: Callable[[str], str]) -> str:
    held: list[str] = []

    def hold(span: re.Match[str]) -> str:
        held.append(span[0])
        return f"\x00{len(held) - 1}\x00"

    return HELD.sub(lambda mark: held[int(mark[1])], change(CODE_SPAN.sub(hold, text)))


def _cleared(text: str) -> str:
    """Without what tools leave in their files for their own display."""
    text = PICTURE_SIZE.sub(r"\1", INCLUDE.sub("", SHORTCODE.sub("", text)))
    return COMMENT_LINES.sub("", text)


class Read(NamedTuple):
    """A page's file, understood."""

    front: FrontMatter
    body: str


def read_plain(text: str) -> Read:
    front, body = read_front_matter(text)
    return Read(front, outside_code(body, _cleared))


def read_obsidian(text: str) -> Read:
    front, body = read_front_matter(text)
    return Read(front, outside_code(body, lambda loose: COMMENT.sub("", _cleared(loose))))


def read_wikijs(text: str) -> Read:
    """Its visual and HTML editors keep HTML, which is read as the Markdown it could have been."""
    front, body = read_front_matter(text)
    if front.editor in ("", "markdown"):
        return Read(front, outside_code(body, _cleared))
    parts: list[str] = []
    at = 0
    while opening := HTML_PRE.search(body, at):
        end = body.find("</pre>", opening.end())
        end = len(body) if end < 0 else end
        code = html.unescape(body[opening.end() : end].removesuffix("</code>"))
        parts += [_as_markdown(body[at : opening.start()]), f"\n\n````{opening[1] or ''}\n{code}\n````\n\n"]
        at = end + len("</pre>")
    return Read(front, "".join([*parts, _as_markdown(body[at:])]))


def _as_markdown(markup: str) -> str:
    markup = HTML_LINK.sub(r"[\2](\1)", "\n".join(line.strip() for line in markup.split("\n") if line.strip()))
    markup = HTML_HEADING.sub(lambda tag: f"\n\n{'#' * int(tag[1])} ", HTML_ITEM.sub("\n- ", markup))
    return HTML_BLOCK.sub("\n\n", markup)


# Logseq: every line is a block of an outline.


def read_logseq(text: str) -> Read:
    front, body = read_front_matter(text)
    properties, body = _page_properties(body)
    if properties:
        said = understood({key: _names(value) if key in LISTS else value for key, value in properties.items()})
        front = FrontMatter(
            title=said.title or front.title,
            aliases=(*front.aliases, *said.aliases),
            categories=tuple(dict.fromkeys((*front.categories, *said.categories))),
            language=said.language or front.language,
            modified=said.modified or front.modified,
            published=front.published and said.published,
            fault=front.fault,
        )
    fields = [
        f"{key}: {value}" for key, value in properties.items() if value and key not in LISTS and not _is_kept_house(key)
    ]
    outline = outside_code("\n".join(_without_blocks(body.split("\n"))), _logseq_inline)
    head = "  \n".join(map(_logseq_inline, fields))
    return Read(front, f"{head}\n\n{outside_code(_unfolded(outline), _cleared)}")


LISTS = frozenset({"alias", "aliases", "tags", "tag"})


def _is_kept_house(key: str) -> bool:
    return HOUSEKEEPING.fullmatch(key) is not None


def _names(value: str) -> list[str]:
    """`[[a, b]], #c, d` as names."""
    found = re.findall(r"#?\[\[([^\[\]]{1,300})\]\]|([^,\[\]]{1,300})", value)
    return [name for linked, bare in found if (name := clean_title(linked or bare).lstrip("#"))]


def _page_properties(text: str) -> tuple[dict[str, str], str]:
    """`key:: value` lines at the very top, be they a block's or bare."""
    found: dict[str, str] = {}
    lines = text.lstrip("\n").split("\n")
    for number, line in enumerate(lines):
        match = PROPERTY.match(line)
        if match is None or (number and BULLET.match(line)):
            rest = lines[number + (not line.strip("-* \t")) :]
            return found, "\n".join(rest) if found else text
        found[match[1].lower()] = (match[2] or "").strip()
    return found, ""


def _without_blocks(lines: list[str]) -> Iterator[str]:
    """Without queries, drawers and bookkeeping; Org's blocks as fences and notes. Lines in fences stay as they are."""
    marks = until = ""
    for line in lines:
        fence = FENCE.match(line)
        if until:
            if ORG_END.match(line) or line.strip().upper() == ":END:":
                until = ""
        elif marks:
            yield line
            marks = "" if fence and fence[1].startswith(marks) else marks
        elif fence:
            marks = fence[1]
            yield line
        elif begin := ORG_BEGIN.match(line.replace("- ", "  ", 1) if BULLET.match(line) else line):
            kind = begin[1].upper()
            indent = line[: len(line) - len(line.lstrip())]
            until = "END" if kind == "QUERY" else ""
            if kind in ("SRC", "EXAMPLE", "EXPORT"):
                yield f"{line[: line.upper().index('#+BEGIN')]}```{begin[2]}"
            elif not until and kind not in ("QUOTE", "CENTER", "VERSE"):
                yield f"{indent}{kind.capitalize()}:"
        elif ORG_END.match(line):
            if re.search(r"_(?:SRC|EXAMPLE|EXPORT)", line, re.IGNORECASE):
                yield f"{line[: len(line) - len(line.lstrip())]}```"
        elif DRAWER.match(line):
            until = ":END:"
        elif prop := PROPERTY.match(line):
            bullet = BULLET.match(line)
            if not _is_kept_house(prop[1]):
                yield f"{bullet[0] if bullet else line[: len(line) - len(line.lstrip())]}{prop[1]}: {prop[2] or ''}"
            elif bullet:
                yield bullet[0]
        else:
            yield line


def _logseq_inline(text: str) -> str:
    text = QUERY_IN_MACRO.sub("", text)
    text = PAGE_AS_TARGET.sub(r"[[\2|\1]]", BLOCK_REFERENCE.sub(_reference, MACRO.sub(_macro, text)))
    text = TAG.sub(lambda tag: f"[[{tag[1] or tag[2]}]]", PICTURE_MARGIN.sub("", text))
    for _ in range(3):
        text = NESTED_LINK.sub(r"[[\1\2\3]]", text)
    return "\n".join(HICCUP.sub("", line) if "[:" in line else line for line in text.split("\n"))


def _reference(match: re.Match[str]) -> str:
    return match[1][1:-1] if match[1] else ""


def _macro(match: re.Match[str]) -> str:
    """What a reader sees of it without Logseq: the page that is embedded, the words of a gap to fill in."""
    name, words = match[1].lower(), match[2].strip()
    if name == "embed":
        return words if words.startswith("[[") else ""
    return words if name in ("cloze", "mark") else ""


def _unfolded(text: str) -> str:
    """The outline as text: blocks of the first level are paragraphs, those below a heading too, deeper ones lists."""
    written: list[str] = []
    base, inner, marks = 0, "", ""
    stops: list[int] = []
    for line in text.split("\n"):
        bullet = None if marks else BULLET.match(line)
        if bullet is None:
            plain = line.expandtabs(2)
            width = len(plain) - len(plain.lstrip(" "))
            kept = plain[min(width, stops[-1] + 2 if stops else 0) :]
            written.append(inner + kept if kept.strip() else "")
        else:
            kept = line[bullet.end() :]
            column = len(bullet[1].expandtabs(2))
            while stops and stops[-1] >= column:
                stops.pop()
            stops.append(column)
            base = min(base, len(stops) - 1)
            depth = len(stops) - 1 - base
            if HEADING.match(kept):
                base, depth = len(stops), 0
            inner = "  " * depth
            mark = f"{'  ' * (depth - 1)}- " if depth else ""
            written.append(f"{'' if depth else chr(10)}{mark}{kept}" if kept.strip() or depth else "")
        fence = FENCE.match(kept)
        if not marks and not fence and written[-1].strip():
            written[-1] += "  "  # a new line within a block is one for the reader, too
        if fence:
            marks = ("" if fence[1].startswith(marks) else marks) if marks else fence[1]
    return "\n".join(written)


# Titles.


def heading_title(path: str, front: FrontMatter, heading: str) -> str:
    return front.title or heading or title_of_path(path)


def file_title(path: str, front: FrontMatter, heading: str) -> str:
    """Git wikis: the file's name is the page's."""
    return front.title or title_of_path(path)


def note_title(path: str, front: FrontMatter, heading: str) -> str:
    """Obsidian and Logseq: the file's name as it is, hyphens and all."""
    if day := _journal_day(path):
        return day[0]
    return front.title or clean_title(stem_of(path)) or title_of_path(path)


def _journal_day(path: str) -> tuple[str, str] | None:
    """Logseq's name of a day's page ("Jan 5th, 2023"), and the day as ISO 8601."""
    match = JOURNAL.fullmatch(stem_of(path)) if posixpath.dirname(path).rpartition("/")[2] == "journals" else None
    if match is None:
        return None
    try:
        day = datetime.date(int(match[1]), int(match[2]), int(match[3]))
    except ValueError:
        return None
    ending = "th" if day.day in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(day.day % 10, "th")
    return f"{day:%b} {day.day}{ending}, {day.year}", day.isoformat()


def journal_aliases(path: str) -> tuple[str, ...]:
    day = _journal_day(path)
    return (day[1],) if day else ()


def book_categories(path: str) -> tuple[str, ...]:
    """BookStack: the shelf, book and chapter that a page lies in."""
    folders = posixpath.dirname(path).split("/")
    return tuple(name for folder in folders if (name := clean_title(WORD_JOIN.sub(" ", folder))))


@dataclass(frozen=True, slots=True, kw_only=True)
class Flavour:
    name: str
    about: str
    read: Callable[[str], Read] = read_plain
    title: Callable[[str, FrontMatter, str], str] = heading_title
    """From path, front matter and first heading."""
    suffixes: frozenset[str] = frozenset()
    """Beside those of Markdown."""
    aliases: Callable[[str], tuple[str, ...]] = lambda path: ()
    categories: Callable[[str], tuple[str, ...]] = lambda path: ()
    """Both from the path."""
    words_first: bool = False
    tags: bool = False
    kept_out: re.Pattern[str] | None = None
    """Paths, with the tool's own folders, that hold no pages."""
    sign: re.Pattern[str]
    """Among a folder's names, one that says that it is of this flavour."""
    mark: re.Pattern[str] | None = None
    """In a page's first lines, where names say nothing."""


def names(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


FLAVOURS = (
    Flavour(
        name="obsidian",
        about="an Obsidian vault",
        read=read_obsidian,
        title=note_title,
        tags=True,
        kept_out=names(r"(?:.*/)?\.(?:obsidian|trash)/.*"),
        sign=names(r"\.obsidian/"),
    ),
    Flavour(
        name="logseq",
        about="a Logseq graph: pages/ and journals/",
        read=read_logseq,
        title=note_title,
        aliases=journal_aliases,
        kept_out=names(r"(?:logseq|assets|draws|whiteboards|version-files)/.*"),
        sign=names(r"logseq/config\.edn", r"logseq/"),
        suffixes=frozenset({".org"}),
        mark=re.compile(r"(?:[-*] )?(?:title|type|alias|tags|description|public|icon)::[ \t]"),
    ),
    Flavour(
        name="wikijs",
        about="a Wiki.js export or Git storage; `published: false` is left out",
        read=read_wikijs,
        suffixes=frozenset({".html"}),
        sign=names(r"(?!)"),
        mark=re.compile(r"(?:---|<!--)\n(?:\w+:[^\n]*\n){0,12}?(?:editor|dateCreated):[ \t]"),
    ),
    Flavour(
        name="bookstack",
        about="a BookStack export; shelves, books and chapters become categories",
        categories=book_categories,
        kept_out=names(r"(?:.*/)?(?:images|attachments)/.*"),
        sign=names(r"bookstack[_-]export[^/]*/", r"(?:[^/]*/)?[^/]*_meta\.json"),
    ),
    Flavour(
        name="github-wiki",
        about="a wiki of GitHub, GitLab or Gitea: `[[words|Page Name]]`, a page is its file's name",
        title=file_title,
        words_first=True,
        sign=re.compile(r"_(?:Sidebar|Footer|Header)\.md|[Hh]ome\.md"),
    ),
)
PLAIN = Flavour(
    name="markdown", about="a folder of Markdown files", sign=names(r"[^.].*\.(?:md|markdown|mdown|mkd|mdx)")
)
BY_NAME = {flavour.name: flavour for flavour in (PLAIN, *FLAVOURS)}
