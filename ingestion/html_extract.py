"""The child process that reads web pages: Trafilatura finds the main part, `html_blocks` makes text of it."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import msgspec
import trafilatura

from graph.model import Link
from ingestion.clean import CleanedText
from ingestion.html_about import about, base_of, joined
from ingestion.html_blocks import INLINE, HtmlBlocks, language_of
from ingestion.html_text import UNSEEN_TAGS, VisibleText, is_hidden
from ingestion.killable import serve
from ingestion.main_content import HtmlContent, HtmlRequest
from ingestion.sanitize import clean_text, clean_title

MAX_TAGS = 60_000
"""Trafilatura takes the square of their number in time; a Wikipedia page of 1 MB has 30,000."""
MAX_SPAN = 20
HEAD_CHARACTERS = 2_000
LONG_TAG = re.compile(r"<([a-zA-Z][a-zA-Z0-9]{0,30})[^<>]{4000,}>")
"""Fifty thousand attributes, or a picture within its own tag: lxml takes the square of the former in time."""
DECLARATION = re.compile(r"<(?:!(?!--)|\?)[^<>]{0,2000}>")
PASSWORD_FIELD = re.compile(r"<input\s[^<>]{0,500}type\s{0,9}=\s{0,9}[\"']?password", re.IGNORECASE)
MARK = re.compile("\U00012000\\d+\U00012001|\U00012002\\d+\U00012003|\U00012004\\d+\U00012005")
HEADING_MARK = re.compile("\U00012000(\\d+)\U00012001")
PRE_MARK = re.compile("\U00012002(\\d+)\U00012003")
TABLE_MARK = re.compile("\U00012004(\\d+)\U00012005")
"""Signs of cuneiform around a number: Trafilatura takes out what cannot be printed, and no text has these."""
HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
NOISE_CLASSES = frozenset(
    {"mw-editsection", "mw-jump-link", "noprint", "navbox", "headerlink", "heading-anchor", "printfooter", "toc"}
)
NOISE_IDS = frozenset({"toc", "siteSub", "catlinks", "mw-navigation", "jump-to-nav"})
"""What wikis put between the lines: edit links, contents, navigation boxes, anchors' signs."""
UNSEEN = UNSEEN_TAGS - {"head", "title"}
KEPT = frozenset({"html", "body", "main"})
HIDING = frozenset({"hidden", "aria-hidden", "style"})
MATH_STYLE = re.compile(r"^\{\\displaystyle\s*(.*)\}$", re.DOTALL)
TEI = {"row": "tr", "ref": "a", "lb": "br", "hi": "span", "quote": "blockquote", "del": "span"}
SHORT = 500
MUCH_MORE = 3
LONG_PARAGRAPH = 40
MOST = 0.9
FEW = 2
NOISE_SAMPLE = 2_000
PLAIN_SHARE = 0.3
"""A tree that lost more than this of the visible words was cut by lxml, which nests 256 deep at most."""


def read(request: HtmlRequest) -> HtmlContent:
    """The main part of a page; all of its text where there is no main part, or where it is too deep or too much."""
    html = LONG_TAG.sub(r"<\1>", request.html)
    if request.plain:
        return _unparsed(html)
    if "<html" not in html[:HEAD_CHARACTERS].lower():
        html = f"<!DOCTYPE html><html>{html}"  # else Trafilatura takes a page of one element for none
    tree = trafilatura.load_html(html.encode(errors="replace"))
    if tree is None:
        return _unparsed(html)
    base = base_of(tree, request.address)
    said = about(tree, base)
    cleaned = _main_part(tree, said.title, html, formulas=request.formulas)
    return msgspec.structs.replace(
        said,
        text=cleaned.text,
        sections=cleaned.sections,
        links=tuple(dict.fromkeys(_absolute(cleaned.links, base))),
        linked=cleaned.linked,
        list_items=cleaned.list_items,
    )


