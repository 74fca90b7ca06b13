"""Log lines."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog
from litestar.types import Message, Receive, Scope, Send

from server.logs import RequestLog, set_up_logging

SECRET = "hunter2-hunter2"


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    before, level = root.handlers, root.level
    stream = io.StringIO()
    set_up_logging(secret_values=[SECRET, ""], stream=stream)
    yield stream
    root.handlers, root.level = before, level
    structlog.reset_defaults()


def lines(written: io.StringIO) -> list[dict[str, object]]:
    """Every line by itself must be an object, however one splits it."""
    return [json.loads(line) for line in written.getvalue().splitlines()]


@pytest.mark.parametrize("separator", ["\n", "\r\n", "\u2028", "\u0085", "\x1e", "\x0b", '"}\n{"'])
def test_nothing_in_a_question_splits_a_line(written: io.StringIO, separator: str) -> None:
    question = f"a{separator}b"
    structlog.get_logger().info("asked", question=question)
    logging.getLogger("other").warning("asked %s", question)
    assert len(lines(written)) == 2
    assert lines(written)[0]["question"] == question


@pytest.mark.parametrize(
    "text",
    [
        f"the key is {SECRET}!",
        f"GET https://x.example/?api_key={SECRET}&q=1",
        "GET https://x.example/?apikey=abcdef&q=1",
        "Authorization: Bearer abcdef",
        "bolt://neo4j:abcdef@db:7687",
        '{"api-key": "abcdef"}',
        "password=abcdef",
    ],
)
def test_no_key_is_logged(written: io.StringIO, text: str) -> None:
    structlog.get_logger().info(text, url=text)
    logging.getLogger("httpx").warning("failed: %s", text)
    try:
        raise ValueError(text)
    except ValueError:
        structlog.get_logger().exception("unforeseen")
        logging.getLogger("uvicorn.error").exception("unforeseen")
    assert "abcdef" not in written.getvalue()
    assert SECRET not in written.getvalue()
    assert len(lines(written)) == 4
    assert "***" in str(lines(written)[0]["url"])


def test_what_is_no_key_stays(written: io.StringIO) -> None:
    text = "token ring, secret ballots and https://x.example:80/a@b?page=2"
    structlog.get_logger().info(text)
    assert lines(written)[0]["event"] == text


def test_long_values_are_cut(written: io.StringIO) -> None:
    structlog.get_logger().info("x" * 1_000_000)
    assert len(written.getvalue()) < 20_000


async def logged_request(headers: list[tuple[bytes, bytes]], path: str = "/a") -> str:
    """The id that the response has."""
    sent: list[Message] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        structlog.get_logger().info("inside")
        await send({"type": "http.response.start", "status": 204, "headers": []})

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> None:
        raise AssertionError

    scope = {"type": "http", "method": "GET", "path": path, "headers": headers}
    await RequestLog(app)(scope, receive, send)  # type: ignore[arg-type]
    assert sent[0]["type"] == "http.response.start"
    return dict(sent[0]["headers"])[b"x-request-id"].decode()


async def test_a_request_has_one_id_in_all_its_lines_and_in_the_response(written: io.StringIO) -> None:
    request_id = await logged_request([(b"X-Request-ID", b"abc-1.2:3")])
    assert request_id == "abc-1.2:3"
    assert [line["request_id"] for line in lines(written)] == [request_id, request_id]
    assert lines(written)[1] | {"method": "GET", "path": "/a", "status": 204} == lines(written)[1]


@pytest.mark.parametrize("given", [b"", b"a b", b"a\nb", b"x" * 129, b"\xff", b'"}'])
async def test_an_id_in_another_form_is_replaced(written: io.StringIO, given: bytes) -> None:
    request_id = await logged_request([(b"x-request-id", given)])
    assert len(request_id) == 32
    assert {line["request_id"] for line in lines(written)} == {request_id}


async def test_a_path_cannot_split_a_line_either(written: io.StringIO) -> None:
    await logged_request([], path="/a\n{}\n" + "x" * 10_000)
    assert len(lines(written)) == 2
