"""A forum post to text: quotes as quotes, code, lists and descriptions of pictures stay; polls and trimmings go."""

from __future__ import annotations

import re
from typing import Any

from lxml import etree
from lxml import html as lxml_html

from ingestion.clean import CleanedText
from ingestion.html_blocks import HtmlBlocks
from ingestion.html_text import UNSEEN_TAGS, VisibleText, is_hidden
from ingestion.sanitize import clean_text

MAX_COOKED = 500_000
"""Characters; Discourse allows 32,000 in a post by default."""
MUCH_MARKUP = 20
DEEP = 250
"""Elements; lxml leaves out what is nested that deep, so of a post with so many some text must be left."""
LONG_TAG = re.compile(r"<([a-zA-Z][a-zA-Z0-9]{0,30})[^<>]{4000,}>")
DROPPED_CLASSES = frozenset({"poll", "meta", "cooked-selection-barrier", "anchor", "emoji", "avatar", "site-icon"})
"""Polls; beside a picture its file's name and size; a heading's own link; little pictures that stand for words."""
HIDING = frozenset({"hidden", "aria-hidden", "style"})


def post_text(cooked: str) -> CleanedText:
    """The words of a post; links have whole addresses or paths on the forum as their targets. Never raises."""
    cooked = clean_text(LONG_TAG.sub(r"<\1>", cooked))
    if not cooked.strip():
        return CleanedText()
    cooked = cooked[:MAX_COOKED]
    try:
        tree = lxml_html.fragment_fromstring(cooked, create_parent="div")
        if cooked.count("<") < DEEP or len(tree.text_content().strip()) >= len(cooked) // MUCH_MARKUP:
            _prune(tree)
            return HtmlBlocks(images=True).cleaned(tree)
    except (etree.LxmlError, ValueError, AssertionError, RecursionError):
        pass  # broken beyond lxml's help: its words are there all the same
    lines = (" ".join(line.split()) for line in VisibleText().feed(cooked).split("\n"))
    return CleanedText(text=clean_text("\n\n".join(line for line in lines if line)))


def _prune(tree: Any) -> None:
    for element in list(tree.iter("*")):
        if element.getparent() is None:
            continue
        attributes = " ".join(f'{name}="{value}"' for name, value in element.attrib.items() if name in HIDING)
        classes = set((element.get("class") or "").split())
        if element.tag in UNSEEN_TAGS or classes & DROPPED_CLASSES or (attributes and is_hidden(attributes)):
            element.drop_tree()
        elif element.tag == "aside" and "quote" in classes:
            # Who is quoted stands in a title beside the quotation.
            for title in element.xpath("./div[contains(concat(' ', @class, ' '), ' title ')]"):
                title.drop_tree()
