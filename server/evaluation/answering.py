"""The product's own extractive answers to a set's questions, checked against the set's answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from graph.model import Evidence
from server.answer.answer import whole_answer
from server.backends import Backends
from server.evaluation.answer_text import contains, exact, f1
from server.evaluation.dataset import JudgedQuestion
from server.evaluation.results import AnswerChecks
from server.model import Answer, Question


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerSummary:
    """Means over all questions that have answers; those of citations over the answers that cite."""

    questions: int
    abstained: float
    contains: float
    exact: float
    f1: float
    cited: int
    """Answers that cite something."""
    first_citation: float | None
    citations: float | None


async def check_answers(
    questions: Iterable[JudgedQuestion], source: str, backends: Backends
) -> tuple[AnswerChecks, ...]:
    """Each question that has answers, answered without a language model and without the web."""
    alone = replace(backends, chat=None, web=None)
    checks = []
    for judged in questions:
        if judged.answers:
            answer = await whole_answer(Question(text=judged.text, use_web=False), alone)
            checks.append(check_answer(answer, judged, source))
    return tuple(checks)


def check_answer(answer: Answer, judged: JudgedQuestion, source: str) -> AnswerChecks:
    """An answer that abstains is no answer, though the pages it names may hold one."""
    if answer.mode not in ("extractive", "generated"):
        return AnswerChecks(
            question=judged.id, mode=answer.mode, contains=0, exact=0, f1=0, first_citation=None, citations=None
        )
    text = without_markers(answer)
    evidence = {item.number: item for item in answer.evidence}
    right = [float(_supports(evidence[citation.number], judged, source)) for citation in answer.citations]
    return AnswerChecks(
        question=judged.id,
        mode=answer.mode,
        contains=float(contains(text, judged.answers)),
        exact=float(exact(text, judged.answers)),
        f1=round(f1(text, judged.answers), 4),
        first_citation=right[0] if right else None,
        citations=round(sum(right) / len(right), 4) if right else None,
    )


def without_markers(answer: Answer) -> str:
    """The text as it would be read aloud."""
    parts, place = [], 0
    for citation in sorted(answer.citations, key=lambda one: one.start):
        parts.append(answer.text[place : citation.start])
        place = citation.end
    return "".join([*parts, answer.text[place:]])


def _supports(item: Evidence, judged: JudgedQuestion, source: str) -> bool:
    """Gold, or a passage that says an answer: sets rarely name every passage that does."""
    return item.page_id.removeprefix(f"{source}:") in judged.gold or contains(item.context or item.text, judged.answers)


def summarise_answers(checks: Sequence[AnswerChecks]) -> AnswerSummary | None:
    """None where nothing was checked."""
    if not checks:
        return None

    def mean(values: Sequence[float]) -> float:
        return round(sum(values) / len(values), 4)

    first = [one.first_citation for one in checks if one.first_citation is not None]
    cited = [one.citations for one in checks if one.citations is not None]
    return AnswerSummary(
        questions=len(checks),
        abstained=mean([float(one.mode == "abstained") for one in checks]),
        contains=mean([one.contains for one in checks]),
        exact=mean([one.exact for one in checks]),
        f1=mean([one.f1 for one in checks]),
        cited=len(cited),
        first_citation=mean(first) if first else None,
        citations=mean(cited) if cited else None,
    )
