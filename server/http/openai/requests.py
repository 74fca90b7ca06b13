"""What OpenAI's clients send to `/v1/chat/completions`, and the question that is in it.

Unknown keys are ignored: every client has some of its own.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from graph.model import ChatMessage
from server.http.problems import RequestError
from server.http.views import MAX_STOPS, MAX_TOKENS
from server.model import Question

TEXT_PARTS = frozenset({"text", "input_text", "output_text"})
ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
IGNORED_ROLES = frozenset({"tool", "function"})
"""No tool is ever called, so what one said is not ours."""

TokenLimit = Annotated[int, Meta(ge=1, le=MAX_TOKENS)]


class ContentPart(Struct, frozen=True, kw_only=True):
    """A piece of a message."""

    type: str
    text: str | None = None


class RequestMessage(Struct, frozen=True, kw_only=True):
    """A message; `content` is a string, null, or parts, for every role."""

    role: str
    content: str | list[ContentPart] | None = None


class StreamOptions(Struct, frozen=True, kw_only=True):
    """How to stream."""

    include_usage: bool | None = None


class ChatRequest(Struct, frozen=True, kw_only=True):
    """The part of OpenAI's request that is honoured; `user`, `tools`, `seed`, penalties and the like are not."""

    messages: Annotated[list[RequestMessage], Meta(min_length=1, max_length=10_000)]
    model: str | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    max_tokens: TokenLimit | None = None
    max_completion_tokens: TokenLimit | None = None
    stop: str | Annotated[list[str], Meta(max_length=MAX_STOPS)] | None = None
    n: Annotated[int, Meta(ge=1, le=1)] | None = None
    tool_choice: str | dict[str, object] | None = None

    @property
    def token_limit(self) -> int | None:
        return self.max_completion_tokens or self.max_tokens

    @property
    def stops(self) -> tuple[str, ...]:
        given = [self.stop] if isinstance(self.stop, str) else self.stop or []
        return tuple(stop for stop in given if stop)

    @property
    def wants_usage(self) -> bool:
        return bool(self.stream_options and self.stream_options.include_usage)


def read_messages(request: ChatRequest) -> tuple[ChatMessage, ...]:
    """The messages as text, oldest first; and the faults that no type can say."""
    if request.tool_choice == "required" or isinstance(request.tool_choice, dict):
        raise RequestError('tool_choice: no tools are called here; leave it out or send "auto".', param="tool_choice")
    if any(len(stop) > 200 for stop in request.stops):
        raise RequestError("stop: a stop sequence has at most 200 characters.", param="stop")
    read = (_read(message, f"messages[{place}]") for place, message in enumerate(request.messages))
    return tuple(message for message in read if message is not None)


def _read(message: RequestMessage, place: str) -> ChatMessage | None:
    text = _text(message.content, f"{place}.content")
    if message.role in IGNORED_ROLES:
        return None
    if message.role not in ROLES:
        known = ", ".join((*ROLES, *sorted(IGNORED_ROLES)))
        raise RequestError(f"{place}.role: must be one of {known}.", param=f"{place}.role")
    return ChatMessage(role=ROLES[message.role], content=text)


def _text(content: str | list[ContentPart] | None, place: str) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    for number, part in enumerate(content):
        if part.type not in TEXT_PARTS:
            param = f"{place}[{number}]"
            raise RequestError(f"{param}: only text can be read here, not {part.type!r}.", param=param)
    return "\n".join(part.text or "" for part in content)


def to_question(request: ChatRequest, messages: tuple[ChatMessage, ...], persona: str) -> Question:
    """The last message of the user asks; what stands before it is history, what stands after it is not read.

    A client's system message goes along as history of role "system": it may add wishes, never replace the persona.
    """
    last = max((place for place, message in enumerate(messages) if message.role == "user"), default=None)
    if last is None:
        raise RequestError("messages: none is of the user; there is no question.", param="messages")
    return Question(
        text=messages[last].content,
        history=messages[:last],
        persona=persona,
        temperature=request.temperature,
        max_tokens=request.token_limit,
        stop=request.stops,
    )
