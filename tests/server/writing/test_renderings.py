"""A piece as Markdown, HTML and JSON: numbers that lead somewhere, and nothing hostile let through."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.errors import InputError
from graph.model import Evidence, SearchFilter
from server.answer.citations import CitationSanitizer
from server.model import Claim
from server.writing.draft import joined, without_headings
from server.writing.html import piece_html
from server.writing.markdown import piece_markdown
from server.writing.model import Piece, SectionResult, WritingRequest
from server.writing.numbering import Numbering
from server.writing.saved import (
    piece_json,
    request_from_json,
    section_from_json,
    sections_from_json,
    to_json,
)
from server.writing.summary import summary_of
from tests.server.writing.library import lamp

HOSTILE = '<script>alert(1)</script> <img src=x onerror=alert(1)> "quoted" & [x](javascript:alert(1)) | `code`'


def section(number: int, says: str, *evidence: Evidence, heading: str = "", unsupported: str = "") -> SectionResult:
    """`says` with `[[n]]` for the evidence given."""
    numbered = tuple(replace(item, number=n) for n, item in enumerate(evidence, 1))
    sanitizer = CitationSanitizer(len(numbered))
    text, citations = joined([*sanitizer.feed(says), *sanitizer.close()], numbered)
    claims = ()
    if unsupported:
        at = text.index(unsupported)
        claims = (
            Claim(
                start=at,
                end=at + len(unsupported),
                numbers=(1,),
                verdict="unsupported",
                reason="the number 9 is not in [1]",
            ),
        )
    return SectionResult(
        number=number,
        heading=heading or f"Part {number}",
        state="done",
        text=text,
        evidence=numbered,
        citations=citations,
        claims=claims,
        queries=("lamps",),
    )


def piece(*sections: SectionResult, topic: str = "Lamps") -> Piece:
    numbering = Numbering()
    numbered = tuple(map(numbering.section, sections))
    return Piece(
        topic=topic,
        kind="research",
        persona="neutral",
        model="fake",
        language="en",
        state="done",
        sections=numbered,
        references=numbering.references,
    )


TWO = piece(
    section(1, "It burned oil [[2]]. It stood far out [[1]][[2]].", lamp(1), lamp(2)),
    section(2, "It is old [[1]]. It was 9 [[1]].", lamp(2), unsupported="It was 9 [1]."),
)


def test_sources_are_numbered_in_the_order_in_which_readers_meet_them() -> None:
    assert [one.title for one in TWO.references] == ["Lamp 2", "Lamp 1"]
    assert TWO.sections[0].text == "It burned oil [1]. It stood far out [2][1]."
    assert TWO.sections[1].text == "It is old [1]. It was 9 [1]."
    assert [item.number for item in TWO.sections[0].evidence] == [2, 1]


def test_passages_of_one_place_are_one_source_and_are_not_named_twice_in_a_row() -> None:
    again = replace(lamp(1), key="lamp-1-b")
    both = piece(section(1, "So it is [[1]][[2]]. And so [[2]].", lamp(1), again))
    assert len(both.references) == 1
    assert both.sections[0].text == "So it is [1]. And so [1]."
    assert [both.sections[0].text[c.start : c.end] for c in both.sections[0].citations] == ["[1]", "[1]"]


def test_claims_move_with_the_numbers() -> None:
    many = section(1, " ".join(f"So {n} [[{n}]]." for n in range(1, 12)), *(lamp(n) for n in range(1, 12)))
    own = section(2, "Yes [[1]]. It was 9 [[1]].", lamp(11), unsupported="It was 9 [1].")
    (claim,) = piece(many, own).sections[1].claims
    assert piece(many, own).sections[1].text[claim.start : claim.end] == "It was 9 [11]."
    assert (claim.numbers, claim.reason) == ((11,), "the number 9 is not in [11]")


def test_numbering_a_piece_again_changes_nothing() -> None:
    numbering = Numbering()
    assert tuple(map(numbering.section, TWO.sections)) == TWO.sections
    assert numbering.references == TWO.references


def test_the_markdown_has_title_sections_marks_and_references() -> None:
    text = piece_markdown(TWO)
    assert text.startswith("# Lamps\n\n## Part 1\n\nIt burned oil [1]. It stood far out [2][1].\n\n## Part 2\n\n")
    assert "It was 9 [1]. *(not supported: the number 9 is not in \\[1\\])*" in text
    assert "1. Lamp 2 <https://wiki.example/Lamp_2#Use>\n2. Lamp 1 <https://wiki.example/Lamp_1#Use>" in text
    assert "| Part 1 | 2 | 0 | – | 0 | lamps |" in text


def hostile_piece() -> Piece:
    item = replace(lamp(1), title=HOSTILE, url="javascript:alert(1)", heading_path=(HOSTILE,))
    return piece(
        section(1, f"{HOSTILE} [[1]].\n\n- {HOSTILE}\n\n```\n{HOSTILE}\n```", item, heading=HOSTILE), topic=HOSTILE
    )


class Tags(HTMLParser):
    """Every tag with its attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


