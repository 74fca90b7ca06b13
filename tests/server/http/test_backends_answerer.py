"""The answerer that is served, over working fakes of the stores."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import replace

import pytest
from litestar.testing import AsyncTestClient

from config.settings import AnswerSettings, LLMSettings, Settings
from graph.errors import StoreCorruptError
from graph.graph_model import GraphCounts
from graph.home import HomeLock
from ingestion.ingest import ingest
from server.app import create_app
from server.http.backends_answerer import BackendsAnswerer
from server.model import DoneEvent, Question
from tests.fake_chat import FakeChat
from tests.fakes import FakeGraph
from tests.ingestion.small_wiki import SETTINGS, ListSource, page
from tests.server.answer.found import backends
from tests.server.http.scripted import opening

WHO = Question(text="Who wrote Animal Farm?")


class BrokenGraph(FakeGraph):
    """A store that can no longer be read."""

    async def counts(self) -> GraphCounts:
        raise StoreCorruptError("graph.db cannot be read; restore it")


@pytest.fixture
def closed_port() -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        yield listener.getsockname()[1]


async def test_whole_and_streamed_answers_are_the_flows_own() -> None:
    answerer = BackendsAnswerer(backends())
    whole = await answerer.answer(WHO)
    events = [event async for event in answerer.stream(WHO)]
    assert isinstance(events[-1], DoneEvent)
    assert whole.text == events[-1].answer.text
    assert whole.mode == "abstained"
    assert (await answerer.search(WHO)).evidence == ()


def test_the_configured_persona_comes_first() -> None:
    opened = backends()
    settings = Settings(answer=AnswerSettings(persona=max(opened.personas)))
    answerer = BackendsAnswerer(replace(opened, settings=settings))
    assert answerer.personas[0] == max(opened.personas)
    assert sorted(answerer.personas) == sorted(opened.personas)


async def test_each_dependency_is_checked(closed_port: int) -> None:
    assert await BackendsAnswerer(backends()).check() == {
        "store": "ok", "graph": "ok", "vectors": "ok", "llm": "off", "web": "off",
    }  # fmt: skip
    settings = Settings(llm=LLMSettings(provider="ollama", url=f"http://127.0.0.1:{closed_port}", model="m"))
    ill = replace(backends(FakeChat()), settings=settings, graph=BrokenGraph())
    checked = await BackendsAnswerer(ill).check()
    assert checked["graph"] == "graph.db cannot be read; restore it"
    assert checked["llm"] == f"127.0.0.1:{closed_port} cannot be reached: connection refused"
    assert checked["store"] == "ok"


def test_the_command_line_finds_the_server(tmp_path_factory: pytest.TempPathFactory) -> None:
    home = tmp_path_factory.mktemp("home")
    BackendsAnswerer(backends()).announce("http://127.0.0.1:1")
    with HomeLock.acquire(home, command="serve") as lock:
        BackendsAnswerer(replace(backends(), lock=lock)).announce("http://127.0.0.1:1")
        holder = HomeLock.holder(home)
    assert holder is not None
    assert holder.url == "http://127.0.0.1:1"


@pytest.mark.parametrize(
    ("question", "said"),
    [("", "question"), ("?!…", "only punctuation"), ("x" * 100_000, "characters"), (" \u200b\n", "empty")],
)
@pytest.mark.parametrize("path", ["/api/query", "/api/query/stream", "/api/search", "/v1/chat/completions"])
async def test_a_question_that_is_none_is_a_400(path: str, question: str, said: str) -> None:
    body = {"question": question} if path.startswith("/api") else {"messages": [{"role": "user", "content": question}]}
    app = create_app(Settings(), open_answerer=opening(BackendsAnswerer(backends())))
    async with AsyncTestClient(app) as client:
        response = await client.post(path, json=body)
    assert response.status_code == 400
    assert said in response.text


@pytest.mark.parametrize(
    "where",
    [
        {"categories": ["No such"]},
        {"languages": ["zh"]},
        {"page_types": ["list"]},
        {"modified_from": "2999-01-01"},
        {"modified_from": "2026-02-01", "modified_to": "2026-01-01"},
    ],
)
async def test_a_filter_that_matches_nothing_is_an_answer_that_says_so(where: dict[str, object]) -> None:
    opened = backends(FakeChat())
    pages = [page("Animal Farm", "Animal Farm was written by George Orwell.", modified="2026-01-02T03:04:05Z")]
    await ingest(ListSource(pages), opened.knowledge, SETTINGS)
    app = create_app(Settings(), open_answerer=opening(BackendsAnswerer(opened)))
    async with AsyncTestClient(app) as client:
        answer = (await client.post("/api/query", json={"question": WHO.text, "filter": where})).json()
    assert (answer["mode"], answer["evidence"]) == ("abstained", [])
    assert answer["answer"].startswith("I don't know")
    assert answer["notes"] == ["no page that the filter leaves fits the question"]


async def test_a_question_in_another_language_is_answered_from_the_pages_there_are() -> None:
    opened = backends()
    await ingest(ListSource([page("Animal Farm", "Animal Farm is by George Orwell.")]), opened.knowledge, SETTINGS)
    app = create_app(Settings(), open_answerer=opening(BackendsAnswerer(opened)))
    async with AsyncTestClient(app) as client:
        asked = {"question": "Qui est l'auteur du livre Animal Farm, et quand a-t-il été écrit ?"}
        answer = (await client.post("/api/query", json=asked)).json()
    assert answer["language"] == "fr"
    assert "George Orwell" in answer["answer"]
