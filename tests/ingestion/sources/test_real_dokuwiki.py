"""A real DokuWiki, edited through its own command line and followed by its own change log."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from graph.feed import Checkpoint, FeedItem, GonePage
from graph.model import Page
from graph.protocols import ChangingSource
from ingestion.ingest import ingest
from ingestion.sources.detect import open_source, recognise
from ingestion.verify import verify
from tests.ingestion.small_wiki import SETTINGS, fake_knowledge
from tests.services.dokuwiki_data import OwnDokuWiki
from tests.services.environment import service

pytestmark = pytest.mark.services


@pytest.fixture
def wiki(tmp_path: Path) -> OwnDokuWiki:
    service("DOKUWIKI_PACKAGE")
    made = OwnDokuWiki(tmp_path)
    made.commit("start", "====== Hollin ======\nAn island with [[places:gull_rock]] and [[people:ada_holm|Ada]].\n")
    made.commit("places:gull_rock", "====== Gull Rock ======\nA rock.\n\n^ Height ^ Light ^\n| 12 m | white |\n")
    made.commit("people:ada_holm", "====== Ada Holm ======\nShe was born at [[..:places:gull_rock]].\n")
    return made


def told(source: ChangingSource, cursor: str) -> tuple[dict[str, FeedItem], str]:
    """What the feed says by key, and its last cursor."""
    changes = source.changes(cursor)
    assert changes is not None
    items = list(changes)
    last = items[-1]
    assert isinstance(last, Checkpoint)
    return {item.key: item for item in items if not isinstance(item, Checkpoint)}, last.cursor


def changed(items: dict[str, FeedItem]) -> dict[str, type[FeedItem]]:
    return {key: type(item) for key, item in items.items() if isinstance(item, Page | GonePage)}


async def test_its_edits_and_deletions_are_followed(wiki: OwnDokuWiki) -> None:
    assert recognise(wiki.data).kind == "dokuwiki"
    source = open_source(wiki.data, name="w")
    assert isinstance(source, ChangingSource)
    items = list(source.read())
    pages = {item.title: item for item in items if isinstance(item, Page)}
    assert set(pages) == {"Hollin", "Gull Rock", "Ada Holm"}
    assert "Height: 12 m" in pages["Gull Rock"].text
    assert [link.target for link in pages["Ada Holm"].links] == ["Gull Rock"]
    last = items[-1]
    assert isinstance(last, Checkpoint)

    past = 1_700_000_000  # what was made before counts as settled
    for file in (wiki.data / "pages").rglob("*.txt"):
        os.utime(file, (past, past))
    quiet, cursor = told(source, last.cursor)
    assert set(changed(quiet)) <= {page.key for page in pages.values()}

    wiki.commit("places:gull_rock", "====== Gull Rock ======\nA rock with a lighthouse.\n")
    wiki.commit("people:jon_holm", "====== Jon Holm ======\nHer brother.\n")
    wiki.commit("people:ada_holm", "")
    items_by_key, cursor = told(source, cursor)
    kinds = changed(items_by_key)
    assert kinds["people:ada_holm"] is GonePage
    assert kinds["places:gull_rock"] is Page
    assert kinds["people:jon_holm"] is Page


async def test_the_store_follows_it(wiki: OwnDokuWiki) -> None:
    knowledge = fake_knowledge()
    source = open_source(wiki.data, name="w")
    assert isinstance(source, ChangingSource)
    first = [item for item in source.read() if isinstance(item, Checkpoint)][-1]
    await ingest(source, knowledge, SETTINGS)
    wiki.commit("places:gull_rock", "====== Gull Rock ======\nA rock with a lighthouse.\n")
    wiki.commit("people:ada_holm", "")
    report = await ingest(source, knowledge, SETTINGS, since=first.cursor)
    assert (report.whole, report.deleted, report.failed) == (False, 1, ())
    assert report.changed >= 1
    texts = {chunk.chunk.text for chunk in knowledge.state.chunks(sorted(knowledge.state.live_ids())).values()}
    assert "A rock with a lighthouse." in texts
    assert (await verify(knowledge)).clean
