"""`trivet doctor`: each fault is found, and comes with something to do."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from pydantic import SecretStr

from config.settings import AnswerSettings, IngestionSettings, LLMSettings, ServerSettings, Settings, WebSettings
from graph.home import HomeLock
from server.check import Check
from server.diagnosis import (
    check_home,
    check_lock,
    check_names,
    check_personas,
    check_server,
    check_space,
    check_sqlite,
)
from server.service_checks import check_llm, check_web
from tests.server.cli_runner import InProcessCli


@contextmanager
def answering(status: int, body: object) -> Iterator[str]:
    """A server that gives every GET the same answer; its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


@pytest.fixture
def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def settings_in(home: Path, **sections: object) -> Settings:
    return Settings.model_validate({"home": home, **sections})


def assert_fault(check: Check, *words: str) -> None:
    assert not check.ok
    assert check.fix
    assert all(word in check.detail + check.fix for word in words), check


def test_everything_is_well_on_this_machine(cli: InProcessCli) -> None:
    ended = cli("doctor", "--json", "--set", "server.port=0")
    assert ended.code == 0, ended.out
    checks = {check["name"]: check for check in ended.json["checks"]}
    assert {"home", "disk", "lock", "store", "embedder", "reranker", "names (en)", "personas"} <= checks.keys()
    assert not cli.home.exists()


def test_a_fault_is_exit_code_1_with_its_fix(cli: InProcessCli, closed_port: int) -> None:
    nobody = f"127.0.0.1:{closed_port}"
    settings = {"web.searxng_url": f"http://{nobody}", "graph.neo4j_url": f"bolt://{nobody}", "server.port": "0"}
    ended = cli("doctor", *(word for key, value in settings.items() for word in ("--set", f"{key}={value}")))
    assert ended.code == 1
    faults = [line.split()[1] for line in ended.out.splitlines() if line.startswith("FAULT")]
    assert faults == ["graph", "web"]
    assert ended.out.count("fix: ") == len(faults)


def test_home(tmp_path: Path) -> None:
    assert check_home(tmp_path).ok
    assert check_home(tmp_path / "to" / "be" / "made").ok
    assert not (tmp_path / "to").exists()
    (tmp_path / "file").touch()
    assert_fault(check_home(tmp_path / "file"), "is a file", "mv ")
    assert_fault(check_home(tmp_path / "file" / "below"), "is a file", "mv ")
    assert_fault(check_home(Path("/proc/trivet")), "/proc is not writable", "chown")


def test_space_and_sqlite(tmp_path: Path) -> None:
    assert "GB free" in check_space(tmp_path / "new").detail
    assert check_sqlite().ok


def test_lock(tmp_path: Path) -> None:
    assert check_lock(tmp_path).detail == "free"
    with HomeLock.acquire(tmp_path, command="ingest"):
        assert "`ingest`" in check_lock(tmp_path).detail


def test_names() -> None:
    def checks(*languages: str) -> list[Check]:
        return list(check_names(Settings(ingestion=IngestionSettings(ner_languages=languages))))

    assert all(check.ok for check in checks("en"))
    (check,) = checks("xx")
    assert_fault(check, "xx", "ingestion.ner_languages")


def test_personas(tmp_path: Path) -> None:
    def check(**given: object) -> Check:
        return check_personas(Settings(answer=AnswerSettings.model_validate(given)))

    assert check().ok
    assert_fault(check(persona="nobody"), "nobody", "neutral")
    (tmp_path / "broken.toml").write_text("voice = 1", encoding="utf-8")
    assert_fault(check(persona_dir=tmp_path), "broken.toml")


def test_server(tmp_path: Path) -> None:
    def check(**given: object) -> Check:
        return check_server(settings_in(tmp_path, server=ServerSettings.model_validate(given)))

    assert check(port=0).ok
    assert_fault(check(host="0.0.0.0"), "API key", "TRIVET_SERVER__API_KEY")
    assert check(host="0.0.0.0", port=0, api_key=SecretStr("harbour")).ok
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert_fault(check(port=taken.getsockname()[1]), "in use", "--port")


async def test_web() -> None:
    with answering(200, {"results": [{"url": "https://example.org", "title": "t"}]}) as url:
        assert (await check_web(Settings(web=WebSettings(searxng_url=url)))).ok
    assert (await check_web(Settings())).detail.startswith("off")


@pytest.mark.parametrize("provider", ["ollama", "openai"])
async def test_llm(provider: str, closed_port: int) -> None:
    async def check(url: str, model: str = "qwen") -> Check:
        llm = LLMSettings.model_validate({"provider": provider, "url": url, "model": model})
        return await check_llm(Settings(llm=llm))

    with answering(200, {"models": [{"name": "qwen:latest"}], "data": [{"id": "qwen"}]}) as url:
        assert (await check(url)).ok
        assert_fault(await check(url, model="other"), "no model “other”", "qwen")
    with answering(500, {}) as url:
        assert_fault(await check(url), "status 500")
    with answering(200, "no list") as url:
        assert_fault(await check(url), "no model")
    assert_fault(await check(f"http://127.0.0.1:{closed_port}"), "cannot be reached")
    assert (await check_llm(Settings())).ok
