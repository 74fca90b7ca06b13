"""Any server that speaks OpenAI's chat completions as the model that writes answers."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from config.settings import LLMSettings
from graph.errors import DependencyBusyError, DependencyDownError, DependencyFaultError, SettingsError
from graph.model import ChatMessage, ChatPiece
from graph.token_estimate import TokenCounter
from server.answer.http_faults import checked_url, reason_of, retry_after, shown_url
from server.answer.streams import DeadlineError, closing, patiently, with_deadlines
from server.answer.thinking import ThinkFilter

CONNECT_SECONDS = 5.0
LONGEST_LINE = 4_000_000
"""Bytes; a server that sends more without a line break is not speaking this protocol."""
LONGEST_ERROR = 65_536
FIELDS = (b"event:", b"id:", b"retry:", b":")


@dataclass(slots=True)
class Delta:
    """What one event says; a field is empty where it says nothing of it."""

    text: str = ""
    finish_reason: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    done: bool = False


class OpenAIChat:
    """One model behind `{url}/chat/completions`. What it thinks is dropped."""

    def __init__(self, settings: LLMSettings) -> None:
        self.model = settings.model
        self.context_tokens = settings.context_tokens
        self._counter = TokenCounter(settings.context_tokens)
        self._url = shown_url(settings.url)
        self._first_seconds = settings.first_token_seconds
        self._total_seconds = settings.total_seconds
        key = settings.api_key.get_secret_value()
        if not (key.isascii() and (key.isprintable() or not key)):
            raise SettingsError("llm.api_key has characters that no key has: copy it again")
        self._endpoint = checked_url(settings.url) + "/chat/completions"
        self._client = httpx.AsyncClient(
            timeout=httpx.Timeout(settings.total_seconds, connect=CONNECT_SECONDS),
            headers={"Authorization": f"Bearer {key}"} if key else {},
        )

    def count_tokens(self, text: str) -> int:
        """The protocol has no call for it, so this is an over-estimate; closer after a few answers."""
        return self._counter.count(text)

    async def stream(
        self,
        messages: Sequence[ChatMessage],
        *,
        temperature: float,
        max_tokens: int,
        stop: Sequence[str] = (),
    ) -> AsyncGenerator[ChatPiece, None]:
        body = {
            "model": self.model,
            "messages": [{"role": message.role, "content": message.content} for message in messages],
            "temperature": temperature,
            "max_tokens": max_tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
            **({"stop": list(stop)} if stop else {}),
        }
        thoughts = ThinkFilter()
        last = Delta()
        started = False
        with self._named_faults(lambda: started):
            deadlined = with_deadlines(
                patiently(lambda: self._deltas(body)),
                first_seconds=self._first_seconds,
                total_seconds=self._total_seconds,
            )
            async with closing(deadlined) as deltas:
                async for delta in deltas:
                    last.finish_reason = delta.finish_reason or last.finish_reason
                    last.prompt_tokens = delta.prompt_tokens or last.prompt_tokens
                    last.completion_tokens = delta.completion_tokens or last.completion_tokens
                    last.done = last.done or delta.done
                    if text := thoughts.feed(delta.text):
                        started = True
                        yield ChatPiece(text=text)
            if not (last.done or last.finish_reason):
                raise self._fault("broke off in the middle of the answer")
        self._counter.learn([message.content for message in messages], last.prompt_tokens)
        yield ChatPiece(
            text=thoughts.close(),
            finish_reason="length" if last.finish_reason == "length" else "stop",
            prompt_tokens=last.prompt_tokens,
            completion_tokens=last.completion_tokens,
        )

    async def close(self) -> None:
        await self._client.aclose()

    async def _deltas(self, body: dict[str, Any]) -> AsyncIterator[Delta]:
        """Server-sent events; also a whole JSON answer, from servers that do not stream."""
        loose = b""
        streamed = False
        async with self._client.stream("POST", self._endpoint, json=body) as response:
            if response.status_code != 200:
                await self._refuse(response)
            async for line in self._lines(response):
                if line.startswith(b"data:"):
                    streamed = True
                    data = line[5:].strip()
                    if data == b"[DONE]":
                        yield Delta(done=True)
                        return
                    if data:
                        yield self._delta(data, "delta")
                elif line and not line.startswith(FIELDS):
                    loose += line + b"\n"
        if not streamed and loose.strip():
            yield self._delta(loose, "message")

    async def _lines(self, response: httpx.Response) -> AsyncIterator[bytes]:
        """Lines end with LF or CRLF and nothing else: httpx's own reader also cuts at U+2028, which JSON may hold."""
        rest = b""
        async for data in response.aiter_bytes():
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                yield line.rstrip(b"\r")
            if len(rest) > LONGEST_LINE:
                raise self._fault("sent a line without end")
        if rest.strip():
            yield rest

    def _delta(self, data: bytes, part: str) -> Delta:
        """One event, or with `part` "message" a whole answer."""
        try:
            event = json.loads(data)
        except ValueError:
            if data.lstrip()[:1] == b"<":
                raise self._fault(
                    "answered with a web page: llm.url must be the API's address, mostly with /v1"
                ) from None
            raise self._fault("answered with something that is no JSON") from None
        if not isinstance(event, dict):
            raise self._fault("answered with JSON that is no chat completion")
        if event.get("error"):
            raise self._fault("failed in the middle of the answer; its log says why")
        usage = _mapping(event.get("usage"))
        choices = event.get("choices")
        if not isinstance(choices, list) or (part == "message" and not choices):
            if usage:
                choices = []
            else:
                raise self._fault("answered with JSON that is no chat completion")
        choice = _mapping(choices[0]) if choices else {}
        return Delta(
            _text(_mapping(choice.get(part) or choice.get("message")).get("content")),
            _string(choice.get("finish_reason")),
            _count(usage.get("prompt_tokens")),
            _count(usage.get("completion_tokens")),
        )

    async def _refuse(self, response: httpx.Response) -> None:
        """Raise what this status means. The body is read for the error's code only, and never shown."""
        status = response.status_code
        if status in (429, 503):
            raise DependencyBusyError(
                f"the model's server at {self._url} is busy or over its quota ({status}); ask again later",
                dependency="openai",
                retry_after=retry_after(response),
            )
        code = await _error_words(response)
        if status in (401, 403):
            raise self._fault("refuses the key: set llm.api_key")
        if status == 404 and "model" in code:
            raise self._fault("does not have this model: set llm.model to one it lists under /models")
        if status == 404:
            raise self._fault(
                "has no /chat/completions, or not this model: check llm.url (mostly ends in /v1) and llm.model"
            )
        if "context_length" in code:
            self._counter.distrust()
            raise self._fault("has a smaller window than llm.context_tokens says: lower it")
        if 300 <= status < 400:
            raise self._fault(f"redirects ({status}): set llm.url to the address it redirects to")
        raise self._fault(f"answered {status}; its log says why")

    @contextmanager
    def _named_faults(self, started: Callable[[], bool]) -> Iterator[None]:
        place = f"the model's server at {self._url}"
        try:
            yield
        except DeadlineError as error:
            raise DependencyDownError(
                f"{place}: {error} from {self.model}; raise llm.first_token_seconds or llm.total_seconds",
                dependency="openai",
            ) from None
        except (httpx.TransportError, httpx.DecodingError) as error:
            reason = reason_of(error)
            if started():
                raise self._fault(f"broke off in the middle of the answer ({reason})") from None
            raise DependencyDownError(
                f"{place} cannot be reached ({reason}): start it, or set llm.url", dependency="openai"
            ) from None

    def _fault(self, what: str) -> DependencyFaultError:
        return DependencyFaultError(
            f"the model's server at {self._url} (model {self.model!r}) {what}", dependency="openai"
        )


async def _error_words(response: httpx.Response) -> str:
    """Code, type and message of OpenAI's error envelope, to tell faults apart; "" where there is none."""
    body = b""
    async for data in response.aiter_bytes():
        body += data
        if len(body) > LONGEST_ERROR:
            return ""
    try:
        error = _mapping(_mapping(json.loads(body)).get("error"))
    except ValueError:
        return ""
    return " ".join(_string(error.get(key)) for key in ("code", "type", "message"))


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


def _count(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def _text(content: object) -> str:
    """A string, or parts of which some are text."""
    if isinstance(content, list):
        return "".join(_string(_mapping(part).get("text")) for part in content)
    return _string(content)
