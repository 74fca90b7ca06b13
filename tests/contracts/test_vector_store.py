"""What every vector store must do."""

from __future__ import annotations

import asyncio
import math
import os
import random
import uuid
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from qdrant_client import AsyncQdrantClient

from graph.errors import StoreVersionError
from graph.model import PageType, SearchFilter, VectorPoint, VectorRankings, chunk_id
from graph.protocols import VectorStore
from graph.qdrant_edge_store import QdrantEdge
from graph.qdrant_points import EXACT_UP_TO
from graph.qdrant_server_store import QdrantServer
from tests.fakes import FakeVectors, HashEmbedder
from tests.places import quick_folder
from tests.services.qdrant_stand_in import qdrant_process

# What the client's local engine says of each setting of an index that it has not.
pytestmark = pytest.mark.filterwarnings("ignore:.*local.*Qdrant:UserWarning", "ignore:.*local mode:UserWarning")

DIMENSION = 32
BACKENDS = ("fake", "qdrant-edge", "qdrant-local", "qdrant-http", "qdrant-server")
EMBEDDER = HashEmbedder(DIMENSION)


@pytest.fixture(scope="module")
def stand_in_url() -> Iterator[str]:
    with qdrant_process() as process:
        yield process.url


def backend(name: str, folder: Path, request: pytest.FixtureRequest, *, exact_up_to: int = EXACT_UP_TO) -> VectorStore:
    """An empty one. Those that share a server have a prefix of their own there."""
    if name == "fake":
        return FakeVectors()
    if name == "qdrant-edge":
        return QdrantEdge(folder / "vectors", dimension=DIMENSION, exact_up_to=exact_up_to)
    made = partial(
        QdrantServer,
        dimension=DIMENSION,
        language="english",
        prefix=f"test-{uuid.uuid4().hex[:8]}",
        exact_up_to=exact_up_to,
    )
    if name == "qdrant-local":
        return made("http://local", client=AsyncQdrantClient(":memory:"))
    if name == "qdrant-http":
        url = request.getfixturevalue("stand_in_url")
    elif not (url := os.environ.get("QDRANT_URL", "")):
        # Not a failure under TRIVET_REQUIRE_SERVICES either.
        pytest.skip("QDRANT_URL is not set, and no package registry has a Qdrant server that could be started")
    key = os.environ.get("QDRANT_API_KEY", "") if name == "qdrant-server" else ""
    return made(url, api_key=key, seconds=60)


@asynccontextmanager
async def opened(
    name: str, request: pytest.FixtureRequest, *, exact_up_to: int = EXACT_UP_TO
) -> AsyncIterator[VectorStore]:
    with quick_folder() as folder:
        store = backend(name, folder, request, exact_up_to=exact_up_to)
        yield store
        if isinstance(store, QdrantServer):
            await store.clear()
        await store.close()


@pytest.fixture(params=BACKENDS)
async def store(request: pytest.FixtureRequest) -> AsyncIterator[VectorStore]:
    async with opened(request.param, request) as one:
        yield one


def key(name: str) -> str:
    return chunk_id("w:page", name, 0)


async def point(name: str, text: str, dense: Sequence[float] | None = None, **payload: str | list[str]) -> VectorPoint:
    vector = await EMBEDDER.embed_question(text) if dense is None else np.array(dense, np.float32)
    return VectorPoint(
        chunk_id=key(name),
        dense=vector,
        text=text,
        payload={"source": "w", "page_id": "w:page", "language": "en", **payload},
    )


def axis(number: int) -> list[float]:
    return [1.0 if place == number else 0.0 for place in range(DIMENSION)]


async def ask(store: VectorStore, text: str, *, limit: int = 10, where: SearchFilter | None = None) -> VectorRankings:
    return await store.search("wiki", dense=await EMBEDDER.embed_question(text), text=text, limit=limit, where=where)


async def test_an_unknown_collection_is_empty(store: VectorStore) -> None:
    assert await ask(store, "anything") == VectorRankings(fused=(), dense=(), sparse=())
    assert await store.ids("wiki") == set()
    assert await store.vectors("wiki", [key("a")]) == {}
    await store.delete("wiki", [key("a")])
    await store.upsert("wiki", [])
    await store.optimize()


