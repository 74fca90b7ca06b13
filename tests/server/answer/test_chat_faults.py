"""How the chat adapters name what goes wrong on the other side. Everything runs against real local servers."""

from __future__ import annotations

import asyncio
import email.utils
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from config.settings import LLMSettings
from graph.errors import (
    DependencyBusyError,
    DependencyDownError,
    DependencyError,
    DependencyFaultError,
    SettingsError,
)
from graph.model import ChatMessage, ChatPiece
from server.answer.ollama_chat import OllamaChat
from server.answer.openai_chat import OpenAIChat
from tests.model_server import ModelServer, Script, ollama_lines, openai_events, serving

Chat = OllamaChat | OpenAIChat
KINDS = pytest.mark.parametrize("kind", [OllamaChat, OpenAIChat])
SECRET = "sk-very-secret"
BODY_MARK = "INTERNAL DETAIL 4711"


@asynccontextmanager
async def talking(
    kind: type[Chat], *scripts: Script, first: float = 5.0, total: float = 5.0
) -> AsyncIterator[tuple[Chat, ModelServer]]:
    async with serving(ollama_lines if kind is OllamaChat else openai_events, *scripts) as server:
        chat = kind(
            LLMSettings.model_validate(
                {
                    "url": server.url if kind is OllamaChat else f"{server.url}/v1",
                    "model": "stub",
                    "api_key": SECRET,
                    "first_token_seconds": first,
                    "total_seconds": total,
                }
            )
        )
        yield chat, server
        await chat.close()


async def ask(chat: Chat) -> list[ChatPiece]:
    asked = [ChatMessage(role="user", content="Is it so?")]
    return [piece async for piece in chat.stream(asked, temperature=0.0, max_tokens=50)]


async def fault(kind: type[Chat], script: Script, **deadlines: float) -> DependencyError:
    async with talking(kind, script, **deadlines) as (chat, server):
        with pytest.raises(DependencyError) as caught:
            await ask(chat)
        said = str(caught.value)
        assert server.url in said
        assert SECRET not in said
        assert BODY_MARK not in said
        assert caught.value.dependency == ("ollama" if kind is OllamaChat else "openai")
        return caught.value


@KINDS
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html><body>INTERNAL DETAIL 4711</body></html>",
        b"INTERNAL DETAIL 4711\n\n\n",
        b'{"INTERNAL DETAIL 4711": 1}\n',
        b'["INTERNAL DETAIL 4711"]\n',
        b"\xff\xfe\x00garbage\n",
        b'data: {"broken": \n\n',
        b'data: "INTERNAL DETAIL 4711"\n\n',
        b'{"error": "INTERNAL DETAIL 4711"}\n',
        b'data: {"error": {"message": "INTERNAL DETAIL 4711", "code": 500}}\n\n',
    ],
    ids=["empty", "html", "text", "other json", "list", "bytes", "half json", "json string", "error", "error event"],
)
async def test_an_answer_that_is_none_is_a_fault(kind: type[Chat], body: bytes) -> None:
    assert isinstance(await fault(kind, Script(body=body)), DependencyFaultError)


@KINDS
@pytest.mark.parametrize("status", [400, 401, 403, 404, 500, 502, 504])
async def test_a_status_that_is_no_answer_is_a_fault(kind: type[Chat], status: int) -> None:
    body = json.dumps({"error": "INTERNAL DETAIL 4711"}).encode()
    error = await fault(kind, Script(status=status, body=body))
    assert isinstance(error, DependencyFaultError)
    if status in (401, 403):
        assert "KEY" in str(error).upper()
    elif status != 404:
        assert str(status) in str(error)


async def test_a_model_that_ollama_does_not_have_is_named_with_the_command_that_fetches_it() -> None:
    body = b'{"error":"model \\"stub\\" not found, try pulling it first"}'
    error = await fault(OllamaChat, Script(status=404, body=body))
    assert "`ollama pull stub`" in str(error)


async def test_a_model_that_a_server_does_not_have_is_named() -> None:
    body = b'{"error":{"message":"The model `stub` does not exist","type":"","code":"model_not_found"}}'
    error = await fault(OpenAIChat, Script(status=404, body=body))
    assert "llm.model" in str(error)
    assert "'stub'" in str(error)


async def test_a_window_that_is_smaller_than_set_is_named() -> None:
    body = b'{"error":{"message":"too long","code":"context_length_exceeded"}}'
    error = await fault(OpenAIChat, Script(status=400, body=body))
    assert "llm.context_tokens" in str(error)


async def test_a_web_page_in_place_of_the_api_names_the_address() -> None:
    error = await fault(OpenAIChat, Script(body=b"<!DOCTYPE html><title>Welcome</title>"))
    assert "/v1" in str(error)


@KINDS
async def test_a_redirect_is_not_followed(kind: type[Chat]) -> None:
    headers = {"Location": "http://127.0.0.1:9/elsewhere"}
    assert isinstance(await fault(kind, Script(status=302, headers=headers, body=b"")), DependencyFaultError)


@KINDS
@pytest.mark.parametrize("status", [429, 503])
async def test_a_busy_server_is_waited_for_once(kind: type[Chat], status: int) -> None:
    busy = Script(status=status, headers={"Retry-After": "0.1"}, body=b"{}")
    async with talking(kind, busy, Script()) as (chat, server):
        assert "".join(piece.text for piece in await ask(chat)) == "It is so [[1]]."
        assert len(server.requests) == 2


