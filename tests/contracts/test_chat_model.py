"""What every chat model must do. The adapters run on stub servers, and on a real Ollama where OLLAMA_URL names one."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from config.settings import LLMSettings
from graph.errors import DependencyDownError
from graph.model import ChatMessage, ChatPiece
from graph.protocols import ChatModel
from server.answer.ollama_chat import OllamaChat
from server.answer.openai_chat import OpenAIChat
from server.answer.streams import closing
from tests.fake_chat import FakeChat
from tests.model_server import ModelServer, Script, ollama_lines, openai_events, serving

ASKED = [ChatMessage(role="system", content="Be brief."), ChatMessage(role="user", content="Is it so?")]
Opened = tuple[ChatModel, ModelServer | None]
Open = Callable[[Script], AbstractAsyncContextManager[Opened]]


@asynccontextmanager
async def fake(script: Script) -> AsyncIterator[Opened]:
    yield FakeChat("".join(script.words), first_seconds=script.wait_first), None


@asynccontextmanager
async def on_ollama(script: Script) -> AsyncIterator[Opened]:
    async with serving(ollama_lines, script) as server:
        chat = OllamaChat(LLMSettings(provider="ollama", url=server.url, model="stub"))
        yield chat, server
        await chat.close()


@asynccontextmanager
async def on_openai(script: Script) -> AsyncIterator[Opened]:
    async with serving(openai_events, script) as server:
        chat = OpenAIChat(LLMSettings(provider="openai", url=f"{server.url}/v1", model="stub"))
        yield chat, server
        await chat.close()


@pytest.fixture(params=[fake, on_ollama, on_openai], ids=["fake", "ollama", "openai"])
def open_chat(request: pytest.FixtureRequest) -> Open:
    found: Open = request.param
    return found


async def pieces(chat: ChatModel, max_tokens: int = 100, stop: tuple[str, ...] = ()) -> list[ChatPiece]:
    return [piece async for piece in chat.stream(ASKED, temperature=0.0, max_tokens=max_tokens, stop=stop)]


async def test_pieces_join_to_the_answer_and_the_last_one_says_how_it_ended(open_chat: Open) -> None:
    async with open_chat(Script()) as (chat, _):
        got = await pieces(chat)
    assert "".join(piece.text for piece in got) == "It is so [[1]]."
    assert [piece.finish_reason for piece in got[:-1]] == [""] * (len(got) - 1)
    assert got[-1].finish_reason == "stop"
    assert got[-1].prompt_tokens > 0
    assert got[-1].completion_tokens > 0


async def test_a_piece_comes_when_it_is_there_not_at_the_end(open_chat: Open) -> None:
    async with (
        open_chat(Script(words=("a",) * 40, wait_each=0.2)) as (chat, _),
        asyncio.timeout(4),
        closing(chat.stream(ASKED, temperature=0.0, max_tokens=100)) as stream,
    ):
        first = await anext(stream)
    assert first.text.startswith("a")


async def test_an_answer_cut_at_its_limit_says_so(open_chat: Open) -> None:
    async with open_chat(Script(finish="length")) as (chat, _):
        got = await pieces(chat, max_tokens=3)
    assert got[-1].finish_reason == "length"


async def test_an_empty_answer_is_one_last_piece(open_chat: Open) -> None:
    async with open_chat(Script(words=(), finish="stop")) as (chat, _):
        got = await pieces(chat)
    assert [(piece.text, piece.finish_reason) for piece in got] == [("", "stop")]


async def test_what_was_asked_arrives(open_chat: Open) -> None:
    async with open_chat(Script()) as (chat, server):
        await pieces(chat, max_tokens=7, stop=("END",))
    if server is None:
        return
    [body] = server.requests
    assert body["model"] == "stub"
    assert body["messages"] == [{"role": turn.role, "content": turn.content} for turn in ASKED]
    options = body.get("options", body)
    assert options["temperature"] == 0.0
    assert options["stop"] == ["END"]
    assert options.get("num_predict", options.get("max_tokens")) == 7


async def test_closing_the_stream_ends_the_work_upstream(open_chat: Open) -> None:
    async with open_chat(Script(words=("word ",) * 1000, wait_each=0.05)) as (chat, server):
        async with closing(chat.stream(ASKED, temperature=0.0, max_tokens=1000)) as stream:
            assert (await anext(stream)).text
        if server is not None:
            await asyncio.wait_for(server.hung_up.wait(), 2)
        if isinstance(chat, FakeChat):
            assert chat.open == 0


async def test_cancelling_the_reader_ends_the_work_upstream(open_chat: Open) -> None:
    async with open_chat(Script(wait_first=30)) as (chat, server):
        reading = asyncio.create_task(pieces(chat))
        await asyncio.sleep(0.2)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        if server is not None:
            await asyncio.wait_for(server.hung_up.wait(), 2)


async def test_two_answers_at_once_stay_apart(open_chat: Open) -> None:
    async with open_chat(Script(words=("one ", "two ", "three"), wait_each=0.01)) as (chat, _):
        both = await asyncio.gather(pieces(chat), pieces(chat))
    assert ["".join(piece.text for piece in got) for got in both] == ["one two three"] * 2


async def test_tokens_are_counted_and_more_text_has_more(open_chat: Open) -> None:
    async with open_chat(Script()) as (chat, _):
        assert chat.count_tokens("") == 0
        assert 0 < chat.count_tokens("a few words") < chat.count_tokens("a few words and then some, 1945")
        assert chat.context_tokens > 0


@pytest.mark.parametrize("kind", [OllamaChat, OpenAIChat])
async def test_a_server_that_is_not_there_is_named_with_what_to_do(kind: type[OllamaChat] | type[OpenAIChat]) -> None:
    chat = kind(LLMSettings(url="http://user:secret@127.0.0.1:1", model="stub"))
    with pytest.raises(DependencyDownError) as caught:
        await pieces(chat)
    await chat.close()
    assert "http://127.0.0.1:1" in str(caught.value)
    assert "llm.url" in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.services
@pytest.mark.parametrize("kind", [OllamaChat, OpenAIChat])
async def test_a_real_ollama(kind: type[OllamaChat] | type[OpenAIChat]) -> None:
    url = os.environ.get("OLLAMA_URL", "")
    if not url:
        assert not os.environ.get("TRIVET_REQUIRE_SERVICES"), "OLLAMA_URL names no Ollama"
        pytest.skip("OLLAMA_URL names no Ollama")
    place = f"{url}/v1" if kind is OpenAIChat else url
    chat = kind(LLMSettings(url=place, model=os.environ.get("OLLAMA_MODEL", "smollm2"), context_tokens=512))
    asked = [ChatMessage(role="user", content="What is the capital of France?")]
    got = [piece async for piece in chat.stream(asked, temperature=0.0, max_tokens=12)]
    await chat.close()
    assert "Paris" in "".join(piece.text for piece in got)
    assert got[-1].finish_reason in ("stop", "length")
    assert got[-1].prompt_tokens > 5
