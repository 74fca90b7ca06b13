"""How answers are compared with a set's: SQuAD's rules, and citations that support."""

from __future__ import annotations

from pathlib import Path

import pytest

from server.evaluation.answer_text import contains, exact, f1
from server.evaluation.answering import check_answers, summarise_answers, without_markers
from server.evaluation.dataset import read_questions
from server.model import Answer, Citation
from tests.server.evaluation.tiny_set import opened, write_set


@pytest.mark.parametrize(
    ("text", "answer", "inside", "same", "overlap"),
    [
        ("The sand eels.", "sand eels", True, True, 1.0),
        ("It dives for sand eels", "sand eels", True, False, 4 / 7),
        ("thousand eelskins", "sand eels", False, False, 0.0),
        ("Eels, sand", "sand eels", False, False, 1.0),
        ("在北京市", "北京", True, False, 2 * 0.5 / 1.5),
        ("L'été à Paris", "été", True, False, 0.4),
        ("anything", "", False, False, 0.0),
    ],
)
def test_text_against_an_answer(text: str, answer: str, inside: bool, same: bool, overlap: float) -> None:
    assert contains(text, [answer]) is inside
    assert exact(text, [answer]) is same
    assert f1(text, [answer]) == pytest.approx(overlap)


def test_the_best_of_several_answers_counts() -> None:
    assert f1("a politician", ["office holder", "politician"]) == 1
    assert f1("a politician", []) == 0


def test_markers_are_not_read_aloud() -> None:
    citations = tuple(Citation(number=1, start=start, end=start + 3, key="k", title="t", url="") for start in (11, 19))
    answer = Answer(
        text="Sand eels. [1] Dab [1]",
        mode="extractive",
        persona="",
        model="",
        evidence=(),
        citations=citations,
        legs={},
        zone="normal",
        language="en",
    )
    assert without_markers(answer) == "Sand eels.  Dab "


async def test_the_products_own_answers_are_checked(tmp_path: Path) -> None:
    folder = write_set(tmp_path / "birds")
    checks = await check_answers(read_questions(folder), "birds", await opened(folder, tmp_path))
    by_question = {one.question: one for one in checks}
    assert by_question["q2"].contains == 1
    assert by_question["q2"].first_citation == 1
    assert 0 < by_question["q2"].f1 < 1
    assert by_question["q2"].exact == 0
    summary = summarise_answers(checks)
    assert summary is not None
    assert summary.questions == 4
    assert summary.cited <= 4
    assert summarise_answers([]) is None


async def test_an_answer_that_abstains_contains_nothing(tmp_path: Path) -> None:
    folder = write_set(tmp_path / "birds")
    backends = await opened(folder, tmp_path)
    sure_of_nothing = backends.settings.model_copy(
        update={"answer": backends.settings.answer.model_copy(update={"abstain_below": 99.0, "caution_below": 99.0})}
    )
    backends = await opened(folder, tmp_path, settings=sure_of_nothing)
    checks = await check_answers(read_questions(folder), "birds", backends)
    assert {one.mode for one in checks} == {"abstained"}
    assert all(one.contains == one.f1 == 0 and one.first_citation is None for one in checks)
