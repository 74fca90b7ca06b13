"""What is kept beside the wiki: it fills gaps, says where it is from, and never crowds out the owner's pages."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from config.personas import load_personas
from config.settings import KnowledgeSettings, SearchSettings, Settings
from graph.errors import DependencyDownError, StoreError
from graph.knowledge import WIKI
from graph.model import Evidence, Scored, SearchFilter, VectorPoint, VectorRankings
from graph.recognizer import Recognizer
from graph.research import EVERGREEN, Fact, FactState, KeptOrigin, KeptPassage, ResearchPage, Topic
from graph.sqlite_research import SqliteResearch
from ingestion.ingest import ingest
from server.backends import Backends
from server.kept_leg import Kept, kept_hits
from server.model import Question, SearchResult
from server.research.shelf import Shelf
from server.search import search
from tests.fake_research import FakeResearch
from tests.fake_state import FakeState
from tests.fakes import FakeGraph, FakeVectors, HashEmbedder
from tests.ingestion.small_wiki import ISLAND, SETTINGS, ListSource, page

TOPIC = Topic(slug="gulls", title="Gulls", category="birds")
GULLS = ResearchPage(
    url="https://www.w3.org/gulls",
    title="Gulls",
    passages=("Herring gulls nest on cliffs in May.", "They eat fish."),
    published="2024-05-06",
)
FACT = Fact(id="f", topic="gulls", category="birds", text="", quote="", url="https://nobody.example/f", title="Fact")
NEST = "Where do herring gulls nest in May?"


class CountingEmbedder(HashEmbedder):
    def __init__(self) -> None:
        super().__init__(256)
        self.questions = 0
        self.down = False

    async def embed_question(self, question: str) -> NDArray[np.float32]:
        self.questions += 1
        await asyncio.sleep(0.01)
        if self.down:
            raise DependencyDownError("the embedder is away", dependency="ollama")
        return await super().embed_question(question)


async def opened(tmp_path: Path, *, threshold: float = 0.4, **changes: object) -> Backends:
    """Fakes with the small wiki, and a shelf with nothing on it."""
    search_settings = SearchSettings(vector_threshold=threshold, evidence_limit=10, vector_seconds=1.0)
    vectors, embedder = changes.pop("vectors", None) or FakeVectors(), CountingEmbedder()
    store = changes.pop("store", None) or FakeResearch()
    parts: dict[str, object] = {
        "settings": Settings(home=tmp_path, search=search_settings),
        "state": FakeState(),
        "vectors": vectors,
        "graph": FakeGraph(),
        "embedder": embedder,
        "recognizer": Recognizer(()),
        "reranker": None,
        "chat": None,
        "web": None,
        "fetcher": None,
        "personas": load_personas(None),
        "shelf": Shelf(store, vectors, embedder),  # type: ignore[arg-type]
    }
    backends = Backends(**{**parts, **changes})  # type: ignore[arg-type]
    await ingest(ListSource(ISLAND), backends.knowledge, SETTINGS)
    return backends


def shelf_of(backends: Backends) -> Shelf:
    assert backends.shelf is not None
    return backends.shelf


async def researched(backends: Backends, *pages: ResearchPage) -> None:
    shelf = shelf_of(backends)
    if shelf.store.topic(TOPIC.slug) is None:
        shelf.store.add_topic(TOPIC)
    for each in pages:
        await shelf.put_page(TOPIC, each)


async def approved(backends: Backends, *facts: Fact) -> None:
    await researched(backends)
    shelf = shelf_of(backends)
    shelf.store.add_facts(facts)
    for fact in facts:
        await shelf.put_fact(replace(fact, state=FactState.APPROVED), version=1)


def origins(found: SearchResult) -> list[str]:
    return [evidence.origin for evidence in found.evidence]


def beside(found: SearchResult) -> list[Evidence]:
    """What is not of the wiki."""
    return [evidence for evidence in found.evidence if evidence.origin != "wiki"]


async def test_research_fills_a_gap_and_says_where_it_is_from(tmp_path: Path) -> None:
    backends = await opened(tmp_path)
    await researched(backends, GULLS)
    found = await search(Question(text=NEST), backends)
    assert found.legs["knowledge"] == "ok"
    first = beside(found)[0]
    assert first.text == "Herring gulls nest on cliffs in May."
    assert (first.origin, first.source, first.url) == ("research", "gulls", GULLS.url)
    assert (first.title, first.modified, first.page_id) == ("Gulls", "2024-05-06", GULLS.url)
    assert first.provenance.domain_category == "standards"
    assert first.provenance.boost == pytest.approx(0.95)
    ranks = {rank.ranking: rank.rank for rank in first.provenance.ranks}
    assert ranks == {"research": 1, "dense": 1, "sparse": 1}


async def test_where_nothing_is_kept_there_is_no_such_leg(tmp_path: Path) -> None:
    empty, none = await opened(tmp_path), await opened(tmp_path, shelf=None)
    for backends in (empty, none):
        found = await search(Question(text=NEST), backends)
        assert found.legs == {"vector": "ok", "graph": "ok", "web": "off", "reranker": "off"}
    await researched(empty, GULLS)
    unlimited = empty.settings
    none_wanted = unlimited.model_copy(update={"knowledge": KnowledgeSettings(kept_limit=0)})
    assert "knowledge" not in (await search(Question(text=NEST), replace(empty, settings=none_wanted))).legs


async def test_both_legs_share_one_embedding(tmp_path: Path) -> None:
    backends = await opened(tmp_path)
    await researched(backends, GULLS)
    await search(Question(text=NEST), backends)
    assert isinstance(backends.embedder, CountingEmbedder)
    assert backends.embedder.questions == 1


async def test_a_filter_leaves_it_out_and_says_so(tmp_path: Path) -> None:
    backends = await opened(tmp_path)
    await researched(backends, GULLS)
    found = await search(Question(text=NEST, where=SearchFilter(sources=("w",))), backends)
    assert found.legs["knowledge"] == "off: a filter is set, which only pages of the wiki can pass"
    assert "research" not in origins(found)


# --- small collections ------------------------------------------------------------------------------------------------

KEEPERS = "Anna Bert Carl Dora Emil Fritz Greta Hans Ida Karl Lena Max".split()
LIGHTS = [
    page(
        f"Light of {name}",
        f"{name} was keeper of this lighthouse; on the coast of {name.upper()}LAND the keeper lit it with oil, and "
        f"{' '.join(f'{name}{n}' for n in range(25))} came to see it.",
    )
    for name in KEEPERS
]
LIT = "Which lighthouse keeper lit the coast with oil?"
MAXIMS = ("Time heals.", "Water is wet on a coast.", "Iron rusts.", "Bread is baked.", "Stone is heavy.")


async def crowded(tmp_path: Path, threshold: float) -> Backends:
    """A wiki that knows, five evergreen facts and five hundred passages of research that do not."""
    backends = await opened(tmp_path, threshold=threshold)
    await ingest(ListSource(LIGHTS, name="lights"), backends.knowledge, SETTINGS)
    for n in range(50):
        passages = tuple(f"Gull number {n * 10 + m} was seen on a coast with {m} chicks." for m in range(10))
        await researched(backends, replace(GULLS, url=f"https://www.w3.org/{n}", passages=passages))
    facts = [replace(FACT, id=f"f{n}", text=text, evergreen=True) for n, text in enumerate(MAXIMS)]
    await approved(backends, *facts)
    return backends


async def test_what_has_nothing_to_do_with_the_question_gives_nothing(tmp_path: Path) -> None:
    backends = await crowded(tmp_path, 0.6)
    assert {name: len(shelf_of(backends).store.ids(name)) for name in shelf_of(backends).store.collections()} == {
        "knowledge_evergreen": 5,
        "research_birds": 500,
    }
    found = await search(Question(text=LIT), backends)
    assert found.legs["knowledge"] == "ok"
    assert set(origins(found)) == {"wiki"}
    assert found.evidence[0].title.startswith("Light")


async def test_even_where_no_threshold_is_set_the_wiki_stays_in_front(tmp_path: Path) -> None:
    """A model whose cosines are all high: then each collection has its five best, of which none is nearer."""
    backends = await crowded(tmp_path, -1.0)
    found = await search(Question(text=LIT, limit=30), backends)
    places = origins(found)
    assert places[:10] == ["wiki"] * 10
    assert {"research", "evergreen"} <= set(places)


async def test_among_five_hundred_the_one_that_answers_is_found(tmp_path: Path) -> None:
    backends = await crowded(tmp_path, 0.4)
    await researched(backends, GULLS)
    found = await search(Question(text=NEST), backends)
    best = beside(found)[0]
    assert (best.origin, best.text, best.provenance.ranks[0].rank) == ("research", GULLS.passages[0], 1)


async def test_a_fact_that_answers_is_found_beside_all_that(tmp_path: Path) -> None:
    backends = await crowded(tmp_path, 0.4)
    await approved(backends, replace(FACT, id="new", text="Herring gulls nest on cliffs in May."))
    found = await search(Question(text=NEST), backends)
    best = beside(found)[0]
    assert (best.origin, best.source, best.provenance.ranks[0].rank) == ("knowledge", "gulls", 1)
    assert best.provenance.boost == pytest.approx(0.85)  # whoever approved it has judged its source


def kept_of(origin: KeptOrigin, near: Sequence[float]) -> Kept:
    passages = {
        f"{origin}-{n}": KeptPassage(
            id=f"{origin}-{n}", collection=origin, origin=origin, topic="t", url="https://x.org", title="", text=""
        )
        for n in range(len(near))
    }
    return Kept(passages=passages, dense=dict(zip(passages, near, strict=True)), sparse={})


def wiki_of(*near: float) -> VectorRankings:
    ranking = tuple(Scored(key=f"wiki-{n}", score=score) for n, score in enumerate(near))
    return VectorRankings(fused=ranking, dense=ranking, sparse=())


@pytest.mark.parametrize(
    ("near", "places"),
    [
        ([0.95, 0.92], [1, 2]),  # nearer than all of the wiki
        ([0.90, 0.85], [2, 3]),  # as near as its first: the wiki comes first
        ([0.75, 0.10], [4, 4]),  # farther than all of it
    ],
)
def test_a_place_is_what_it_would_be_in_the_wiki(near: list[float], places: list[int]) -> None:
    found = kept_hits(kept_of("evergreen", near), wiki_of(0.9, 0.89, 0.8), KnowledgeSettings(), k=60)
    assert [hit.provenance.ranks[0].rank for hit in found.hits] == places
    assert [hit.score for hit in found.hits] == [1 / (60 + place) for place in places]


def test_each_origin_has_its_own_places_and_no_more_than_its_limit() -> None:
    kept = [kept_of(origin, [0.9, 0.8, 0.7]) for origin in ("research", "knowledge", "evergreen")]
    passages = {key: each for one in kept for key, each in one.passages.items()}
    dense = {key: score for one in kept for key, score in one.dense.items()}
    settings = KnowledgeSettings(kept_limit=2)
    found = kept_hits(Kept(passages=passages, dense=dense, sparse={}), None, settings, k=60)
    assert [hit.key for hit in found.hits] == [
        f"{origin}-{n}" for origin in ("research", "knowledge", "evergreen") for n in range(2)
    ]
    assert set(found.passages) == {hit.key for hit in found.hits}
    assert found.weights == {"research": 1.0, "knowledge": 0.85, "evergreen": 0.7}


async def test_origins_weigh_as_the_settings_the_persona_and_the_domain_say(tmp_path: Path) -> None:
    neutral = load_personas(None)["neutral"]
    sober = neutral.model_copy(update={"name": "sober", "source_weights": {"research": 0.1, "evergreen": 1.0}})
    plain = neutral.model_copy(update={"name": "plain", "source_weights": {}})
    personas = {persona.name: persona for persona in (neutral, sober, plain)}
    backends = await opened(tmp_path, personas=personas)
    await researched(backends, GULLS)
    await approved(
        backends,
        replace(FACT, id="f1", text="In May herring gulls nest where nobody walks, says a ranger of that shore."),
        replace(FACT, id="f2", text="Where gulls nest in May, herring are near the land for weeks.", evergreen=True),
    )

    async def boosts(persona: str) -> dict[str, float]:
        found = await search(Question(text=NEST, persona=persona), backends)
        return {item.origin: item.provenance.boost for item in found.evidence if item.origin != "wiki"}

    said = {"research": 0.95, "knowledge": 0.85, "evergreen": 0.7}
    assert await boosts("neutral") == pytest.approx(said)
    assert await boosts("plain") == pytest.approx(said)
    assert await boosts("sober") == pytest.approx({**said, "research": 0.1 * 0.95, "evergreen": 1.0})


# --- what may not answer ----------------------------------------------------------------------------------------------


async def test_expired_passages_give_nothing_also_where_they_are_many(tmp_path: Path) -> None:
    now = [datetime(2026, 1, 1, tzinfo=UTC)]
    store = FakeResearch(clock=lambda: now[0])
    backends = await opened(tmp_path, store=store)
    copies = [
        replace(FACT, id=f"f{n}", text=f"Herring gulls nest in May on cliff {n}.", expires="2026-02-01")
        for n in range(150)
    ]
    await approved(backends, *copies, replace(FACT, id="last", text="Herring gulls nest where nobody walks."))
    before = await search(Question(text=NEST), backends)
    assert beside(before)[0].text.startswith("Herring gulls nest in May")
    now[0] = datetime(2026, 2, 2, tzinfo=UTC)
    after = await search(Question(text=NEST), backends)
    kept = [evidence.text for evidence in after.evidence if evidence.origin == "knowledge"]
    assert kept == ["Herring gulls nest where nobody walks."]
    shelf_of(backends).store.delete_fact("last", version=2)
    assert "knowledge" not in (await search(Question(text=NEST), backends)).legs


async def test_what_is_not_in_the_store_is_not_shown(tmp_path: Path) -> None:
    backends = await opened(tmp_path)
    await researched(backends, GULLS)
    stray = VectorPoint(
        chunk_id="00000000-0000-0000-0000-000000000001",
        dense=await backends.embedder.embed_question(NEST),
        text=NEST,
    )
    await backends.vectors.upsert("research_birds", [stray])
    found = await search(Question(text=NEST), backends)
    assert [evidence.text for evidence in beside(found)] == [GULLS.passages[0]]


@pytest.mark.parametrize("url", ["https://spiegel.ltd/gulls", "", "javascript:alert(1)", "not a url"])
async def test_what_cannot_be_cited_is_left_out(tmp_path: Path, url: str) -> None:
    backends = await opened(tmp_path)
    await researched(backends, replace(GULLS, url=url))
    found = await search(Question(text=NEST), backends)
    assert found.legs["knowledge"] == "ok"
    assert set(origins(found)) <= {"wiki"}


async def test_near_copies_of_the_wiki_and_of_each_other_are_one(tmp_path: Path) -> None:
    backends = await opened(tmp_path)
    copy = "Gull Rock is a reef. The keeper of Gull Rock Light was Jon Holm of course."
    await researched(backends, replace(GULLS, title="Gull Rock", passages=(copy,)))
    await approved(backends, replace(FACT, title="Gull Rock", text=copy))
    found = await search(Question(text="Who was the keeper of Gull Rock Light?", limit=20), backends)
    about = [item for item in found.evidence if "The keeper of Gull Rock Light was Jon Holm" in item.text]
    assert [len(item.provenance.duplicates) for item in about] == [2]


# --- what goes wrong --------------------------------------------------------------------------------------------------


class BrokenBeside(FakeVectors):
    """Answers for the wiki alone."""

    seconds = 0.0

    async def search(self, collection: str, **named: object) -> VectorRankings:
        if collection != WIKI:
            await asyncio.sleep(self.seconds)
            raise StoreError("the vectors cannot be read")
        return await super().search(collection, **named)  # type: ignore[arg-type]


async def test_a_failure_is_named_and_the_wiki_answers(tmp_path: Path) -> None:
    vectors = BrokenBeside()
    backends = await opened(tmp_path, vectors=vectors)
    await researched(backends, GULLS)
    question = Question(text="Who was the keeper of Gull Rock Light?")
    found = await search(question, backends)
    assert found.legs["knowledge"] == "unavailable: the vectors cannot be read"
    assert found.evidence[0].title in {"Gull Rock", "Gull Rock Light"}
    vectors.seconds = 5
    assert (await search(question, backends)).legs["knowledge"] == "timeout after 1 s"


async def test_a_store_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    store = SqliteResearch(tmp_path / "research.db")
    backends = await opened(tmp_path, store=store)
    store.close()
    found = await search(Question(text="Who was the keeper of Gull Rock Light?"), backends)
    assert found.legs["knowledge"] == f"unavailable: {tmp_path / 'research.db'} is closed."
    assert found.evidence


async def test_without_the_embedder_words_find_it(tmp_path: Path) -> None:
    backends = await crowded(tmp_path, 0.4)
    await researched(backends, GULLS)
    assert isinstance(backends.embedder, CountingEmbedder)
    backends.embedder.down = True
    found = await search(Question(text=NEST), backends)
    assert found.legs["knowledge"] == "ok (by words alone: the embedder is away)"
    assert beside(found)[0].text == GULLS.passages[0]
    assert "evergreen" not in origins(found)


async def test_evergreen_facts_have_a_collection_of_their_own(tmp_path: Path) -> None:
    backends = await opened(tmp_path)
    await approved(backends, replace(FACT, text="Herring gulls nest on cliffs in May.", evergreen=True))
    assert list(shelf_of(backends).store.collections()) == [EVERGREEN]
    found = await search(Question(text=NEST), backends)
    assert [evidence.origin for evidence in beside(found)] == ["evergreen"]
