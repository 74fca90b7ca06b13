"""A MediaWiki followed run by run: what a deletion, a failure and a broken run leave in the stores."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from graph.knowledge import Knowledge
from graph.registry import RegisteredSource
from graph.sqlite_registry import SqliteRegistry
from ingestion.report import IngestReport
from ingestion.sources.mediawiki_api import MediaWikiApi
from ingestion.sync import follow, retry
from ingestion.verify import verify
from tests.ingestion.small_wiki import SETTINGS, fake_knowledge
from tests.ingestion.sources.fake_mediawiki import FakeWiki
from tests.server.web.site import Reply, Site, serving


class Followed:
    """The stores that a wiki fills, and the registry that follows it."""

    def __init__(self, folder: Path) -> None:
        self.knowledge: Knowledge = fake_knowledge()
        self.registry = SqliteRegistry(folder / "sources.db")
        self.registry.put_source(RegisteredSource(name="w", kind="mediawiki-api", location="http://wiki.hollin/"))

    async def run(self, site: Site, *, whole: bool = False) -> IngestReport:
        return await follow(
            self.registered, lambda _: _source(site), self.knowledge, self.registry, SETTINGS, whole=whole
        )

    async def retry(self, site: Site) -> IngestReport | None:
        return await retry(self.registered, lambda _: _source(site), self.knowledge, self.registry, SETTINGS)

    @property
    def registered(self) -> RegisteredSource:
        found = self.registry.source("w")
        assert found is not None
        return found

    def titles(self) -> list[str]:
        return sorted(manifest.title for manifest in self.knowledge.state.all_manifests("w"))

    def dead_letters(self) -> list[str]:
        return [letter.key for letter in self.registry.dead_letters("w")]


def _source(site: Site) -> MediaWikiApi:
    return MediaWikiApi(url=f"{site.url}/w/api.php", name="w", sleep=lambda _: None)


@pytest.fixture
def followed(tmp_path: Path) -> Iterator[Followed]:
    made = Followed(tmp_path)
    yield made
    made.registry.close()


def island(**more: object) -> FakeWiki:
    wiki = FakeWiki(**more)  # type: ignore[arg-type]
    for name in ("Norvik", "Port Lyre", "Grey Bell", "Hollin"):
        wiki.edit(name, f"{name} is a place on the island of Hollin.")
    return wiki


async def test_edits_and_deletions_are_followed(followed: Followed) -> None:
    """Field issue 22: deleted pages do not answer any more."""
    wiki = island()
    async with serving(wiki) as site:
        assert (await followed.run(site)).added == 4
        wiki.edit("Norvik", "Norvik is a city now.")
        wiki.edit("Eel", "Eels live in the harbour.")
        wiki.delete("Grey Bell")
        report = await followed.run(site)
        assert (report.whole, report.added, report.changed, report.deleted) == (False, 1, 1, 1)
        assert followed.titles() == ["Eel", "Hollin", "Norvik", "Port Lyre"]
        assert (await followed.run(site)).changed == 0
    assert (await verify(followed.knowledge)).clean


async def test_a_reconcile_that_fails_half_way_removes_nothing(followed: Followed) -> None:
    """Field issue 23: it is named, and the next run is not stuck."""
    wiki = island(limit=2)
    async with serving(wiki) as site:
        await followed.run(site)
        wiki.delete("Grey Bell")
        wiki.fault = lambda query: Reply(status=404) if query.get("apcontinue") else None
        report = await followed.run(site, whole=True)
        assert "(404)" in report.failed[-1].reason
        assert report.deleted == 0
        assert followed.titles() == ["Grey Bell", "Hollin", "Norvik", "Port Lyre"]
        wiki.fault = lambda _: None
        assert (await followed.run(site)).deleted == 1
        assert followed.titles() == ["Hollin", "Norvik", "Port Lyre"]


async def test_a_page_that_cannot_be_fetched_is_kept_and_retried(followed: Followed) -> None:
    wiki = island()
    async with serving(wiki) as site:
        await followed.run(site)
        wiki.edit("Norvik", "Norvik is a city now.")
        wiki.edit("Hollin", "Hollin is an island.")
        wiki.fault = lambda query: Reply(status=500) if "Norvik" in query.get("titles", "") else None
        report = await followed.run(site)
        assert (report.changed, report.deleted, followed.dead_letters()) == (1, 0, ["Norvik"])
        wiki.fault = lambda _: None
        again = await followed.retry(site)
        assert again is not None
        assert (again.changed, followed.dead_letters()) == (1, [])


async def test_a_feed_that_does_not_reach_back_is_made_up_for(followed: Followed) -> None:
    wiki = island()
    async with serving(wiki) as site:
        await followed.run(site)
        wiki.delete("Grey Bell", logged=False)
        wiki.edit("Norvik", "Norvik is a city now.", seconds=10_000_000)
        wiki.changes = []
        report = await followed.run(site)
        assert (report.whole, report.changed, report.deleted) == (True, 1, 1)
