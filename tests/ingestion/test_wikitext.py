"""Wikitext to cleaned text."""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.model import Link
from ingestion.clean import CleanedText
from ingestion.sanitize import clean_text
from ingestion.wiki_site import WikiSite
from ingestion.wikitext import MAX_PARSED, clean_wikitext

SITE = WikiSite({6: "Fails", 14: "Kategoreja", 10: "Taiss", 2: "Lītuotuojs"}, language="ltg")
BUDGET = 2.0 if sys.gettrace() is None else 10.0
"""Seconds a page may take; measuring coverage slows everything down."""
LEFTOVER = re.compile(r"\[\[|\]\]|\{\{|\}\}|<ref|thumb\||\{\||\|\}|__[A-Z]+__|<!--")


def clean(text: str) -> CleanedText:
    return clean_wikitext(text, SITE)


def assert_sections_fit(cleaned: CleanedText) -> None:
    for section in cleaned.sections:
        line = cleaned.text[section.start :].partition("\n")[0]
        assert line == f"{'#' * section.level} {section.title}"
    assert len({section.anchor for section in cleaned.sections}) == len(cleaned.sections)


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("'''Norvik''' is a ''village''.", "Norvik is a village."),
        ("one\ntwo\n\nthree", "one two\n\nthree"),
        ("a<br>b<br/>c", "a\nb\nc"),
        ("* a\n** b\n# c\n## d", "- a\n  - b\n1. c\n  1. d"),
        ("; term : meaning\n: indented", "term\nmeaning\nindented"),
        ("<ul><li>a</li><li>b</ul>", "- a\n- b"),
        ("a<ref>b {{cite|c}}</ref> d<ref name=x/>.", "a d."),
        ("a<!-- b -->c <!-- d", "ac"),
        ("__NOTOC__ a __БЕЗСЪДЪРЖАНИЕ__ __init__", "a __init__"),
        ("{{DEFAULTSORT:Norvik}}a{{navbox|b}}", "a"),
        ("a (from {{lang-el|ανα}}) (  {{IPA|x}} ; ) b", "a (from ανα) b"),
        ("{{convert|5|km|mi}} and {{convert|5|to|6|km}}", "5 km and 5 to 6 km"),
        ("{{birth date|1950|1|2}}", "1950-01-02"),
        ("{{quote|A long quotation.|Someone}}", "A long quotation."),
        ("x{{!}}y {{'}}s 10<sup>6</sup> 1<sup>st</sup>", "x|y 's 10^6 1st"),
        ('a <span style="display:none">b</span> c', "a c"),
        ('a <div style="display:none">b {{x}} [[c]]', "a"),
        ('a <div class="noprint">b</div> c', "a c"),
        ("<nowiki>[[a]]</nowiki> &amp; &lt;b&gt;", "[[a]] & <b>"),
        ("<math>a_{b}^{{c}}</math>", "a_{b}^{ {c} }"),
        ("<code>x = 1</code> <syntaxhighlight inline lang=py>y</syntaxhighlight>", "`x = 1` `y`"),
        ('<syntaxhighlight lang="py">\nx = [[1]]\n\n</syntaxhighlight>', "```py\nx = [[1]]\n```"),
        ("<pre>\n {{a}}\n</pre>", "```\n {{a}}\n```"),
        (" x = ''1''\n y = 2", "```\nx = 1\ny = 2\n```"),
        ("<poem>one\ntwo</poem>", "one\ntwo"),
        ("<gallery>\nFile:a.jpg|A [[cape]]\nFile:b.jpg\n</gallery>", "A cape"),
        ("[http://a.b words] [http://a.b] http://c.d", "words http://c.d"),
        ("<div>a</div><blockquote>b</blockquote>", "a\n\nb"),
        ("", ""),
    ],
)
def test_blocks(markup: str, text: str) -> None:
    assert clean(markup).text == text