def _absolute(links: tuple[Link, ...], base: str) -> Iterator[Link]:
    for link in links:
        if target := joined(base, link.target.strip()):
            yield Link(target=target, shown=clean_title(link.shown))


def _unparsed(html: str) -> HtmlContent:
    return HtmlContent(text=_plain(html), title=_loose_title(html), asks_password=bool(PASSWORD_FIELD.search(html)))


def _loose_title(html: str) -> str:
    match = re.search(r"<title[^<>]{0,200}>([^<]{1,1000})", html, re.IGNORECASE)
    return clean_title(VisibleText().feed(match[1])) if match else ""


# --- the main part ------------------------------------------------------------------------------------------------


def _main_part(tree: Any, title: str, html: str, *, formulas: bool) -> CleanedText:
    _drop_unseen(tree, formulas=formulas)
    if html.count("<") > MAX_TAGS:
        return _whole(tree, title, html)
    whole = deepcopy(tree)
    for container in list(tree.iter("div", "section", "article", "main")):
        _wrap_loose_text(container)
    marks = _Marks.of(tree)
    found = trafilatura.bare_extraction(
        tree, include_comments=False, include_tables=True, include_links=True, include_formatting=True
    )
    if found is not None and found.body is not None:
        _as_html(found.body)
        marks.restore(found.body)
        cleaned = HtmlBlocks(title=title).cleaned(found.body)
        if len(cleaned.text) >= SHORT:
            return _with_structure(cleaned, whole, title)
        # Short pages lose their structure in Trafilatura's last resort; where little else is there, that is kept.
        everything = _whole(whole, title, html)
        return cleaned if len(everything.text) > MUCH_MORE * len(cleaned.text) > 0 else everything
    return _whole(whole, title, html)


def _with_structure(found: CleanedText, tree: Any, title: str) -> CleanedText:
    """What was found; where it is bare paragraphs of a page that has more, all of the element that they stand in.

    Trafilatura knows many sites' ways to mark the main part. On a page of another make it collects paragraphs alone.
    """
    if found.sections and found.list_items:
        return found
    weights: dict[Any, int] = {}
    total = 0
    for paragraph in tree.iter("p"):
        words = " ".join("".join(paragraph.itertext()).split())
        if len(words) >= LONG_PARAGRAPH and words[:LONG_PARAGRAPH] in found.text:
            total += len(words)
            for around in paragraph.iterancestors():
                weights[around] = weights.get(around, 0) + len(words)
    holding = [element for element, weight in weights.items() if weight >= MOST * total]
    if not holding:
        return found
    deepest = max(holding, key=lambda element: sum(1 for _ in element.iterancestors()))
    if deepest.tag in {"html", "body"}:
        return found  # the whole page is no main part
    everything = HtmlBlocks(title=title).cleaned(deepest)
    lost_headings = not found.sections and len(everything.sections) >= FEW
    lost_lists = not found.list_items and everything.list_items >= FEW
    return everything if lost_headings or lost_lists else found


def _whole(tree: Any, title: str, html: str) -> CleanedText:
    """For pages in which Trafilatura finds no main part: very short ones, lists of links, odd nesting, huge ones."""
    body = next(iter(tree.xpath("//main | //article | //*[@role='main']")), None)
    if body is None:
        body = next(iter(tree.xpath("//body")), tree)
    for element in body.xpath("descendant::header | descendant::footer | descendant::aside"):
        element.drop_tree()
    cleaned = HtmlBlocks(title=title).cleaned(body)
    plain = _plain(html)
    return cleaned if len(cleaned.text) >= PLAIN_SHARE * len(plain) else CleanedText(text=plain)


