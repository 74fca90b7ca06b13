"""A wiki with late interaction on: token vectors come and go with its pages, and are made when asked for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from config.settings import IngestionSettings, RerankSettings, Settings, VectorSettings
from graph.errors import StoreFullError
from graph.knowledge import WIKI
from graph.model import Page
from ingestion.ingest import ingest
from ingestion.removal import recover
from ingestion.verify import repair, verify
from server.backends import Backends
from server.migration import migrate_store
from server.model import Question
from server.open import open_backends
from server.search import search
from server.service_checks import check_late
from server.status import status_of
from tests.ingestion.small_wiki import ListSource, page
from tests.services.qdrant_stand_in import running_qdrant

SHADES = "amber azure beige black brass coral cream green hazel ivory khaki lilac mauve olive peach".split()
PAGES = [
    page(f"{shade.title()} {kind}", f"The {shade} {kind} was {verb} in {1800 + number} by the people of {shade} town.")
    for kind, verb in (("lighthouse", "built"), ("ship", "launched"))
    for number, shade in enumerate(SHADES)
]
FAULT = "live chunks without token vectors"


def settings_of(home: Path, *, late: bool) -> Settings:
    return Settings(
        home=home,
        rerank=RerankSettings(enabled=False, late_interaction=late),
        ingestion=IngestionSettings(ner_languages=()),
    )


@asynccontextmanager
async def opened(home: Path, *, late: bool) -> AsyncIterator[Backends]:
    backends = await open_backends(settings_of(home, late=late), command="test")
    try:
        yield backends
    finally:
        await backends.close()


async def fill(backends: Backends, pages: list[Page]) -> None:
    await ingest(ListSource(pages), backends.knowledge, backends.settings.ingestion, prune=True)


async def test_thirty_pages_an_answer_and_a_page_that_goes(tmp_path: Path) -> None:
    async with opened(tmp_path, late=True) as backends:
        await fill(backends, PAGES)
        assert backends.tokens is not None
        assert backends.tokens.ids() == backends.state.live_ids()

        found = await search(Question(text="When was the coral ship launched?"), backends)
        assert found.evidence[0].title == "Coral ship"
        assert found.evidence[0].provenance.late_score is not None
        assert found.legs["late interaction"] == "ok"

        await fill(backends, PAGES[1:])
        assert len(backends.tokens.ids()) == 29
        assert (await verify(backends.knowledge)).clean
    status = await status_of(settings_of(tmp_path, late=True))
    assert 29 * 20 * 128 < status.token_bytes < status.bytes
    check = await check_late(settings_of(tmp_path, late=True))
    assert (check.ok, check.detail) == (True, "answerai-colbert-small-v1, 29 chunks")


async def test_a_store_from_before_is_used_as_it_is_and_filled_when_asked(tmp_path: Path) -> None:
    async with opened(tmp_path, late=False) as backends:
        await fill(backends, PAGES[:4])
        assert backends.tokens is None
    async with opened(tmp_path, late=True) as backends:
        await fill(backends, PAGES[:4])  # nothing has changed, so nothing is read again
        found = await search(Question(text="Who built the amber lighthouse?"), backends)
        assert found.evidence[0].title == "Amber lighthouse"
        assert "`trivet verify --repair` makes them" in found.legs["late interaction"]
        assert [fault.kind for fault in (await verify(backends.knowledge)).disagreements] == [FAULT]
    check = await check_late(settings_of(tmp_path, late=True))
    assert (check.ok, check.fix) == (False, "trivet verify --repair")

    async with opened(tmp_path, late=True) as backends:
        assert (await repair(backends.knowledge, backends.settings.ingestion)).clean
        found = await search(Question(text="Who built the amber lighthouse?"), backends)
        assert found.legs["late interaction"] == "ok"


async def test_switched_off_it_does_not_get_in_the_way(tmp_path: Path) -> None:
    async with opened(tmp_path, late=True) as backends:
        await fill(backends, PAGES[:4])
    async with opened(tmp_path, late=False) as backends:
        await fill(backends, PAGES[1:5])
        assert (await verify(backends.knowledge)).clean
        assert backends.tokens is not None
        assert len(backends.tokens.ids()) == 3  # what is gone is gone here too, and nothing is added
        found = await search(Question(text="Who built the azure lighthouse?"), backends)
        assert found.evidence[0].title == "Azure lighthouse"
        assert found.evidence[0].provenance.late_score is None
        assert "late interaction" not in found.legs


async def test_what_a_cut_batch_left_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(tmp_path, late=True) as backends:
        assert backends.tokens is not None

        def cut_short(pages: object) -> None:
            raise StoreFullError("No room.")

        with monkeypatch.context() as patch:
            patch.setattr(backends.state, "commit_pages", cut_short)
            with pytest.raises(StoreFullError):
                await fill(backends, PAGES[:2])
        assert len(backends.tokens.ids()) == 2
        await recover(backends.knowledge)
        assert backends.tokens.ids() == set()
        assert await backends.vectors.ids(WIKI) == set()


async def test_a_rebuild_begins_without_any(tmp_path: Path) -> None:
    async with opened(tmp_path, late=True) as backends:
        await fill(backends, PAGES[:2])
    backends = await open_backends(settings_of(tmp_path, late=True), command="test", rebuild=True)
    assert backends.tokens is not None
    assert backends.tokens.ids() == set()
    await backends.close()


async def test_they_stay_where_they_are_when_the_vectors_move(tmp_path: Path) -> None:
    async with opened(tmp_path, late=True) as backends:
        await fill(backends, PAGES[:4])
    async with running_qdrant() as url:
        there = settings_of(tmp_path, late=True).model_copy(update={"vectors": VectorSettings(qdrant_url=url)})
        await migrate_store(there, "servers")
        backends = await open_backends(there, command="test")
        assert backends.tokens is not None
        assert backends.tokens.ids() == backends.state.live_ids()
        await fill(backends, PAGES[1:5])
        assert backends.tokens.ids() == backends.state.live_ids() == await backends.vectors.ids(WIKI)
        found = await search(Question(text="Who built the coral lighthouse?"), backends)
        assert found.legs["late interaction"] == "ok"
        assert (await verify(backends.knowledge)).clean
        await backends.close()
