"""The native API."""

from __future__ import annotations

import json
from datetime import date

import httpx
import pytest

from graph.errors import (
    ConflictError,
    DependencyBusyError,
    DependencyDownError,
    DependencyFaultError,
    QuestionError,
    StoreError,
    TrivetError,
)
from graph.model import ChatMessage, PageType, SearchFilter
from server.model import Question
from tests.server.http.conftest import Client
from tests.server.http.running import Running
from tests.server.http.scripted import EVIDENCE, LEGS, TEXT, ScriptedAnswerer

ASKED = {"question": "Who wrote Animal Farm?"}


def events(text: str) -> list[tuple[str, dict[str, object]]]:
    """(name, data) of each server-sent event."""
    assert "\r" not in text
    blocks = [block for block in text.split("\n\n") if block and not block.startswith(":")]
    lines = [block.split("\n") for block in blocks]
    return [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data in lines]


async def test_search_gives_evidence_in_its_short_form(client: Client, answerer: ScriptedAnswerer) -> None:
    response = await client.post("/api/search", json=ASKED)
    body = response.json()
    assert response.status_code == 200
    assert body["legs"] == LEGS
    assert body["keywords"] == ["Animal Farm"]
    assert [entry["number"] for entry in body["evidence"]] == [1, 2, 3]
    assert set(body["evidence"][0]) == {
        "number", "title", "heading_path", "url", "text", "origin", "source", "modified", "score",
    }  # fmt: skip
    assert answerer.questions == [Question(text=ASKED["question"])]


async def test_explain_says_why_each_piece_is_there(client: Client) -> None:
    body = (await client.post("/api/search", json=ASKED | {"explain": True})).json()
    first = body["evidence"][0]
    assert first["provenance"] == {
        "ranks": [{"ranking": "graph", "rank": 1, "score": 0.5, "contribution": 0.016}],
        "entities": ["Animal Farm"],
        "path": ["Animal Farm", "George Orwell"],
        "boost": 1.0,
        "rerank_score": 7.5,
        "duplicates": [],
        "late_score": None,
        "domain_category": "",
    }
    assert first["context"] == EVIDENCE[0].context
    assert body["evidence"][1]["context"] == EVIDENCE[1].text


async def test_a_url_that_is_no_link_is_not_shown_as_one(client: Client) -> None:
    body = (await client.post("/api/query", json=ASKED)).json()
    assert body["evidence"][1]["url"] == ""
    assert body["citations"][1]["url"] == ""


async def test_query_gives_the_answer_with_all_it_rests_on(client: Client) -> None:
    body = (await client.post("/api/query", json=ASKED)).json()
    assert body["answer"] == TEXT
    assert body["mode"] == "generated"
    assert body["usage"] == {"prompt_tokens": 50, "completion_tokens": 9}
    assert body["notes"] == ["a note"]
    for citation in body["citations"]:
        assert TEXT[citation["start"] : citation["end"]] == f"[{citation['number']}]"


async def test_everything_asked_for_reaches_the_question(client: Client, answerer: ScriptedAnswerer) -> None:
    asked = {
        "question": "And when?",
        "history": [{"role": "user", "content": "Who?"}, {"role": "assistant", "content": "Orwell."}],
        "persona": "teacher",
        "filter": {
            "sources": ["books"],
            "page_types": ["article"],
            "languages": ["en"],
            "categories": ["Novels"],
            "modified_from": "2026-01-31",
            "modified_to": "2026-02-01",
        },
        "limit": 4,
        "web": False,
        "temperature": 0.5,
        "max_tokens": 100,
        "stop": ["END"],
    }
    assert (await client.post("/api/query", json=asked)).status_code == 200
    assert answerer.questions == [
        Question(
            text="And when?",
            history=(ChatMessage(role="user", content="Who?"), ChatMessage(role="assistant", content="Orwell.")),
            persona="teacher",
            where=SearchFilter(
                sources=("books",),
                page_types=(PageType.ARTICLE,),
                languages=("en",),
                categories=("Novels",),
                modified_from=date(2026, 1, 31),
                modified_to=date(2026, 2, 1),
            ),
            limit=4,
            use_web=False,
            temperature=0.5,
            max_tokens=100,
            stop=("END",),
        )
    ]