def _drop_unseen(tree: Any, *, formulas: bool) -> None:
    """Take out what no reader sees, which may be meant for the model (field fault 28), and what no reader needs."""
    if formulas:
        for image in tree.xpath("//img[contains(@class, 'mwe-math-fallback') or contains(@class, 'tex')][@alt]"):
            formula = MATH_STYLE.sub(r"\1", " ".join(image.get("alt").split()))
            image.tail = f" {formula} {image.tail or ''}"  # the formula as MathML beside it is hidden
    for element in list(tree.iter("*")):
        unseen = element.tag in UNSEEN or (element.attrib and (_is_hidden(element) or _is_noise(element)))
        if unseen and element.tag not in KEPT and element.getparent() is not None:
            element.drop_tree()
    for cell in tree.xpath(f"//*[@colspan > {MAX_SPAN} or @rowspan > {MAX_SPAN}]"):
        cell.attrib.pop("colspan", None)  # each column of a span becomes text
        cell.attrib.pop("rowspan", None)
    for listed in tree.xpath("//ol[contains(@class, 'references')]"):
        listed.tag = "ul"  # a reference is called by its mark, not by its number in the list


def _is_hidden(element: Any) -> bool:
    return is_hidden(" ".join(f'{name}="{value}"' for name, value in element.attrib.items() if name in HIDING))


def _is_noise(element: Any) -> bool:
    classes = element.get("class")
    return (
        (classes is not None and not NOISE_CLASSES.isdisjoint(classes.split()))
        or element.get("id") in NOISE_IDS
        or element.get("role") == "navigation"
    )


def _wrap_loose_text(container: Any) -> None:
    """Text beside blocks becomes a paragraph: Trafilatura loses parts of it where inline elements stand between."""
    children = list(container)
    if all(child.tag in INLINE or not isinstance(child.tag, str) for child in children):
        return
    run: Any = None
    if (container.text or "").strip():
        run = container.makeelement("p", {})
        run.text, container.text = container.text, None
        container.insert(0, run)
    for child in children:
        tail, child.tail = child.tail, None
        if isinstance(child.tag, str) and child.tag not in INLINE:
            run = None
        elif run is not None:
            run.append(child)
        elif isinstance(child.tag, str) and "".join(child.itertext()).strip():
            run = container.makeelement("p", {})
            container.replace(child, run)
            run.append(child)
        if not (tail or "").strip():
            child.tail = tail
            continue
        if run is None:
            run = container.makeelement("p", {})
            container.insert(container.index(child) + 1, run)
            run.text = tail
        else:
            child.tail = tail


@dataclass(frozen=True, slots=True)
class _Marks:
    """What Trafilatura would lose: ids of headings, white space of code, cells of tables. It is kept apart, and
    numbers in the text tell where it belongs."""

    anchors: list[str] = field(default_factory=list)
    codes: list[tuple[str, str]] = field(default_factory=list)
    """Text and programming language."""
    tables: list[Any] = field(default_factory=list)

    @classmethod
    def of(cls, tree: Any) -> _Marks:
        marks = cls()
        for heading in tree.iter(*HEADINGS):
            heading.text = f"\U00012000{len(marks.anchors)}\U00012001{heading.text or ''}"
            marks.anchors.append(_anchor(heading))
        for pre in list(tree.iter("pre")):
            marks.add_code(pre)
        for table in tree.iter("table"):
            marks.add_table(table)
        return marks

    def add_code(self, pre: Any) -> None:
        language = language_of(pre)
        for line_break in pre.iter("br"):
            line_break.tail = "\n" + (line_break.tail or "")
        text = "".join(pre.itertext())
        for child in list(pre):
            pre.remove(child)
        pre.text = f"\U00012002{len(self.codes)}\U00012003{text}"
        self.codes.append((text, language))

    def add_table(self, table: Any) -> None:
        """Not of those that make the layout of a page."""
        if next(table.iterdescendants("table", "pre", *HEADINGS), None) is not None:
            return
        kept = deepcopy(table)
        kept.tail = None
        for cell in table.iter("td", "th"):
            cell.text = f"\U00012004{len(self.tables)}\U00012005{cell.text or ''}"
        self.tables.append(kept)

    def restore(self, body: Any) -> None:
        for table in list(body.iter("table")):
            if mark := TABLE_MARK.search("".join(table.itertext())):
                kept = self.tables[int(mark[1])]
                kept.tail = table.tail
                if table.getparent() is not None and kept.getparent() is None:
                    table.getparent().replace(table, kept)
        for element in list(body.iter("*")):
            text = element.text or ""
            if mark := PRE_MARK.search(text):
                _restore_code(element, *self.codes[int(mark[1])])
            elif (mark := HEADING_MARK.search(text)) and element.tag in HEADINGS:
                element.set("id", self.anchors[int(mark[1])])
        for element in body.iter():
            if element.text:
                element.text = MARK.sub("", element.text)
            if element.tail:
                element.tail = MARK.sub("", element.tail)


