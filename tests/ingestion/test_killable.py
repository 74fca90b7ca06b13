"""The worker process: it answers, dies of its limits, and is replaced. This module is also the program it runs."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import psutil
import pytest

from ingestion import killable
from ingestion.killable import KillableWorker, TooMuchError, serve


def answer(payload: bytes) -> bytes:
    match payload.split(b" "):
        case [b"spin"]:
            while True:
                pass
        case [b"sleep"]:
            time.sleep(60)
        case [b"swell"]:
            return bytes(10**9)
        case [b"die"]:
            os.kill(os.getpid(), signal.SIGKILL)
        case [b"environment"]:
            return " ".join(os.environ).encode()
        case _:
            pass
    return payload + b"!"


if __name__ == "__main__":
    serve(answer)


@pytest.fixture
def worker() -> Iterator[KillableWorker]:
    made = KillableWorker("tests.ingestion.test_killable", memory_bytes=200_000_000)
    yield made
    made.close()


def children() -> int:
    return len(psutil.Process().children())


def test_answers(worker: KillableWorker) -> None:
    before = children()
    assert worker.call(b"one", seconds=1) == b"one!"
    assert worker.call(b"", seconds=1) == b"!"
    large = os.urandom(5_000_000)
    assert worker.call(large, seconds=2) == large + b"!"
    assert children() == before + 1
    worker.close()
    assert children() == before
    worker.close()


@pytest.mark.parametrize(
    ("call", "why"),
    [("spin", "more than 0.3 s"), ("swell", "died of it"), ("die", "died of it")],
)
def test_a_call_beyond_its_limits_loses_the_child_alone(worker: KillableWorker, call: str, why: str) -> None:
    assert worker.call(b"warm", seconds=1) == b"warm!"
    started = time.monotonic()
    with pytest.raises(TooMuchError, match=why):
        worker.call(call.encode(), seconds=0.3)
    assert time.monotonic() - started < 2.5
    assert worker.call(b"next", seconds=1) == b"next!"


def test_waiting_is_limited_too(worker: KillableWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(killable, "WALL_SECONDS", 0.2)
    worker.call(b"warm", seconds=1)
    with pytest.raises(TooMuchError, match="takes more than"):
        worker.call(b"sleep", seconds=0.1)


def test_the_child_is_replaced_now_and_then(worker: KillableWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(killable, "CALLS_PER_CHILD", 2)
    assert [worker.call(b"x", seconds=1) for _ in range(5)] == [b"x!"] * 5


def test_secrets_stay_here(worker: KillableWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIVET_API_KEY", "secret")
    assert b"TRIVET" not in worker.call(b"environment", seconds=1)


def test_a_module_that_does_not_start() -> None:
    with pytest.raises(TooMuchError, match="does not start"):
        KillableWorker("tests.ingestion.no_such_module", memory_bytes=1).call(b"x", seconds=1)
