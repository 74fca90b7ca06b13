"""Clients that begin a request and do not go on."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from server.http.options import HttpOptions
from tests.server.http.running import Running, running
from tests.server.http.scripted import ScriptedAnswerer

GET = b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n"
SECONDS = 0.4


@pytest.fixture(scope="module")
def impatient() -> Iterator[Running]:
    options = HttpOptions(head_seconds=SECONDS, body_seconds=SECONDS, drain_seconds=0.5)
    with running(ScriptedAnswerer(), options) as server:
        yield server


def seconds_until_closed(connection: socket.socket) -> tuple[float, bytes]:
    """And what came until then."""
    begun = time.monotonic()
    got = b""
    while piece := connection.recv(65536):
        got += piece
    return time.monotonic() - begun, got


def answers(connection: socket.socket, number: int) -> bytes:
    got = b""
    while got.count(b'{"status":"ok"}') < number:
        got += connection.recv(4096)
    return got


@pytest.mark.parametrize("sent", [b"", b"G", b"GET / HTTP/1.1\r\nhost: x\r\nx-a: ", GET[:-2]])
def test_half_a_head_is_closed(impatient: Running, sent: bytes) -> None:
    with impatient.connect() as connection:
        connection.sendall(sent)
        seconds, got = seconds_until_closed(connection)
    assert SECONDS * 0.8 < seconds < SECONDS * 3
    assert got == b""


def test_a_head_that_drips_is_closed(impatient: Running) -> None:
    with impatient.connect() as connection:
        begun = time.monotonic()
        with suppress(ConnectionError):
            while time.monotonic() - begun < SECONDS * 3:
                connection.sendall(b"x")
                time.sleep(0.05)
        assert time.monotonic() - begun < SECONDS * 3


def test_half_a_second_head_is_closed_too(impatient: Running) -> None:
    with impatient.connect() as connection:
        connection.sendall(GET + GET[:10])
        seconds, got = seconds_until_closed(connection)
    assert got.count(b"200 OK") == 1
    assert SECONDS * 0.8 < seconds < SECONDS * 3


def test_a_second_head_in_time_is_answered(impatient: Running) -> None:
    with impatient.connect() as connection:
        for _ in range(4):
            connection.sendall(GET[:10])
            time.sleep(SECONDS / 2)
            connection.sendall(GET[10:])
            assert answers(connection, 1).startswith(b"HTTP/1.1 200 OK")


def test_pipelined_requests_are_all_answered(impatient: Running) -> None:
    with impatient.connect() as connection:
        connection.sendall(GET * 5)
        assert answers(connection, 5).count(b"200 OK") == 5


@pytest.mark.parametrize("path", ["/api/query", "/v1/chat/completions"])
@pytest.mark.parametrize("sent", [b"", b'{"question": "'])
def test_half_a_body_is_a_408(impatient: Running, path: str, sent: bytes) -> None:
    with impatient.connect() as connection:
        connection.sendall(f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n".encode() + sent)
        seconds, got = seconds_until_closed(connection)
    assert SECONDS * 0.8 < seconds < SECONDS * 3
    assert got.startswith(b"HTTP/1.1 408 ")
    assert b"did not arrive within 0.4 seconds" in got


def test_an_answer_may_take_longer_than_a_head(answerer: ScriptedAnswerer) -> None:
    answerer.pause = SECONDS * 2
    body = b'{"question": "a"}'
    head = f"POST /api/query HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
    options = HttpOptions(head_seconds=SECONDS, body_seconds=SECONDS)
    with running(answerer, options) as server, server.connect() as connection:
        connection.sendall(head.encode() + body)
        _, got = seconds_until_closed(connection)
    assert got.startswith(b"HTTP/1.1 200 OK")


def test_garbage_is_a_400(impatient: Running) -> None:
    with impatient.connect() as connection:
        connection.sendall(b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n")
        _, got = seconds_until_closed(connection)
    assert got.startswith(b"HTTP/1.1 400 ")
