"""SearXNG killed, paused or without JSON: the wiki's answer stands, and `web` says what is wrong."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from config.settings import RerankSettings, SearchSettings, Settings, WebSettings
from server.backends import Backends
from server.model import Answer
from server.open import open_backends
from tests.faults.processes import Instance, asked, own_searxng, seconds_until
from tests.services.environment import service

pytestmark = [pytest.mark.services, pytest.mark.slow]

WHO = "Who built the beacon at Sallow Point?"
WEB_SECONDS = 3.0
PATIENT = {"vector_seconds": 60.0, "graph_seconds": 60.0, "evidence_limit": 50}


@pytest.fixture(scope="module")
def searxng() -> Iterator[Instance]:
    with own_searxng() as instance:
        yield instance


@pytest.fixture(scope="module")
def home(sample_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("searxng") / "home"
    shutil.copytree(sample_home / "home", home)
    return home


@asynccontextmanager
async def opened(home: Path, url: str) -> AsyncIterator[Backends]:
    settings = Settings(
        home=home,
        web=WebSettings(searxng_url=url, allow_private=True),
        search=SearchSettings(web_seconds=WEB_SECONDS, **PATIENT),
        rerank=RerankSettings(enabled=False),
    )
    backends = await open_backends(settings, command="test")
    try:
        await asked(backends, WHO)  # what is loaded on first use is not the web's delay
        yield backends
    finally:
        await backends.close()


def wiki_part(answer: Answer) -> set[str]:
    return {item.key for item in answer.evidence if item.origin == "wiki"}


async def web_is_back(backends: Backends) -> float:
    async def answers() -> bool:
        answer, _ = await asked(backends, WHO, use_web=True)
        return answer.legs["web"].startswith("ok")

    return await seconds_until(answers, within=20)


async def without_web(backends: Backends, alone: Answer) -> str:
    """What `web` says in an answer that is the wiki's, in time."""
    answer, took = await asked(backends, WHO, use_web=True)
    assert wiki_part(answer) == wiki_part(alone)
    assert answer.text == alone.text
    assert answer.legs["vector"] == answer.legs["graph"] == "ok"
    assert took < WEB_SECONDS + 1
    return answer.legs["web"]


async def test_killed_it_is_named_left_alone_and_used_again_when_it_is_back(home: Path, searxng: Instance) -> None:
    async with opened(home, searxng.url) as backends:
        alone, _ = await asked(backends, WHO)
        both, _ = await asked(backends, WHO, use_web=True)
        assert both.legs["web"].startswith("ok")
        assert any(item.origin == "web" for item in both.evidence)
        searxng.kill()
        for _ in range(3):
            assert f"SearXNG at {searxng.url} cannot be reached" in await without_web(backends, alone)
        assert "not asked again" in await without_web(backends, alone)
        searxng.start()
        print(f"\nSearXNG used again {await web_is_back(backends):.1f} s after it answers")


async def test_paused_it_costs_three_questions_their_web_time_and_then_none(home: Path, searxng: Instance) -> None:
    async with opened(home, searxng.url) as backends:
        alone, _ = await asked(backends, WHO)
        searxng.pause()
        try:
            for _ in range(3):
                assert f"more than {WEB_SECONDS:g} s" in await without_web(backends, alone)
            answer, took = await asked(backends, WHO, use_web=True)
            assert "not asked again" in answer.legs["web"]
            assert took < WEB_SECONDS / 2
        finally:
            searxng.resume()
        print(f"\nSearXNG used again {await web_is_back(backends):.1f} s after it goes on")


async def test_without_json_the_setting_that_is_missing_is_named(home: Path) -> None:
    async with opened(home, service("SEARXNG_NO_JSON_URL")) as backends:
        alone, _ = await asked(backends, WHO)
        said = await without_web(backends, alone)
        assert "refuses JSON (403); add json to search.formats in its settings.yml" in said
