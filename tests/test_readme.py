"""The README's commands do what it says: each is run, in order, and says what is printed under it."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import signal
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.places import note_place
from tests.server.cli_runner import ROOT, Cli, InProcessCli

README = (ROOT / "README.md").read_text(encoding="utf-8")
SET_UP = "python3 -m venv .venv && .venv/bin/pip install -q uv && .venv/bin/uv run --frozen --no-dev "
TESTS = ".venv/bin/uv run --frozen pytest"


@dataclass(frozen=True, slots=True)
class Shown:
    """A command of the tour, and what the README says it prints."""

    command: str
    output: tuple[str, ...]


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)


def tour() -> list[Shown]:
    shown: list[tuple[str, list[str]]] = []
    for line in "".join(blocks("console")).splitlines():
        if line.startswith("$ "):
            shown.append((line.removeprefix("$ "), []))
        else:
            shown[-1][1].append(line)
    return [Shown(command, tuple(output)) for command, output in shown]


def unnumbered(text: str) -> str:
    """Without what a finer ranking may change: the numbers of sources."""
    return re.sub(r"\[\d\]", "[]", text)


@pytest.fixture
def shell(tmp_path: Path) -> Cli:
    """Where the tour is taken: the folder has the sample wiki where the repository has it."""
    shutil.copytree(ROOT / "ingestion" / "sample_wiki", tmp_path / "ingestion" / "sample_wiki")
    return Cli(home=tmp_path / "home", folder=tmp_path)


@pytest.fixture
def cli(shell: Cli, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> InProcessCli:
    return InProcessCli(shell, monkeypatch, capsys)


def test_the_first_two_commands_are_the_demo_and_the_tests() -> None:
    commands = [block.strip() for block in blocks("sh")]
    assert commands[0] == SET_UP + "trivet demo"
    assert commands[1] == TESTS


def test_ci_runs_the_second_command() -> None:
    ci = "".join((ROOT / ".ci" / name).read_text(encoding="utf-8") for name in ("run", "check"))
    assert ".venv/bin/uv" in ci
    assert "run --frozen pytest" in ci


def test_the_demo_prints_what_the_readme_shows(sample_home: Path, cli: InProcessCli) -> None:
    """The first command without its set-up, which needs a package index. Its store is there already, to save time."""
    shutil.copytree(sample_home / "home", cli.home / "demo")
    (shown,) = blocks("text demo")
    ended = cli("demo")
    assert ended.code == 0
    assert f"serve --home {cli.home / 'demo'}" in ended.out
    answers = [line for line in shown.splitlines() if line.startswith("Question ") or re.search(r"\[\d\]$", line)]
    assert len(answers) >= 5
    assert [line for line in answers if unnumbered(line) not in unnumbered(ended.out)] == []


def test_the_tour_works(sample_home: Path, cli: InProcessCli) -> None:
    shutil.copytree(sample_home / "home", cli.home)
    note_place(cli.home, "hollin", cli.folder / "ingestion" / "sample_wiki")
    steps = tour()
    assert len(steps) >= 5
    for step in steps:
        program, *arguments = shlex.split(step.command)
        if program == "trivet" and arguments[0] != "serve":
            ended = cli(*arguments)
            assert ended.code == 0, ended.err
            # Where the store is, is another place on each machine.
            first = next(line for line in step.output if not line.startswith("home "))
            assert unnumbered(first) in unnumbered(ended.out), step.command


def test_the_server_of_the_tour_answers(sample_home: Path, shell: Cli) -> None:
    shutil.copytree(sample_home / "home", shell.home)
    (request,) = [shlex.split(step.command) for step in tour() if step.command.startswith("curl ")]
    body = request[request.index("-d") + 1]
    path = re.sub(r"^http://[^/]+", "", next(word for word in request if word.startswith("http://")))
    with shell.start("serve", "--port", "0") as server:
        try:
            assert server.stdout is not None
            url = server.stdout.readline().split()[-1]
            asked = urllib.request.Request(url + path, body.encode(), {"Content-Type": "application/json"})
            with urllib.request.urlopen(asked, timeout=60) as response:
                answer = json.load(response)
        finally:
            server.send_signal(signal.SIGTERM)
            server.communicate(timeout=60)
    assert answer["citations"]


def test_relative_links_lead_somewhere() -> None:
    links = re.findall(r"\]\((?!https?://|#)([^)#]+)", README)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
