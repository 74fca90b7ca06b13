"""Four ways to the same answer: native and OpenAI's form, whole and streamed, carry the same text and sources."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from litestar.testing import AsyncTestClient

from config.settings import Settings
from graph.model import ChatMessage
from server.app import create_app
from server.http.backends_answerer import BackendsAnswerer
from tests.fake_chat import FakeChat
from tests.ingestion.small_wiki import page
from tests.server.http.conftest import Client
from tests.server.http.scripted import opening
from tests.server.http.test_field_issues import filled
from tests.server.http.test_query import events

QUESTIONS = 100
PASSAGES = 40
SAYINGS = (
    "It is so [[1]].",
    "First this [[1]][[2]], then that [[1, 3]]; a range [[1-3]] and 【2】.",
    "No such source [[99]], [[0]] or [[x]]; a list[1] and an `[[1]]` in code.",
    "```\n[[1]]\n```\nand after it [[2]]",
    "Nothing is cited here.",
    "",
    "<think>Should I? [[1]]</think>A [b](https://evil.example) and [[ 2 ]]",
    "I don't know: the pages I searched do not answer this question.",
    "Ends in the middle [[1",
)


def says(messages: Sequence[ChatMessage]) -> str:
    """Another saying for each question, the same for the same one."""
    return SAYINGS[sum(messages[-1].content.encode()) % len(SAYINGS)]


@pytest.fixture(params=["extractive", "scripted model"])
async def client(request: pytest.FixtureRequest, data_dir: Path) -> AsyncIterator[Client]:
    lines = (data_dir / "benchmarks/squad_dev/corpus.jsonl").read_text(encoding="utf-8").splitlines()[:PASSAGES]
    passages = [json.loads(line) for line in lines]
    pages = [page(f"{passage['title']} {passage['_id']}", passage["text"]) for passage in passages]
    backends = await filled(pages, FakeChat(says) if request.param == "scripted model" else None)
    async with AsyncTestClient(create_app(Settings(), open_answerer=opening(BackendsAnswerer(backends)))) as client:
        yield client


def questions(data: Path) -> list[str]:
    """Of the passages that are there, as far as they go, then others: "I don't know" is streamed too."""
    lines = (data / "benchmarks/squad_dev/queries.jsonl").read_text(encoding="utf-8").splitlines()[:QUESTIONS]
    return [json.loads(line)["text"] for line in lines]


def chunks_of(text: str) -> list[dict[str, Any]]:
    lines = [line.removeprefix("data: ") for line in text.split("\n\n") if line.startswith("data: {")]
    return [json.loads(line) for line in lines]


@pytest.mark.data
@pytest.mark.slow
async def test_a_hundred_questions(client: Client, data_dir: Path) -> None:
    asked = questions(data_dir)
    assert len(asked) == QUESTIONS
    for question in asked:
        await assert_the_same(client, question)


async def assert_the_same(client: Client, question: str) -> None:
    native = {"question": question, "temperature": 0, "web": False}
    whole = (await client.post("/api/query", json=native)).json()
    got = events((await client.post("/api/query/stream", json=native)).text)
    done: Any = got[-1][1]
    assert "".join(str(data["text"]) for name, data in got if name == "token") == whole["answer"] == done["answer"]
    assert [data for name, data in got if name == "citation"] == whole["citations"] == done["citations"]
    evidence: Any = next(data for name, data in got if name == "evidence")
    assert evidence["evidence"] == whole["evidence"] == done["evidence"]
    assert (whole["mode"], whole["notes"]) == (done["mode"], done["notes"])

    chat: dict[str, Any] = {"messages": [{"role": "user", "content": question}], "temperature": 0}
    said = (await client.post("/v1/chat/completions", json=chat)).json()
    chunks = chunks_of((await client.post("/v1/chat/completions", json=chat | {"stream": True})).text)
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    message = said["choices"][0]["message"]
    assert "".join(delta.get("content", "") for delta in deltas) == message["content"] == whole["answer"]
    assert [each for delta in deltas for each in delta.get("annotations", ())] == message["annotations"]
    assert chunks[-1]["search_results"] == said["search_results"]
    assert chunks[-1]["citations"] == said["citations"]
    assert chunks[-1]["choices"][0]["finish_reason"] == said["choices"][0]["finish_reason"]
