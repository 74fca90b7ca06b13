"""What a page is; the thresholds hold on real wikis."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from graph.model import Link, Page, PageType
from ingestion.clean import CleanedText
from ingestion.page_types import STUB_CHARACTERS, type_of_article, type_of_namespace
from ingestion.sources.detect import open_source

PROSE = "The ship sails to Norvik and comes back with eels. " * 12


def links(count: int) -> tuple[Link, ...]:
    return tuple(Link(target=f"Page {number}") for number in range(count))


@pytest.mark.parametrize(
    ("number", "page_type"),
    [
        *[(0, "article"), (1, "talk"), (2, "user"), (3, "talk"), (6, "file"), (10, "template"), (14, "category")],
        *[(4, "other"), (12, "other"), (828, "other"), (829, "talk"), (-1, "other")],
    ],
)
def test_namespaces(number: int, page_type: str) -> None:
    assert type_of_namespace(number) == page_type


@pytest.mark.parametrize(
    ("title", "cleaned", "page_type"),
    [
        ("Petrel", CleanedText(text=PROSE), "article"),
        ("Petrel", CleanedText(text="A small ship."), "stub"),
        ("Petrel", CleanedText(text=PROSE, templates=("ship-stub",)), "stub"),
        ("Petrel", CleanedText(text=PROSE, categories=("Ébauche navire",)), "stub"),
        ("Petrel (disambiguation)", CleanedText(text=PROSE), "disambiguation"),
        ("Меркурий (значения)", CleanedText(text=PROSE), "disambiguation"),
        ("Petrel", CleanedText(text=PROSE, templates=("disambig",)), "disambiguation"),
        ("Petrel", CleanedText(text=PROSE * 30, templates=("disambiguation needed",)), "article"),
        ("Petrel", CleanedText(text="It can mean:\n\n- Petrel, a ship\n- Petrel (bird), a bird"), "disambiguation"),
        ("Petrel", CleanedText(text=f"{PROSE}\n\n- Petrel, a ship\n- Petrel (bird), a bird"), "article"),
        ("List of ships", CleanedText(text=PROSE, links=links(9)), "list"),
        ("List of ships", CleanedText(text=PROSE, links=links(2)), "article"),
        ("Ships", CleanedText(text=PROSE, links=links(20), linked=300, list_items=20), "list"),
        ("Ships", CleanedText(text=PROSE, links=links(20), linked=300, list_items=2), "article"),
        ("Ships", CleanedText(text=PROSE, links=links(20), linked=100, list_items=20), "article"),
    ],
)
def test_shapes(title: str, cleaned: CleanedText, page_type: str) -> None:
    assert type_of_article(title, cleaned) == page_type


def test_the_bound_of_a_stub() -> None:
    assert type_of_article("Petrel", CleanedText(text="x" * (STUB_CHARACTERS - 1))) is PageType.STUB
    assert type_of_article("Petrel", CleanedText(text="x" * STUB_CHARACTERS)) is PageType.ARTICLE


def test_the_english_sample(data_dir: Path) -> None:
    (dump,) = (data_dir / "wikis/mediawiki_xml_gensim").glob("enwiki-latest*.bz2")
    pages = [page for page in open_source(dump).read() if isinstance(page, Page)]
    types = Counter(page.page_type for page in pages)
    assert (types[PageType.REDIRECT], len(pages) - types[PageType.REDIRECT]) == (100, 106)
    assert {page.title for page in pages if page.page_type is PageType.DISAMBIGUATION} >= {
        "Aberdeen (disambiguation)",
        "Ada",
        "Alien",
        "Animal (disambiguation)",
        "Argument (disambiguation)",
        "Asia Minor (disambiguation)",
        "Austin (disambiguation)",
    }
    assert {page.title for page in pages if page.page_type is PageType.LIST} >= {
        "Academy Award for Best Production Design",
        "List of Atlas Shrugged characters",
        "List of anthropologists",
    }
    assert types[PageType.ARTICLE] >= 90


def test_the_latgalian_sample(data_dir: Path) -> None:
    dump = data_dir / "wikis/mediawiki_xml_ltgwiki/smallwiki-latest-pages-articles.xml"
    pages = {page.title: page for page in open_source(dump).read() if isinstance(page, Page)}
    types = Counter(page.page_type for page in pages.values())
    assert types[PageType.REDIRECT] == 195
    assert types[PageType.CATEGORY] > 500
    assert types[PageType.TEMPLATE] > 300
    assert pages["Grybuli"].page_type is PageType.DISAMBIGUATION
    assert pages["Caracal caracal"].page_type is PageType.ARTICLE
    assert pages["Latgaļu iedīni"].page_type is PageType.LIST
    assert all(page.wiki_language == "ltg" for page in pages.values())
    assert pages["Grybuli"].url == "https://ltg.wikipedia.org/wiki/Grybuli"
    assert "Rēznis nūvods" in {link.target for page in pages.values() for link in page.links}
