"""A quotation is in a page word for word, however it is written, or it is not there."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.research.quotes import find_quote, read

PAGE = (
    "Hollin Bridge\n"
    "The “Hollin Bridge” was opened — at last — in 1884,[3] and cost 2.5 million crowns. It isn’t a well-known\n"
    "inter- national monument. It stood at -5 degrees; the Anglo\u00adSaxon wall, the ﬁnest of all, is older.\n"
    "Two towers (of 1907) fell. They were never repaired! The École de Pont says so.\n"
    "橋は1884年10月3日に開通した。全長は214メートルである。"
)
READING = read(PAGE)


@pytest.mark.parametrize(
    ("quote", "found"),
    [
        ("Two towers (of 1907) fell.", "Two towers (of 1907) fell."),
        ("two TOWERS  (of\n1907) fell", "Two towers (of 1907) fell"),
        ('The "Hollin Bridge" was opened', "The “Hollin Bridge” was opened"),
        ("the 'Hollin Bridge' was opened", "The “Hollin Bridge” was opened"),
        ("opened - at last - in 1884, and cost", "opened — at last — in 1884,[3] and cost"),
        ("It isn't a well-known international monument.", "It isn’t a well-known inter- national monument."),
        ("a well-known inter-national monument", "a well-known inter- national monument"),
        ("the Anglo-Saxon wall, the finest", "the Anglo\u00adSaxon wall, the ﬁnest"),
        ("the AngloSaxon wall, the ﬁnest", "the Anglo\u00adSaxon wall, the ﬁnest"),
        ("The E\u0301cole de Pont", "The École de Pont"),
        ("“They were never repaired!”", "They were never repaired!"),
        ("Two towers … never repaired", "Two towers … never repaired"),
        ("was opened [...] in 1884 ... 2.5 million crowns.", "was opened … in 1884 … 2.5 million crowns."),
        ("...and cost 2.5 million crowns...", "and cost 2.5 million crowns"),
        ("橋は1884年10月3日に開通した。", "橋は1884年10月3日に開通した。"),
        ("monument. It stood", "monument. It stood"),
        ("fell. They were", "fell. They were"),
    ],
)
def test_what_is_there_is_found_as_the_page_has_it(quote: str, found: str) -> None:
    assert find_quote(quote, READING) == found


@pytest.mark.parametrize(
    "quote",
    [
        "",
        "…",
        "fell",
        "Two towers",
        "Two towers of 1908 fell",
        "Two tall towers (of 1907) fell",
        "Two towers fell",
        "wo towers (of 1907) fel",
        "5 million crowns. It isn't",  # of 2.5
        "in 188",
        "5 degrees; the Anglo-Saxon wall",  # of -5
        "never repaired … Two towers",  # the other way round
        "Two … of … the … fell",
        "The Ecole de Pont",
        "It isn't a well known monument",
        "The pont de École",
        "a … b … c … d … e … f … g … h",
        "x" * 5000,
    ],
)
def test_what_is_not_there_is_not_found(quote: str) -> None:
    assert find_quote(quote, READING) is None


def test_pieces_must_stand_near_each_other() -> None:
    apart = read(f"The mayor opened it. {'Nothing happened for years. ' * 100}The bridge fell down.")
    assert find_quote("The mayor opened it … The bridge fell down.", apart) is None
    # A later beginning may be near enough.
    twice = read(f"The mayor said so. {'Nothing happened for years. ' * 100}The mayor said so. The bridge fell down.")
    assert find_quote("The mayor said so … The bridge fell down.", twice) == "The mayor said so … The bridge fell down."


@given(st.text(max_size=300))
def test_any_text_can_be_read(text: str) -> None:
    reading = read(text)
    assert len(reading.folded) == len(reading.starts) == len(reading.ends)
    assert all(0 <= start < end <= len(text) for start, end in zip(reading.starts, reading.ends, strict=True))
    found = find_quote(text, reading)
    if found is not None:
        assert all(piece in " ".join(text.split()) for piece in found.split(" … "))


@given(st.lists(st.text("abcde", min_size=1, max_size=5), min_size=3, max_size=30), st.data())
def test_whole_words_of_a_page_are_found_and_others_are_not(said: list[str], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(said) - 3))
    end = data.draw(st.integers(start + 3, len(said)))
    page = read(" ".join(said))
    assert find_quote(" ".join(said[start:end]), page) == " ".join(said[start:end])
    assert find_quote(" ".join([*said[start:end], "zzz"]), page) is None


@pytest.mark.parametrize("unit", ["a ", "a", "a-", "- ", "…", "a … ", "e\u0301", "\u0301", "[1]", "“", "﷽"])
def test_hostile_repetition_takes_no_time(unit: str) -> None:
    started = time.process_time()
    page = read(unit * (60_000 // len(unit)))
    find_quote((unit * 3000)[:3000], page)
    find_quote("a a a … a a b", page)
    assert time.process_time() - started < 2.0
