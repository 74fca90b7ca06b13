"""Fixtures of the command line's tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.cli_runner import Cli, InProcessCli


@pytest.fixture
def shell(tmp_path: Path) -> Cli:
    """The command in processes of its own."""
    (tmp_path / "here").mkdir()
    return Cli(home=tmp_path / "home", folder=tmp_path / "here")


@pytest.fixture
def cli(shell: Cli, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> InProcessCli:
    """The command in this process."""
    return InProcessCli(shell, monkeypatch, capsys)
