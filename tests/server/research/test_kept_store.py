"""What people approved outlives the wiki's store: a rebuild, another language of BM25, a move, a repair."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from config.settings import RerankSettings, Settings, VectorSettings
from graph.home import RESEARCH_FILE, VECTORS_FOLDER
from graph.research import EVERGREEN, Fact, FactState, ResearchPage, Topic
from server.backends import Backends
from server.migration import migrate_store
from server.open import open_backends
from server.research.shelf import Shelf
from tests.server.cli_runner import InProcessCli
from tests.services.qdrant_stand_in import running_qdrant

TOPIC = Topic(slug="bells", title="Bells", category="bells")
PAGE = ResearchPage(url="https://example.org/bells", title="Bells", passages=("Bells are cast in bronze.",))
FACT = Fact(id="f1", topic="bells", category="bells", text="Bronze is copper and tin.", quote="", url=PAGE.url)
QUESTION = "What is bronze made of?"


@pytest.fixture
def home(sample_home: Path, tmp_path: Path) -> Path:
    shutil.copytree(sample_home / "home", tmp_path / "home")
    return tmp_path / "home"


def settings_for(home: Path, **vectors: str) -> Settings:
    return Settings(home=home, vectors=VectorSettings(**vectors), rerank=RerankSettings(enabled=False))


@asynccontextmanager
async def opened(settings: Settings, *, rebuild: bool = False) -> AsyncIterator[tuple[Backends, Shelf]]:
    backends = await open_backends(settings, command="test", rebuild=rebuild)
    assert backends.shelf is not None
    try:
        yield backends, backends.shelf
    finally:
        await backends.close()


async def fill(settings: Settings) -> None:
    async with opened(settings) as (_, shelf):
        shelf.store.add_topic(TOPIC)
        await shelf.put_page(TOPIC, PAGE)
        shelf.store.add_facts([FACT])
        await shelf.put_fact(replace(FACT, state=FactState.APPROVED, evergreen=True), version=1)


async def found(settings: Settings, *, rebuild: bool = False) -> list[str]:
    """The texts of all collections that answer, nearest first, where both stores agree."""
    async with opened(settings, rebuild=rebuild) as (backends, shelf):
        faults = await shelf.faults()
        assert not any((faults.missing, faults.orphaned, faults.unfinished))
        texts = []
        for name in shelf.store.collections():
            dense = await backends.embedder.embed_question(QUESTION)
            rankings = await backends.vectors.search(name, dense=dense, text=QUESTION, limit=10)
            passages = shelf.store.passages([hit.key for hit in rankings.dense])
            texts += [passage.text for passage in passages.values()]
        return texts


async def test_a_rebuild_embeds_again_what_is_kept(home: Path) -> None:
    await fill(settings_for(home))
    before = await found(settings_for(home))
    assert before == ["Bronze is copper and tin.", "Bells are cast in bronze."]
    assert await found(settings_for(home, bm25_language="french"), rebuild=True) == before
    assert await found(settings_for(home, bm25_language="french")) == before


async def test_a_rebuild_that_is_cut_short_loses_nothing(home: Path) -> None:
    await fill(settings_for(home))
    before = await found(settings_for(home))
    async with opened(settings_for(home)) as (_, shelf):
        for name in shelf.store.every_collection():  # what a rebuild notes before it erases anything
            shelf.store.begin(name, adding=sorted(shelf.store.ids(name)))
    shutil.rmtree(home / VECTORS_FOLDER)
    assert await found(settings_for(home)) == before


async def test_a_move_takes_along_what_is_kept(home: Path) -> None:
    await fill(settings_for(home))
    before = await found(settings_for(home))
    async with running_qdrant() as url:
        await migrate_store(settings_for(home, qdrant_url=url), "servers")
        assert await found(settings_for(home, qdrant_url=url)) == before
        await migrate_store(settings_for(home, qdrant_url=url), "embedded")
    assert await found(settings_for(home)) == before


async def lose_evergreen(settings: Settings) -> None:
    async with opened(settings) as (backends, shelf):
        await backends.vectors.delete(EVERGREEN, sorted(shelf.store.ids(EVERGREEN)))


def test_verify_counts_what_is_kept_and_repair_mends_it(cli: InProcessCli) -> None:
    settings = Settings(home=cli.home)
    asyncio.run(fill(settings))
    clean = cli("verify", "--json")
    assert (clean.code, clean.json["kept"]) == (0, 2)
    asyncio.run(lose_evergreen(settings))
    wrong = cli("verify", "--json")
    assert wrong.code == 1
    (fault,) = wrong.json["disagreements"]
    assert (fault["kind"], fault["count"]) == ("kept passages without a vector", 1)
    assert fault["examples"][0].startswith(f"{EVERGREEN}/")
    assert cli("verify", "--repair").code == 0
    assert cli("verify").out.startswith("compared 0 pages, 0 chunks, 0 entities, 2 passages of research")


async def test_where_the_store_of_research_is_gone_the_rest_goes_on(home: Path) -> None:
    await fill(settings_for(home))
    (home / RESEARCH_FILE).unlink()
    assert await found(settings_for(home)) == []
