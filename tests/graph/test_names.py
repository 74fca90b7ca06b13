"""One normalisation for pages, text and questions."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.names import is_quantity, name_key, title_keys, words


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("Lothair II's", "lothair ii"),
        ("The Beatles", "beatles"),
        ("L’Hôpital", "hopital"),
        ("Érik  Satie", "erik satie"),
        ("O'Brien", "obrien"),
        ("St. James' Park", "st james park"),
        ("Straße", "strasse"),
        ("AC/DC", "ac dc"),
        ("量子纠缠", "量 子 纠 缠"),
        ("ﬁlm", "film"),
        ("İstanbul", "istanbul"),
        ("The", "the"),
        ("...", ""),
        ("snake_case", "snake case"),
    ],
)
def test_name_key(name: str, key: str) -> None:
    assert name_key(name) == key


def test_a_qualifier_is_a_second_key() -> None:
    assert title_keys("Mercury (planet)") == ("mercury planet", "mercury")
    assert title_keys("Mercury") == ("mercury",)
    assert title_keys("(planet)") == ("planet",)
    assert title_keys("!!!") == ()


@pytest.mark.parametrize("name", ["1984", "20 March 851", "3rd", "the 20th century", "14 juillet", "50 days"])
def test_quantities(name: str) -> None:
    assert is_quantity(name_key(name))


@pytest.mark.parametrize("name", ["Apollo 11", "March Hare", "Fifth Element"])
def test_names_with_numbers_are_names(name: str) -> None:
    assert not is_quantity(name_key(name))


@given(st.text())
def test_a_key_is_its_own_key(text: str) -> None:
    """What is stored under a key is found again by looking the key up."""
    joined = " ".join(words(text))
    assert " ".join(words(joined)) == joined


@given(st.text(), st.text())
def test_words_of_separate_texts_are_the_words_of_both(one: str, other: str) -> None:
    assert words(f"{one} \n {other}") == words(one) + words(other)


def test_linear_time() -> None:
    started = time.perf_counter()
    for hostile in ("a" * 50_000 + "!", "'" * 50_000, "a'" * 25_000, "(" * 50_000, "qu'" * 16_000):
        words(hostile)
        title_keys(hostile)
    assert time.perf_counter() - started < 5  # quadratic would take minutes
