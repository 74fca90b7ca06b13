"""Feedback on answers, and the trace of each: in the response and as one line of the log."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from typing import Any

import pytest

from server.http import given_answers
from server.http.given_answers import GivenAnswers
from server.http.metrics import Metrics
from server.model import Question
from tests.server.http.conftest import Client
from tests.server.http.scripted import ANSWER, ScriptedAnswerer
from tests.server.http.test_query import events

ASKED = {"question": "Who wrote Animal Farm?"}
CHAT: dict[str, Any] = {"messages": [{"role": "user", "content": ASKED["question"]}]}


async def answered(client: Client, path: str, *, stream: bool = False) -> str:
    """The answer's id, as that route gives it."""
    if path == "/api/query/stream":
        return str(events((await client.post(path, json=ASKED)).text)[-1][1]["id"])
    body = ASKED if path == "/api/query" else CHAT | {"stream": stream}
    response = await client.post(path, json=body)
    if stream:
        return str(json.loads(response.text.partition("\n")[0].removeprefix("data: "))["id"])
    return str(response.json()["id"])


@pytest.mark.parametrize(
    ("path", "stream"),
    [
        ("/api/query", False),
        ("/api/query/stream", False),
        ("/v1/chat/completions", False),
        ("/v1/chat/completions", True),
    ],
)
async def test_every_answer_can_be_rated_by_its_id(client: Client, path: str, stream: bool) -> None:
    answer_id = await answered(client, path, stream=stream)
    said = {"answer_id": answer_id, "rating": "down", "comment": "Not so.\n\u2028", "wrong_citations": [2, 1, 2]}
    response = await client.post("/api/feedback", json=said)
    assert response.status_code == 200
    page = (await client.get("/api/feedback")).json()
    assert page == {"feedback": [response.json()], "next": None}
    entry = page["feedback"][0]
    assert entry.pop("created").endswith("+00:00")
    assert entry == said | {
        "wrong_citations": [1, 2],
        "question": ASKED["question"],
        "answer": ANSWER.text,
        "persona": "neutral",
        "mode": "generated",
    }


async def test_ids_differ(client: Client) -> None:
    assert len({await answered(client, "/api/query") for _ in range(5)}) == 5


async def test_it_is_read_page_by_page(client: Client) -> None:
    ids = [await answered(client, "/api/query") for _ in range(5)]
    for answer_id in ids:
        await client.post("/api/feedback", json={"answer_id": answer_id, "rating": "up"})
    read: list[str] = []
    cursor: int | None = 0
    while cursor is not None:
        page = (await client.get("/api/feedback", params={"limit": 2, "cursor": cursor})).json()
        assert len(page["feedback"]) <= 2
        read += [entry["answer_id"] for entry in page["feedback"]]
        cursor = page["next"]
    assert read == ids[::-1]


@pytest.mark.parametrize(
    ("change", "status", "said"),
    [
        ({"answer_id": "answer-0"}, 404, "There is no answer 'answer-0'."),
        ({"answer_id": ""}, 400, "answer_id"),
        ({"rating": "so so"}, 400, "rating"),
        ({"comment": "x" * 2001}, 400, "comment"),
        ({"wrong_citations": [9]}, 400, "the answer has no evidence 9"),
        ({"wrong_citations": [0]}, 400, "wrong_citations"),
        ({"wrong_citations": [10**30]}, 400, "wrong_citations"),
        ({"mood": 1}, 400, "mood"),
    ],
)
async def test_what_cannot_be_used_is_named(client: Client, change: dict[str, object], status: int, said: str) -> None:
    answer_id = await answered(client, "/api/query")
    response = await client.post("/api/feedback", json={"answer_id": answer_id, "rating": "up"} | change)
    assert response.status_code == status
    assert said in response.json()["detail"]
    assert (await client.get("/api/feedback")).json()["feedback"] == []


@pytest.mark.parametrize("query", ["limit=0", "limit=1001", "cursor=-1", "cursor=99999999999999999999", "limit=x"])
async def test_a_page_that_there_is_not_is_a_400(client: Client, query: str) -> None:
    assert (await client.get(f"/api/feedback?{query}")).status_code == 400


async def test_a_server_that_keeps_none_says_so(client: Client, answerer: ScriptedAnswerer) -> None:
    answerer.feedback = None
    response = await client.get("/api/feedback")
    assert (response.status_code, response.json()["detail"]) == (404, "This server keeps no feedback.")


def test_only_the_last_answers_are_remembered() -> None:
    given = GivenAnswers(Metrics(), kept=2)
    for answer_id in "abc":
        given.note(answer_id, Question(text="Who?"), ANSWER)
    assert [given.find(answer_id) is not None for answer_id in "abc"] == [False, True, True]


@pytest.mark.parametrize("path", ["/api/query", "/api/query/stream", "/v1/chat/completions"])
async def test_each_answer_is_one_line_of_the_log(client: Client, logged: io.StringIO, path: str) -> None:
    answer_id = await answered(client, path)
    lines = [json.loads(line) for line in logged.getvalue().splitlines()]
    (line,) = [line for line in lines if line["event"] == "answer"]
    assert line["answer_id"] == answer_id
    assert line["question"] == ASKED["question"]
    assert (line["mode"], line["evidence"], line["citations"]) == ("generated", 3, 2)
    assert (line["prompt_tokens"], line["completion_tokens"]) == (50, 9)
    assert line["milliseconds"] == ANSWER.milliseconds
    assert line["request_id"] == next(line["request_id"] for line in lines if line["event"] == "request")


def test_the_line_is_one_whatever_was_asked_and_holds_no_key(logged: io.StringIO) -> None:
    """A question may hold anything; statuses of legs may hold addresses with passwords."""
    legs = {"web": "http://me:hunter2@searx.example refused"}
    answer = replace(ANSWER, legs=legs, notes=("a\nb", "password=hunter2"))
    hostile = Question(text='x\r\n{"event": "forged"}\u2028\x85 api_key=hunter2 ' + "y" * 5000)
    given_answers.log_answer("answer-1", hostile, answer)
    (written,) = logged.getvalue().splitlines()
    assert "hunter2" not in written
    assert json.loads(written)["event"] == "answer"
    assert len(written) < 2_000


async def test_the_trace_is_in_both_forms_of_the_answer(client: Client, answerer: ScriptedAnswerer) -> None:
    native = (await client.post("/api/query", json=ASKED)).json()
    openai = (await client.post("/v1/chat/completions", json=CHAT)).json()
    assert native["milliseconds"] == openai["trivet"]["milliseconds"]
    assert native["usage"] == {"prompt_tokens": 50, "completion_tokens": 9}
    assert native["legs"] == openai["trivet"]["legs"]