async def test_what_was_stored_is_found_by_meaning_and_by_word(store: VectorStore) -> None:
    texts = {
        "farm": "Animals take over a farm",
        "sea": "Ships cross the stormy ocean",
        "moon": "Astronauts walk on lunar dust",
    }
    await store.upsert("wiki", [await point(name, text) for name, text in texts.items()])
    assert await store.ids("wiki") == {key(name) for name in texts}
    for name, question in (("farm", "animals farm"), ("sea", "stormy ocean"), ("moon", "lunar dust")):
        found = await ask(store, question)
        assert found.fused[0].key == found.dense[0].key == found.sparse[0].key == key(name)
        assert {scored.key for scored in found.dense} == {key(other) for other in texts}
        assert [scored.key for scored in found.sparse] == [key(name)]
        for ranking in (found.fused, found.dense, found.sparse):
            scores = [scored.score for scored in ranking]
            assert scores == sorted(scores, reverse=True)
            assert all(map(math.isfinite, scores))
        assert found.dense[0].score <= 1.0001


async def test_dense_scores_are_cosines(store: VectorStore) -> None:
    await store.upsert("wiki", [await point("a", "x", axis(0)), await point("b", "y", axis(1))])
    asked = np.array(axis(0), np.float32) * 0.6 + np.array(axis(1), np.float32) * 0.8
    found = await store.search("wiki", dense=asked, text="", limit=5)
    assert [scored.key for scored in found.dense] == [key("b"), key("a")]
    assert [scored.score for scored in found.dense] == pytest.approx([0.8, 0.6], abs=1e-5)
    assert found.sparse == ()


async def test_fusion_is_by_rank(store: VectorStore) -> None:
    await store.upsert(
        "wiki",
        [
            await point("both", "alpha beta", axis(1)),
            await point("dense", "gamma", axis(0)),
            await point("sparse", "alpha alpha beta beta", axis(9)),
        ],
    )
    asked = np.array(axis(0), np.float32) * 0.8 + np.array(axis(1), np.float32) * 0.6
    found = await store.search("wiki", dense=asked, text="alpha beta", limit=5)
    scores = {scored.key: scored.score for scored in found.fused}
    assert scores[key("both")] == pytest.approx(1 / 62 + 1 / 62)
    assert scores[key("dense")] == pytest.approx(1 / 61)
    assert scores[key("sparse")] == pytest.approx(1 / 61 + 1 / 63)
    assert [scored.key for scored in found.fused] == [key("sparse"), key("both"), key("dense")]


async def test_without_an_embedder_words_alone_rank(store: VectorStore) -> None:
    await store.upsert("wiki", [await point("a", "red apple"), await point("b", "green pear")])
    found = await store.search("wiki", dense=None, text="pear", limit=5)
    assert found.dense == ()
    assert [scored.key for scored in found.sparse] == [scored.key for scored in found.fused] == [key("b")]


@pytest.mark.parametrize(
    "text", ["", "   ", "?!…", "AC/DC", "\0", "a\0b", "\ud800", '"', "x" * 100_000, "word " * 20_000, "🙂"]
)
async def test_any_text_can_be_asked_for_and_stored(store: VectorStore, text: str) -> None:
    await store.upsert("wiki", [await point("plain", "simple speech"), await point("odd", text, axis(3))])
    found = await store.search("wiki", dense=np.array(axis(3), np.float32), text=text, limit=5)
    assert found.dense[0].key == found.fused[0].key == key("odd")
    assert len(found.dense) == 2
    assert (await store.search("wiki", dense=None, text="simple speech", limit=5)).sparse[0].key == key("plain")


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("Zürich cafés", "zurich CAFÉS"),
        ("北京大学在中国", "北京"),
        ("東京タワーに行く", "タワー"),
        ("AC/DC played", "ac/dc"),
    ],
)
async def test_words_are_found_in_every_script(store: VectorStore, text: str, asked: str) -> None:
    await store.upsert("wiki", [await point("it", text), await point("other", "nothing of the kind")])
    found = await store.search("wiki", dense=None, text=asked, limit=5)
    assert [scored.key for scored in found.sparse] == [key("it")]


async def test_a_word_is_no_substring(store: VectorStore) -> None:
    await store.upsert("wiki", [await point("a", "written by author2000")])
    assert (await store.search("wiki", dense=None, text="author", limit=5)).sparse == ()


async def test_upserting_again_replaces(store: VectorStore) -> None:
    await store.upsert("wiki", [await point("a", "old words", source="x"), await point("b", "others")])
    for _ in range(2):
        await store.upsert("wiki", [await point("a", "new text", axis(5), source="y")])
    assert await store.ids("wiki") == {key("a"), key("b")}
    assert (await store.search("wiki", dense=None, text="old", limit=5)).sparse == ()
    assert (await store.search("wiki", dense=None, text="new", limit=5)).sparse[0].key == key("a")
    assert (
        await store.search("wiki", dense=None, text="new", limit=5, where=SearchFilter(sources=("x",)))
    ).sparse == ()
    assert (await store.vectors("wiki", [key("a")]))[key("a")].tolist() == pytest.approx(axis(5))


