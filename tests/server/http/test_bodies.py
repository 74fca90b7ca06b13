"""Bodies that break servers: none is a 500, each is answered in the envelope of its route."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.server.http.conftest import Client
from tests.server.http.scripted import ScriptedAnswerer

DATA = Path(os.environ.get("TRIVET_DATA", Path(__file__).parents[3] / "../shared/data"))
VECTORS = DATA / "fuzz/own_vectors/api_bodies.jsonl"
PATHS = ["/api/search", "/api/query", "/api/query/stream", "/v1/chat/completions", "/v1/embeddings"]
BODIES: list[tuple[bytes, str]] = [
    (b"[" * 1000, ""),
    (b'{"x":' * 100_000, ""),
    (b'{"question": "a", "messages": [{"role": "user", "content": ' + b"[" * 100_000, ""),
    (b'{"question": "\xff", "input": "\xff", "messages": "\xff"}', "is not UTF-8"),
    (b'{"other": "\xff", "messages": [{"role": "user", "content": "x"}]}', "is not UTF-8"),
    (b'{"question": "\\ud800", "input": "\\ud800", "messages": "\\ud800"}', "half of a surrogate pair"),
    (b'{"question": "\\udc00 ", "input": "\\udc00 ", "messages": "\\udc00 "}', "half of a surrogate pair"),
    (b"\xef\xbb\xbf{}", ""),
    (b"\xff\xfe{\x00}\x00", "is not UTF-8"),
    (b"{'question': 'a'}", "not valid JSON"),
    (b'{"question": NaN, "input": NaN, "messages": NaN}', "not valid JSON"),
    (b"", "empty"),
    (b"null", ""),
    (b"question=a", "not valid JSON"),
]


def vectors() -> list[dict[str, str]]:
    return [json.loads(line) for line in VECTORS.read_text().splitlines()] if VECTORS.exists() else []


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(("body", "said"), BODIES, ids=lambda value: repr(value)[:30])
async def test_a_broken_body_is_a_400(
    client: Client, answerer: ScriptedAnswerer, path: str, body: bytes, said: str
) -> None:
    response = await client.post(path, content=body, headers={"content-type": "application/json"})
    assert response.status_code == 400
    assert said in sentence_of(response.json())
    assert answerer.questions == []


@pytest.mark.parametrize("path", PATHS)
async def test_a_large_body_is_a_413(client: Client, path: str) -> None:
    response = await client.post(path, content=b'{"question": "' + b"a" * 11_000_000 + b'"}')
    assert response.status_code == 413
    assert "server.max_body_bytes" in sentence_of(response.json())


async def test_of_a_key_that_comes_twice_the_last_counts(client: Client, answerer: ScriptedAnswerer) -> None:
    await client.post("/api/search", content=b'{"question": "a", "question": "b"}')
    assert [question.text for question in answerer.questions] == ["b"]


async def test_the_content_type_does_not_matter(client: Client) -> None:
    """`curl -d` says that it sends a form."""
    headers = {"content-type": "application/x-www-form-urlencoded"}
    assert (await client.post("/api/search", content=b'{"question": "a"}', headers=headers)).status_code == 200


@pytest.mark.data
@pytest.mark.skipif(not VECTORS.exists(), reason="no shared data folder; set TRIVET_DATA")
async def test_the_shared_bodies_give_what_is_expected_of_them(client: Client, answerer: ScriptedAnswerer) -> None:
    assert len(vectors()) == 19
    for vector in vectors():
        for_chat = '"messages"' in vector["body"]
        # `q` is what the vectors call the question; here it is `question`, and `q` is an unknown key.
        for body in {vector["body"], vector["body"].replace('"q"', '"question"')}:
            path = "/v1/chat/completions" if for_chat else "/api/query"
            response = await client.post(path, content=body.encode("utf-8", "surrogatepass"))
            assert_expected(vector["expect"], response.status_code, response.json(), body)
    assert "evil.example" not in "".join(question.text for question in answerer.questions)


def assert_expected(expect: str, status: int, answer: dict[str, Any], body: str) -> None:
    if expect.startswith("400"):
        assert status == 400, body[:80]
        if "field name" in expect:
            assert ("question" if '"question"' in body else "q") in sentence_of(answer)
    elif expect.startswith("404"):
        assert status == 404
        assert answer["error"]["code"] == "model_not_found"
    elif expect.startswith("documented"):
        assert status == (200 if '"question"' in body else 400)
    else:
        # Its model is "x", which there is not; what happens with one that there is has its own test.
        assert expect == "client-sent citations never become sources"
        assert status == 404


def sentence_of(answer: dict[str, Any]) -> str:
    said = answer["error"]["message"] if "error" in answer else answer["detail"]
    assert isinstance(said, str)
    return said
