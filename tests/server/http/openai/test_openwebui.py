"""The mode for Open WebUI: sources and progress as its own events."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from litestar.testing import AsyncTestClient

from config.settings import Settings
from server.app import create_app
from server.http.openai.sources import webui_sources
from server.http.options import HttpOptions
from tests.server.http.conftest import Client
from tests.server.http.scripted import EVIDENCE, TEXT, ScriptedAnswerer, opening

ASKED: dict[str, Any] = {"messages": [{"role": "user", "content": "Who?"}]}


@pytest.fixture
async def webui(answerer: ScriptedAnswerer) -> AsyncIterator[Client]:
    options = HttpOptions(citation_mode="openwebui")
    async with AsyncTestClient(create_app(Settings(), open_answerer=opening(answerer), options=options)) as client:
        yield client


async def test_sources_and_progress_are_events(webui: Client) -> None:
    response = await webui.post("/v1/chat/completions", json=ASKED | {"stream": True})
    lines = [line.removeprefix("data: ") for line in response.text.split("\n\n") if line]
    assert lines.pop() == "[DONE]"
    chunks = [json.loads(line) for line in lines]
    assert all(chunk["choices"] for chunk in chunks)
    events = [chunk["event"] for chunk in chunks if "event" in chunk]
    assert all(chunk["choices"][0]["delta"] == {} for chunk in chunks if "event" in chunk)
    assert [event["type"] for event in events] == ["status", "status", "source", "source", "source"]
    assert events[0]["data"] == {"description": "Searching", "done": False}
    assert events[1]["data"] == {"description": "Found 3 passages (vector: ok, graph: ok)", "done": True}
    assert events[2]["data"] == {
        "source": {"name": "Animal Farm › Plot", "url": "https://wiki.example/Animal_Farm#Plot"},
        "document": ["Animal Farm is a novella by George Orwell."],
        "metadata": [{"source": "https://wiki.example/Animal_Farm#Plot", "name": "Animal Farm › Plot"}],
        "distances": [0.9],
    }
    whole = (await webui.post("/v1/chat/completions", json=ASKED)).json()
    assert whole["sources"] == [event["data"] for event in events[2:]]


@pytest.mark.parametrize("stream", [False, True])
async def test_no_source_is_there_twice(webui: Client, stream: bool) -> None:
    response = await webui.post("/v1/chat/completions", json=ASKED | {"stream": stream})
    for key in ("annotations", "citations", "search_results"):
        assert f'"{key}":' not in response.text


def test_two_passages_of_one_section_are_two_sources() -> None:
    """Open WebUI would count them as one, and `[3]` would lead to the wrong place."""
    sources = webui_sources(EVIDENCE)
    names = [source.metadata[0].source for source in sources]
    assert len(set(names)) == 3
    assert names[2] == "https://wiki.example/Animal_Farm#Plot:~:passage=3"


async def test_the_footer_is_the_same_streamed_and_whole(answerer: ScriptedAnswerer) -> None:
    options = HttpOptions(sources_footer=True)
    async with AsyncTestClient(create_app(Settings(), open_answerer=opening(answerer), options=options)) as client:
        whole = (await client.post("/v1/chat/completions", json=ASKED)).json()["choices"][0]["message"]["content"]
        streamed = await client.post("/v1/chat/completions", json=ASKED | {"stream": True})
    chunks = [json.loads(line.removeprefix("data: ")) for line in streamed.text.split("\n\n")[:-2]]
    assert "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks) == whole
    assert whole == (
        f"{TEXT}\n\n---\n**Sources**\n\n"
        "1. [Animal Farm › Plot](<https://wiki.example/Animal_Farm#Plot>)\n"
        "2. Orwell\n"
        "3. [Animal Farm](<https://wiki.example/Animal_Farm#Plot>)"
    )


async def test_a_request_as_open_webui_sends_it(webui: Client, answerer: ScriptedAnswerer) -> None:
    """Version 0.12 to an OpenAI connection: its own headers, parts, and keys of its own that it leaves in."""
    headers = {
        "authorization": "Bearer sk-any",
        "x-openwebui-user-name": "Ren%C3%A9e",
        "x-openwebui-user-id": "1b4a4b5c",
        "x-openwebui-user-email": "renee@example.org",
        "x-openwebui-user-role": "admin",
        "x-openwebui-chat-id": "c0ffee",
    }
    body = {
        "stream": True,
        "model": "trivet/teacher",
        "messages": [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": [{"type": "text", "text": "Who wrote Animal Farm?"}]},
            {"role": "assistant", "content": "George Orwell. [1]", "done": True},
            {"role": "user", "content": "And when?"},
        ],
        "stream_options": {"include_usage": True},
        "logit_bias": None,
        "reasoning_effort": None,
        "metadata": {"chat_id": "c0ffee", "features": {"web_search": False}},
        "chat_id": "c0ffee",
        "session_id": "s",
        "tool_ids": [],
        "params": {},
    }
    response = await webui.post("/v1/chat/completions", json=body, headers=headers)
    assert response.status_code == 200
    (question,) = answerer.questions
    assert (question.text, question.persona) == ("And when?", "teacher")
    assert [turn.content for turn in question.history] == ["Be kind.", "Who wrote Animal Farm?", "George Orwell. [1]"]
    usage = json.loads(response.text.split("\n\n")[-3].removeprefix("data: "))
    assert (usage["choices"], usage["usage"]["total_tokens"]) == ([], 59)
    models = (await webui.get("/v1/models", headers=headers)).json()
    assert {model["id"] for model in models["data"]} >= {"trivet", "trivet/teacher"}
