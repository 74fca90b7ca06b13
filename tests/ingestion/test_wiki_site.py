"""Titles and namespaces of a MediaWiki."""

from __future__ import annotations

import pytest

from ingestion.wiki_site import WikiSite

SITE = WikiSite(
    {2: "Lītuotuojs", 4: "Vikipedeja", 6: "Fails", 14: "Kategoreja"}, base="https://ltg.wikipedia.org/wiki/X"
)


@pytest.mark.parametrize(
    ("written", "namespace", "full"),
    [
        ("norvik", 0, "Norvik"),
        (" Port_Lyre__(town)#Food ", 0, "Port Lyre (town)"),
        ("category:ships", 14, "Kategoreja:Ships"),
        ("Kategoreja : ships", 14, "Kategoreja:Ships"),
        ("IMAGE:a.jpg", 6, "Fails:A.jpg"),
        ("Project:About", 4, "Vikipedeja:About"),
        ("Template:x", 10, "Template:X"),
        ("Re: zero", 0, "Re: zero"),
        ("#Food", 0, ""),
        ("Category:", 14, ""),
        ("", 0, ""),
    ],
)
def test_titles(written: str, namespace: int, full: str) -> None:
    title = SITE.parse(written)
    assert (title.namespace, title.full, title.interwiki) == (namespace, full, "")


@pytest.mark.parametrize(("written", "prefix", "name"), [("fr:Norvik", "fr", "Norvik"), (":wikt:eel", "wikt", "eel")])
def test_other_wikis(written: str, prefix: str, name: str) -> None:
    title = SITE.parse(written)
    assert (title.interwiki, title.name) == (prefix, name)


def test_a_colon_asks_for_a_plain_link() -> None:
    assert SITE.parse(":Category:Ships").colon
    assert not SITE.parse("Category:Ships").colon


def test_case_sensitive_wikis() -> None:
    assert WikiSite(first_letter=False).parse("norvik").full == "norvik"


def test_urls() -> None:
    assert SITE.url("Port Lyre (town)/é?") == "https://ltg.wikipedia.org/wiki/Port_Lyre_(town)/%C3%A9%3F"
    assert WikiSite().url("Port Lyre") == "Port Lyre"


@pytest.mark.parametrize(
    ("language", "written", "full"),
    [
        ("de", "Bild:a.jpg", "File:A.jpg"),
        ("de", "Benutzerin:Ansa", "User:Ansa"),
        ("ru", "категория:Суда", "Category:Суда"),
        ("vi", "Tập tin:a.jpg", "File:A.jpg"),
        ("en", "Bild:a.jpg", "Bild:a.jpg"),
        ("", "Image:a.jpg", "File:A.jpg"),
    ],
)
def test_names_that_a_language_knows_beside_the_dumps(language: str, written: str, full: str) -> None:
    assert WikiSite(language=language).parse(written).full == full


def test_a_wikis_own_names_win() -> None:
    assert WikiSite({100: "Bild"}, language="de").parse("Bild:a").namespace == 100
