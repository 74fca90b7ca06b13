"""What readers say of answers, in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from graph.feedback import Feedback


class FakeFeedback:
    """`FeedbackStore` in a list, the oldest first."""

    def __init__(self, kept: int = 10_000) -> None:
        self.kept = kept
        self.entries: list[Feedback] = []
        self.numbers = 0

    def put(self, feedback: Feedback) -> Feedback:
        self.numbers += 1
        stored = replace(feedback, number=self.numbers)
        others = [entry for entry in self.entries if entry.answer_id != feedback.answer_id]
        self.entries = [*others, stored][-self.kept :]
        return stored

    def newest(self, limit: int, *, before: int = 0) -> Sequence[Feedback]:
        return [entry for entry in reversed(self.entries) if not before or entry.number < before][:limit]

    def close(self) -> None: ...
