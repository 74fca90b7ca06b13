"""Ollama killed, paused, cut off or without the model: what a reader of answers sees (reliability.md, Faults)."""

from __future__ import annotations

import json
import re
import shutil
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import psutil
import pytest

from config.settings import LLMSettings
from graph.errors import DependencyDownError, DependencyFaultError
from graph.model import ChatMessage, ChatPiece
from server.answer.ollama_chat import OllamaChat
from server.answer.streams import closing
from server.http.problems import problem_of
from tests.faults.processes import CONTEXT, ENDLESS, Instance, Served, own_ollama, trivet_serve
from tests.services.processes import CACHE
from tests.services.proxy import proxy_to

pytestmark = [pytest.mark.services, pytest.mark.slow]

WHO = "Who was the first keeper of Carrow Light?"
FIRST_TOKEN_SECONDS = 6.0
CHAT: dict[str, Any] = {"messages": [{"role": "user", "content": WHO}], "max_tokens": 2000, "temperature": 0}
QUERY: dict[str, Any] = {"question": WHO, "max_tokens": 2000, "temperature": 0}
FIRST_WORD = re.compile(r'^data: (?:\{"text":"|.*"delta":\{"content":"[^"])')
OLLAMA_LOG = CACHE / "ollama-own.log"
SHORT = QUERY | {"max_tokens": 5}


@pytest.fixture(scope="module")
def ollama(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instance]:
    with own_ollama(tmp_path_factory.mktemp("ollama")) as instance:
        yield instance


@pytest.fixture(scope="module")
def served(sample_home: Path, tmp_path_factory: pytest.TempPathFactory, ollama: Instance) -> Iterator[Served]:
    """One server through all that happens to its Ollama."""
    home = tmp_path_factory.mktemp("served") / "home"
    shutil.copytree(sample_home / "home", home)
    environment = {
        "TRIVET_LLM__PROVIDER": "ollama",
        "TRIVET_LLM__URL": ollama.url,
        "TRIVET_LLM__MODEL": ENDLESS,
        "TRIVET_LLM__CONTEXT_TOKENS": str(CONTEXT),
        "TRIVET_LLM__FIRST_TOKEN_SECONDS": str(FIRST_TOKEN_SECONDS),
        "TRIVET_RERANK__ENABLED": "false",
    }
    with trivet_serve(home, environment) as served:
        yield served


@pytest.fixture
def well(ollama: Instance, served: Served) -> Iterator[Instance]:
    """An Ollama whose model has just answered through Trivet, whatever the test before did to it."""
    if not ollama.pid:
        ollama.start()
    answer = served.post("/api/query", SHORT).json()
    assert (answer["mode"], answer["legs"]["llm"]) == ("generated", "ok")
    yield ollama
    if ollama.pid:
        ollama.resume()


def events(lines: Iterator[str]) -> Iterator[str]:
    """The data of server-sent events."""
    return (line.removeprefix("data: ") for line in lines if line.startswith("data: "))


def until_it_writes(ollama: Instance) -> None:
    """Its prompt is short and known: two seconds of work are words that Trivet has."""
    before = ollama.cpu_seconds()
    end = time.monotonic() + 60
    while ollama.cpu_seconds() < before + 2:
        assert time.monotonic() < end
        time.sleep(0.1)


def kill_runner(ollama: Instance) -> None:
    """What runs the model, as when the machine is out of memory; Ollama itself stays."""
    for child in psutil.Process(ollama.pid).children():
        child.kill()


# --- dies in the middle of an answer --------------------------------------------------------------------------------


