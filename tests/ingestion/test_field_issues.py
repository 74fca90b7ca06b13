"""What users of other systems reported (field-issues.md), by its numbers there; 4, 22, 23 and 27 have tests
where they belong: test_answer, test_mediawiki_followed, test_mediawiki_api, test_ingest; those of searching are in
tests/server/test_field_issues.py."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from graph.knowledge import WIKI, Knowledge
from graph.openai_embedder import OpenAIEmbedder
from graph.qdrant_edge_store import QdrantEdge
from graph.recognizer import Recognizer
from graph.sqlite_graph import SqliteGraph
from graph.sqlite_state import SqliteState
from ingestion.ingest import ingest
from ingestion.verify import verify
from tests.fakes import FakeGraph, HashEmbedder
from tests.ingestion.small_wiki import SETTINGS, ListSource, fake_knowledge, page
from tests.server.web.site import JSON, Reply, Request, serving


@pytest.fixture
async def knowledge(tmp_path: Path) -> AsyncIterator[Knowledge]:
    """The stores of an owner, and an embedder that counts."""
    opened = Knowledge(
        state=SqliteState(tmp_path / "state.db"),
        vectors=QdrantEdge(tmp_path / "vectors", dimension=64),
        graph=SqliteGraph(tmp_path / "graph.db"),
        embedder=HashEmbedder(64),
        recognizer=Recognizer(()),
    )
    yield opened
    await opened.vectors.close()
    await opened.graph.close()
    opened.state.close()


async def agree(knowledge: Knowledge) -> None:
    report = await verify(knowledge)
    assert report.clean, report
    live = knowledge.state.live_ids()
    assert await knowledge.vectors.ids(WIKI) == live
    assert (await knowledge.graph.ids())[1] == live


async def test_1_a_deleted_page_s_entity_revives_no_old_chunk(knowledge: Knowledge) -> None:
    first = [page("Ada Holm", "Ada Holm built the Mercury."), page("Gull Rock", "Ada Holm never saw Gull Rock.")]
    await ingest(ListSource(first), knowledge, SETTINGS)
    old = knowledge.state.live_ids()
    await ingest(ListSource([first[0]]), knowledge, SETTINGS, prune=True)
    await agree(knowledge)
    changed = page("Gull Rock", "Ada Holm came to Gull Rock in 1901.")
    await ingest(ListSource([first[0], changed]), knowledge, SETTINGS)
    await agree(knowledge)
    assert len(knowledge.state.live_ids() - old) == 1
    assert len(knowledge.state.live_ids() & old) == 1


async def test_2_half_of_a_wiki_is_deleted_and_nothing_drifts(knowledge: Knowledge) -> None:
    pages = [page(f"Lamp {n}", f"Lamp {n} hangs beside Lamp {(n + 3) % 100}.") for n in range(100)]
    await ingest(ListSource(pages), knowledge, SETTINGS)
    await ingest(ListSource(pages[::2]), knowledge, SETTINGS, prune=True)
    await agree(knowledge)
    assert (await knowledge.graph.counts()).pages == 50


async def test_3_the_same_name_in_two_ingestions_is_one_entity(knowledge: Knowledge) -> None:
    for name in ("One", "Two"):
        source = ListSource([page(name, "The keeper Jon Holm lit the lamp.")], name="w")
        await ingest(source, knowledge, SETTINGS)
    found = await knowledge.graph.find_entities(["jon holm"])
    assert [entity.id for entity in found["jon holm"]] == ["jon holm"]


async def test_5_no_character_breaks_what_comes_after(knowledge: Knowledge) -> None:
    strange = [page("caf\udc9a", "A caf\udc9a with a \0 in it."), page("x" * 10_000, "A very long title.")]
    await ingest(ListSource(strange), knowledge, SETTINGS)
    await ingest(ListSource([page("Plain", "A plain page.")]), knowledge, SETTINGS)
    await agree(knowledge)
    await ingest(ListSource([page("Plain", "Another text.")]), knowledge, SETTINGS, prune=True)
    await agree(knowledge)
    assert {manifest.title for manifest in knowledge.state.all_manifests()} == {"Plain"}


async def test_12_an_embedder_that_stalls_once_fails_no_page() -> None:
    asked = 0

    def answer(request: Request) -> Reply:
        nonlocal asked
        asked += 1
        vector = {"index": 0, "embedding": [1.0, 0.0, 0.0, 0.0]}
        return Reply(headers=JSON, body=json.dumps({"data": [vector]}).encode(), stall=6.0 if asked == 1 else 0.0)

    async with serving(answer) as site:
        embedder = OpenAIEmbedder(f"{site.url}/v1", model="m", dimension=4, batch_size=1)
        base = fake_knowledge()
        slow = Knowledge(
            state=base.state, vectors=base.vectors, graph=base.graph, embedder=embedder, recognizer=base.recognizer
        )
        report = await ingest(ListSource([page("A", "One."), page("B", "Two.")]), slow, SETTINGS)
        await embedder.close()
    assert (report.added, report.failed) == (2, ())


async def test_13_one_edit_in_a_large_wiki_costs_one_edit() -> None:
    knowledge = fake_knowledge()
    graph, embedder = knowledge.graph, knowledge.embedder
    assert isinstance(graph, FakeGraph)
    assert isinstance(embedder, HashEmbedder)
    pages = [page(f"Lamp {n}", f"Lamp {n} hangs beside Lamp {(n + 7) % 1000}.") for n in range(1000)]
    await ingest(ListSource(pages), knowledge, SETTINGS)
    before, embedded = graph.writes, len(embedder.embedded)
    pages[500] = page("Lamp 500", "Lamp 500 fell down beside Lamp 8.")
    await ingest(ListSource(pages), knowledge, SETTINGS)
    assert len(embedder.embedded) - embedded == 1
    assert graph.writes - before < 12


async def test_14_the_same_text_under_two_titles_is_stored_once_for_each(knowledge: Knowledge) -> None:
    twins = [page("One", "The same words."), page("Two", "The same words.")]
    await ingest(ListSource(twins), knowledge, SETTINGS)
    embedder = knowledge.embedder
    assert isinstance(embedder, HashEmbedder)
    embedded = len(embedder.embedded)
    again = await ingest(ListSource(twins), knowledge, SETTINGS)
    assert (again.unchanged, again.chunks, len(embedder.embedded)) == (2, 0, embedded)
    await agree(knowledge)


async def test_15_a_sentence_that_was_changed_is_not_found_any_more(knowledge: Knowledge) -> None:
    await ingest(ListSource([page("Ferry", "The ferry sails at seven. It carries bicycles.")]), knowledge, SETTINGS)
    await ingest(ListSource([page("Ferry", "The ferry sails at nine. It carries bicycles.")]), knowledge, SETTINGS)
    found = await knowledge.vectors.search(WIKI, dense=None, text="seven", limit=5)
    assert found.sparse == ()
    texts = [stored.chunk.text for stored in knowledge.state.chunks(sorted(knowledge.state.live_ids())).values()]
    assert texts == ["The ferry sails at nine. It carries bicycles."]