async def test_what_was_deleted_is_gone_everywhere(store: VectorStore) -> None:
    await store.upsert("wiki", [await point("a", "one word"), await point("b", "one more")])
    for _ in range(2):
        await store.delete("wiki", [key("a"), key("never there")])
    assert await store.ids("wiki") == {key("b")}
    assert await store.vectors("wiki", [key("a")]) == {}
    found = await ask(store, "one word")
    assert {scored.key for ranking in (found.fused, found.dense, found.sparse) for scored in ranking} == {key("b")}


async def test_vectors_come_back_for_those_that_exist(store: VectorStore) -> None:
    points = [await point(f"p{number}", f"text {number}") for number in range(2500)]
    await store.upsert("wiki", points)
    found = await store.vectors("wiki", [*(each.chunk_id for each in points), key("none"), "no uuid"])
    assert found.keys() == {each.chunk_id for each in points} == await store.ids("wiki")
    first = found[points[7].chunk_id]
    assert first.dtype == np.float32
    assert first == pytest.approx(points[7].dense, abs=1e-6)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (SearchFilter(), {"a", "b", "c"}),
        (SearchFilter(sources=("docs",)), {"b"}),
        (SearchFilter(sources=("docs", "wiki")), {"a", "b", "c"}),
        (SearchFilter(page_types=(PageType.LIST, PageType.STUB)), {"b", "c"}),
        (SearchFilter(languages=("fr",)), {"c"}),
        (SearchFilter(categories=("Novels",)), {"a", "c"}),
        (SearchFilter(categories=("Pigs", "Ships")), {"a", "b"}),
        (SearchFilter(sources=("wiki",), categories=("Novels",), languages=("en",)), {"a"}),
        (SearchFilter(categories=("Novel",)), set()),
        (SearchFilter(sources=("\ud800",)), set()),
    ],
)
async def test_every_ranking_honours_the_filter(store: VectorStore, where: SearchFilter, expected: set[str]) -> None:
    await store.upsert(
        "wiki",
        [
            await point("a", "same text", source="wiki", page_type="article", categories=["Novels", "Pigs"]),
            await point("b", "same text", source="docs", page_type="list", categories=["Ships"]),
            await point("c", "same text", source="wiki", page_type="stub", language="fr", categories=["Novels"]),
        ],
    )
    found = await ask(store, "same text", where=where)
    for ranking in (found.fused, found.dense, found.sparse):
        assert {scored.key for scored in ranking} == {key(name) for name in expected}


async def test_ties_are_ordered_by_id(store: VectorStore) -> None:
    names = [f"n{number}" for number in range(12)]
    await store.upsert("wiki", [await point(name, "the very same words") for name in names])
    found = await ask(store, "very same words", limit=6)
    expected = sorted(key(name) for name in names)[:6]
    assert [scored.key for scored in found.dense] == [scored.key for scored in found.sparse] == expected


async def test_no_more_than_asked_for(store: VectorStore) -> None:
    await store.upsert("wiki", [await point(f"n{number}", f"word w{number}") for number in range(30)])
    for limit in (0, 1, 7, 1000):
        found = await ask(store, "word", limit=limit)
        assert len(found.fused) == len(found.dense) == len(found.sparse) == min(limit, 30)


async def test_collections_are_apart(store: VectorStore) -> None:
    names = ["wiki", "knowledge_a/b", "..", ".", "research_Ü ü", "research_%2E"]
    for name in names:
        await store.upsert(name, [await point(name, f"text of {names.index(name)}")])
    for name in names:
        assert await store.ids(name) == {key(name)}
    await store.optimize()
    await store.delete("wiki", [key("wiki")])
    assert await store.ids("wiki") == set()
    assert await store.ids("..") == {key("..")}


async def test_a_vector_of_another_size_is_refused(store: VectorStore) -> None:
    await store.upsert("wiki", [await point("a", "words")])
    with pytest.raises(StoreVersionError, match=str(DIMENSION)):
        await store.upsert("wiki", [await point("b", "words", [1.0, 0.0])])
    assert await store.ids("wiki") == {key("a")}


async def test_optimising_changes_no_result(store: VectorStore) -> None:
    await store.upsert("wiki", [await point(f"n{number}", f"word w{number} x{number % 7}") for number in range(300)])
    await store.delete("wiki", [key(f"n{number}") for number in range(0, 300, 3)])
    before = await ask(store, "word w100 x3")
    await store.optimize()
    assert await ask(store, "word w100 x3") == before


