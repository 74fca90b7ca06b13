"""DokuWiki's syntax to cleaned text."""

from __future__ import annotations

import re
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.model import Link
from ingestion import dokuwiki
from ingestion.clean import CleanedText
from ingestion.dokuwiki import clean_dokuwiki, first_heading, redirect_of


class AnyPage:
    """Every target is a page's title."""

    def page_link(self, target: str) -> str:
        return target.partition("#")[0]


def clean(text: str, title: str = "") -> CleanedText:
    return clean_dokuwiki(text, AnyPage(), title=title)


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("A **b** //c// __d__ ''e'' <del>f</del>.", "A b c d `e` f."),
        ("one\ntwo\\\\ three\n\nfour", "one two\nthree\n\nfour"),
        ("  * a\n  * b\n    * c\n    - d\n    - e", "- a\n- b\n  - c\n  1. d\n  2. e"),
        ("\t* a", "- a"),
        ("> quoted", "quoted"),
        ("^ name ^ age ^\n| Ada | 36 |\n| Bob | |", "name: Ada; age: 36\nname: Bob"),
        ("^ name | Ada |\n^ age | 36 |", "name: Ada\nage: 36"),
        ("^ a ^^ b ^\n| 1 | 2 | 3 |", "a: 1; a: 2; b: 3"),
        ("^ place ^ food ^\n| west | eel |\n| ::: | cod |", "place: west; food: eel\nplace: west; food: cod"),
        ("| a | [[x|y]] | {{p.png|z}} |", "a; y; z"),
        ("| a^b | <code>1 | 2</code> |", "a; b; `1 | 2`"),
        ("<code python>\nx = [[1]]\n</code>", "```python\nx = [[1]]\n```"),
        ("<file - a.txt>\n====== no ======\n</file>", "```\n====== no ======\n```"),
        ("  indented\n    code", "```\nindented\n  code\n```"),
        ("<nowiki>[[x]] **y**</nowiki> %%//z//%%", "[[x]] **y** //z//"),
        ("text((a [[b]] remark)) more", "text (a b remark) more"),
        ("~~NOTOC~~\n~~NOCACHE~~ shown", "shown"),
        ("<WRAP center round box 60%>\ntext\n</WRAP>\n<note tip>Mind.</note>", "text Mind."),
        ("{{map.png}} {{:ns:map.png?200|a map}} {{rss>http://x}} {{like>url=x}}", "a map"),
        ("http://a.b/c//d see", "http://a.b/c//d see"),
        ("<php>phpinfo();</php> <html><b>x</b><script>y</script></html>", "x"),
        ("<code>never closed", "<code>never closed"),
        ("----\na", "a"),
        ("press <ESC>", "press <ESC>"),
        ("", ""),
    ],
)
def test_blocks(markup: str, text: str) -> None:
    assert clean(markup).text == text


@pytest.mark.parametrize(
    ("markup", "text", "links"),
    [
        ("[[ns:norvik]]", "ns:norvik", [("ns:norvik", "ns:norvik")]),
        ("[[ norvik#food | the **eels** ]]", "the eels", [("norvik", "the eels")]),
        ("[[#food]]", "food", []),
        ("[[http://a.b|there]] [[wp>Eel]] [[a@b.de]] [[\\\\server\\share]]", "there Eel a@b.de \\\\server\\share", []),
        ("[[norvik|{{eel.png}}]]", "norvik", [("norvik", "norvik")]),
        ("{{page>ns:norvik&noheader}}", "ns:norvik", [("ns:norvik", "ns:norvik")]),
        ("[[norvik", "[[norvik", []),
        ("[[a [[norvik]]", "[[a norvik", [("norvik", "norvik")]),
    ],
)
def test_links(markup: str, text: str, links: list[tuple[str, str]]) -> None:
    cleaned = clean(markup)
    assert cleaned.text == text
    assert list(cleaned.links) == [Link(target=target, shown=shown) for target, shown in links]


def test_headings_are_sections_with_dokuwikis_anchors() -> None:
    cleaned = clean(
        "====== Norvik ======\nlead\n===== Food & drink =====\nx\n==== Eel ====\ny\n==== Eel ====\nz", "Norvik"
    )
    assert cleaned.text.startswith("lead")
    assert [(s.level, s.title, s.anchor) for s in cleaned.sections] == [
        (2, "Food & drink", "food_drink"),
        (3, "Eel", "eel"),
        (3, "Eel", "eel1"),
    ]
    for section in cleaned.sections:
        assert cleaned.text.startswith(f"{'#' * section.level} {section.title}", section.start)


