"""Markdown to cleaned text."""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.model import Link
from ingestion.clean import CleanedText
from ingestion.markdown import MAX_PARSED, clean_markdown, first_heading, plain_line


class AnyPage:
    """Every name is a page's title, every relative address a page's path."""

    def wiki_link(self, name: str, shown: str) -> str:
        return name

    def path_link(self, href: str) -> str:
        return "" if ":" in href else href.removesuffix(".md")


def clean(text: str, title: str = "") -> CleanedText:
    return clean_markdown(text, AnyPage(), title=title)


def assert_sections_fit(cleaned: CleanedText) -> None:
    for section in cleaned.sections:
        line = cleaned.text[section.start :].partition("\n")[0]
        assert line == f"{'#' * section.level} {section.title}"
    assert len({section.anchor for section in cleaned.sections}) == len(cleaned.sections)


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("A *b* **c** ~~d~~ `e`.", "A b c d `e`."),
        ("one\ntwo  \nthree", "one two\nthree"),
        ("- a\n- b\n  - c\n\n1. d\n2. e", "- a\n- b\n  - c\n\n1. d\n2. e"),
        ("- a\n\n  more\n- b", "- a\n  more\n- b"),
        ("> quoted\n> text", "quoted text"),
        ("> [!NOTE]\n> Mind the eels.", "Note: Mind the eels."),
        ("| a | b |\n|---|---|\n| 1 | `2` |\n| | 3 |", "a: 1; b: `2`\nb: 3"),
        ("| a | b |\n|---|---|", "a; b"),
        ("```py\nx = [[1]]\n\n```", "```py\nx = [[1]]\n```"),
        ("~~~\n```\n~~~", "````\n```\n````"),
        ("    indented code", "```\nindented code\n```"),
        ("![a lighthouse](x.png)", "a lighthouse"),
        ("[words](https://example.org) <https://a.b>", "words https://a.b"),
        ("a<br>b &amp; c", "a\nb & c"),
        ("before <!-- hidden --> after", "before  after".replace("  ", " ")),
        ("<!--\nhidden\n\nstill\n-->\nshown", "shown"),
        ('<div style="display: none">\n\n**hidden** text\n\n</div>\n\nshown', "shown"),
        ("a <span hidden>b <b>c</b></span> d", "a d"),
        ("<script>alert(1)</script>\n\nshown", "shown"),
        ("<p>one\ntwo</p>\n<p>three</p>", "one two\n\nthree"),
        ("<table><tr><td>a</td><td>b</td></tr></table>", "a; b"),
        ("- a\n- b\n{.links-list}", "- a\n- b"),
        ("%%a private remark%% shown", "shown"),
        ("text[^1]\n\n[^1]: a remark", "text\n\na remark"),
        ("***\n\na\n\n---", "a"),
        ("", ""),
    ],
)
def test_blocks(markup: str, text: str) -> None:
    assert clean(markup).text == text


@pytest.mark.parametrize(
    ("markup", "text", "links"),
    [
        ("[[Norvik]]", "Norvik", [("Norvik", "Norvik")]),
        ("[[Norvik#Food|the eels]]", "the eels", [("Norvik", "the eels")]),
        ("[[places/Norvik]]", "places/Norvik", [("places/Norvik", "places/Norvik")]),
        ("[[#Food]]", "Food", []),
        ("![[Norvik]]", "Norvik", [("Norvik", "Norvik")]),
        ("![[map.png]] ![[map.png|300]] ![[map.png|a map]]", "a map", []),
        ("[the *port*](Port%20Lyre.md)", "the port", [("Port%20Lyre", "the port")]),
        ("[mail](mailto:a@b.c)", "mail", []),
        ("| a |\n|---|\n| [[Norvik\\|west]] |", "a: west", [("Norvik", "west")]),
        ("`[[Norvik]]`", "`[[Norvik]]`", []),
        ("[[Norvik", "[[Norvik", []),
        ("[[a\nb]]", "[[a b]]", []),
    ],
)
def test_links(markup: str, text: str, links: list[tuple[str, str]]) -> None:
    cleaned = clean(markup)
    assert cleaned.text == text
    assert list(cleaned.links) == [Link(target=target, shown=shown) for target, shown in links]


def test_headings_become_sections_with_githubs_anchors() -> None:
    cleaned = clean("lead\n\n# Crew & Co.\n\nx\n\n## Crew & Co.\n\ny\n\nÉtat *civil*\n---\n\nz\n\n#\n")
    assert [(s.level, s.title, s.anchor) for s in cleaned.sections] == [
        (1, "Crew & Co.", "crew--co"),
        (2, "Crew & Co.", "crew--co-1"),
        (2, "État civil", "état-civil"),
    ]
    assert_sections_fit(cleaned)


