"""`/api/search`, `/api/query` and `/api/query/stream`: the native API."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial

from litestar import Controller, post
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import JSONBody
from litestar.response import Stream

from graph.errors import NotFoundError
from server.http.answerer import Answerer
from server.http.event_stream import MEDIA_TYPE, encoded, event_stream, named_event
from server.http.given_answers import GivenAnswers, new_id
from server.http.problems import PROBLEM_MEDIA_TYPE, Problem
from server.http.requests import ApiRequest
from server.http.views import (
    QueryRequest,
    QueryResponse,
    SearchRequest,
    SearchResponse,
    view_answer,
    view_citation,
    view_search,
)
from server.http.work import Fault, Ping, ServingDependency
from server.model import AnswerEvent, CitationEvent, DoneEvent, FoundEvent, Question, TextEvent


def problem_response(description: str) -> ResponseSpec:
    """How an answer that is a problem is documented."""
    return ResponseSpec(Problem, description=description, media_type=PROBLEM_MEDIA_TYPE, generate_examples=False)


PROBLEMS: dict[int, ResponseSpec] = {
    400: problem_response("The request cannot be used; `detail` says why."),
    401: problem_response("The API key is missing or wrong."),
    413: problem_response("The body is too large."),
    502: problem_response("A service answered wrongly."),
    503: problem_response("Too busy, or something it needs is down."),
    504: problem_response("No answer within the deadline."),
}
UNKNOWN_PERSONA = {404: problem_response("There is no such persona.")}


class QueryController(Controller):
    """Questions to evidence and to answers."""

    path = "/api"
    tags = ("questions",)

    @post("/search", status_code=200, summary="Find evidence", responses=PROBLEMS | UNKNOWN_PERSONA)
    async def find(
        self, data: JSONBody[SearchRequest], request: ApiRequest, serving: ServingDependency
    ) -> SearchResponse:
        """What an answer would rest on, without an answer: no language model is asked."""
        check_persona(data.persona, serving.answerer)
        found = await serving.finish(request, serving.answerer.search(data.to_question()))
        serving.metrics.searched(found)
        return view_search(found, explain=data.explain)

    @post("/query", status_code=200, summary="Answer a question", responses=PROBLEMS | UNKNOWN_PERSONA)
    async def answer(
        self, data: JSONBody[QueryRequest], request: ApiRequest, serving: ServingDependency
    ) -> QueryResponse:
        """A whole answer with its citations and evidence."""
        check_persona(data.persona, serving.answerer)
        question, answer_id = data.to_question(), new_id()
        answer = await serving.finish(request, serving.answerer.answer(question))
        serving.given.note(answer_id, question, answer)
        return view_answer(answer, explain=data.explain, answer_id=answer_id)

    @post(
        "/query/stream",
        status_code=200,
        media_type=MEDIA_TYPE,
        summary="Answer a question, as it is written",
        responses=PROBLEMS | UNKNOWN_PERSONA,
    )
    async def stream(self, data: JSONBody[QueryRequest], request: ApiRequest, serving: ServingDependency) -> Stream:
        """Server-sent events: `legs`, `evidence`, then `token` and `citation`, at last `done` or `error`."""
        check_persona(data.persona, serving.answerer)
        question, answer_id = data.to_question(), new_id()
        items = await serving.begin(request, serving.answerer.stream(question))
        noted = noting(items, serving.given, answer_id, question)
        return event_stream(encoded(noted, partial(_event, explain=data.explain, answer_id=answer_id)))


def check_persona(name: str, answerer: Answerer) -> None:
    if name and name not in answerer.personas:
        raise NotFoundError(f"There is no persona {name!r}; there are {', '.join(answerer.personas)}.")


async def noting(
    items: AsyncGenerator[AnswerEvent | Ping | Fault], given: GivenAnswers, answer_id: str, question: Question
) -> AsyncGenerator[AnswerEvent | Ping | Fault]:
    """The same items; the whole answer among them is noted before its reader has it, and may rate it."""
    async with aclosing(items):
        async for item in items:
            if isinstance(item, DoneEvent):
                given.note(answer_id, question, item.answer)
            yield item


def _event(item: AnswerEvent, *, explain: bool, answer_id: str) -> bytes:
    if isinstance(item, FoundEvent):
        view = view_search(item.found, explain=explain)
        return named_event("legs", {"legs": view.legs}) + named_event("evidence", view)
    if isinstance(item, TextEvent):
        return named_event("token", {"text": item.text})
    if isinstance(item, CitationEvent):
        return named_event("citation", view_citation(item.citation))
    return named_event("done", view_answer(item.answer, explain=explain, answer_id=answer_id))
