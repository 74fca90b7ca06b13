"""MediaWiki's wikitext to cleaned text: headings, lists, rows, code and infobox fields stay; links go to the graph."""

from __future__ import annotations

import html
import logging
import re
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise

import mwparserfromhell
from mwparserfromhell.nodes import (
    ExternalLink,
    Heading,
    HTMLEntity,
    Node,
    Tag,
    Template,
    Text,
    Wikilink,
    argument,
    external_link,
    heading,
    tag,
    template,
    wikilink,
)
from mwparserfromhell.nodes.extras import attribute, parameter
from mwparserfromhell.wikicode import Wikicode

from graph.model import Link
from ingestion.clean import CleanedText, TextAssembly, one_line
from ingestion.html_text import is_hidden
from ingestion.sanitize import clean_text, clean_title
from ingestion.wiki_site import ARTICLE, CATEGORY, FILE, LANGUAGES, MEDIA, SPECIAL, TEMPLATE, WikiSite, WikiTitle
from ingestion.wikitext_functions import function_words, variable_words
from ingestion.wikitext_lines import BREAK, LESS, LIST_MARKS, RAW_LIST, in_order, tidy_inline, without_leftovers
from ingestion.wikitext_marks import MAX_DEPTH, UNREAD_TAGS, Marks, find_marks
from ingestion.wikitext_tables import rendered_table
from ingestion.wikitext_templates import HATNOTES, infobox_fields, inline_words, is_infobox
from ingestion.wikitext_variants import one_variant

logger = logging.getLogger(__name__)

parse_anything = mwparserfromhell.utils.parse_anything


def _as_parsed(value: object, context: int = 0, *, skip_style_tags: bool = False) -> Wikicode:
    """mwparserfromhell's `parse_anything`, which every node it builds passes its parts to: three imports and a chain
    of checks at each call are a fifth of all its time."""
    if type(value) is Wikicode:
        return value
    return parse_anything(value, context, skip_style_tags=skip_style_tags)


for module in (argument, external_link, heading, tag, template, wikilink, attribute, parameter):
    module.parse_anything = _as_parsed

MAX_PARSED = 1_000_000
"""Characters. Longer pages are read by their marks alone."""
MAX_SECONDS = 0.9
"""Pages that would take longer to parse are not parsed."""
COSTS = {"{{": 45, "[[": 45, "|": 36, "<": 60, "\n": 10, "\n|": 10, "\n*": 35, "\n#": 35, "\n:": 35}
COSTS |= dict.fromkeys(("**", "##", "::"), 100)
"""Microseconds that each mark costs, and `CHARACTER_COST` each character: fitted on the sample dumps' longest pages and
on pages made of one mark, on a busy machine; within a half of the truth."""
CHARACTER_COST = 0.35
MAX_PLAIN_LINKS = 50_000
"""Of a page read by its marks alone; more are no page for readers."""

HEADING_LINE = re.compile(r"(={1,6})(.+?)(={1,6})\s*")
BLOCK_TAGS = frozenset(
    {"div", "center", "blockquote", "section", "article", "p", "noinclude", "onlyinclude", "ul", "ol", "dl", "poem"}
    | {"aside", "main", "figure"}
)
CODE_TAGS = frozenset({"syntaxhighlight", "source", "pre"})
INLINE_CODE_TAGS = frozenset({"code", "tt", "kbd", "samp"})
UNREAD_CLASS = re.compile(
    r"\b(?:navbox|vertical-navbox|metadata|noprint|mw-editsection|ambox|mbox-small|toc|sistersitebox|navigation-not-searchable"
    r"|catlinks|printfooter|reflist|references|hatnote|dablink|stub)\b",
    re.IGNORECASE,
)
PICTURE_SUFFIX = re.compile(r"\.(?:svg|png|jpe?g|gif|tiff?|og[gv]|webm)$", re.IGNORECASE)
"""A picture even if its namespace has a name that the dump does not know."""
PICTURE_OPTION = re.compile(
    r"(?:thumb|thumbnail|frame|framed|frameless|border|left|right|center|centre|none|upright|baseline|middle|sub|super"
    r"|top|bottom|text-top|text-bottom)$|.*\d ?(?:px|пкс|п)$|[\w-]{1,20} ?=|(?:upright|hochkant|redresse) ?[\d.,]*$",
    re.IGNORECASE,
)
OTHER_OPTION = re.compile(r"[^\W\d_]{1,12}$")
"""One short word without a capital is an option in the wiki's own language ("мини", "дясно"); captions say more."""
DOUBLE_BRACE = re.compile(r"([{}])(?=[{}])")
"""In TeX a space between them changes nothing; without one they would look like templates."""
ANCHOR_SPACES = re.compile(r"[ _]+")
PIPE_TRICK = re.compile(r"[(（][^()（）]*[)）]$|,.*$")