def _anchor(heading: Any) -> str:
    """A heading's id: its own, of what stands in it (MediaWiki, old wikis), or of the section it opens (Sphinx)."""
    for found in heading.xpath("(@id | descendant::*/@id | descendant::a/@name)[1]"):
        return str(found)[:300]
    parent = heading.getparent()
    if parent is not None and parent.tag in {"section", "div"} and heading.getprevious() is None:
        return (parent.get("id") or "")[:300]
    return ""


def _restore_code(element: Any, text: str, language: str) -> None:
    parent = element.getparent()
    if parent is not None and parent.tag in {"code", "blockquote", "pre"} and not (parent.text or "").strip():
        element = parent
    for child in list(element):
        element.remove(child)
    element.tag, element.text = "pre", text
    if language:
        element.set("class", f"language-{language}")


def _as_html(body: Any) -> None:
    """Trafilatura's names of elements, which are TEI's, to those of HTML."""
    for element in body.iter("*"):
        rend = element.get("rend") or ""
        match element.tag:
            case "head":
                element.tag = rend if rend in HEADINGS else "h2"
            case "list":
                element.tag = rend if rend in {"ul", "ol", "dl"} else "ul"
            case "item":
                element.tag = rend[:2] if rend[:2] in {"dt", "dd"} else "li"
            case "cell":
                element.tag = "th" if element.get("role") == "head" else "td"
            case "hi" if rend in {"#sub", "#sup"}:
                element.tag = rend[1:]
            case tag:
                element.tag = TEI.get(tag, tag)
        if element.tag == "a" and (target := element.get("target")):
            element.set("href", target)


def _plain(html: str) -> str:
    """All text that is not hidden, a line for each block; copes with any nesting. "" where it is no text at all."""
    lines = (" ".join(line.split()) for line in VisibleText().feed(DECLARATION.sub("", html)).split("\n"))
    text = clean_text("\n\n".join(line for line in lines if line.strip(" ;")))
    some = text[:NOISE_SAMPLE]
    noise = len(some) == NOISE_SAMPLE and sum(ch.isalnum() for ch in some) < NOISE_SAMPLE // 10
    return "" if noise else text


# --- the child process --------------------------------------------------------------------------------------------


def answer(payload: bytes) -> bytes:
    request = msgspec.msgpack.decode(payload, type=HtmlRequest)
    try:
        content = read(request)
    except MemoryError:
        content = HtmlContent(text=_plain_of(request), problem="it takes too much memory to read")
    except (ValueError, LookupError, RecursionError, TypeError, AttributeError, AssertionError) as error:
        # lxml and Trafilatura raise all of these on one broken page or another.
        content = HtmlContent(text=_plain_of(request), problem=f"it cannot be read ({type(error).__name__})")
    return msgspec.msgpack.encode(content)


def _plain_of(request: HtmlRequest) -> str:
    return read(HtmlRequest(request.html, request.address, plain=True)).text


def main() -> None:
    sys.setrecursionlimit(4000)  # lxml's trees are 256 deep at most, and a level takes several calls
    serve(answer)


if __name__ == "__main__":
    main()
