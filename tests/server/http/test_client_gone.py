"""Work stops when its client goes away, its time is up, or the server stops."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable

import httpx
import pytest

from server.http.options import HttpOptions
from tests.server.http.running import Running, running
from tests.server.http.scripted import ScriptedAnswerer

Body = dict[str, object]
ASKED: Body = {"question": "Who?"}
CHAT: Body = {"messages": [{"role": "user", "content": "Who?"}]}
REQUESTS: list[tuple[str, Body]] = [
    ("/api/search", ASKED),
    ("/api/query", ASKED),
    ("/api/query/stream", ASKED),
    ("/v1/chat/completions", CHAT),
    ("/v1/chat/completions", CHAT | {"stream": True}),
]


def send(server: Running, path: str, body: Body) -> socket.socket:
    """A request whose answer nobody has read yet."""
    content = json.dumps(body).encode()
    connection = server.connect()
    head = (
        f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {len(content)}\r\n\r\n"
    )
    connection.sendall(head.encode() + content)
    return connection


def eventually(condition: Callable[[], bool], seconds: float = 1.0) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if condition():
            return True
        time.sleep(0.01)
    return condition()


@pytest.mark.parametrize(("path", "body"), REQUESTS)
def test_the_work_stops_with_its_client(server: Running, answerer: ScriptedAnswerer, path: str, body: Body) -> None:
    answerer.pause = 30
    connections = [send(server, path, body) for _ in range(20)]
    assert eventually(lambda: answerer.running == 20, 5)
    for connection in connections:
        connection.close()
    assert eventually(lambda: answerer.running == 0)
    assert eventually(lambda: server.drain.active == 0)


@pytest.mark.parametrize("path", ["/api/query/stream", "/v1/chat/completions"])
def test_the_work_stops_in_the_middle_of_a_stream(server: Running, answerer: ScriptedAnswerer, path: str) -> None:
    answerer.between = 0.05
    answerer.repeats = 1000
    connections = [send(server, path, ASKED | CHAT | {"stream": True} if path[1] == "v" else ASKED) for _ in range(20)]
    for connection in connections:
        assert b"200 OK" in connection.recv(4096)
    assert answerer.running == 20
    for connection in connections:
        connection.close()
    assert eventually(lambda: answerer.running == 0)


def test_a_reader_that_does_not_read_holds_back_the_model(server: Running, answerer: ScriptedAnswerer) -> None:
    answerer.repeats = 100_000
    connection = send(server, "/v1/chat/completions", CHAT | {"stream": True})
    connection.recv(1000)
    time.sleep(1)
    assert answerer.running == 1
    assert httpx.get(f"{server.url}/healthz").elapsed.total_seconds() < 1
    connection.close()
    assert eventually(lambda: answerer.running == 0, 2)


def test_an_answer_has_a_deadline(answerer: ScriptedAnswerer) -> None:
    answerer.pause = 30
    with running(answerer, HttpOptions(request_seconds=0.2, drain_seconds=1)) as server:
        native = httpx.post(f"{server.url}/api/query", json=ASKED)
        chat = httpx.post(f"{server.url}/v1/chat/completions", json=CHAT)
        assert native.status_code == chat.status_code == 504
        assert native.json()["type"] == "urn:trivet:problem:deadline"
        assert chat.headers["x-should-retry"] == "false"
        assert eventually(lambda: answerer.running == 0)


def test_more_than_the_limit_is_sent_away_at_once(answerer: ScriptedAnswerer) -> None:
    answerer.pause = 30
    with running(answerer, HttpOptions(max_active=2, drain_seconds=0.1)) as server:
        held = [send(server, *REQUESTS[1]), send(server, *REQUESTS[2])]
        assert eventually(lambda: answerer.running == 2, 5)
        for path, body in REQUESTS:
            refused = httpx.post(f"{server.url}{path}", json=body)
            assert refused.status_code == 503
            assert refused.headers["retry-after"] == "1"
        assert httpx.get(f"{server.url}/healthz").status_code == 200
        answerer.pause = 0
        for connection in held:
            connection.close()
        assert eventually(lambda: httpx.post(f"{server.url}/api/query", json=ASKED).status_code == 200)


def test_stopping_ends_streams_with_an_error_event_and_the_rest_with_a_503(answerer: ScriptedAnswerer) -> None:
    answerer.between = 0.1
    answerer.repeats = 1000
    got: dict[str, httpx.Response] = {}

    def ask(name: str, path: str, body: Body) -> None:
        got[name] = httpx.post(f"{server.url}{path}", json=body, timeout=30)

    with running(answerer, HttpOptions(drain_seconds=0.5)) as server:
        names = ["search", "query", "stream", "chat", "chat stream"]
        asking = [
            threading.Thread(target=ask, args=(name, *request))
            for name, request in zip(names, REQUESTS, strict=True)
            if name != "search"
        ]
        for thread in asking:
            thread.start()
        assert eventually(lambda: answerer.running == 4, 5)
    for thread in asking:
        thread.join(10)
    assert got["query"].status_code == got["chat"].status_code == 503
    assert got["query"].json()["type"] == "urn:trivet:problem:stopping"
    assert got["stream"].text.rstrip().split("\n\n")[-1].startswith("event: error\ndata: {")
    last = got["chat stream"].text.split("\n\n")[-3:]
    assert last[0].startswith('data: {"error":{"message":"The server is stopping')
    assert last[1:] == ["data: [DONE]", ""]
    assert answerer.running == 0


def test_stopping_lets_work_end_that_is_quick_enough(answerer: ScriptedAnswerer) -> None:
    answerer.pause = 0.5
    got: list[httpx.Response] = []
    with running(answerer, HttpOptions(drain_seconds=5)) as server:
        thread = threading.Thread(target=lambda: got.append(httpx.post(f"{server.url}/api/query", json=ASKED)))
        thread.start()
        assert eventually(lambda: answerer.running == 1, 5)
    thread.join(10)
    assert got[0].status_code == 200