def clean_wikitext(
    text: str, site: WikiSite, *, name: str = "", page_name: str = "", plain: bool = False
) -> CleanedText:
    """The cleaned text of a page; `text` has passed `clean_text`. Never slow, whatever is in it.

    `name` is for the log: pages that cannot be parsed in time are read by a plainer method, and named. `page_name` is
    the page's title, which its text may ask for. `plain` reads by the plainer method from the start.
    """
    marks = find_marks(text)
    repaired = one_variant(marks.repaired(), site.language)
    rendering = _Rendering(site=site, page_name=page_name)
    if plain:
        rendering.plain(marks)
    elif fault := _too_much(repaired, marks):
        logger.warning("%s: %s; read as plain text, without its tables and templates", name or "a page", fault)
        rendering.plain(marks)
    else:
        rendering.blocks(mwparserfromhell.parse(repaired, skip_style_tags=True))
    rendering.flush()
    return CleanedText(
        text=rendering.assembly.text(),
        sections=tuple(rendering.assembly.sections),
        links=tuple(dict.fromkeys(rendering.links)),
        categories=tuple(dict.fromkeys(rendering.categories)),
        templates=tuple(dict.fromkeys(rendering.templates)),
        linked=rendering.linked,
        list_items=rendering.list_items,
    )


def _too_much(repaired: str, marks: Marks) -> str:
    """Why parsing it would take too long; "" if it would not."""
    if len(repaired) > MAX_PARSED:
        return f"longer than {MAX_PARSED:,} characters"
    cost = CHARACTER_COST * len(repaired) + sum(cost * repaired.count(mark) for mark, cost in COSTS.items())
    if cost > MAX_SECONDS * 1e6:
        return f"its links, templates, cells and items would take {cost / 1e6:.1f} seconds"
    return f"nested more than {MAX_DEPTH} deep" if marks.depth() > MAX_DEPTH else ""