@pytest.mark.parametrize(
    ("markup", "text", "links"),
    [
        ("[[norvik]]s", "norviks", [("Norvik", "norvik")]),
        ("[[Norvik#Food|the ''eels'']]", "the eels", [("Norvik", "the eels")]),
        ("[[Port_Lyre (town)|]]", "Port Lyre", [("Port Lyre (town)", "Port Lyre")]),
        ("[[#Food]]", "#Food", []),
        ("[[:Category:Ships|ships]]", "ships", [("Kategoreja:Ships", "ships")]),
        ("[[User:Ansa]]", "User:Ansa", [("Lītuotuojs:Ansa", "User:Ansa")]),
        ("[[fr:Norvik]] [[wikt:eel|eel]]", "eel", []),
        ("[[Special:Search]]", "Special:Search", []),
        ("{{Main|Eel|Smoked eel pie}}", "", [("Eel", ""), ("Smoked eel pie", "")]),
        ("{{:Norvik}}", "", [("Norvik", "")]),
        ("[[Re: zero]]", "Re: zero", [("Re: zero", "Re: zero")]),
    ],
)
def test_links(markup: str, text: str, links: list[tuple[str, str]]) -> None:
    cleaned = clean(markup)
    assert cleaned.text == text
    assert list(cleaned.links) == [Link(target=target, shown=shown) for target, shown in links]


@pytest.mark.parametrize("name", ["Category", "category", "Kategoreja", " kategoreja "])
def test_categories_in_every_form(name: str) -> None:
    cleaned = clean(f"a [[{name}:Ships|*]][[{name}:small boats]]")
    assert (cleaned.text, cleaned.categories, cleaned.links) == ("a", ("Ships", "Small boats"), ())


@pytest.mark.parametrize("name", ["File", "Image", "Fails", "Attēls"])
def test_pictures_keep_their_caption(name: str) -> None:
    cleaned = clean(f"[[{name}:a.jpg|thumb|250px|alt=x|The [[cape]] of ''Norvik'']]\nNorvik is a village.")
    assert cleaned.text == "The cape of Norvik\n\nNorvik is a village."
    assert clean(f"[[{name}:a.jpg|thumb|мини|250px]]a[[{name}:b.jpg]]").text == "a"


def test_headings_become_sections_with_mediawikis_anchors() -> None:
    cleaned = clean("lead\n== Early life ==\na\n=== [[Norvik|In]] ''Norvik'' <ref>x</ref>===\nb\n== Early life ==\nc")
    assert [(s.level, s.title, s.anchor) for s in cleaned.sections] == [
        (2, "Early life", "Early_life"),
        (3, "In Norvik", "In_Norvik"),
        (2, "Early life", "Early_life_2"),
    ]
    assert_sections_fit(cleaned)


@pytest.mark.parametrize(
    ("markup", "rows"),
    [
        ("! A !! B\n|-\n| 1 || [[x|2]]\n|-\n| 3\n|", "A: 1; B: 2\nA: 3"),
        ("|+ Caption\n! A !! B\n|-\n! r\n| 1", "Caption\nA: r; B: 1"),
        ("! Name\n| Ansa\n|-\n! Age\n| 40", "Name: Ansa\nAge: 40"),
        ('! A !! colspan=2 | B\n|-\n| 1 || 2 || 3\n|-\n| colspan="3" | all', "A: 1; B: 2; B: 3\nA: all"),
        ("! A !! B\n|-\n| rowspan=2 | x || 1\n|-\n| 2", "A: x; B: 1\nA: x; B: 2"),
        ("! colspan=2 | Size\n|-\n! m !! ft\n|-\n| 1 || 3", "Size\nm: 1; ft: 3"),
        ('! A !! B\n|- style="display:none"\n| 1 || 2\n|-\n| 3 || 4', "A: 3; B: 4"),
        ("! A !! B\n|-\n|\n* x\n* y\n| z", "A: x, y; B: z"),
        ("<tr><td>1<td colspan=2>2\n<tr><td>3</td><td>4</td>", "1; 2\n3; 4"),
    ],
)
def test_tables_become_rows(markup: str, rows: str) -> None:
    assert clean(f"a\n{{| class=wikitable\n{markup}\n|}}\nb").text == f"a\n\n{rows}\n\nb"