async def test_searching_and_writing_at_once(store: VectorStore) -> None:
    await store.upsert("wiki", [await point(f"n{number}", "steady word") for number in range(20)])

    async def write(batch: int) -> None:
        points = [await point(f"b{batch}-{number}", "fresh") for number in range(20)]
        await store.upsert("wiki", points)
        await store.delete("wiki", [each.chunk_id for each in points[::2]])

    async def read() -> None:
        for _ in range(10):
            assert len((await store.search("wiki", dense=None, text="steady", limit=50)).sparse) == 20

    await asyncio.gather(*(write(batch) for batch in range(4)), *(read() for _ in range(3)), store.optimize())
    assert len(await store.ids("wiki")) == 60


async def test_clearing_removes_every_collection_and_the_store_goes_on(store: VectorStore) -> None:
    await store.upsert("wiki", [await point("a", "Animals take over a farm")])
    await store.upsert("notes", [await point("b", "Ships cross the ocean")])
    await store.clear()
    assert await store.ids("wiki") == await store.ids("notes") == set()
    assert (await ask(store, "farm")).fused == ()
    await store.clear()
    await store.upsert("wiki", [await point("c", "Astronauts walk on lunar dust")])
    assert await store.ids("wiki") == {key("c")}


async def test_weights_are_given_back_as_they_are_searched_with(store: VectorStore) -> None:
    await store.upsert("wiki", [await point("a", "Animals take over a farm"), await point("b", "")])
    found = await store.weights("wiki", [key("a"), key("b"), key("nobody")])
    assert set(found) == {key("a"), key("b")}
    assert len(found[key("a")]) >= 3  # the stop words may be left out
    assert all(weight > 0 for weight in found[key("a")].values())
    assert await store.weights("nothing", [key("a")]) == {}


WORDS = "river stone crown tower harbour winter copper lantern meadow falcon anchor velvet thunder ivory candle".split()


def random_points(count: int) -> list[VectorPoint]:
    """Each text is of a length of its own, so that BM25 scores no two alike: the engine counts such ranks anyhow."""
    chance = random.Random(7)
    numbers = np.random.default_rng(7)
    points = []
    for number in range(count):
        words = chance.choices(WORDS, k=chance.randint(3, 12))
        points.append(
            VectorPoint(
                chunk_id=key(f"random {number}"),
                dense=numbers.standard_normal(DIMENSION).astype(np.float32),
                text=" ".join([*words, *["filler"] * (12 + number - len(words))]),
                payload={"source": chance.choice("ab"), "language": "en", "categories": chance.sample(WORDS, 2)},
            )
        )
    return points


@pytest.mark.parametrize("name", ["qdrant-local", "qdrant-http", "qdrant-server"])
async def test_a_server_ranks_as_the_embedded_engine_does(name: str, request: pytest.FixtureRequest) -> None:
    chance, numbers = random.Random(8), np.random.default_rng(8)
    points = random_points(400)
    async with opened(name, request) as server, opened("qdrant-edge", request) as edge:
        for store in (server, edge):
            await store.upsert("wiki", points)
        for round_ in range(40):
            text = " ".join(chance.sample(WORDS, chance.randint(1, 4)))
            dense = None if round_ % 8 == 7 else numbers.standard_normal(DIMENSION).astype(np.float32)
            where = SearchFilter(sources=("a",)) if round_ % 3 == 0 else SearchFilter()
            limit = (1, 5, 30)[round_ % 3]
            got = await server.search("wiki", dense=dense, text=text, limit=limit, where=where)
            expected = await edge.search("wiki", dense=dense, text=text, limit=limit, where=where)
            for ranking in ("fused", "dense", "sparse"):
                mine, theirs = getattr(got, ranking), getattr(expected, ranking)
                assert [scored.key for scored in mine] == [scored.key for scored in theirs], (ranking, text)
                assert [scored.score for scored in mine] == pytest.approx([s.score for s in theirs], rel=1e-4)
            assert got.fused


async def test_equal_scores_are_fused_in_the_order_of_their_keys(store: VectorStore) -> None:
    """However the points lie: a store that was moved or rebuilt answers the same."""
    names = [f"lamp {n}" for n in range(12)]
    for name in sorted(names, key=lambda name: key(name), reverse=True):
        await store.upsert("wiki", [await point(name, "A lamp")])
    found = await store.search("wiki", dense=None, text="lamp", limit=12)
    assert [scored.key for scored in found.sparse] == sorted(map(key, names))
    assert [scored.key for scored in found.fused] == sorted(map(key, names))
