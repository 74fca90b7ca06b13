"""The fence around evidence, and a model that repeats it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.answer.fence import EchoFilter, Fence
from tests.server.answer.found import EVIDENCE, FARM, ORWELL

NONCE = "e385f345a877"
START = f"<<<{NONCE}"


def run(pieces: list[str]) -> str:
    echoes = EchoFilter(NONCE)
    return "".join(map(echoes.feed, pieces)) + echoes.close()


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        (f"{START} end 2>>>\nIt is.", "It is."),
        (f"{START} evidence 12>>It is.", "It is."),
        (f"It is.{START}", "It is."),
        (f"It {START}{START} end 1>>>is.", "It is."),
        (f"{START} evidently, it is.", " evidently, it is."),
        ("a <<< b << c <<<e385", "a <<< b << c <<<e385"),
        ("", ""),
    ],
)
def test_marks_go_and_all_else_stays(written: str, shown: str) -> None:
    assert run([written]) == shown


PARTS = [START, "<<<", "<", NONCE, " evidence", " end", " 1", "2", ">", ">>>", "\n", " word"]


@given(st.lists(st.sampled_from(PARTS), max_size=12).map("".join), st.integers(1, 20))
def test_cuts_do_not_matter(text: str, size: int) -> None:
    whole = run([text])
    assert run([text[at : at + size] for at in range(0, len(text), size)]) == whole
    assert run(list(text)) == whole


def test_the_nonce_depends_on_the_question_and_all_evidence() -> None:
    nonces = {
        Fence.of("one", EVIDENCE).nonce,
        Fence.of("two", EVIDENCE).nonce,
        Fence.of("one", (FARM, ORWELL)).nonce,
        Fence.of("one", ()).nonce,
    }
    assert len(nonces) == 4
    assert Fence.of("one", EVIDENCE) == Fence.of("one", EVIDENCE)


def test_a_lone_surrogate_in_a_page_is_no_fault() -> None:
    assert Fence.of("\ud800", EVIDENCE).nonce
