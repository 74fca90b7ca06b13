"""What a run of ingestion writes, and what it leaves alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from graph.errors import DependencyDownError, SourceError
from graph.knowledge import WIKI, Knowledge
from graph.model import FailedPage, PageType, SkippedPage
from ingestion.ingest import ingest
from ingestion.removal import recover, remove_pages
from ingestion.report import IngestReport, Progress
from ingestion.verify import repair, verify
from tests.fakes import HashEmbedder
from tests.ingestion.small_wiki import ISLAND, SETTINGS, ListSource, fake_knowledge, page, redirect


class CountingEmbedder(HashEmbedder):
    """Remembers what it was asked to embed; can be told to fail."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.fails_on = ""

    async def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if self.fails_on and any(self.fails_on in text for text in texts):
            raise DependencyDownError("the embedder is away", dependency="embedder")
        self.texts += texts
        return await super().embed_passages(texts)


@pytest.fixture
def embedder() -> CountingEmbedder:
    return CountingEmbedder()


@pytest.fixture
def knowledge(embedder: CountingEmbedder) -> Knowledge:
    return replace(fake_knowledge(), embedder=embedder)


async def run(knowledge: Knowledge, items: Sequence[object], *, prune: bool = False) -> IngestReport:
    return await ingest(ListSource(items), knowledge, SETTINGS, prune=prune)  # type: ignore[arg-type]


LONG = (
    "## First\n\n" + "The keeper trims the lamp at dusk. " * 8 + "\n\n## Second\n\n" + "Gulls nest on the rock. " * 12
)


async def test_first_run_reports_what_it_found(knowledge: Knowledge) -> None:
    report = await run(knowledge, ISLAND)
    assert (report.added, report.redirects, report.changed, report.unchanged) == (6, 3, 0, 0)
    assert report.dangling_redirects == ("Jon → Jon Holm", "Nowhere → No Such Page")
    assert report.embedded == report.chunks == 6
    assert report.entities > 6
    assert (await verify(knowledge)).clean


async def test_second_run_writes_nothing(knowledge: Knowledge, embedder: CountingEmbedder) -> None:
    await run(knowledge, ISLAND)
    embedder.texts.clear()
    report = await run(knowledge, ISLAND)
    assert (report.unchanged, report.added, report.changed, report.chunks, report.linked) == (9, 0, 0, 0, 0)
    assert embedder.texts == []


async def test_an_edit_embeds_only_the_changed_chunks(knowledge: Knowledge, embedder: CountingEmbedder) -> None:
    await run(knowledge, [*ISLAND, page("Lamp", LONG)])
    before = (await _manifest(knowledge, "Lamp")).chunk_ids
    embedder.texts.clear()
    report = await run(knowledge, [*ISLAND, page("Lamp", LONG.replace("Gulls nest", "Terns nest", 1))])
    after = (await _manifest(knowledge, "Lamp")).chunk_ids
    assert report.changed == 1
    assert report.embedded == len(embedder.texts) == len(set(after) - set(before)) < len(after)
    assert await knowledge.vectors.ids(WIKI) == knowledge.state.live_ids()
    assert (await verify(knowledge)).clean


async def test_the_same_text_under_two_titles_is_two_pages(knowledge: Knowledge) -> None:
    twice = [page("One", "The same text about a lamp."), page("Two", "The same text about a lamp.")]
    assert (await run(knowledge, twice)).added == 2
    assert (await run(knowledge, twice)).unchanged == 2


async def test_prune_deletes_everywhere(knowledge: Knowledge) -> None:
    await run(knowledge, ISLAND)
    report = await run(knowledge, ISLAND[1:], prune=True)
    assert report.deleted == 1
    assert not (await knowledge.graph.find_entities(["mercury ship"])).get("mercury ship")
    assert (await verify(knowledge)).clean


async def test_without_prune_a_missing_page_stays(knowledge: Knowledge) -> None:
    await run(knowledge, ISLAND)
    assert (await run(knowledge, ISLAND[1:])).deleted == 0
    assert await _manifest(knowledge, "Mercury (ship)")


async def test_a_page_that_failed_is_not_a_deleted_page(knowledge: Knowledge) -> None:
    await run(knowledge, ISLAND)
    failed = FailedPage(key="Mercury (ship)", reason="unreadable")
    report = await run(knowledge, [failed, *ISLAND[1:]], prune=True)
    assert (report.deleted, report.failed) == (0, (failed,))
    assert await _manifest(knowledge, "Mercury (ship)")


async def test_a_source_that_breaks_off_keeps_what_was_read_and_prunes_nothing(knowledge: Knowledge) -> None:
    await run(knowledge, ISLAND)
    broken = ListSource([page("New", "A new page about a lamp.")], error=SourceError("the file is truncated"))
    report = await ingest(broken, knowledge, SETTINGS, prune=True)
    assert (report.added, report.deleted, report.partial) == (1, 0, True)
    assert report.failed[0].reason == "the file is truncated"


