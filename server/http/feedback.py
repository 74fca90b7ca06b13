"""`/api/feedback`: what readers say of answers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

from litestar import Controller, get, post
from litestar.params import JSONBody, QueryParameter
from msgspec import Meta, Struct

from graph.errors import NotFoundError
from graph.feedback import Feedback, FeedbackStore, Rating
from server.http.given_answers import GivenAnswer
from server.http.problems import RequestError
from server.http.query import PROBLEMS, problem_response
from server.http.views import MAX_EVIDENCE
from server.http.work import ServingDependency

UNKNOWN_ANSWER = {404: problem_response("There is no such answer, or it was given too long ago.")}
MOST = 1_000
LARGEST = 2**53
"""The largest number that every JSON reader reads exactly."""

Comment = Annotated[str, Meta(max_length=2_000, description="In the reader's own words.")]
WrongCitations = Annotated[
    Sequence[Annotated[int, Meta(ge=1, le=LARGEST)]],
    Meta(max_length=MAX_EVIDENCE, description="Numbers of evidence that does not say what it is cited for."),
]


class FeedbackRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a reader says of one answer."""

    answer_id: Annotated[str, Meta(min_length=1, max_length=100, description="`id` of the answer.")]
    rating: Rating
    comment: Comment = ""
    wrong_citations: WrongCitations = ()


class FeedbackView(Struct, frozen=True, kw_only=True):
    """What was said, with what was asked and answered."""

    answer_id: str
    rating: Rating
    comment: str
    wrong_citations: tuple[int, ...]
    question: str
    answer: str
    persona: str
    mode: str
    created: str


class FeedbackPage(Struct, frozen=True, kw_only=True):
    """The newest first; `next` is the `cursor` of the page after this one, null on the last."""

    feedback: tuple[FeedbackView, ...]
    next: int | None


class FeedbackController(Controller):
    """Feedback."""

    path = "/api/feedback"
    tags = ("feedback",)

    @post(status_code=200, summary="Rate an answer", responses=PROBLEMS | UNKNOWN_ANSWER)
    async def give(self, data: JSONBody[FeedbackRequest], serving: ServingDependency) -> FeedbackView:
        """By its `id`, which also OpenAI's form has. Said twice of one answer, the second word counts."""
        store = _store(serving)
        given = serving.given.find(data.answer_id)
        if given is None:
            raise NotFoundError(
                f"There is no answer {data.answer_id!r}. "
                "Answers can be rated until the server stops, or has given many more."
            )
        stored = await asyncio.to_thread(store.put, _feedback(data, given))
        return view_feedback(stored)

    @get(summary="What readers said", responses=PROBLEMS)
    async def read(
        self,
        serving: ServingDependency,
        limit: Annotated[int, QueryParameter(ge=1, le=MOST)] = 100,
        cursor: Annotated[int, QueryParameter(ge=0, le=LARGEST)] = 0,
    ) -> FeedbackPage:
        """The newest first. The oldest beyond ten thousand are forgotten."""
        found = await asyncio.to_thread(_store(serving).newest, limit + 1, before=cursor)
        page = found[:limit]
        return FeedbackPage(
            feedback=tuple(view_feedback(entry) for entry in page),
            next=page[-1].number if len(found) > limit else None,
        )


def _store(serving: ServingDependency) -> FeedbackStore:
    if serving.answerer.feedback is None:
        raise NotFoundError("This server keeps no feedback.")
    return serving.answerer.feedback


def _feedback(data: FeedbackRequest, given: GivenAnswer) -> Feedback:
    unknown = sorted(set(data.wrong_citations) - given.numbers)
    if unknown:
        raise RequestError(f"wrong_citations: the answer has no evidence {unknown[0]}.", param="wrong_citations")
    return Feedback(
        answer_id=data.answer_id,
        rating=data.rating,
        comment=data.comment,
        wrong_citations=tuple(sorted(set(data.wrong_citations))),
        question=given.question,
        answer=given.answer,
        persona=given.persona,
        mode=given.mode,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def view_feedback(feedback: Feedback) -> FeedbackView:
    return FeedbackView(
        answer_id=feedback.answer_id,
        rating=feedback.rating,
        comment=feedback.comment,
        wrong_citations=feedback.wrong_citations,
        question=feedback.question,
        answer=feedback.answer,
        persona=feedback.persona,
        mode=feedback.mode,
        created=feedback.created,
    )