async def test_the_stream_has_typed_events_and_ends_with_the_whole_answer(client: Client) -> None:
    response = await client.post("/api/query/stream", json=ASKED)
    assert response.headers["content-type"].startswith("text/event-stream")
    assert response.headers["cache-control"] == "no-cache"
    got = events(response.text)
    names = [name for name, _ in got]
    assert names[:2] == ["legs", "evidence"]
    assert names[-1] == "done"
    assert "".join(str(data["text"]) for name, data in got if name == "token") == TEXT
    whole = (await client.post("/api/query", json=ASKED)).json()
    assert got[-1][1] | {"id": ""} == whole | {"id": ""}
    assert [data for name, data in got if name == "citation"] == whole["citations"]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"question": ""}, "question"),
        ({"question": 5}, "question"),
        ({"colour": "red"}, "colour"),
        ({"filter": {"sauces": []}}, "filter.sauces"),
        ({"filter": {"page_types": ["poem"]}}, "filter.page_types[0]"),
        ({"filter": {"modified_from": "yesterday"}}, "filter.modified_from"),
        ({"filter": {"modified_to": "2026-02-30"}}, "filter.modified_to"),
        ({"filter": {"modified_to": 20260101}}, "filter.modified_to"),
        ({"limit": 10**9}, "limit"),
        ({"limit": "5"}, "limit"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": 10**9}, "max_tokens"),
        ({"temperature": 2.5}, "temperature"),
        ({"stop": ["s"] * 100}, "stop"),
        ({"history": [{"role": "robot", "content": ""}]}, "history[0].role"),
        ({"explain": "yes"}, "explain"),
    ],
)
async def test_what_cannot_be_used_is_named(client: Client, change: dict[str, object], named: str) -> None:
    response = await client.post("/api/query", json=ASKED | change)
    body = response.json()
    assert response.status_code == 400
    assert response.headers["content-type"] == "application/problem+json"
    assert body["param"] == named
    assert named in body["detail"]
    assert body["type"] == "urn:trivet:problem:bad-request"


async def test_an_unknown_persona_is_a_404_with_the_list(client: Client) -> None:
    response = await client.post("/api/query", json=ASKED | {"persona": "pirate"})
    assert response.status_code == 404
    assert "'pirate'" in response.json()["detail"]
    assert "neutral, teacher" in response.json()["detail"]


ERRORS = [
    (QuestionError("only punctuation"), 400, "bad-question"),
    (ConflictError("changed meanwhile"), 409, "conflict"),
    (StoreError("the store is away"), 503, "store"),
    (DependencyDownError("ollama is away", dependency="ollama"), 503, "dependency-down"),
    (DependencyFaultError("ollama spoke HTML", dependency="ollama"), 502, "dependency-fault"),
    (DependencyBusyError("wait", dependency="ollama", retry_after=2.5), 503, "dependency-busy"),
    (TrivetError("odd"), 500, "error"),
    (ZeroDivisionError("secret detail"), 500, "internal"),
]


@pytest.mark.parametrize(("error", "status", "kind"), ERRORS)
@pytest.mark.parametrize("path", ["/api/search", "/api/query", "/api/query/stream"])
async def test_an_error_has_its_status_and_type(
    client: Client, answerer: ScriptedAnswerer, path: str, error: Exception, status: int, kind: str
) -> None:
    answerer.fails = error
    response = await client.post(path, json=ASKED)
    assert response.status_code == status
    assert response.json()["type"] == f"urn:trivet:problem:{kind}"
    assert "secret detail" not in response.text
    assert response.headers.get("retry-after") == ("3" if kind == "dependency-busy" else None)


async def test_a_stream_that_breaks_ends_with_an_error_event(client: Client, answerer: ScriptedAnswerer) -> None:
    answerer.breaks = DependencyFaultError("ollama broke off", dependency="ollama")
    got = events((await client.post("/api/query/stream", json=ASKED)).text)
    assert got[-1][0] == "error"
    assert got[-1][1]["detail"] == "ollama broke off"
    assert "done" not in [name for name, _ in got]


def test_events_arrive_as_they_are_made(server: Running, answerer: ScriptedAnswerer) -> None:
    answerer.between = 0.2
    with httpx.stream("POST", f"{server.url}/api/query/stream", json=ASKED) as response:
        pieces = response.iter_raw()
        assert next(pieces).startswith(b"event: legs\ndata: ")
        assert answerer.running == 1
