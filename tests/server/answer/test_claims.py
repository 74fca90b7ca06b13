"""The claim check: what each kind of value must be like in the evidence, and what is said when it is not."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from graph.model import Evidence
from server.answer.claim_check import checked_by_rule
from server.answer.claims import judged_by_score, judged_by_words
from server.model import Citation, Claim

BRIDGE = Evidence(
    number=1,
    key="bridge",
    title="Hollin Bridge",
    url="",
    heading_path=("Hollin Bridge", "Construction"),
    text=(
        "Hollin Bridge is a stone bridge across the Wend. It was built by Ada Marchetti between 1881 and 1884. "
        "The Mayor of Hollin opened it on 3 October 1884 before 12,500 people. It cost 2.5 million crowns and "
        "is 214 metres long, of which 42% are over water. Its two towers fell in the great flood of 1907.\n\n"
        'The engineer Tomas Weld called it "the finest work of our century". It was not repaired until 1911.'
    ),
)
FRENCH = Evidence(
    number=2,
    key="pont",
    title="Pont de Hollin",
    url="",
    text=(
        "Le pont fut inauguré le 3 octobre 1884. Il a coûté 2,5 millions de couronnes et mesure 214 mètres. "
        "On l'ouvre à 8h00."
    ),
)
JAPANESE = Evidence(
    number=3, key="hashi", title="ホリン橋", url="", text="この橋は1884年10月3日に開通した。全長は214メートルである。"
)
EVIDENCE = (BRIDGE, FRENCH, JAPANESE)


def check(text: str) -> list[Claim]:
    """`[n]` in the text are its citations."""
    citations = [
        Citation(number=int(found[1]), start=found.start(), end=found.end(), key="", title="", url="")
        for found in re.finditer(r"\[([123])\]", text)
    ]
    found = checked_by_rule(text, citations, EVIDENCE, "en", lambda texts, _: [() for _ in texts])
    return [judged_by_words(one) for one in found]


def verdict(text: str) -> tuple[str, str]:
    (claim,) = check(text)
    return claim.verdict, claim.reason


@pytest.mark.parametrize(
    "text",
    [
        "It was built by Ada Marchetti between 1881 and 1884 [1].",
        "Hollin Bridge was built by Marchetti [1].",
        "Ada Marchetti's bridge was built from 1881 to 1884 [1].",
        "The Mayor of Hollin opened the bridge on October 3, 1884 [1].",
        "The bridge was opened on 1884-10-03 [1].",
        "In October 1884 the bridge was opened by the mayor [1].",
        "The mayor opened it in 1884 before 12 500 people [1].",
        "The mayor opened it before twelve thousand five hundred people [1].",
        "It cost 2,500,000 crowns [1].",
        "It is 214 m long, and 42 percent of that is over water [1].",
        "It lost its 2 towers in the flood of 1907 [1].",
        "According to Hollin Bridge, the flood of 1907 took its two towers [1].",
        "Weld called it “the finest work of our century” [1].",
        'Tomas Weld called it "the finest […] of our century" [1].',
        "It was not repaired until 1911 [1].",
        "Le pont de Hollin fut inauguré le 3 octobre 1884 [1].",
        "The bridge was opened on 3 October 1884 [2].",
        "It cost 2.5 million crowns and is 214 metres long [2].",
        "On ouvre le pont à 8h00 [2].",
        "橋は1884年10月3日に開通した[3]。",
        "橋の全長は214メートルである[3]。",
        "**Length**: 214 metres [1]",
        "| Length | 214 metres [1] |",
    ],
)
def test_what_the_evidence_says_is_supported(text: str) -> None:
    assert verdict(text) == ("supported", "")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("The bridge is 215 metres long [1].", "the number 215 is not in [1]"),
        ("The bridge cost 2.6 million crowns [1].", "the number 2.6 million is not in [1]"),
        ("Its three towers fell in the great flood [1].", "the number three is not in [1]"),
        ("About 24% of it are over water [1].", "the number 24% is not in [1]"),
        ("The mayor opened it on 4 October 1884 [1].", "the date 4 October 1884 is not in [1]"),
        ("The mayor opened it in November 1884 [1].", "the date November 1884 is not in [1]"),
        ("The mayor opened it on October 3, 1885 [1].", "the date October 3, 1885 is not in [1]"),
        ("It was built by Ada Lovelace [1].", "the name Ada Lovelace is not in [1]"),
        ("The bridge across the Wend was built by Pescarini [1].", "the name Pescarini is not in [1]"),
        (
            'He called it "the finest bridge of our century" [1].',
            "the quotation “the finest bridge of our century” is not in [1]",
        ),
        ("Le pont mesure 215 mètres [2].", "the number 215 is not in [2]"),
        ("Le pont des artisans des villes est de Gustave Eiffel [2].", "the name Gustave Eiffel is not in [2]"),
        ("橋の全長は215メートルである[3]。", "the number 215 is not in [3]"),
        ("It is 215 metres long [1][2].", "the number 215 is not in [1] or [2]"),
    ],
)
def test_what_no_evidence_says_is_not_supported(text: str, reason: str) -> None:
    assert verdict(text) == ("unsupported", reason)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Marchetti built the bridge in 1907 [1].", "the number 1907 is in [1], but about something else"),
        ("The bridge is 214 miles long [1].", "the number 214 is in [1] with another unit"),
        (
            "The two towers never fell in the great flood of 1907 [1].",
            "one says that it is so, the other that it is not",
        ),
        (
            "It was built by Tomas Weld between 1881 and 1884 [1].",
            "the name Tomas Weld is in [1], but about something else",
        ),
    ],
)
def test_what_the_evidence_says_of_something_else_is_weak(text: str, reason: str) -> None:
    assert verdict(text) == ("weak", reason)


def test_a_number_that_is_in_no_source_is_not_supported() -> None:
    """Field issue 20: the cited page lacks the claim."""
    assert verdict("The bridge carries 31,400 cars a day [1].") == ("unsupported", "the number 31,400 is not in [1]")


def test_each_sentence_answers_for_its_own_markers() -> None:
    text = "It is 214 m long [1]. It cost 9 crowns. [1] Nobody cites this 99. Built in 1881 [1], opened in 1885 [2]."
    claims = check(text)
    assert [(text[one.start : one.end], one.numbers, one.verdict) for one in claims] == [
        ("It is 214 m long [1].", (1,), "supported"),
        ("It cost 9 crowns.", (1,), "unsupported"),
        ("Built in 1881 [1], opened in 1885 [2].", (1, 2), "unsupported"),
    ]


def test_german_nouns_are_no_names() -> None:
    assert verdict("Der Bau der Brücke wurde von dem Amt im Jahr 1884 und nicht früher beendet [1].")[0] == "supported"


def test_code_blocks_are_no_claims() -> None:
    assert check("```\ncount = 999 [1]\n```") == []


def test_a_marker_on_a_line_of_its_own_belongs_to_the_sentence_above() -> None:
    text = "The bridge is 999 metres long.\n[1]"
    (claim,) = check(text)
    assert (text[claim.start : claim.end], claim.verdict) == ("The bridge is 999 metres long.", "unsupported")


def test_a_full_stop_in_a_quotation_ends_no_claim() -> None:
    (claim,) = check('He said "It is fine. It will last." [1]')
    assert claim.reason == "the quotation “It is fine. It will last.” is not in [1]"


def test_few_shared_words_are_weak_and_none_are_no_support() -> None:
    assert verdict("Otters mostly eat crabs near bridge foundations, experts believe [1].")[0] == "weak"
    assert verdict("Otters mostly eat crabs near harbours [1].") == ("unsupported", "[1] does not speak of this")


def test_the_cross_encoder_decides_where_words_differ() -> None:
    text = "Otters mostly eat crabs near harbours [1]."
    citation = Citation(number=1, start=38, end=41, key="", title="", url="")
    (found,) = checked_by_rule(text, [citation], EVIDENCE, "en", lambda texts, _: [()])
    assert found.doubtful
    assert judged_by_score(found, 3.0, -4.0, 0.0).verdict == "supported"
    assert judged_by_score(found, -1.0, -4.0, 0.0).reason == "[1] hardly speaks of this"
    assert judged_by_score(found, -9.0, -4.0, 0.0).verdict == "unsupported"


def test_neighbours_count_as_evidence() -> None:
    item = replace(BRIDGE, text="It is long.", context=BRIDGE.text)
    citation = Citation(number=1, start=17, end=20, key="", title="", url="")
    (found,) = checked_by_rule("It is 214 m long [1].", [citation], [item], "en", lambda texts, _: [()])
    assert found.claim.verdict == "supported"


PARTS = st.sampled_from(
    ["[1]", "[2]", "[3]", ". ", "\n", "```\n", '"', "“", "”", "214", "3 October 1884", "IV", "½", "٤٢", "1,2,3", "Ada ",
     "橋", "。", "- ", "| ", "# ", "10.000", "%", "vingt et un", "'", "`", "İ", "ß", "\u200b", "1/2/3000", "²"]
)  # fmt: skip


@given(st.one_of(st.text(max_size=80), st.lists(st.one_of(PARTS, st.text(max_size=5)), max_size=25).map("".join)))
@example("[1]")
@example("1" * 400 + " [1]")
@example("9 trillion trillion trillion [1]")
@example("²³ and ½ and Ⅳ [1].")
def test_any_text_is_checked_within_its_bounds(text: str) -> None:
    claims = check(text)
    assert claims == sorted(claims, key=lambda claim: claim.start)
    for claim in claims:
        assert 0 <= claim.start < claim.end <= len(text)
        assert claim.numbers
        assert (claim.verdict == "supported") == (claim.reason == "")
    for one, following in pairwise(claims):
        assert one.end <= following.start


@given(st.text(max_size=300))
def test_any_evidence_can_be_checked_against(text: str) -> None:
    item = replace(BRIDGE, title=text[:20], text=text, context="", heading_path=(text[20:30],))
    sentence = "Ada Marchetti opened it on 3 October 1884 before 12,500 people."
    citation = Citation(number=1, start=len(sentence), end=len(sentence) + 3, key="", title="", url="")
    (found,) = checked_by_rule(f"{sentence}[1]", [citation], [item], "en", lambda texts, _: [()])
    assert found.claim.verdict in ("supported", "weak", "unsupported")
