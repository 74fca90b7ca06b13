"""Whatever the order in which pages come and go, the graph ends the same (mission.md §2.7)."""

from __future__ import annotations

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from graph.graph_model import NeighbourhoodBounds
from graph.knowledge import Knowledge
from graph.model import Page
from ingestion.ingest import ingest
from ingestion.verify import verify
from tests.ingestion.small_wiki import ISLAND, SETTINGS, ListSource, fake_knowledge


async def graph_of(knowledge: Knowledge) -> dict[str, object]:
    """All that the graph says, in a form that can be compared."""
    around = await knowledge.graph.neighbourhood([], [], NeighbourhoodBounds())
    chunks = await knowledge.graph.mentions_of(sorted(await asyncio.to_thread(knowledge.state.live_ids)))
    edges = {
        "title": sorted(zip(around.title_chunk.tolist(), around.title_entity.tolist(), strict=True)),
        "link": sorted(zip(around.link_chunk.tolist(), around.link_entity.tolist(), strict=True)),
    }
    return {
        "mentions": dict(chunks),
        "titled": dict(await knowledge.graph.titled_entities()),
        "entities": around.entity_ids,
        "names": around.entity_names,
        "frequency": around.chunk_frequency.tolist(),
        **edges,
    }


async def ingest_all(pages: tuple[Page, ...]) -> Knowledge:
    knowledge = fake_knowledge()
    await ingest(ListSource(pages), knowledge, SETTINGS, prune=True)
    return knowledge


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[Page, ...]]:
    """Runs that each show some of the pages, in any order; the last shows all but what was deleted."""
    final = draw(st.permutations(ISLAND))
    final = final[: draw(st.integers(1, len(final)))]
    runs = draw(st.lists(st.lists(st.sampled_from(ISLAND), unique_by=lambda page: page.key), max_size=3))
    return [*(tuple(run) for run in runs), tuple(final)]


@settings(max_examples=25, deadline=None)
@given(histories())
def test_any_history_ends_in_the_same_graph(history: list[tuple[Page, ...]]) -> None:
    async def check() -> None:
        knowledge = fake_knowledge()
        for run in history:
            await ingest(ListSource(run), knowledge, SETTINGS, prune=True)
        at_once = await ingest_all(tuple(sorted(history[-1], key=lambda page: page.key)))
        assert await graph_of(knowledge) == await graph_of(at_once)
        assert (await verify(knowledge)).disagreements == ()

    asyncio.run(check())


async def test_one_by_one_is_the_same_as_at_once() -> None:
    one_by_one = fake_knowledge()
    for page in reversed(ISLAND):
        await ingest(ListSource([page]), one_by_one, SETTINGS)
    assert await graph_of(one_by_one) == await graph_of(await ingest_all(ISLAND))


async def test_homonyms_stay_apart() -> None:
    knowledge = await ingest_all(ISLAND)
    found = await knowledge.graph.find_entities(["mercury", "mercury ship", "vale", "jon holm"])
    assert [entity.id for entity in found["mercury"]] == ["mercury planet", "mercury ship"]
    assert [entity.name for entity in found["vale"]] == ["Port Vale"]
    assert not found["jon holm"][0].titled
