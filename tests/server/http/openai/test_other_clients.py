"""Other people's clients against a real server process: none needs an option that its users would not find."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from server.commands.demo import QUESTIONS
from tests.server.cli_runner import Cli
from tests.server.http.clients.environment import run_node, run_python

pytestmark = pytest.mark.slow

QUESTION = QUESTIONS[0]


@pytest.fixture(scope="module")
def url(sample_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("clients")
    shutil.copytree(sample_home / "home", folder / "home")
    with Cli(home=folder / "home", folder=folder).start("serve", "--port", "0") as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        try:
            yield line.split()[-1]
        finally:
            process.terminate()
            _, err = process.communicate(timeout=60)
    assert "Traceback" not in err


@pytest.fixture(scope="module")
def native(url: str) -> dict[str, Any]:
    answer: dict[str, Any] = httpx.post(f"{url}/api/query", json={"question": QUESTION}, timeout=120).json()
    assert answer["mode"] == "extractive"
    return answer


def test_langchain(url: str, native: dict[str, Any]) -> None:
    said = run_python("langchain.py", url, QUESTION, libraries=("langchain-openai==1.7.4",))
    assert said == {
        "whole": native["answer"],
        "streamed": native["answer"],
        "finish": ["stop", "stop"],
        "usage": [True, True],
        "history": True,
        "embedded": [384, 384],
        "error": "model_not_found",
    }


def test_llama_index(url: str, native: dict[str, Any]) -> None:
    said = run_python("llama_index.py", url, QUESTION, libraries=("llama-index-llms-openai-like==0.8.1",))
    assert said == {
        "whole": native["answer"],
        "streamed": native["answer"],
        "completed": native["answer"],
        "history": True,
        "error": "model_not_found",
    }


def test_the_vercel_ai_sdk(url: str, native: dict[str, Any]) -> None:
    libraries = ("ai@6.0.326", "@ai-sdk/openai@3.0.141", "zod@4.6.7")
    said = run_node("vercel.mjs", url, QUESTION, libraries=libraries)
    cited = [citation["url"] for citation in native["citations"]]
    error, responses = said.pop("error"), said.pop("responses")
    assert said == {
        "whole": native["answer"],
        "streamed": native["answer"],
        "finish": ["stop", "stop"],
        "sources": [cited, cited],
        "history": True,
        "embedded": 384,
    }
    assert error.startswith("404 ")
    assert "trivet/teacher" in error
    assert responses.startswith("404 ")
    assert "openai.chat" in responses
