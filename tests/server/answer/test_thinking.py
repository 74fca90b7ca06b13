"""What a model thinks is dropped, however it is cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.answer.thinking import ThinkFilter


def run(pieces: list[str]) -> str:
    thoughts = ThinkFilter()
    return "".join(map(thoughts.feed, pieces)) + thoughts.close()


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("<think>Hm.</think>It is.", "It is."),
        ("<think>\nHm < 3, <b>\n</think>\n\nIt is.", "It is."),
        ("  <THINKING>Hm.</thinking> It is.", "  It is."),
        ("Yes.\n<think>More.</think>\nAnd so.", "Yes.\nAnd so."),
        ("<think>never closed", ""),
        ("<think></think>", ""),
        ("no opening tag</think>\n\nIt is.", "no opening tagIt is."),
        ("The tag <think> opens a thought.", "The tag <think> opens a thought."),
        ("a < b, <b>bold</b> and <thin", "a < b, <b>bold</b> and <thin"),
        ("<thinker>It is.", "<thinker>It is."),
        ("", ""),
    ],
)
def test_what_is_said_and_what_is_thought(written: str, shown: str) -> None:
    assert run([written]) == shown


PARTS = ["<think>", "</think>", "<thinking>", "</THINK>", "<", "/", ">", "think", "\n", " ", "word", "</", "<b>"]


@given(st.lists(st.sampled_from(PARTS), max_size=15).map("".join), st.integers(1, 9))
def test_cuts_do_not_matter(text: str, size: int) -> None:
    whole = run([text])
    assert run([text[at : at + size] for at in range(0, len(text), size)]) == whole
    assert run(list(text)) == whole
