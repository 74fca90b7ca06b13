"""The public command line, pinned: what `--help` of every command says."""

from __future__ import annotations

import re

import pytest
from click.testing import CliRunner
from syrupy.assertion import SnapshotAssertion

from server.cli import COMMANDS, cli

PAGES = [
    (),
    *((name,) for name in COMMANDS),
    ("config", "show"),
    ("config", "docs"),
    ("domains", "check"),
    ("domains", "list"),
    *(("research", name) for name in ("add", "list", "run", "deep", "show", "delete")),
    *(("knowledge", name) for name in ("list", "show", "keep", "edit", "reject", "delete", "undo", "finish", "review")),
]


@pytest.fixture(autouse=True)
def plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")


def help_of(*command: str) -> str:
    ended = CliRunner().invoke(cli, [*command, "--help"], prog_name="trivet")
    assert ended.exit_code == 0, ended.output
    return re.sub(r" +$", "", ended.output, flags=re.MULTILINE)


@pytest.mark.parametrize("command", PAGES, ids=" ".join)
def test_help(command: tuple[str, ...], snapshot: SnapshotAssertion) -> None:
    assert help_of(*command) == snapshot


@pytest.mark.parametrize("command", PAGES[1:], ids=" ".join)
def test_every_command_has_the_common_options_and_fits_80_columns(command: tuple[str, ...]) -> None:
    text = help_of(*command)
    for option in ("--home", "--config", "--set", "--json"):
        assert option in text
    assert "--debug" not in text
    assert max(map(len, text.splitlines())) <= 80
