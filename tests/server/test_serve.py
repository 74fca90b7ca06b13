"""`serve` as a process of its own."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from pydantic import SecretStr

from config.settings import GraphSettings, LLMSettings, ServerSettings, Settings
from graph.errors import SettingsError
from server.http.listener import bind, url_of
from server.serve import secrets_of

ROOT = Path(__file__).parents[2]
PROGRAM = """
import sys
from config.settings import Settings, ServerSettings
from server.http.options import HttpOptions
from server.serve import serve
from tests.server.http.scripted import ScriptedAnswerer, opening

answerer = ScriptedAnswerer(pause=float(sys.argv[1]))
settings = Settings(server=ServerSettings(port=0, api_key="the-key"))
serve(settings, open_answerer=opening(answerer), options=HttpOptions(drain_seconds=1, api_key="the-key"))
print("announced", answerer.url)
"""
ASKED = {"question": "Who?"}
KEY = {"x-api-key": "the-key"}


@contextmanager
def served(pause: float = 0.0) -> Iterator[tuple[subprocess.Popen[str], str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(pause)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("Trivet is ready at http://127.0.0.1:"), line + process.communicate()[1]
        yield process, line.split()[-1]
    finally:
        process.kill()
        process.communicate()


def test_sigterm_ends_it_with_exit_code_0() -> None:
    with served() as (process, url):
        assert httpx.get(f"{url}/healthz").json() == {"status": "ok"}
        assert httpx.post(f"{url}/api/query", json=ASKED).status_code == 401
        assert httpx.post(f"{url}/api/query", json=ASKED, headers=KEY).status_code == 200
        process.terminate()
        out, err = process.communicate(timeout=10)
    assert process.returncode == 0
    assert out == f"announced {url}\n"
    assert "Traceback" not in err
    assert "the-key" not in err
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{url}/healthz")


def test_what_takes_too_long_is_cut_and_new_requests_are_refused() -> None:
    got: list[httpx.Response] = []
    with served(pause=60) as (process, url):
        ask = threading.Thread(
            target=lambda: got.append(httpx.post(f"{url}/api/query", json=ASKED, headers=KEY, timeout=30))
        )
        ask.start()
        time.sleep(1)
        begun = time.monotonic()
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{url}/healthz")
        ask.join(10)
        process.communicate(timeout=10)
        assert time.monotonic() - begun < 5
    assert process.returncode == 0
    assert got[0].status_code == 503
    assert got[0].json()["type"] == "urn:trivet:problem:stopping"


def test_every_secret_setting_is_kept_out_of_the_log() -> None:
    settings = Settings(
        server=ServerSettings(api_key=SecretStr("one")),
        llm=LLMSettings(api_key=SecretStr("two")),
        graph=GraphSettings(neo4j_password=SecretStr("three")),
    )
    assert {"one", "two", "three"} <= set(secrets_of(settings))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", ""])
def test_others_may_only_reach_it_with_a_key(host: str) -> None:
    with pytest.raises(SettingsError, match="TRIVET_SERVER__API_KEY"):
        bind(host, 0, has_key=False)
    with bind(host, 0, has_key=True) as listener:
        assert url_of(listener).startswith(("http://127.0.0.1:", "http://[::1]:"))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "localhost", "::1"])
def test_this_machine_needs_none(host: str) -> None:
    with bind(host, 0, has_key=False) as listener:
        assert url_of(listener).startswith("http://")


def test_a_port_in_use_is_one_sentence() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(SettingsError, match=rf"^server\.port: {port} on 127\.0\.0\.1 is in use already; "):
            bind("127.0.0.1", port, has_key=False)


@pytest.mark.parametrize("host", ["no.such.host.invalid", "256.1.1.1", "a b", "x" * 300, "203.0.113.1"])
def test_an_address_that_is_not_ours_is_named(host: str) -> None:
    with pytest.raises(SettingsError, match=r"^server\.host: "):
        bind(host, 0, has_key=True)
