"""`/v1/chat/completions`: an answer in OpenAI's form, whole or streamed."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing

from litestar import Controller, Response, post
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import JSONBody
from litestar.response import Stream

from server.http.event_stream import PING, event_stream
from server.http.metrics import Metrics
from server.http.openai.answers import ChatCompletion, ChatWriter
from server.http.openai.background import is_background, run_background
from server.http.openai.models import OPENAI_ERRORS, WRITES, find_model
from server.http.openai.pieces import piece_events
from server.http.openai.requests import ChatRequest, read_messages, to_question
from server.http.query import noting
from server.http.requests import ApiRequest
from server.http.work import Fault, Ping, ServingDependency
from server.model import Answer, AnswerEvent, DoneEvent, FoundEvent, TextEvent

WHOLE = {200: ResponseSpec(ChatCompletion, description="The answer.", generate_examples=False)}


class ChatController(Controller):
    """Chat completions."""

    path = "/v1/chat/completions"
    tags = ("openai",)

    @post(status_code=200, summary="Answer the last message of the user", responses=WHOLE | OPENAI_ERRORS)
    async def complete(
        self, data: JSONBody[ChatRequest], request: ApiRequest, serving: ServingDependency
    ) -> Response[ChatCompletion] | Stream:
        """As OpenAI's, with sources; unknown keys are ignored. With `stream` it is a row of server-sent events."""
        messages = read_messages(data)
        background = is_background(messages)
        model = find_model(data.model, serving.answerer.personas, writes=serving.answerer.pieces is not None)
        question = to_question(data, messages, model.persona)
        writer = ChatWriter(
            model=model.id, options=serving.options, wants_usage=data.wants_usage, with_sources=not background
        )
        desk = serving.answerer.pieces if model.id == WRITES else None
        if not background and not data.stream:
            answering = _whole(piece_events(question.text, desk)) if desk else serving.answerer.answer(question)
            answer = await serving.finish(request, answering)
            serving.given.note(writer.id, question, answer)
            return Response(writer.whole(answer))
        events = (
            run_background(question.text, data, serving.answerer.chat)
            if background
            else piece_events(question.text, desk)
            if desk
            else serving.answerer.stream(question)
        )
        if not data.stream:
            told = await serving.finish(request, _whole(events))
            serving.metrics.spent(told)
            return Response(writer.whole(told))
        items = await serving.begin(request, events)
        counted = _counted(items, serving.metrics) if background else noting(items, serving.given, writer.id, question)
        return event_stream(_encoded(counted, writer))


async def _whole(events: AsyncIterator[AnswerEvent]) -> Answer:
    """The answer that the last event has."""
    async for event in events:
        if isinstance(event, DoneEvent):
            return event.answer
    raise AssertionError("a stream of answer events ended without its DoneEvent")


async def _counted(
    items: AsyncGenerator[AnswerEvent | Ping | Fault], metrics: Metrics
) -> AsyncGenerator[AnswerEvent | Ping | Fault]:
    """What a client asks of the model on its own is no answer, but it costs."""
    async with aclosing(items):
        async for item in items:
            if isinstance(item, DoneEvent):
                metrics.spent(item.answer)
            yield item


async def _encoded(items: AsyncGenerator[AnswerEvent | Ping | Fault], writer: ChatWriter) -> AsyncGenerator[bytes]:
    async with aclosing(items):
        for chunk in writer.begin():
            yield chunk
        async for item in items:
            for chunk in _chunks(item, writer):
                yield chunk


def _chunks(item: AnswerEvent | Ping | Fault, writer: ChatWriter) -> Iterator[bytes]:
    if isinstance(item, Ping):
        yield writer.empty() if writer.options.ping_as_delta else PING
    elif isinstance(item, Fault):
        yield from writer.fault(item.told())
    elif isinstance(item, FoundEvent):
        yield from writer.found(item.found)
    elif isinstance(item, TextEvent):
        yield writer.text(item.text)
    elif isinstance(item, DoneEvent):
        yield from writer.end(item.answer)