class _Anchors:
    """MediaWiki's: `#Early_life`, and `#Early_life_2` for the second of that name, whatever its capitals."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._numbers: Counter[str] = Counter()

    def make(self, title: str) -> str:
        anchor = ANCHOR_SPACES.sub(" ", title).strip().replace(" ", "_")
        unique, key = anchor, anchor.lower()
        while unique.lower() in self._taken:
            self._numbers[key] += 1
            unique = f"{anchor}_{self._numbers[key] + 1}"
        self._taken.add(unique.lower())
        return unique


def _new_assembly() -> TextAssembly:
    return TextAssembly(make_anchor=_Anchors().make, repeat=lambda anchor, number: f"{anchor}_{number + 1}")


@dataclass(slots=True)
class _Rendering:
    """Walks a page's nodes once. Block nodes go to the assembly; what is inline gathers in `held` until then."""

    site: WikiSite
    page_name: str = ""
    assembly: TextAssembly = field(default_factory=_new_assembly)
    links: list[Link] = field(default_factory=list)
    categories: list[str] = field(default_factory=list)
    templates: list[str] = field(default_factory=list)
    linked: int = 0
    list_items: int = 0
    held: list[str] = field(default_factory=list)

    def blocks(self, code: Wikicode) -> None:
        for node, after in pairwise([*code.nodes, None]):
            if isinstance(node, Heading):
                if after is not None and str(after).partition("\n")[0].strip():  # "== a == b" is no heading
                    self.held.append(f"{'=' * node.level}{self._raw(node.title)}{'=' * node.level}")
                    continue
                self.flush()
                self.assembly.heading(node.level, one_line(self.words(node.title)))
            elif not (isinstance(node, Tag) and self._block_tag(node)) and not (
                isinstance(node, Template) and self._infobox(node)
            ):
                self.held.append(self._inline(node))

    def flush(self) -> None:
        for block in in_order("".join(self.held)):
            if block.startswith(BREAK):
                self.assembly.code(block[1:])
            else:
                self.assembly.block(block)
        self.held.clear()

    def plain(self, marks: Marks) -> None:
        for target, shown in marks.link_targets()[:MAX_PLAIN_LINKS]:
            self._link(self.site.parse(target), shown)
        for line in one_variant(marks.plain(), self.site.language).split("\n"):
            if heading := HEADING_LINE.fullmatch(line):
                self.flush()
                self.assembly.heading(min(len(heading[1]), len(heading[3])), tidy_inline(html.unescape(heading[2])))
            else:
                marked = RAW_LIST.match(line)
                lead = "".join(LIST_MARKS[ch] for ch in marked[0]) if marked else ""
                self.held.append(f"{lead}{clean_text(html.unescape(line[len(lead) :]))}\n")

    def _block_tag(self, tag: Tag) -> bool:
        """Whether a tag was dealt with as a block of its own."""
        name = str(tag.tag).strip().lower()
        if name == "table":
            if self._is_read(tag):
                self.flush()
                rows = rendered_table(tag, self.words, self._is_read)
                self.list_items += rows.count("\n")
                self.assembly.block(rows)
            return True
        if name in CODE_TAGS and not tag.has("inline"):
            self.flush()
            language = str(tag.get("lang").value) if tag.has("lang") else ""
            self.assembly.code(html.unescape(str(tag.contents or "")), language.strip("\"' "))
            return True
        if name in BLOCK_TAGS and tag.contents is not None and not tag.wiki_markup and self._is_read(tag):
            self.held.append(BREAK + BREAK)
            if name == "poem":
                self.held.append(self._raw(tag.contents).replace("\n", BREAK))
            else:
                self.blocks(tag.contents)
            self.held.append(BREAK + BREAK)
            return True
        return False

    def _infobox(self, template: Template) -> bool:
        name = self._template_name(template)
        if not is_infobox(name, template, at_top=not self.assembly.sections):
            return False
        self.templates.append(name)
        self.flush()
        self.assembly.block("\n".join(infobox_fields(template, self.words)))
        return True

    def _template_name(self, template: Template) -> str:
        title = self.site.parse(str(template.name).strip(), namespace=TEMPLATE)
        is_page = title.colon or title.name.startswith("/")  # {{/Sub}}: a page under this one
        return "" if is_page or title.namespace != TEMPLATE else title.name.lower()

    def words(self, code: Wikicode | None) -> str:
        """The words of a part of the page, put in order: of a cell, a caption, a field."""
        raw = "".join(self._inline(node) for node in code.nodes) if code is not None else ""
        return "\n".join(block.lstrip(BREAK) for block in in_order(raw))

    def _inline(self, node: Node) -> str:
        if isinstance(node, Text):
            return without_leftovers(str(node.value))
        if isinstance(node, Wikilink):
            return self._wiki_link(node)
        if isinstance(node, Tag):
            return self._inline_tag(node)
        if isinstance(node, Template):
            return self._inline_template(node)
        if isinstance(node, HTMLEntity):
            return clean_text(html.unescape(str(node))).replace("<", LESS)
        if isinstance(node, ExternalLink):
            if node.title is not None:
                return self._raw(node.title)
            return "" if node.brackets else without_leftovers(str(node.url))
        if isinstance(node, Heading):  # inside a cell or a template
            return f"\n{self._raw(node.title)}\n"
        return ""  # comments, and arguments of templates

    def _raw(self, code: Wikicode | None) -> str:
        return "".join(self._inline(node) for node in code.nodes) if code is not None else ""

    def _inline_template(self, template: Template) -> str:
        written = str(template.name).strip()
        if (words := variable_words(written, self.page_name)) is not None:
            return words
        if (words := self._function(template, written)) is not None:
            return words
        name = self._template_name(template)
        if not name:
            if written.startswith(":") or self.site.parse(written).name:  # {{:Page}} shows another page here
                self._link(self._title(written), "")
            return ""
        self.templates.append(name)
        if name in HATNOTES:
            for parameter in template.params:
                if not parameter.showkey:
                    self._link(self.site.parse(self.words(parameter.value)), "")
            return ""
        return inline_words(name, template, lambda value: one_line(self.words(value)))

    def _function(self, template: Template, written: str) -> str | None:
        """What a function (`{{#if:…}}`, `{{lc:…}}`) shows, None for a template."""
        function, has_colon, _ = written.partition(":")
        if not has_colon and not written.startswith("#"):
            return None
        first = self.words(template.name).partition(":")[2].strip()
        given = [f"{p.name}={self.words(p.value)}" if p.showkey else self.words(p.value) for p in template.params]
        return function_words(function.strip().lower(), [first, *given])

    def _inline_tag(self, tag: Tag) -> str:
        name = str(tag.tag).strip().lower()
        if tag.wiki_markup in LIST_MARKS:
            self.list_items += tag.wiki_markup in "*#"
            return LIST_MARKS[tag.wiki_markup]
        if name in ("br", "hr") or tag.wiki_markup == "----":
            return BREAK
        if name in UNREAD_TAGS or not self._is_read(tag):
            return ""
        if name == "table":
            return f"\n{rendered_table(tag, self.words, self._is_read)}\n"
        if name == "gallery":
            return self._gallery(str(tag.contents or ""))
        if name in ("nowiki", "math", "chem", "ce", *CODE_TAGS, *INLINE_CODE_TAGS):
            return self._verbatim(name, tag)
        inner = self._raw(tag.contents)
        if name == "sup" and re.fullmatch(r"[-−–+]?\d+", inner.strip()):
            return f"^{inner.strip()}"
        return f"\n\n{inner}\n\n" if name in BLOCK_TAGS else inner

    def _verbatim(self, name: str, tag: Tag) -> str:
        if name in INLINE_CODE_TAGS:
            return f"`{one_line(self._raw(tag.contents))}`"
        source = clean_text(html.unescape(str(tag.contents or "")))
        if name in CODE_TAGS:
            return f"`{one_line(source)}`"
        return source.replace("<", LESS) if name == "nowiki" else DOUBLE_BRACE.sub(r"\1 ", one_line(source))

    def _gallery(self, source: str) -> str:
        captions = (line.partition("|")[2] for line in source.split("\n"))
        parsed = (mwparserfromhell.parse(caption, skip_style_tags=True) for caption in captions if caption.strip())
        return "".join(f"\n{words}\n" for code in parsed if (words := _last_words(self._raw(code))))

    def _is_read(self, tag: Tag) -> bool:
        """Whether a reader sees it, and comes for it: not what is hidden, nor navigation and notices."""
        attributes = " ".join(str(attribute) for attribute in tag.attributes)
        return not attributes or not (is_hidden(attributes) or UNREAD_CLASS.search(attributes))

    def _wiki_link(self, link: Wikilink) -> str:
        written = one_line(self._raw(link.title))
        title = self._title(written)
        if not title.colon and (title.namespace in (FILE, MEDIA) or _is_picture(title.name)):
            return self._caption(link)
        if not title.colon and title.namespace == CATEGORY:
            if title.name:
                self.categories.append(title.name)
            return ""
        if title.interwiki in LANGUAGES and not title.colon and link.text is None:
            return ""  # the page in another language, which the wiki shows beside the text
        shown = self._raw(link.text) if link.text is not None else written.lstrip(":")
        if not shown.strip():
            shown = PIPE_TRICK.sub("", title.name).strip()
        self._link(title, shown)
        return shown

    def _title(self, written: str) -> WikiTitle:
        """What a link means here: `/Sub` and `../Other` start from this page."""
        if self.page_name and written.startswith(("/", "../")) and len(written) > 1:
            base = self.page_name.split("/")
            while written.startswith("../") and base:
                written = written[3:]
                base.pop()
            written = "/".join([*base, written.strip("/")]).rstrip("/")
        return self.site.parse(written)

    def _link(self, title: WikiTitle, shown: str) -> None:
        if title.name and not title.interwiki and title.namespace not in (SPECIAL, MEDIA):
            shown = tidy_inline(shown)
            self.links.append(Link(target=title.full, shown=clean_title(shown)))
            self.linked += len(shown) if title.namespace in (ARTICLE, CATEGORY) else 0

    def _caption(self, link: Wikilink) -> str:
        if link.text is None:
            return ""
        caption = _last_words(self._raw(link.text))
        return f"{BREAK}{caption}{BREAK}" if caption else ""


def _last_words(options: str) -> str:
    """The caption among a picture's options: the last that is none."""
    for option in reversed(options.split("|")):
        words = option.strip()
        if words and not PICTURE_OPTION.match(words) and (words[:1].isupper() or not OTHER_OPTION.match(words)):
            return words
    return ""


def _is_picture(name: str) -> bool:
    return ":" in name and bool(PICTURE_SUFFIX.search(name))
