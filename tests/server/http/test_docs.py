"""The examples of docs/http-api.md run as they stand."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.server.http.running import Running

DOCUMENT = (Path(__file__).parents[3] / "docs/http-api.md").read_text()
DEFAULT_URL = "http://127.0.0.1:8642"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", DOCUMENT, re.MULTILINE | re.DOTALL)


def here(server: Running, block: str) -> str:
    return block.replace(DEFAULT_URL, server.url)


@pytest.mark.parametrize("block", blocks("sh"))
def test_shell_examples(server: Running, block: str) -> None:
    failing = here(server, block).replace("curl -s", "curl --fail-with-body -s")
    done = subprocess.run(["bash", "-euc", failing], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout


def test_python_examples(server: Running, capsys: pytest.CaptureFixture[str]) -> None:
    for block in blocks("python"):
        exec(here(server, block), {})
    assert "https://wiki.example/Animal_Farm#Plot" in capsys.readouterr().out
