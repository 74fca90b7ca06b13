"""`trivet write` with a model, in processes of their own: broken off, killed, gone on with, and through the server."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest

from graph.home import PIECES_FILE
from graph.model import ChatMessage
from graph.sqlite_pieces import SqlitePieces
from server.commands.demo import SAMPLE
from tests.model_server import openai_events
from tests.server.cli_runner import Cli, InProcessCli
from tests.server.test_cli_sync import serving
from tests.server.writing.library import ENTRY, heading_of

pytestmark = pytest.mark.slow
TOPIC = "The island of Hollin"
HEADINGS = ["Carrow Light", "The Grey Bell", "The ferry Petrel", "Tern Hill Observatory", "Smoked eel pie"]
WRITE = ("write", TOPIC, "--outline", "outline.txt", "--sequential")


@dataclass
class Model:
    """Says of every section's first passage that it is there; unless it is down, or slow."""

    port: int = 0
    down_at: str = ""
    stall: float = 0.0
    asked: list[str] = field(default_factory=list)

    def events(self, body: bytes) -> list[bytes] | None:
        messages = [ChatMessage(role=one["role"], content=one["content"]) for one in json.loads(body)["messages"]]
        heading = heading_of(messages)
        self.asked.append(heading)
        time.sleep(self.stall)
        if heading == self.down_at:
            return None
        (number, text), *_ = ENTRY.findall(messages[1].content)
        return openai_events([text.splitlines()[-1].partition(". ")[0].rstrip("."), f" [[{number}]]."], "stop")


@contextmanager
def speaking() -> Iterator[Model]:
    model = Model()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            events = model.events(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200 if events else 500)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            self.wfile.write(b"".join(events or []))

        def log_message(self, *_: Any) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        model.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield model
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def model() -> Iterator[Model]:
    with speaking() as model:
        yield model


@pytest.fixture
def here(shell: Cli, model: Model) -> Cli:
    """With the model's settings."""
    (shell.folder / "trivet.toml").write_text(
        f'[llm]\nprovider = "openai"\nurl = "http://127.0.0.1:{model.port}/v1"\nmodel = "stub"\n'
        "[writing]\nrewrites = 0\n",
        encoding="utf-8",
    )
    (shell.folder / "outline.txt").write_text("\n".join(HEADINGS), encoding="utf-8")
    return shell


@pytest.fixture
def filled(here: Cli, cli: InProcessCli) -> InProcessCli:
    found = replace(cli, cli=here)
    assert found("ingest", SAMPLE, "--name", "hollin").code == 0
    return found


def kept(cli: InProcessCli, piece: str) -> int:
    with closing(SqlitePieces(cli.home / PIECES_FILE)) as pieces:
        found = pieces.piece(piece)
        return len(found.sections) if found else 0


def test_a_model_that_dies_leaves_a_part_and_the_command_that_goes_on(filled: InProcessCli, model: Model) -> None:
    model.down_at = HEADINGS[2]
    partial = filled(*WRITE, "-o", "piece.md")
    assert (partial.code, partial.out) == (5, "")
    piece = partial.err.split()[1]
    said = partial.err.splitlines()[-1]
    assert "section 3 ('The ferry Petrel') failed" in said
    assert f"`trivet write --resume {piece}`" in said
    file = filled.folder / "piece.md"
    assert f"## {HEADINGS[1]}" in file.read_text()
    assert "*This section could not be written" in file.read_text()

    model.down_at = ""
    model.asked.clear()
    done = filled("write", "--resume", piece, "-o", "piece.md", "--force", "--json")
    assert (done.code, done.json["state"]) == (0, "done"), done.err
    assert model.asked == HEADINGS[2:]
    assert "could not be written" not in file.read_text()
    titles = [line.removeprefix("## ") for line in file.read_text().splitlines() if line.startswith("## ")]
    assert titles[:5] == HEADINGS
    model.asked.clear()
    assert filled("write", "--resume", piece).out == file.read_text()
    assert model.asked == []


def test_killed_it_goes_on_from_the_section_that_is_missing(filled: InProcessCli, model: Model) -> None:
    """kill −9 once two sections are kept."""
    model.stall = 1.0
    with filled.cli.start(*WRITE, "-o", "piece.md") as process:
        assert process.stderr is not None
        piece = process.stderr.readline().split()[1]
        deadline = time.monotonic() + 120
        while kept(filled, piece) < 2 and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert sorted(path.name for path in filled.folder.iterdir()) == ["outline.txt", "trivet.toml"]
    had = kept(filled, piece)
    assert 2 <= had < 5
    model.stall = 0.0
    model.asked.clear()
    ended = filled("write", "--resume", piece)
    assert ended.code == 0, ended.err
    assert model.asked == HEADINGS[had:]
    assert f"## {HEADINGS[4]}" in ended.out


def test_a_server_that_holds_the_store_writes_it(filled: InProcessCli, model: Model) -> None:
    model.down_at = HEADINGS[3]
    with serving(filled.cli):
        partial = filled(*WRITE, "--json")
        assert (partial.code, partial.json["state"]) == (5, "partial"), partial.err
        assert "of 5 sections; writing" in partial.err
        model.down_at = ""
        model.asked.clear()
        done = filled("write", "--resume", partial.json["id"], "-o", "piece.md")
        assert done.code == 0, done.err
        assert model.asked == HEADINGS[3:]
        assert (filled.folder / "piece.md").read_text().startswith(f"# {TOPIC}\n")
        nobody = filled("write", "Lamps", "--persona", "nobody")
        assert (nobody.code, nobody.out) == (2, "")
        assert "There is no persona 'nobody'" in nobody.err
        assert filled("write", "--resume", "nothing/else").code == 2


def test_who_leaves_the_events_or_a_command_that_is_killed_leaves_the_server_writing(
    filled: InProcessCli, model: Model
) -> None:
    model.stall = 0.5
    with serving(filled.cli) as url:
        with filled.cli.start(*WRITE) as process:
            assert process.stderr is not None
            piece = process.stderr.readline().split()[1]
            process.kill()
            process.communicate()
        with httpx.stream("GET", f"{url}/api/write/{piece}/events", timeout=60) as events:
            assert next(line for line in events.iter_lines() if line.startswith("event:")) != "event: done"
        deadline = time.monotonic() + 120
        while (found := httpx.get(f"{url}/api/write/{piece}").json())["state"] in {"queued", "running"}:
            assert time.monotonic() < deadline
            time.sleep(0.1)
    assert (found["state"], len(found["sections"])) == ("done", 5)


def test_a_server_that_was_killed_goes_on_when_it_is_back(filled: InProcessCli, model: Model) -> None:
    model.stall = 1.0
    with filled.cli.start("serve", "--port", "0") as server:
        assert server.stdout is not None
        url = server.stdout.readline().split()[-1]
        request = {"topic": TOPIC, "outline": HEADINGS, "sequential": True}
        piece = httpx.post(f"{url}/api/write", json=request, timeout=60).json()["id"]
        deadline = time.monotonic() + 120
        while kept(filled, piece) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        server.send_signal(signal.SIGKILL)
        server.communicate()
    had = kept(filled, piece)
    assert 2 <= had < 5
    model.stall = 0.0
    model.asked.clear()
    with serving(filled.cli) as url:
        deadline = time.monotonic() + 200
        while (found := httpx.get(f"{url}/api/write/{piece}", timeout=60).json())["state"] in {"queued", "running"}:
            assert time.monotonic() < deadline
            time.sleep(0.2)
    assert found["state"] == "done", found["reason"]
    assert model.asked == HEADINGS[had:]
