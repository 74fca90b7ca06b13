"""Endless repetition is heard within a few rounds, and nothing else is taken for it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.answer.repetition import LONGEST, SHORTEST, TIMES, Repetition

TABLE = "| Ship | Built | Lost |\n|---|---|---|\n" + "".join(f"| Ship {n} | 18{n:02} | no |\n" for n in range(60))
LIST = "".join(f"{n}. The keeper of the year {1800 + n} was paid {n * 3} crowns.\n" for n in range(60))


def ended_after(text: str, size: int = 7) -> int | None:
    """Characters read when it was heard; None where it was not."""
    listener = Repetition()
    for at in range(0, len(text), size):
        if listener.heard_in(text[at : at + size]):
            return at + size
    return None


@pytest.mark.parametrize(
    "unit", ["a", "ha ", "The lamp is lit [[1]]. ", "量子纠缠。", "\n", "x" * 150 + ". ", "- yes\n- no\n"]
)
@pytest.mark.parametrize("before", ["", LIST])
def test_a_repeated_passage_is_heard_soon(unit: str, before: str) -> None:
    heard = ended_after(before + unit * 4000)
    assert heard is not None
    assert 0 < heard - len(before) <= max((TIMES + 1) * len(unit), SHORTEST) + 100


@pytest.mark.parametrize("text", [TABLE, LIST, "-" * 79 + "\nText.\n", "No. " * 40, "word " * 20 + LIST])
def test_lists_tables_rules_and_refrains_are_not(text: str) -> None:
    assert ended_after(text) is None


@given(st.text(alphabet="ab ", min_size=1, max_size=LONGEST), st.integers(1, 50))
def test_whatever_the_pieces(unit: str, size: int) -> None:
    assert ended_after(unit * (SHORTEST + 20 * LONGEST // len(unit)), size) is not None
