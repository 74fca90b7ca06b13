"""What a page is, from its namespace, its markup and its shape.

The thresholds were set on the shared data's wikis: in the English dump lists have 42 % of their characters or more
inside links, articles 34 % at most; in the Markdown folders it is 54 % and 35 %.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from graph.model import PageType
from ingestion.clean import CleanedText

LIST_LINK_SHARE = 0.4
"""Share of a page's characters that are the words of links, from which it is a list or an index."""
LIST_MIN_LINKS = 8
LIST_ITEM_SHARE = 0.5
"""List items and table rows of a list, per link: a short article may be full of links, too."""
NAMESAKES_SHARE = 0.7
NAMESAKES_PROSE = 150
"""A disambiguation page that says so nowhere: a line, then items most of which begin with its title."""
STUB_CHARACTERS = 300
"""Shorter text is a stub even if no template says so."""

DISAMBIGUATION_CHARACTERS = 12_000
QUALIFIER = re.compile(r"[(（][^()（）]*[)）]$")

NAMESPACE_TYPES = {
    0: PageType.ARTICLE,
    2: PageType.USER,
    6: PageType.FILE,
    10: PageType.TEMPLATE,
    14: PageType.CATEGORY,
}
"""By MediaWiki's number of the namespace; odd ones are talk, others not named here are `OTHER` (help, module, …)."""

DISAMBIGUATION_TITLE = re.compile(
    r"[(（](?:disambiguation|homonymie|begriffsklärung|desambiguación|desambiguação|disambigua|doorverwijspagina"
    r"|ujednoznacznienie|пояснение|значения|значення|olika betydelser|nozīmju atdalīšana"
    r"|曖昧さ回避|消歧义|消歧義)[)）]$",
    re.IGNORECASE,
)
DISAMBIGUATION_MARK = re.compile(
    r"\b(?:disambig|homonymie\b|begriffsklärung|desambigua|disambigua|dp$|doorverwijs|ujednoznacznienie|пояснение$"
    r"|неоднозначност|багатозначн|nozīmju|nūzeimu|消歧|曖昧さ回避|aimai\b|hndis\b|geodis\b|surname$|given name$)",
    re.IGNORECASE,
)
"""In the name of a template or a category."""
STUB_MARK = re.compile(
    r"(?:\b|-)(?:stub|ébauche|esbozo|esboço|мъниче|заготовка|beginnetje|zalążek|nepilneigs?|aizmetnis|小作品)\b"
    r"|^(?:stub|sg-stub|абвг)",
    re.IGNORECASE,
)
LIST_TITLE = re.compile(
    r"^(?:lists? of|index of|outline of|glossary of|liste? (?:des?|der|von|over)|lista (?:de|di)|списък|список)\b"
    r"|^(?:index|contents|table of contents|sitemap|all pages)$",
    re.IGNORECASE,
)


def type_of_namespace(number: int) -> PageType:
    """By MediaWiki's number of a namespace."""
    return PageType.TALK if number > 0 and number % 2 else NAMESPACE_TYPES.get(number, PageType.OTHER)


def type_of_article(title: str, cleaned: CleanedText) -> PageType:
    """Article, list, stub or disambiguation, for a page that may be any of them."""
    if _is_disambiguation(title, cleaned):
        return PageType.DISAMBIGUATION
    if _is_list(title, cleaned):
        return PageType.LIST
    marks = (*cleaned.templates, *cleaned.categories)
    if len(cleaned.text) < STUB_CHARACTERS or any(STUB_MARK.search(mark) for mark in marks):
        return PageType.STUB
    return PageType.ARTICLE


def _is_disambiguation(title: str, cleaned: CleanedText) -> bool:
    if DISAMBIGUATION_TITLE.search(title):
        return True
    marks: Sequence[str] = (*cleaned.templates, *cleaned.categories)
    # "Other uses" notes at the top of articles name disambiguation too, so the page must look like one.
    marked = any(DISAMBIGUATION_MARK.search(mark) for mark in marks)
    return (marked and len(cleaned.text) < DISAMBIGUATION_CHARACTERS) or _lists_namesakes(title, cleaned.text)


def _lists_namesakes(title: str, text: str) -> bool:
    name = QUALIFIER.sub("", title).strip().casefold()
    lines = [line for line in text.partition("\n#")[0].split("\n") if line]
    items = [line[2:].casefold() for line in lines if line.startswith("- ")]
    prose = sum(len(line) for line in lines if not line.lstrip().startswith("- "))
    same = sum(item.startswith(name) for item in items)
    return len(items) >= 2 and prose <= NAMESAKES_PROSE and same >= NAMESAKES_SHARE * len(items)


def _is_list(title: str, cleaned: CleanedText) -> bool:
    links = len(cleaned.links)
    if links < LIST_MIN_LINKS:
        return False
    share = cleaned.linked / max(1, len(cleaned.text))
    itemised = cleaned.list_items >= LIST_ITEM_SHARE * links
    return bool(LIST_TITLE.search(title)) or (share >= LIST_LINK_SHARE and itemised)