def test_html_tables_and_tables_in_tables() -> None:
    assert clean("<table><tr><th>A</th><th>B</th></tr><tr><td>1<td>2</table>").text == "A: 1; B: 2"
    assert clean("{|\n! A !! B\n|-\n| 1\n|\n{|\n| x || y\n|}\n|}").text == "A: 1; B: x; y"


def test_a_table_that_only_lays_out_text_is_read_as_text() -> None:
    assert clean(f"{{|\n| {'long ' * 200}\n| short\n|}}").text == f"{'long ' * 200}".strip() + "\nshort"


def test_a_navigation_table_is_dropped() -> None:
    assert clean('a\n{| class="navbox"\n| [[x]]\n|}').text == "a"


def test_a_table_that_a_template_closes() -> None:
    cleaned = clean("{|\n! A !! B\n|-\n| 1 || 2\n{{end}}\n\n== Next ==\ntext")
    assert cleaned.text == "A: 1; B: 2\n\n## Next\n\ntext"


def test_infobox_fields() -> None:
    cleaned = clean(
        "{{Infobox settlement\n| name = [[Norvik]]\n| populationTotal = 310\n| image = a.jpg\n| empty =\n"
        "| languages = Norse<br>English\n| founded = {{start date|1630|5}}\n| note = {{x}}\n| long = "
        + "word "
        * 99
        + "}}\n"
        "'''Norvik''' is a village."
    )
    fields = "name: Norvik\npopulation Total: 310\nlanguages: Norse, English\nfounded: 1630-05"
    assert cleaned.text == f"{fields}\n\nNorvik is a village."
    assert cleaned.templates == ("infobox settlement", "start date")


def test_an_infobox_of_another_language_is_known_by_its_shape() -> None:
    box = "{{Nūvods|pasauka=Rēzne|centrys=Rēzne|pluots=12|laiks=1|karta=2}}"
    assert clean(box).text.startswith("pasauka: Rēzne\ncentrys: Rēzne")
    assert clean(f"== H ==\n{box}").text == "## H"


@pytest.mark.parametrize("at", range(8))
def test_the_slow_inputs_of_the_vectors(data_dir: Path, at: int) -> None:
    lines = (data_dir / "fuzz/own_vectors/slow_wikitext.jsonl").read_text().splitlines()
    vector = json.loads(lines[at])
    started = time.process_time()
    cleaned = clean("before " + vector["repeat"] * vector["times"] + " after")
    assert time.process_time() - started < BUDGET
    assert "before" in cleaned.text


@pytest.mark.parametrize(
    "pattern",
    [
        *[
            ("{{a|", "}}"),
            ("[[a|", "]]"),
            ("{|\n|", "\n|}"),
            ("<div>", "</div>"),
            ("[http://a ", "]"),
            ("''", ""),
            ("{", "}"),
        ],
        *[("<b>[[", "]]"), ("{{[[", "}}"), ("<a b='", ""), ("<pre>", ""), ("<!--", ""), ("<td>", ""), ("[", "")],
        *[("\n==a==", ""), ("<ul><li>", ""), ("<table><td>", "</table>")],
    ],
)
def test_hostile_repetition_is_quick(pattern: tuple[str, str]) -> None:
    opening, closing = pattern
    for text in (opening * 3000, opening * 3000 + closing * 3000, opening * 3000 + closing * 1500):
        started = time.process_time()
        clean(text)
        assert time.process_time() - started < BUDGET


