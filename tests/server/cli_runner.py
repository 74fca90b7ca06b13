"""Runs the `trivet` command as a user would: in an empty folder, with a clean environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from server.cli import run

ROOT = Path(__file__).parents[2]
KEPT = ("PATH", "HOME", "OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "TMPDIR")
TIMEOUT = 300
PATIENT = {
    "TRIVET_SEARCH__VECTOR_SECONDS": "100",
    "TRIVET_SEARCH__GRAPH_SECONDS": "100",
    "TRIVET_RERANK__BUDGET_SECONDS": "50",
}
"""Deadlines that a busy machine keeps too: what is found must not depend on it."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended, and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True, slots=True)
class Cli:
    """`home` is the store's folder, `folder` where commands are called."""

    home: Path
    folder: Path

    def environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        kept = {name: os.environ[name] for name in KEPT if name in os.environ}
        return {**kept, **PATIENT, "TRIVET_HOME": str(self.home), "COLUMNS": "80", **(more or {})}

    def start(self, *arguments: str | Path, environment: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        """In a process of its own, which the caller waits for."""
        return subprocess.Popen(
            [sys.executable, "-m", "server.cli", *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
            cwd=self.folder,
            env=self.environment(environment),
        )

    def process(self, *arguments: str | Path, environment: Mapping[str, str] | None = None) -> Ended:
        with self.start(*arguments, environment=environment) as process:
            try:
                out, err = process.communicate(timeout=TIMEOUT)
            finally:
                process.kill()
        return Ended(process.returncode, out, err)


@dataclass(frozen=True, slots=True)
class InProcessCli:
    """The same without a process for each command: the models are imported once."""

    cli: Cli
    monkeypatch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]

    @property
    def home(self) -> Path:
        return self.cli.home

    @property
    def folder(self) -> Path:
        return self.cli.folder

    def __call__(self, *arguments: str | Path, environment: Mapping[str, str] | None = None) -> Ended:
        with self.monkeypatch.context() as patch:
            patch.chdir(self.folder)
            for name in os.environ.keys() - self.cli.environment().keys():
                if name.startswith(("TRIVET_", "HYBRID_RAG_", "VECTOR_SIMILARITY_")):
                    patch.delenv(name)
            for name, value in self.cli.environment(environment).items():
                patch.setenv(name, value)
            self.capsys.readouterr()
            code = run([str(argument) for argument in arguments])
            out, err = self.capsys.readouterr()
        return Ended(code, out, err)