def test_a_first_heading_that_repeats_the_title_goes() -> None:
    assert clean("# Norvik\n\ntext", title="norvik").text == "text"
    assert clean("# Norvik\n\ntext", title="Port Lyre").text == "# Norvik\n\ntext"
    assert clean("## Food\n\n# Norvik", title="Norvik").text == "## Food\n\n# Norvik"


@pytest.mark.parametrize(
    ("head", "heading"),
    [
        ("# Norvik", "Norvik"),
        ("text\n\n# The *[[Norvik]]* #", "The Norvik"),
        ("#  C#", "C#"),
        ("Norvik\n======", "Norvik"),
        ("Norvik\n------\n# x", ""),
        ("## Food\n# Norvik", ""),
        ("```\n# no heading\n```\n# Norvik", "Norvik"),
        ("#hashtag\n# Norvik", "Norvik"),
        ("no heading", ""),
    ],
)
def test_the_first_heading(head: str, heading: str) -> None:
    assert first_heading(head) == heading


def test_one_line_without_markup() -> None:
    assert plain_line("**A** [b](c) `d` {#anchor}") == "A b `d`"


def test_text_nested_deeper_than_ten_lists_is_kept() -> None:
    markup = "".join(f"{'  ' * depth}- item{depth}\n" for depth in range(25))
    assert "item24" in clean(markup).text


@pytest.mark.parametrize(
    "pattern", ["[", "![", "[[a|b", "^[", "[a [b] ", "*a **b ", "<a ", "> ", "`a", "# a\n\n", "<!--"]
)
def test_hostile_repetition_is_quick(pattern: str) -> None:
    started = time.process_time()
    clean(pattern * 10_000)
    assert time.process_time() - started < (2 if sys.gettrace() is None else 10)


def test_a_very_long_page_is_read_as_plain_text(caplog: pytest.LogCaptureFixture) -> None:
    markup = "# Log\n\n" + "The ship sailed. <!-- hidden -->\n\n" * (MAX_PARSED // 30)
    cleaned = clean_markdown(markup, AnyPage(), name="log.md")
    assert cleaned.sections[0].title == "Log"
    assert "hidden" not in cleaned.text
    assert "log.md" in caplog.text


PIECES = [*"ab \n#-*_`[]()|<>!:.1~=&\\$%é量", "[[", "]]", "```", "\n\n", "<!--", "-->", "<b>"]
MARKUP = st.lists(st.sampled_from(PIECES), max_size=200).map("".join)


@given(MARKUP)
def test_any_text_can_be_cleaned(text: str) -> None:
    assert_sections_fit(clean(text))


@given(
    st.lists(st.sampled_from(["[[Norvik|west]]", "*a*", "[b](c.md)", "## H", "- item", "> q", "`c`", "\n\n", " d "]))
)
def test_valid_markup_leaves_no_link_marks(parts: list[str]) -> None:
    assert not re.search(r"\[\[|\]\]|\]\(", clean("\n\n".join(parts)).text)


def test_the_commonmark_examples(data_dir: Path) -> None:
    spec = (data_dir / "fuzz/commonmark/spec.txt").read_text()
    examples = re.findall(r"^`{32} example\n(.*?)\n\.\n", spec, re.DOTALL | re.MULTILINE)
    assert len(examples) > 600
    for example in examples:
        assert_sections_fit(clean(example.replace("→", "\t")))


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("> [!tip]- Eels\n> Smoke them.", "Tip: Eels\nSmoke them."),
        ("> [!my-type|right]\n> Smoke.", "My-type: Smoke."),
        ("a block ^b1a2\n\n- item ^item-1", "a block\n\n- item"),
        ("E = x ^2", "E = x ^2"),
        ("`%%kept%%` %%gone%%", "`%%kept%%`"),
    ],
)
def test_obsidians_marks(markup: str, text: str) -> None:
    assert clean(markup).text == text


def test_hashtags_are_categories_where_they_are_asked_for() -> None:
    markup = "#west/coast and (#b) but a#c, #123, `#d`, [x](y.md#e)\n\n# Heading\n"
    assert clean_markdown(markup, AnyPage(), tags=True).categories == ("west/coast", "b")
    assert clean(markup).categories == ()


def test_githubs_order_of_words_and_page() -> None:
    cleaned = clean_markdown("[[the port|Port Lyre]] [[Norvik]]", AnyPage(), words_first=True)
    assert cleaned.text == "the port Norvik"
    assert [link.target for link in cleaned.links] == ["Port Lyre", "Norvik"]


def test_what_is_repeated_in_a_table_is_cut() -> None:
    assert len(clean(f"| {'h' * 50_000} |\n|---|\n" + "| a |\n" * 2_000).text) < 600_000


def test_a_very_long_page_keeps_links_and_text_to_its_end() -> None:
    cleaned = clean("[[Norvik|the village]]\n\n" + "The ship sailed.\n\n" * 40_000 + "the [[end]]")
    assert cleaned.links[0] == Link(target="Norvik", shown="the village")
    assert cleaned.text.endswith("the end")