ALLOWED = frozenset(
    "html head meta title style body h1 h2 p br ul ol li a mark strong pre details summary table tr td th".split()
)


def tags_of(html: str) -> list[tuple[str, dict[str, str | None]]]:
    parser = Tags()
    parser.feed(html)
    return parser.tags


def test_hostile_text_stays_text_in_html() -> None:
    html = piece_html(hostile_piece())
    tags = tags_of(html)
    assert {tag for tag, _ in tags} <= ALLOWED
    assert not any(name.startswith("on") for _, attributes in tags for name in attributes)
    assert {value for tag, given in tags if tag == "a" and (value := given.get("href"))} == {"#reference-1"}
    assert "default-src 'none'" in html
    assert html.count("&lt;script&gt;") == 8


def test_hostile_text_brings_no_tag_or_link_into_markdown() -> None:
    text = piece_markdown(hostile_piece())
    assert not re.search(r"(?<!\\)<(?=[a-z/])(?!https?:)", text)
    assert "<javascript:" not in text


def test_every_number_in_the_html_leads_to_its_reference() -> None:
    tags = tags_of(piece_html(TWO))
    targets = {given["id"] for tag, given in tags if tag == "li" and "id" in given}
    links = {str(given["href"])[1:] for tag, given in tags if tag == "a" and str(given["href"]).startswith("#")}
    assert links == targets == {"reference-1", "reference-2"}
    assert "https://wiki.example/Lamp_2#Use" in {given.get("href") for _, given in tags}
    assert any(tag == "mark" for tag, _ in tags)


@given(st.text(max_size=300), st.text(max_size=60))
def test_no_text_breaks_the_page(text: str, heading: str) -> None:
    html = piece_html(piece(section(1, f"{text} [[1]].", lamp(1), heading=heading)))
    assert {tag for tag, _ in tags_of(html)} <= ALLOWED


def test_sections_that_failed_say_so_in_both() -> None:
    broken = SectionResult(number=1, heading="Use", state="failed", reason="the model is <away>")
    assert "could not be written: the model is \\<away\\>" in piece_markdown(piece(broken))
    assert "could not be written: the model is &lt;away&gt;" in piece_html(piece(broken))


def test_a_piece_and_its_request_are_read_back_as_they_were() -> None:
    assert sections_from_json(piece_json(TWO)) == TWO.sections
    assert section_from_json(to_json(TWO.sections[1])) == TWO.sections[1]
    request = WritingRequest(topic="Lamps", outline=("A", "B"), where=SearchFilter(sources=("wiki",)))
    assert request_from_json(to_json(request)) == request


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"sections": 3}', '[{"number": "x"}]', "\ud800", "null", "[[]]"])
def test_what_is_no_saved_piece_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="begin the piece anew"):
        sections_from_json(text)


def test_the_summary_has_the_first_sentences_and_fits() -> None:
    written = [section(n, f"First of {n} [[1]]. Second of {n}. Third.", lamp(n)) for n in range(1, 4)]
    full = summary_of(written, count_tokens=lambda text: len(text.split()), tokens=200)
    assert full.splitlines()[0] == "Part 1: First of 1. Second of 1. Third."
    tight = summary_of(written, count_tokens=lambda text: len(text.split()), tokens=15)
    assert tight.splitlines() == ["Part 1: First of 1.", "Part 2: First of 2.", "Part 3: First of 3."]
    tighter = summary_of(written, count_tokens=lambda text: len(text.split()), tokens=10)
    assert tighter.splitlines() == ["Part 2: First of 2.", "Part 3: First of 3."]
    assert summary_of(written, count_tokens=lambda text: len(text.split()), tokens=0) == ""


def test_a_models_headings_become_lines_and_its_own_heading_goes() -> None:
    said = "## Use\n\nIt burns.\n\n### More\nIt glows.\n```\n# a comment\n```"
    assert without_headings(said, "Use") == "It burns.\n\n**More**\nIt glows.\n```\n# a comment\n```"
    assert without_headings("**Use:**\nIt burns.", "Use") == "It burns."
