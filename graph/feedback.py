"""What readers say of answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

Rating = Literal["up", "down"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedback:
    """One reader's word on one answer, with what was asked and answered, as answers themselves are not kept."""

    answer_id: str
    rating: Rating
    comment: str = ""
    wrong_citations: tuple[int, ...] = ()
    """Numbers of evidence that does not say what it is cited for."""
    question: str = ""
    answer: str = ""
    persona: str = ""
    mode: str = ""
    created: str = ""
    """RFC 3339 in UTC."""
    number: int = 0
    """Given by the store, and larger for what came later; 0 before that."""


class FeedbackStore(Protocol):
    """Blocking and quick, like `StateStore`."""

    def put(self, feedback: Feedback) -> Feedback:
        """Store it in place of what was said of the same answer before; gives it with its number."""
        ...

    def newest(self, limit: int, *, before: int = 0) -> Sequence[Feedback]:
        """The newest first; with `before` only those of smaller numbers."""
        ...

    def close(self) -> None: ...
