"""Templates, MediaWiki's functions, language variants and the forms that links and pictures take in other languages."""

from __future__ import annotations

import time

import pytest

from ingestion.clean import CleanedText
from ingestion.wiki_site import WikiSite
from ingestion.wikitext import clean_wikitext

GERMAN = WikiSite({6: "Datei", 10: "Vorlage", 14: "Kategorie"}, language="de")
CHINESE = WikiSite(language="zh")


def clean(text: str, site: WikiSite = GERMAN, *, page_name: str = "Norvik/Food", plain: bool = False) -> CleanedText:
    return clean_wikitext(text, site, page_name=page_name, plain=plain)


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("{{lang|fr|bonjour}} {{langx|fr|salut}} {{lang-de|Hut}}", "bonjour salut Hut"),
        ("{{nowrap|1=a = b}} {{Vorlage:nowrap|c}} {{template:small|d}}", "a = b c d"),
        ("{{cvt|3|ft}} {{convert|10|mi|km|abbr=on}} {{unité|10|km}}", "3 ft 10 mi 10 km"),
        ("{{zh|t=電腦|s=电脑|p=diànnǎo}} {{nihongo|Tokyo|東京}}", "電腦 Tokyo"),
        ("{{USD|100}} {{£|5 million}}", "$100 £5 million"),
        ("{{small|{{lang|fr|[[Eel|anguille]] ''x''}}}}", "anguille x"),
        ("{{Zitat|Eine Klippe.}}{{blockquote|text=A cliff.|author=x}}", "Eine Klippe.A cliff."),
        ("{{unknown|x}}{{#invoke:Infobox|y}}{{efn|note}}{{sfn|A|2000}}a", "a"),
        ("{{PAGENAME}}, {{SUBPAGENAME}}, {{BASEPAGENAME}}, {{ROOTPAGENAME}}", "Norvik/Food, Food, Norvik, Norvik"),
        ("{{lc:ABC}} {{uc:x}} {{ucfirst:abc}} {{lcfirst:ABC}} {{formatnum:1234}}", "abc X Abc aBC 1234"),
        ("{{#if:x|yes|no}} {{#if: |yes|[[Eel|no]]}} {{#if:{{{1|}}}|a|b}}", "yes no b"),
        ("{{#ifeq:a|a|same|other}} {{#ifeq:a|b|same|other}} {{plural:1|eel|eels}} {{plural:2|eel|eels}}",
         "same other eel eels"),
        ("{{#switch:a|a=1|b=2}}{{#tag:ref|x}}{{#expr:1+1}}a", "a"),
        ("<includeonly>a</includeonly><noinclude>b</noinclude> <onlyinclude>c</onlyinclude>", "b\n\nc"),
    ],
)  # fmt: skip
def test_templates_and_functions(markup: str, text: str) -> None:
    assert clean(markup).text == text


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("a -{zh-hans:计算机; zh-hant:電腦}- b", "a 计算机 b"),
        ("-{zh-tw:電腦;zh-cn:计算机;}-", "计算机"),
        ("-{zh-tw:電腦}- -{原文}- -{R|zh-cn:x}-", "電腦 原文 zh-cn:x"),
        ("-{H|zh-cn:a;zh-tw:b}--{T|zh-cn:c}--{-|zh-cn:d}-e", "e"),
        ("-{zh-hans:[[计算机|机]]; zh-hant:[[電腦]]}-", "机"),
        ("-{A|zh-hans:一-{二}-三; zh-hant:四}-", "一二三"),
        ("<nowiki>-{a}-</nowiki> <code>-{b}-</code>", "-{a}- `-{b}-`"),
        ("x -{ y", "x -{ y"),
    ],
)
def test_language_variants(markup: str, text: str) -> None:
    assert clean(markup, CHINESE).text == text


def test_in_other_languages_variants_are_text() -> None:
    assert clean("a -{b}- c").text == "a -{b}- c"


@pytest.mark.parametrize("name", ["Datei", "Bild", "File", "Image", "bild"])
def test_pictures_in_every_name_of_their_namespace(name: str) -> None:
    assert clean(f"[[{name}:A b.jpg|mini|hochkant=1.5|links|Die [[Klippe]] (2019), a=b]]").text == (
        "Die Klippe (2019), a=b"
    )


@pytest.mark.parametrize(
    ("options", "caption"),
    [
        ("thumb|Kapitän", "Kapitän"),
        ("thumb|The cat|right", "The cat"),
        ("thumb|alt=A cat|link=x|250px", ""),
        ("мини|250px", ""),
        ("thumb|upright 1.3|A {{lang|en|cat}} of <math>a</math><ref>x</ref>", "A cat of a"),
        ("thumb|", ""),
    ],
)
def test_which_option_is_the_caption(options: str, caption: str) -> None:
    assert clean(f"[[File:a.jpg|{options}]]").text == caption


@pytest.mark.parametrize(
    ("markup", "targets"),
    [
        ("[[/Eel]] [[../Cape]] [[../../Cape]]", ["Norvik/Food/Eel", "Norvik/Cape", "Cape"]),
        ("[[en:Eel]] [[:en:Eel]] [[wikt:eel]] [[d:Q1|x]]", []),
        ("[[:Kategorie:Tiere]] [[:Category:Tiere]]", ["Kategorie:Tiere"]),
        ("[[Benutzerin:Ansa]]", ["User:Ansa"]),
        ("{{/Eel}} {{:Cape}} {{User:Ansa/Box}}", ["Norvik/Food/Eel", "Cape", "User:Ansa/Box"]),
        ("{{Hauptartikel|Eel}} {{Siehe auch|Cape}}", ["Eel", "Cape"]),
    ],
)
def test_links_of_every_form(markup: str, targets: list[str]) -> None:
    assert list(dict.fromkeys(link.target for link in clean(markup).links)) == targets


def test_anchors_are_told_apart_whatever_their_capitals() -> None:
    cleaned = clean("== Food ==\na\n== FOOD ==\nb\n== food ==\nc\n== a  b_c ==\nd\n== Food_2 ==\ne")
    assert [section.anchor for section in cleaned.sections] == ["Food", "FOOD_2", "food_3", "a_b_c", "Food_2_2"]


def test_many_headings_of_one_name_are_quick() -> None:
    started = time.process_time()
    cleaned = clean("== a ==\nb\n" * 3000)
    assert time.process_time() - started < 2.0
    assert cleaned.sections[-1].anchor == "a_3000"


def test_what_follows_on_the_line_makes_a_heading_text() -> None:
    assert clean("== a == b\n\n== c == \nd").text == "== a == b\n\n## c\n\nd"


def test_rows_of_a_table_stay_apart_where_a_page_is_read_plainly() -> None:
    table = "a\n{| class=x\n! A !! B\n|-\n| 1 || style=x | 2\n|-\n| 3\n| 4\n|}\nb {{x}}"
    assert clean(table, plain=True).text == "a\n\nA; B\n\n1; 2\n\n3 4\n\nb"


@pytest.mark.parametrize("unit", ["-{", "}-", "-{a;", "-{zh:", "zh-", "-{a=>", ";", " ", "|", "<code>", "a=", "-{x}-"])
def test_variants_are_quick_on_repetition(unit: str) -> None:
    started = time.process_time()
    for text in (f"-{{{unit * (20_000 // len(unit))}!", f"-{{zh-cn:{unit * (1_900 // len(unit))}}}-" * 10):
        clean(text, CHINESE)
    assert time.process_time() - started < 2.0