@pytest.mark.parametrize(
    "markup",
    ["word " * (MAX_PARSED // 5 + 1), "{{a|" * 60 + "deep" + "}}" * 60, "* [[Norvik|west]]\n" * 20_000],
)
def test_what_is_too_much_is_read_as_plain_text_and_named(markup: str, caplog: pytest.LogCaptureFixture) -> None:
    started = time.process_time()
    page = f"== Food ==\n{markup}\nSmoked '''eels''' of [[Port Lyre|the town]].<ref>x</ref>"
    cleaned = clean_wikitext(page, SITE, name="Norvik")
    assert time.process_time() - started < BUDGET
    assert cleaned.text.endswith("Smoked eels of the town.")
    assert cleaned.sections[0].anchor == "Food"
    assert Link(target="Port Lyre", shown="the town") in cleaned.links
    assert "Norvik: " in caplog.text


PIECES = [
    *"ab \n'=*#:;|[]{}<>/-!",
    "[[",
    "]]",
    "{{",
    "}}",
    "{|",
    "|}",
    "|-",
    "\n",
    "==",
    "<ref>",
    "</ref>",
    "<div>",
    "</div>",
]
PIECES += [
    "<nowiki>",
    "</nowiki>",
    "<!--",
    "-->",
    "File:a.jpg|thumb|",
    "Category:",
    "&amp;",
    "&#0;",
    "__NOTOC__",
    "量",
    "<br>",
]


@given(st.lists(st.sampled_from(PIECES), max_size=120).map("".join))
def test_any_text_can_be_cleaned(text: str) -> None:
    assert_sections_fit(clean(clean_text(text)))


WRAPPERS = [
    "[[Norvik|%]]",
    "{{lang|fr|%}}",
    "<div>%</div>",
    "[[File:a.jpg|thumb|%]]",
    "''%''",
    "a<ref>%</ref> b",
    "\n{|\n! A !! B\n|-\n| % || x\n|}\n",
    "%\n\n== H ==\n\n%",
    "* a\n* %\n",
]
INNERMOST = st.sampled_from(
    ["word", "a [[Eel]]", "x<ref name=y />", "{{flag|Norvik}}", "&nbsp;", "{{navbox|a={{b|c}}}}"]
)


def _wrapped(inner: str, wrappers: list[str]) -> str:
    for wrapper in wrappers:
        inner = wrapper.replace("%", inner)
    return inner


VALID = st.builds(_wrapped, INNERMOST, st.lists(st.sampled_from(WRAPPERS), max_size=5))


@given(VALID)
def test_valid_markup_leaves_no_marks(markup: str) -> None:
    # Links within links are not valid, so their marks may show.
    if not re.search(r"\[\[Norvik\|[^\]]*\[\[", markup):
        assert not LEFTOVER.search(clean(markup).text)


def test_the_inputs_of_mwparserfromhells_own_tests(data_dir: Path) -> None:
    texts = [
        re.sub(r"\\n", "\n", found)
        for path in sorted((data_dir / "fuzz/mwparserfromhell").glob("*.mwtest"))
        for found in re.findall(r'^input:\s+"(.*)"$', path.read_text(), re.MULTILINE)
    ]
    assert len(texts) > 500
    for text in texts:
        started = time.process_time()
        cleaned = clean(clean_text(text))
        assert time.process_time() - started < BUDGET
        assert_sections_fit(cleaned)
        if not re.search("<(?:nowiki|pre)", text, re.IGNORECASE):
            assert not re.search(r"\[\[|\{\{|<ref|thumb\|", cleaned.text), text


def test_the_inputs_of_parsoids_tests(data_dir: Path) -> None:
    pattern = re.compile(r"^!! ?(?:wikitext|text|input)[^\n]*\n(.*?)^!!", re.MULTILINE | re.DOTALL)
    paths = sorted((data_dir / "fuzz/parsoid").glob("*.txt"))
    texts = [text for path in paths for text in pattern.findall(path.read_text("utf-8", "replace"))]
    assert len(texts) > 1500
    for text in texts:
        started = time.process_time()
        cleaned = clean(clean_text(text))
        assert time.process_time() - started < BUDGET
        assert_sections_fit(cleaned)
        # In code and in <nowiki> marks are words.
        if not re.search("<(?:nowiki|pre|source|syntax|math)|&#|&lt;", text, re.IGNORECASE):
            words = re.sub("(?s)```.*?```|`[^`]*`", "", cleaned.text)
            assert not re.search(r"\[\[|\{\{|<ref|thumb\|", words), text