def test_killed_in_mid_stream_the_stream_says_so_and_the_next_answers_do_without(
    served: Served, well: Instance
) -> None:
    with httpx.stream("POST", f"{served.url}/v1/chat/completions", json=CHAT | {"stream": True}, timeout=60) as stream:
        data = events(stream.iter_lines())
        got = [json.loads(next(data))]
        while not any(chunk["choices"][0]["delta"].get("content") for chunk in got):
            got.append(json.loads(next(data)))
        well.kill()
        begun = time.monotonic()
        *more, error, done = data
        assert time.monotonic() - begun < 5
    got += map(json.loads, more)
    assert {choice["finish_reason"] for chunk in got for choice in chunk["choices"]} == {None}
    told = json.loads(error)["error"]
    assert f"Ollama at {well.url} broke off in the middle of the answer" in told["message"]
    assert told["type"] == "server_error"
    assert done == "[DONE]"

    answer = served.post("/api/query", QUERY).json()
    assert answer["mode"] == "extractive"
    assert answer["citations"]
    assert f"Ollama at {well.url} cannot be reached" in answer["legs"]["llm"]
    assert "`ollama serve`" in answer["legs"]["llm"]
    assert served.ready()["status"] == "degraded"
    assert "cannot be reached" in served.ready()["dependencies"]["llm"]

    well.start()
    assert served.post("/api/query", SHORT).json()["mode"] == "generated"
    assert served.ready()["status"] == "ready"


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/api/query"])
def test_killed_before_a_whole_answer_is_ready_it_is_a_502(served: Served, well: Instance, path: str) -> None:
    got: list[httpx.Response] = []
    asking = threading.Thread(target=lambda: got.append(served.post(path, CHAT if path.startswith("/v1") else QUERY)))
    asking.start()
    until_it_writes(well)
    if path == "/api/query":
        kill_runner(well)
    else:
        well.kill()
    asking.join(20)
    assert got[0].status_code == 502
    assert well.url in got[0].text
    assert "in the middle of the answer" in got[0].text


def test_a_dead_runner_ends_the_native_stream_with_an_error_event(served: Served, well: Instance) -> None:
    with httpx.stream("POST", f"{served.url}/api/query/stream", json=QUERY, timeout=60) as stream:
        lines = stream.iter_lines()
        assert any(line == "event: token" for line in lines)
        kill_runner(well)
        rest = [line for line in lines if line]
    assert rest[-2] == "event: error"
    assert json.loads(rest[-1].removeprefix("data: "))["status"] == 502
    assert "event: done" not in rest
    # Ollama starts another by itself.
    assert served.post("/api/query", SHORT).json()["legs"]["llm"] == "ok"


# --- hangs ----------------------------------------------------------------------------------------------------------


def test_paused_the_deadline_to_the_first_token_holds_and_is_named(served: Served, well: Instance) -> None:
    well.pause()
    begun = time.monotonic()
    answer = served.post("/api/query", QUERY).json()
    took = time.monotonic() - begun
    well.resume()
    print(f"\nOllama paused: {took:.1f} s, with {FIRST_TOKEN_SECONDS:g} s to the first token")
    assert FIRST_TOKEN_SECONDS <= took < FIRST_TOKEN_SECONDS + 3
    assert answer["mode"] == "extractive"
    assert f"no first token after {FIRST_TOKEN_SECONDS:g} s" in answer["legs"]["llm"]
    assert any("the model did not answer" in note for note in answer["notes"])


@pytest.mark.parametrize(
    ("path", "body"),
    [("/v1/chat/completions", CHAT | {"stream": True}), ("/api/query", QUERY)],
    ids=["stream", "whole"],
)
def test_when_its_client_goes_away_the_model_stops(
    served: Served, well: Instance, path: str, body: dict[str, Any]
) -> None:
    idle = well.cpu_seconds()
    with httpx.Client() as client:
        request = client.build_request("POST", f"{served.url}{path}", json=body, timeout=3)
        try:
            response = client.send(request, stream=True)
            until_it_writes(well)
            response.close()
        except httpx.ReadTimeout:
            pass  # that of a whole answer: its client waits no longer
    begun = time.monotonic()
    assert well.cpu_seconds() - idle > 1, "it had begun to write"
    while True:
        before = well.cpu_seconds()
        time.sleep(1)
        if well.cpu_seconds() - before < 0.2:
            break
        assert time.monotonic() - begun < 8
    print(f"\nThe model rested {time.monotonic() - begun - 1:.1f} s after its client went away")


