"""Requests that chat clients make on their own: titles, tags, follow-ups. No retrieval, no persona, no citations."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Sequence

from graph.model import ChatMessage, ChatPiece
from graph.protocols import ChatModel
from server.http.openai.requests import ChatRequest
from server.model import Answer, AnswerEvent, DoneEvent, TextEvent

WEBUI_TASK = "### Task:"
WEBUI_HISTORY = "<chat_history>"
LIBRECHAT_TITLE = "Provide a concise, 5-word-or-less title"
TEMPERATURE = 0.3
MAX_TOKENS = 1000
TITLE_WORDS = 6

FIRST_TURN = re.compile(r"^\s{0,8}(?:USER|User): ?(.{1,500})", re.MULTILINE)


def is_background(messages: Sequence[ChatMessage]) -> bool:
    """A single message of the user, in the words of Open WebUI's task templates or of LibreChat's titles."""
    if len(messages) != 1 or messages[0].role != "user":
        return False
    text = messages[0].content.lstrip()
    return text.startswith(LIBRECHAT_TITLE) or (text.startswith(WEBUI_TASK) and WEBUI_HISTORY in text)


async def run_background(prompt: str, request: ChatRequest, chat: ChatModel | None) -> AsyncIterator[AnswerEvent]:
    """The model's own words; without a model what a rule can say, so that the client's sidebar stays readable."""
    pieces: list[str] = []
    last = ChatPiece(finish_reason="stop")
    async for piece in _pieces(prompt, request, chat):
        if piece.text:
            pieces.append(piece.text)
            yield TextEvent(text=piece.text)
        if piece.finish_reason:
            last = piece
    yield DoneEvent(answer=_answer("".join(pieces), last, chat))


def _pieces(prompt: str, request: ChatRequest, chat: ChatModel | None) -> AsyncIterator[ChatPiece]:
    if chat is None:
        return _by_rule(prompt)
    return chat.stream(
        [ChatMessage(role="user", content=prompt)],
        temperature=TEMPERATURE if request.temperature is None else request.temperature,
        max_tokens=request.token_limit or MAX_TOKENS,
        stop=request.stops,
    )


async def _by_rule(prompt: str) -> AsyncIterator[ChatPiece]:
    yield ChatPiece(text=answer_by_rule(prompt))
    yield ChatPiece(finish_reason="stop")


def answer_by_rule(prompt: str) -> str:
    """In the form the task asks for: the chat's first words as its title, and nothing made up for the rest."""
    title = _title(prompt)
    if prompt.lstrip().startswith(LIBRECHAT_TITLE):
        return title
    instructions = prompt.partition(WEBUI_HISTORY)[0]
    if '"title"' in instructions:
        return json.dumps({"title": title}, ensure_ascii=False)
    for key in ("tags", "follow_ups", "queries"):
        if f'"{key}"' in instructions:
            return json.dumps({key: []})
    return ""


def _title(prompt: str) -> str:
    found = FIRST_TURN.search(prompt)
    words = found[1].split() if found else []
    return " ".join(words[:TITLE_WORDS]).rstrip(" .,;:!?") or "Chat"


def _answer(text: str, last: ChatPiece, chat: ChatModel | None) -> Answer:
    return Answer(
        text=text,
        mode="generated" if chat else "extractive",
        persona="",
        model=chat.model if chat else "",
        evidence=(),
        citations=(),
        legs={},
        zone="unknown",
        language="",
        finish_reason="length" if last.finish_reason == "length" else "stop",
        prompt_tokens=last.prompt_tokens,
        completion_tokens=last.completion_tokens,
    )
