"""Every `FeedbackStore`: what was said is kept, paged, bounded, and one word for each answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from graph.feedback import Feedback, FeedbackStore
from graph.sqlite_feedback import SqliteFeedback
from tests.fake_feedback import FakeFeedback

SAID = Feedback(
    answer_id="answer-1",
    rating="down",
    comment="The year is wrong.\n“1945”, not 1946",
    wrong_citations=(2, 5),
    question="When?",
    answer="In 1946. [2]",
    persona="neutral",
    mode="generated",
    created="2026-01-02T03:04:05+00:00",
)


@pytest.fixture(params=["fake", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FeedbackStore]:
    made = FakeFeedback(kept=5) if request.param == "fake" else SqliteFeedback(tmp_path / "feedback.db", kept=5)
    yield made
    made.close()


def test_what_was_said_is_kept_whole(store: FeedbackStore) -> None:
    stored = store.put(SAID)
    assert replace(stored, number=0) == SAID
    assert list(store.newest(10)) == [stored]


def test_pages_go_from_the_newest_to_the_oldest(store: FeedbackStore) -> None:
    for number in range(5):
        store.put(replace(SAID, answer_id=f"answer-{number}"))
    first = store.newest(3)
    rest = store.newest(3, before=first[-1].number)
    assert [entry.answer_id for entry in (*first, *rest)] == [f"answer-{number}" for number in (4, 3, 2, 1, 0)]
    assert list(store.newest(3, before=rest[-1].number)) == []


def test_the_second_word_on_one_answer_counts(store: FeedbackStore) -> None:
    store.put(SAID)
    store.put(replace(SAID, answer_id="answer-2"))
    store.put(replace(SAID, rating="up", comment=""))
    assert [(entry.answer_id, entry.rating) for entry in store.newest(10)] == [("answer-1", "up"), ("answer-2", "down")]


def test_the_oldest_are_forgotten(store: FeedbackStore) -> None:
    for number in range(9):
        store.put(replace(SAID, answer_id=f"answer-{number}"))
    assert [entry.answer_id for entry in store.newest(100)] == [f"answer-{number}" for number in (8, 7, 6, 5, 4)]


def test_text_that_no_store_can_hold_is_no_fault(store: FeedbackStore) -> None:
    store.put(replace(SAID, comment="caf\udc9a\x00"))
    assert store.newest(1)[0].comment.startswith("caf")


def test_it_is_still_there_after_a_restart(tmp_path: Path) -> None:
    first = SqliteFeedback(tmp_path / "feedback.db")
    stored = first.put(SAID)
    first.close()
    second = SqliteFeedback(tmp_path / "feedback.db")
    assert list(second.newest(10)) == [stored]
    second.close()