@pytest.mark.parametrize(
    ("path", "body"),
    [("/v1/chat/completions", CHAT | {"stream": True}), ("/api/query/stream", QUERY)],
    ids=["openai", "native"],
)
def test_a_stream_whose_client_goes_away_is_closed_upstream_within_a_second(
    served: Served, well: Instance, path: str, body: dict[str, Any]
) -> None:
    with httpx.stream("POST", f"{served.url}{path}", json=body, timeout=60) as stream:
        lines = stream.iter_lines()  # kept: httpx closes the connection with it
        while not FIRST_WORD.search(next(lines)):
            pass
        assert len(talks(served, well)) == 1
        told, ended = served.log.read_text().count(f'"path": "{path}"'), chats_in(OLLAMA_LOG)
    begun = time.monotonic()
    while talks(served, well):
        assert time.monotonic() - begun < 1
        time.sleep(0.01)
    closed = time.monotonic() - begun
    # Ollama writes a line when it is done with a request; the model's process rests then.
    while chats_in(OLLAMA_LOG) == ended:
        assert time.monotonic() - begun < 2
        time.sleep(0.01)
    noted = time.monotonic() - begun
    before = well.cpu_seconds()
    time.sleep(1)
    assert well.cpu_seconds() - before < 0.2
    assert served.log.read_text().count(f'"path": "{path}"') == told + 1
    print(f"\n{path}: closed after {closed:.2f} s, ended in Ollama's log after {noted:.2f} s")


def talks(served: Served, ollama: Instance) -> list[Any]:
    """Connections from the server to Ollama."""
    port = urlsplit(ollama.url).port
    return [
        each
        for each in psutil.Process(served.pid).net_connections("tcp")
        if each.status == psutil.CONN_ESTABLISHED and each.raddr and each.raddr.port == port
    ]


def chats_in(log: Path) -> int:
    """Requests for answers that Ollama has ended."""
    return log.read_text(errors="replace").count('POST     "/api/chat"')


# --- the adapter alone, on the real Ollama --------------------------------------------------------------------------


@asynccontextmanager
async def talking(url: str, *, model: str = ENDLESS, total: float = 60.0) -> AsyncIterator[OllamaChat]:
    chat = OllamaChat(
        LLMSettings(
            provider="ollama", url=url, model=model, context_tokens=CONTEXT, first_token_seconds=10, total_seconds=total
        )
    )
    try:
        yield chat
    finally:
        await chat.close()


def stream(chat: OllamaChat, max_tokens: int = 1000) -> AsyncIterator[ChatPiece]:
    return chat.stream([ChatMessage(role="user", content=WHO)], temperature=0.0, max_tokens=max_tokens)


async def test_a_model_that_is_not_pulled_is_named_with_the_command_that_pulls_it(well: Instance) -> None:
    async with talking(well.url, model="smollm9") as chat:
        with pytest.raises(DependencyFaultError, match="has no model 'smollm9': run `ollama pull smollm9`") as told:
            await anext(stream(chat))
    assert problem_of(told.value).status == 502


async def test_paused_in_mid_stream_the_deadline_of_the_whole_answer_holds(ollama: Instance, well: Instance) -> None:
    async with talking(ollama.url, total=4) as chat, closing(stream(chat)) as pieces:
        assert (await anext(pieces)).text
        well.pause()
        with pytest.raises(DependencyDownError, match="no end after 4 s"):
            async for _ in pieces:
                pass


async def test_a_connection_that_is_cut_is_named_and_found_again(well: Instance) -> None:
    async with proxy_to(urlsplit(well.url).port or 0) as proxy, talking(f"http://127.0.0.1:{proxy.port}") as chat:
        async with closing(stream(chat)) as pieces:
            assert (await anext(pieces)).text
            proxy.cut()
            with pytest.raises(DependencyFaultError, match="broke off in the middle of the answer"):
                async for _ in pieces:
                    pass
        with pytest.raises(DependencyDownError, match="cannot be reached"):
            await anext(stream(chat))
        proxy.restore()
        got = [piece async for piece in stream(chat, max_tokens=3)]
        assert got[-1].finish_reason