def test_tags_are_categories() -> None:
    assert clean('text {{tag>west fishing_village "two words"}}').categories == ("west", "fishing village", "two words")


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("~~REDIRECT>ns:page~~", "ns:page"),
        ("#REDIRECT ns:page#food", "ns:page#food"),
        ("~~GOTO>page~~", "page"),
        ("~~REDIRECT>https://example.org~~", ""),
        ("<code>\n~~REDIRECT>ns:page~~\n</code>", ""),
        ("no redirect", ""),
    ],
)
def test_redirects(text: str, target: str) -> None:
    assert redirect_of(text) == target


def test_the_first_heading() -> None:
    assert first_heading("<code>\n== no ==\n</code>\n~~X~~\n==== The [[norvik|Norvik]] ====\n== b ==") == "The Norvik"
    assert first_heading("text") == ""


def test_a_very_long_page_keeps_its_rest_as_plain_text(caplog: pytest.LogCaptureFixture) -> None:
    cleaned = clean_dokuwiki(
        "====== Log ======\n" + "The **ship** sailed.\n\n" * 40_000 + "the end", AnyPage(), name="log"
    )
    assert "ship" in cleaned.text
    assert cleaned.text.endswith("the end")
    assert "log: longer than" in caplog.text


REPEATED = [
    "[[",
    "{{",
    "((",
    "**",
    "//",
    "''",
    "%%",
    "<code>",
    "<WRAP>",
    "=",
    "== a ==\n",
    "  * a\n",
    "|a",
    "^a^\n|:::|\n",
]
REPEATED += ["[[a|b]]", "((a))", "~~", "\\\\ ", " ", "-", ">", "http://", "<", "a ", "__"]


@pytest.mark.parametrize("unit", REPEATED)
def test_hostile_repetition_is_quick(unit: str) -> None:
    started = time.process_time()
    text = unit * (100_000 // len(unit))
    clean(f"{text}]] }} )) x")
    first_heading(text)
    redirect_of(f"REDIRECT{text}")
    assert time.process_time() - started < (1 if sys.gettrace() is None else 10)


def test_what_is_repeated_in_a_table_is_cut() -> None:
    assert len(clean(f"^ {'h' * 50_000} ^\n" + "| a |\n" * 2_000).text) < 600_000
    assert len(clean(f"| {'h' * 50_000} |\n" + "| ::: |\n" * 2_000).text) < 600_000


MATCHED = {"HELD_ALONE", "LIST_ITEM", "RULE", "QUOTE", "WEB_TARGET", "INDENTED", "NAME_OF_FILE"}
"""Those that are only tried at the start of a text."""


@pytest.mark.parametrize("name", [name for name, value in vars(dokuwiki).items() if isinstance(value, re.Pattern)])
def test_patterns_are_quick_on_repetition(name: str) -> None:
    pattern = getattr(dokuwiki, name)
    find = pattern.match if name in MATCHED else pattern.search
    started = time.process_time()
    for unit in [*REPEATED, *'a1 \n=-|!:;,.#*"']:
        find(f"({unit * (20_000 // len(unit))}!")
        find(f"{unit * (20_000 // len(unit))})")
    assert time.process_time() - started < 4


PIECES = [
    *"ab \n=*-/_'|^[]{}()<>\\%~:.>&é量",
    "[[",
    "]]",
    "{{",
    "}}",
    "((",
    "))",
    "<code>",
    "</code>",
    "\n  * ",
    "\n\n",
]


@given(st.lists(st.sampled_from(PIECES), max_size=200).map("".join))
def test_any_text_can_be_cleaned(text: str) -> None:
    cleaned = clean(text)
    assert not re.search("[\x00\x01]", cleaned.text)
    for section in cleaned.sections:
        assert cleaned.text.startswith(f"{'#' * section.level} {section.title}", section.start)


@given(
    st.lists(
        st.sampled_from(["[[a|b]]", "**a**", "{{p.png|c}}", "== H ==", "  * x", "<WRAP>", "''m''", "((f))", " d "])
    )
)
def test_valid_markup_leaves_no_marks(parts: list[str]) -> None:
    assert not re.search(r"\[\[|\]\]|\{\{|\*\*|<WRAP|\(\(", clean("\n\n".join(parts)).text)