@KINDS
async def test_a_busy_server_that_asks_for_a_long_wait_is_not_waited_for(kind: type[Chat]) -> None:
    later = email.utils.formatdate(time.time() + 90, usegmt=True)
    error = await fault(kind, Script(status=429, headers={"Retry-After": later}, body=b"INTERNAL DETAIL 4711"))
    assert isinstance(error, DependencyBusyError)
    assert 80 < error.retry_after <= 90


@KINDS
@pytest.mark.parametrize("value", ["", "soon", "-5", "nan", "inf"])
async def test_a_retry_time_that_makes_no_sense_is_still_a_wait(kind: type[Chat], value: str) -> None:
    async with talking(kind, Script(status=429, headers={"Retry-After": value}, body=b"{}")) as (chat, _):
        with pytest.raises(DependencyBusyError) as caught:
            await ask(chat)
    assert 0 <= caught.value.retry_after <= 3600


@KINDS
async def test_no_first_token_in_time(kind: type[Chat]) -> None:
    begun = time.monotonic()
    error = await fault(kind, Script(wait_first=30), first=0.3)
    assert isinstance(error, DependencyDownError)
    assert "no first token after 0.3 s" in str(error)
    assert time.monotonic() - begun < 3


@KINDS
async def test_an_answer_without_end_is_cut_in_time(kind: type[Chat]) -> None:
    script = Script(words=("and ",) * 1000, wait_each=0.05)
    async with talking(kind, script, first=5, total=0.5) as (chat, server):
        with pytest.raises(DependencyError, match=r"no end after 0\.5 s"):
            await ask(chat)
        await asyncio.wait_for(server.hung_up.wait(), 2)


@KINDS
async def test_a_connection_that_breaks_in_the_middle_is_a_fault_not_an_end(kind: type[Chat]) -> None:
    error = await fault(kind, Script(words=("one ", "two ", "three"), die_after=2))
    assert isinstance(error, DependencyFaultError)
    assert "broke off" in str(error)


@KINDS
async def test_an_answer_that_ends_without_its_last_line_is_a_fault(kind: type[Chat]) -> None:
    wire = ollama_lines if kind is OllamaChat else openai_events
    body = b"".join(wire(["one ", "two"], "stop")[:2])
    error = await fault(kind, Script(body=body))
    assert isinstance(error, DependencyFaultError)
    assert "broke off" in str(error)


@KINDS
async def test_thinking_is_dropped(kind: type[Chat]) -> None:
    script = Script(words=("<thi", "nk>\nHm, they", " want <b>", "</th", "ink>\n\n", "It", " is."))
    async with talking(kind, script) as (chat, _):
        assert "".join(piece.text for piece in await ask(chat)) == "It is."


@KINDS
async def test_only_thinking_is_an_empty_answer(kind: type[Chat]) -> None:
    async with talking(kind, Script(words=("<think>", "and on", " and on"), finish="length")) as (chat, _):
        assert [(piece.text, piece.finish_reason) for piece in await ask(chat)] == [("", "length")]


async def test_ollama_is_asked_not_to_think_and_for_the_whole_window() -> None:
    async with talking(OllamaChat, Script()) as (chat, server):
        await ask(chat)
    [body] = server.requests
    assert body["think"] is False
    assert body["options"]["num_ctx"] == 8192


async def test_the_key_goes_with_each_request() -> None:
    async with talking(OpenAIChat, Script()) as (chat, server):
        await ask(chat)
    assert server.keys == [f"Bearer {SECRET}"]


async def test_reasoning_in_a_field_of_its_own_is_no_answer() -> None:
    def event(delta: dict[str, object], reason: str | None = None) -> bytes:
        return b"data:" + json.dumps({"choices": [{"delta": delta, "finish_reason": reason}]}).encode() + b"\r\n\r\n"

    body = b": ping\r\n\r\nevent: message\r\n" + event({"reasoning_content": "Hm.", "content": None})
    body += event({"content": [{"type": "text", "text": "It is"}]}) + event({"content": " so."}) + event({}, "stop")
    async with talking(OpenAIChat, Script(body=body)) as (chat, _):
        assert "".join(piece.text for piece in await ask(chat)) == "It is so."


async def test_a_server_that_does_not_stream() -> None:
    whole = {
        "choices": [{"message": {"role": "assistant", "content": "It is so."}, "finish_reason": "length"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 4},
    }
    async with talking(OpenAIChat, Script(body=json.dumps(whole, indent=1).encode())) as (chat, _):
        got = await ask(chat)
    assert "".join(piece.text for piece in got) == "It is so."
    assert (got[-1].finish_reason, got[-1].prompt_tokens, got[-1].completion_tokens) == ("length", 3, 4)


async def test_a_line_separator_inside_a_token_cuts_nothing() -> None:
    async with talking(OpenAIChat, Script(words=("one\u2028two\u0085three",))) as (chat, _):
        assert "".join(piece.text for piece in await ask(chat)) == "one\u2028two\u0085three"


@KINDS
@pytest.mark.parametrize("url", ["", "http://[::1"])
def test_an_address_that_is_none_is_a_setting_to_mend(kind: type[Chat], url: str) -> None:
    with pytest.raises(SettingsError, match=r"llm\.url"):
        kind(LLMSettings(url=url, model="stub"))


def test_a_key_that_cannot_be_sent_is_a_setting_to_mend() -> None:
    with pytest.raises(SettingsError, match=r"llm\.api_key") as caught:
        OpenAIChat(LLMSettings.model_validate({"url": "http://127.0.0.1:1/v1", "api_key": "sk-\nclé"}))
    assert "clé" not in str(caught.value)
