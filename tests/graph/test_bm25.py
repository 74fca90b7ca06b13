"""What counts as a word: numbers, names inside longer ones in scripts without spaces, each language's stems."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.bm25 import LANGUAGES, SparseEncoder, spaced, weighed

ENGLISH = SparseEncoder("english")


def shared(text: str, question: str, encoder: SparseEncoder = ENGLISH) -> int:
    """Words of a question that a text has."""
    return len({*encoder.document(text, None)[0]} & {*encoder.query(question, None)[0]})


@pytest.mark.parametrize(
    ("text", "question", "count"),
    [
        ("The lamp was lit in 1871.", "What was lit in 1871?", 2),
        ("The B-52 flew", "b 52", 2),
        ("東京タワーは1958年に完成した", "東京", 3),
        ("東京タワーは1958年に完成した", "1958年", 2),
        ("猫はどこですか", "猫", 1),
        ("สวัสดีชาวโลก", "ชาว", 2),
        ("Les écoles", "ecole", 1),
        ("lighthouses", "lighthouse", 1),
    ],
)
def test_words_that_both_have(text: str, question: str, count: int) -> None:
    assert shared(text, question, SparseEncoder("french") if "Les" in text else ENGLISH) == count


def test_a_number_is_not_part_of_another() -> None:
    assert shared("In 18710 it was lit", "1871") == 0


def test_a_language_has_its_own_stems_and_stop_words() -> None:
    assert shared("les chevaux", "le cheval des rois", SparseEncoder("french")) == 1
    assert ENGLISH.query("the of and", None) == ([], [])


def test_a_title_counts_more_than_a_word_of_the_text() -> None:
    """The same words; the page about the reef is before the one that names it."""
    about = weighed("Reef › The lamp was lit and the keeper slept.", "Reef")
    named = weighed("Lamp › The reef was lit and the keeper slept.", "Lamp")
    (asked,) = ENGLISH.query("reef", None)[0]
    weight = [dict(zip(*ENGLISH.document(text, None), strict=True))[asked] for text in (about, named)]
    assert weight[0] > 1.2 * weight[1]


@pytest.mark.parametrize("language", LANGUAGES.values())
def test_the_engine_knows_each_language(language: str) -> None:
    assert len(SparseEncoder(language).query("Zanzibar", None)[0]) == 1


@given(st.text())
def test_spacing_loses_no_character_and_leaves_other_scripts_alone(text: str) -> None:
    assert set(text) <= set(spaced(text)) | {" "}
    ascii_part = "".join(ch for ch in text if ch.isascii())
    assert spaced(ascii_part) == ascii_part