async def test_a_source_that_cannot_be_read_raises(knowledge: Knowledge) -> None:
    with pytest.raises(SourceError, match="no such"):
        await ingest(ListSource([], error=SourceError("no such file")), knowledge, SETTINGS)


async def test_a_page_becomes_a_redirect(knowledge: Knowledge) -> None:
    await run(knowledge, ISLAND)
    await run(knowledge, [redirect("Gull Rock", "Port Vale"), *(p for p in ISLAND if p.title != "Gull Rock")])
    assert [e.name for e in (await knowledge.graph.find_entities(["gull rock"]))["gull rock"]] == ["Port Vale"]
    assert (await verify(knowledge)).clean


async def test_talk_pages_and_templates_are_not_embedded(knowledge: Knowledge) -> None:
    pages = [page("Talk:Lamp", "I think so. Signed, Jon", page_type=PageType.TALK), *ISLAND]
    report = await run(knowledge, pages)
    assert report.added == 7
    assert report.chunks == 6


async def test_second_page_of_a_key_and_long_pages_are_named(knowledge: Knowledge) -> None:
    items = [page("A", "First text of a."), page("A", "Second text of a."), SkippedPage(key="B", reason="empty")]
    settings = SETTINGS.model_copy(update={"max_page_chars": 1000})
    report = await ingest(ListSource([*items, page("C", "x" * 2000)]), knowledge, settings)
    assert [skipped.reason for skipped in report.skipped] == ["a second page of this key", "empty"]
    assert [failed.key for failed in report.failed] == ["C"]
    assert "max_page_chars" in report.failed[0].reason


async def test_no_entity_is_a_warning(knowledge: Knowledge) -> None:
    report = await run(knowledge, [page("!!!", "nothing here has a name")])
    assert any("no entity" in warning for warning in report.warnings)


async def test_a_failure_between_batches_resumes(knowledge: Knowledge, embedder: CountingEmbedder) -> None:
    many = [*(page(f"Lamp {n}", f"Lamp number {n} burns oil.") for n in range(30)), *ISLAND]
    embedder.fails_on = "Gull Rock is a reef"
    with pytest.raises(DependencyDownError):
        await run(knowledge, many)
    assert 0 < len(knowledge.state.live_ids()) < 36
    embedder.fails_on = ""
    report = await run(knowledge, many)
    assert report.unchanged + report.added + report.redirects == 39
    assert report.unchanged > 0
    assert (await verify(knowledge)).clean


async def test_recover_takes_back_a_batch_cut_short(knowledge: Knowledge) -> None:
    await run(knowledge, ISLAND)
    live = sorted(knowledge.state.live_ids())
    points = dict(await knowledge.vectors.vectors(WIKI, live))
    knowledge.state.begin_batch(["00000000-0000-0000-0000-000000000001"], live[:1])
    assert points
    assert await recover(knowledge) == 2
    assert knowledge.state.unfinished() == set()
    assert (await verify(knowledge)).clean


async def test_verify_counts_and_repair_mends(knowledge: Knowledge) -> None:
    await run(knowledge, ISLAND)
    live = sorted(knowledge.state.live_ids())
    await knowledge.vectors.delete(WIKI, live[:2])
    await knowledge.graph.set_mentions({live[3]: []})
    await knowledge.graph.remove_chunks(live[4:5])
    report = await verify(knowledge)
    assert {d.kind: d.count for d in report.disagreements} == {
        "live chunks without a vector": 2,
        "live chunks that the graph does not know": 1,
        "chunks whose mentions are not what their text says": 2,
    }
    assert (await repair(knowledge, SETTINGS)).clean


async def test_removing_pages_by_hand_is_clean(knowledge: Knowledge) -> None:
    await run(knowledge, ISLAND)
    manifest = await _manifest(knowledge, "Gull Rock")
    await remove_pages(knowledge, [(manifest.page_id, manifest.chunk_ids)])
    await run(knowledge, [])
    assert (await verify(knowledge)).clean


async def test_progress_is_told(knowledge: Knowledge) -> None:
    seen: list[Progress] = []
    await ingest(ListSource(ISLAND), knowledge, SETTINGS, on_progress=seen.append)
    assert [p.stage for p in seen][-1] == "linking"
    assert seen[-1].pages == 9


async def _manifest(knowledge: Knowledge, title: str):  # type: ignore[no-untyped-def]
    return knowledge.state.manifests([f"w:{title}"])[f"w:{title}"]


async def test_a_page_that_names_its_language_keeps_it(knowledge: Knowledge) -> None:
    text = "The keeper of the light was the brother of the ferryman."
    await run(knowledge, [replace(page("Said", text), language="fr"), replace(page("Unsaid", text), language="")])
    assert (await _manifest(knowledge, "Said")).language == "fr"
    assert (await _manifest(knowledge, "Unsaid")).language == "en"
