"""From a wiki to cited answers through a real server, with stock clients."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from openai import OpenAI

from server.commands.demo import QUESTIONS, SAMPLE
from tests.server.cli_runner import Cli

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("product")
    shutil.copytree(SAMPLE, folder / "wiki")
    cli = Cli(home=folder / "home", folder=folder)
    ended = cli.process("ingest", "wiki", "--name", "hollin")
    assert ended.code == 0, ended.err
    with cli.start("serve", "--port", "0") as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        try:
            yield line.split()[-1]
        finally:
            process.terminate()
            _, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "Traceback" not in err


@pytest.fixture
def ai(url: str) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{url}/v1", api_key="any", max_retries=0) as client:
        yield client


def test_it_is_ready(url: str) -> None:
    assert httpx.get(f"{url}/readyz").json() == {
        "status": "ready",
        "dependencies": {"store": "ok", "graph": "ok", "vectors": "ok", "llm": "off", "web": "off"},
    }


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_same_answer_through_every_door(url: str, ai: OpenAI, question: str) -> None:
    native: dict[str, Any] = httpx.post(f"{url}/api/query", json={"question": question}, timeout=120).json()
    messages: list[Any] = [{"role": "user", "content": question}]
    whole = ai.chat.completions.create(model="trivet", messages=messages)
    chunks = list(ai.chat.completions.create(model="trivet", messages=messages, stream=True))
    assert native["mode"] in {"extractive", "abstained"}
    assert native["citations"]
    assert whole.choices[0].message.content == native["answer"]
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == native["answer"]
    urls = [entry["url"] for entry in native["evidence"]]
    for last in (whole, chunks[-1]):
        assert last.model_extra is not None
        assert last.model_extra["citations"] == urls
    annotations = whole.choices[0].message.annotations or []
    assert [each.url_citation.url for each in annotations] == [each["url"] for each in native["citations"]]
    for citation in native["citations"]:
        assert urls[citation["number"] - 1] == citation["url"]


def test_the_first_question_has_all_its_legs(url: str) -> None:
    legs = httpx.post(f"{url}/api/search", json={"question": QUESTIONS[0]}, timeout=120).json()["legs"]
    assert (legs["vector"], legs["graph"], legs["web"]) == ("ok", "ok", "off")


def test_the_embedder_is_the_wikis_own(ai: OpenAI) -> None:
    passage, query = (
        ai.embeddings.create(model="trivet", input="a lighthouse", extra_body={"input_type": kind}).data[0].embedding
        for kind in ("passage", "query")
    )
    assert len(passage) == len(query) == 384
    assert passage != query
