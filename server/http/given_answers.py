"""Answers that were given: counted, logged in a line each, the last ones kept in memory, for readers to rate."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from dataclasses import dataclass

import structlog

from server.http.metrics import Metrics
from server.model import Answer, Question

KEPT = 1_000
LONGEST = 10_000
"""Characters of an answer that are kept."""
LOGGED = 200
"""Characters of a question that stand in the log."""

log = structlog.get_logger(__name__)


def new_id() -> str:
    return f"answer-{secrets.token_hex(12)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenAnswer:
    """What feedback is about."""

    question: str
    answer: str
    persona: str
    mode: str
    numbers: frozenset[int]
    """Of its evidence."""


class GivenAnswers:
    """The last thousand by their ids; nobody's questions are written to disk unless an answer is rated."""

    def __init__(self, metrics: Metrics, kept: int = KEPT) -> None:
        self._metrics = metrics
        self._kept = kept
        self._answers: OrderedDict[str, GivenAnswer] = OrderedDict()

    def note(self, answer_id: str, question: Question, answer: Answer) -> None:
        """Remember and count it, and say in the log how it came about."""
        self._answers[answer_id] = GivenAnswer(
            question=question.text,
            answer=answer.text[:LONGEST],
            persona=answer.persona,
            mode=answer.mode,
            numbers=frozenset(entry.number for entry in answer.evidence),
        )
        while len(self._answers) > self._kept:
            self._answers.popitem(last=False)
        self._metrics.answered(answer)
        log_answer(answer_id, question, answer)

    def find(self, answer_id: str) -> GivenAnswer | None:
        return self._answers.get(answer_id)


def log_answer(answer_id: str, question: Question, answer: Answer) -> None:
    """Text goes in as text and not as lists of it: what looks like a key is only hidden there."""
    log.info(
        "answer",
        answer_id=answer_id,
        question=question.text[:LOGGED],
        turns=len(question.history),
        mode=answer.mode,
        zone=answer.zone,
        persona=answer.persona,
        model=answer.model,
        language=answer.language,
        legs="; ".join(f"{leg}: {status}" for leg, status in answer.legs.items()),
        notes="; ".join(answer.notes),
        evidence=len(answer.evidence),
        citations=len(answer.citations),
        finish_reason=answer.finish_reason,
        prompt_tokens=answer.prompt_tokens,
        completion_tokens=answer.completion_tokens,
        milliseconds=answer.milliseconds,
    )
