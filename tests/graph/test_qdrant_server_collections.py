"""Other people's collections in a Qdrant are left alone, and ours are made as the settings say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from qdrant_client import AsyncQdrantClient, models

from graph.bm25 import LEARNED
from graph.errors import (
    StoreVersionError,
)
from graph.model import SearchFilter, VectorPoint
from graph.qdrant_points import EXACT_UP_TO, FILTERED_FIELDS
from graph.qdrant_server_store import QdrantServer
from tests.graph.qdrant_server_cases import (
    DIMENSION,
    error_of,
    key,
    points,
    search,
    server,
    switched,
)
from tests.services.qdrant_stand_in import QdrantProcess

# --- whose -----------------------------------------------------------------------------------------------------------


async def count(url: str, name: str) -> int:
    client = AsyncQdrantClient(url, check_compatibility=False)
    try:
        return (await client.count(name)).count
    finally:
        await client.close()


async def refused(url: str, name: str, store: QdrantServer, *, dimension: int = DIMENSION) -> str:
    """What reading and writing say; nothing has changed afterwards."""
    before = await count(url, name)
    messages = {
        await error_of(search(store, dimension=dimension), StoreVersionError),
        await error_of(store.upsert("wiki", points(1, dimension=dimension, first=50)), StoreVersionError),
        await error_of(store.delete("wiki", [key(0)]), StoreVersionError),
        await error_of(store.ids("wiki"), StoreVersionError),
        await error_of(store.vectors("wiki", [key(0)]), StoreVersionError),
    }
    assert await count(url, name) == before > 0
    assert len(messages) == 1
    (message,) = messages
    assert name in message
    return message


async def test_a_collection_that_is_not_ours_is_refused_and_left_alone(shared: QdrantProcess, prefix: str) -> None:
    name = f"{prefix}_wiki"
    theirs = AsyncQdrantClient(shared.url, check_compatibility=False)
    await theirs.create_collection(
        name,
        {"dense": models.VectorParams(size=DIMENSION, distance=models.Distance.COSINE)},
        sparse_vectors_config={"sparse": models.SparseVectorParams(modifier=models.Modifier.IDF)},
    )
    await theirs.upsert(name, [models.PointStruct(id=key(0), vector={"dense": [1.0] * DIMENSION})])
    await theirs.close()
    store = server(shared.url, prefix=prefix)
    message = await refused(shared.url, name, store)
    assert "vectors.qdrant_prefix" in message
    assert "not made by Trivet" in message
    await store.upsert("notes", points(2))
    await store.clear()
    assert await store.ids("notes") == set()
    assert await count(shared.url, name) == 1
    await store.close()


async def test_a_collection_with_one_nameless_vector_is_refused_too(shared: QdrantProcess, prefix: str) -> None:
    theirs = AsyncQdrantClient(shared.url, check_compatibility=False)
    await theirs.create_collection(f"{prefix}_wiki", models.VectorParams(size=3, distance=models.Distance.DOT))
    await theirs.close()
    store = server(shared.url, prefix=prefix)
    assert "not made by Trivet" in await error_of(search(store), StoreVersionError)
    await store.close()


async def test_another_wikis_collection_is_refused_and_left_alone(shared: QdrantProcess, prefix: str) -> None:
    first, second = server(shared.url, prefix=prefix, home="h1"), server(shared.url, prefix=prefix, home="h2")
    await first.upsert("wiki", points(3))
    message = await refused(shared.url, f"{prefix}_wiki", second)
    assert all(said in message for said in ("h1", "h2", "vectors.qdrant_prefix", prefix))
    await second.clear()
    assert len(await first.ids("wiki")) == 3
    for store in (first, second):
        await store.close()


async def test_clearing_spares_a_longer_prefix_of_the_same_home(shared: QdrantProcess, prefix: str) -> None:
    short, long = server(shared.url, prefix=prefix), server(shared.url, prefix=f"{prefix}_more")
    for store in (short, long):
        await store.upsert("wiki", points(2))
    await short.clear()
    assert await short.ids("wiki") == set()
    assert len(await long.ids("wiki")) == 2
    for store in (short, long):
        await store.close()


@pytest.mark.parametrize(
    ("changed", "made", "wanted"),
    [
        ({"dimension": 5}, "dimension 8", "dimension 5"),
        ({"language": "german"}, 'BM25 language "english"', 'BM25 language "german"'),
        ({"language": LEARNED}, 'sparse modifier "idf"', 'sparse modifier "none"'),
        ({"model": "new-model"}, 'model "old-model"', 'model "new-model"'),
    ],
)
async def test_what_was_made_otherwise_is_refused_until_rebuilt(
    shared: QdrantProcess, prefix: str, changed: dict[str, Any], made: str, wanted: str
) -> None:
    old = server(shared.url, prefix=prefix, model="old-model")
    await old.upsert("wiki", points(3))
    new = server(shared.url, **{"prefix": prefix, "model": "old-model", **changed})
    dimension = changed.get("dimension", DIMENSION)
    message = await refused(shared.url, f"{prefix}_wiki", new, dimension=dimension)
    assert "trivet ingest --rebuild" in message
    found, _, asked = message.partition("settings ask for")
    assert made in found
    assert wanted in asked
    await new.clear()
    await new.upsert("wiki", points(1, dimension=dimension))
    assert len(await new.ids("wiki")) == 1
    for store in (old, new):
        await store.close()


async def test_a_distance_that_somebody_changed_is_refused(shared: QdrantProcess, prefix: str) -> None:
    store = server(shared.url, prefix=prefix)
    await store.upsert("wiki", points(1))
    theirs = AsyncQdrantClient(shared.url, check_compatibility=False)
    mark = (await theirs.get_collection(f"{prefix}_wiki")).config.metadata
    await theirs.delete_collection(f"{prefix}_wiki")
    dense = models.VectorParams(size=DIMENSION, distance=models.Distance.DOT)
    await theirs.create_collection(f"{prefix}_wiki", {"dense": dense}, metadata=mark)
    await theirs.close()
    again = server(shared.url, prefix=prefix)
    message = await error_of(search(again), StoreVersionError)
    assert 'made with distance "Dot", sparse modifier "missing"' in message
    for each in (store, again):
        await each.close()


async def test_a_newer_format_is_refused(shared: QdrantProcess, prefix: str) -> None:
    theirs = AsyncQdrantClient(shared.url, check_compatibility=False)
    mark = {"trivet": {"format": 2, "home": "h1", "collection": "wiki"}}
    await theirs.create_collection(f"{prefix}_wiki", {}, metadata=mark)
    await theirs.close()
    store = server(shared.url, prefix=prefix)
    assert "format is 2, this one's is 1" in await error_of(search(store), StoreVersionError)
    await store.close()


async def test_a_model_that_is_not_known_is_not_compared(shared: QdrantProcess, prefix: str) -> None:
    for first, second in (("", "m"), ("m", "")):
        store = server(shared.url, prefix=f"{prefix}{first}", model=first)
        await store.upsert("wiki", points(1))
        other = server(shared.url, prefix=f"{prefix}{first}", model=second)
        assert len(await other.ids("wiki")) == 1
        await store.close()
        await other.close()


# --- how they are made -----------------------------------------------------------------------------------------------


class Recording(AsyncQdrantClient):
    """The client's local engine, which remembers what it was asked."""

    def __init__(self) -> None:
        super().__init__(":memory:")
        self.asked: list[tuple[str, Any]] = []
        self.points = 0
        self.matching = 0

    async def query_batch_points(self, *args: Any, **options: Any) -> list[models.QueryResponse]:
        self.asked.append(("query", args[1]))
        return await super().query_batch_points(*args, **options)

    async def count(self, *args: Any, **options: Any) -> models.CountResult:
        self.asked.append(("count", (args[1], options["exact"])))
        return models.CountResult(count=self.matching)

    async def create_payload_index(self, *args: Any, **options: Any) -> models.UpdateResult:
        self.asked.append(("index", args[1]))
        return models.UpdateResult(status=models.UpdateStatus.COMPLETED)

    async def update_collection(self, *args: Any, **options: Any) -> bool:
        self.asked.append(("update", options["vectors_config"]["dense"]))
        return True

    async def get_collection(self, *args: Any, **options: Any) -> models.CollectionInfo:
        found = await super().get_collection(*args, **options)
        return found.model_copy(update={"points_count": self.points})

    def last(self, what: str) -> Any:
        return [asked for kind, asked in self.asked if kind == what][-1]


local_engine = pytest.mark.filterwarnings("ignore:.*local.*Qdrant:UserWarning", "ignore:.*local mode:UserWarning")


@local_engine
@pytest.mark.parametrize(("size", "exact"), [(EXACT_UP_TO, True), (EXACT_UP_TO + 1, False)])
async def test_few_points_are_searched_exactly_and_many_by_the_index(size: int, exact: bool) -> None:
    client = Recording()
    client.points = size
    store = server("http://x", client=client, quantization="int8")
    await store.upsert("wiki", points(2))
    assert len((await search(store)).fused) == 2
    for request in client.last("query"):
        assert request.params.exact is exact
        assert request.params.hnsw_ef == 256
        assert request.params.quantization == models.QuantizationSearchParams(rescore=True, oversampling=2.0)
        assert request.limit == 20
    await store.close()


@local_engine
@pytest.mark.parametrize(
    ("collection", "matching", "exact"),
    [("wiki", 100, True), ("wiki", 101, False), ("knowledge_evergreen", 101, True), ("research_physics", 101, True)],
)
async def test_what_a_filter_leaves_few_of_is_searched_exactly(collection: str, matching: int, exact: bool) -> None:
    client = Recording()
    client.points, client.matching = 1_000_000, matching
    store = server("http://x", client=client, exact_up_to=100)
    await store.upsert(collection, points(2))
    where = SearchFilter(sources=("w",))
    await store.search(collection, dense=np.ones(DIMENSION, np.float32), text="common", limit=5, where=where)
    assert [request.params.exact for request in client.last("query")] == [exact, exact]
    counted = [asked for kind, asked in client.asked if kind == "count"]
    wanted = models.Filter(must=[models.FieldCondition(key="source", match=models.MatchAny(any=["w"]))])
    assert counted == ([(wanted, True)] if collection == "wiki" else [])
    await store.close()


@local_engine
async def test_small_vectors_and_disk_are_set_when_made_and_when_changed() -> None:
    client = Recording()
    plain = server("http://x", client=client)
    await plain.upsert("wiki", points(1))
    before = (await client.get_collection("trivet_wiki")).config.params.vectors
    assert isinstance(before, dict)
    assert before["dense"].quantization_config is None
    assert not any(kind == "update" for kind, _ in client.asked)
    changed = server("http://x", client=client, quantization="int8", on_disk=True)
    assert len(await changed.ids("wiki")) == 1
    assert not any(kind == "update" for kind, _ in client.asked)
    await changed.upsert("wiki", points(1))
    update = client.last("update")
    assert update.on_disk is update.hnsw_config.on_disk is update.quantization_config.scalar.always_ram is True
    await changed.upsert("notes", points(1))
    made = (await client.get_collection("trivet_notes")).config.params.vectors
    assert isinstance(made, dict)
    assert made["dense"].quantization_config == update.quantization_config
    await plain.upsert("notes", points(1))
    assert client.last("update").quantization_config == models.Disabled.DISABLED
    await changed.close()


async def test_what_is_filtered_by_is_indexed_also_where_a_writer_was_killed(
    shared: QdrantProcess, prefix: str
) -> None:
    async with switched(shared.port) as switch:
        store = server(switch.url, prefix=prefix)
        # All but the first index fails, as if this one had been killed there.
        client = AsyncQdrantClient(shared.url, check_compatibility=False)
        shape = models.CreateCollection.model_validate(store._recipe.shape("wiki"))
        await client.create_collection(
            f"{prefix}_wiki", shape.vectors, sparse_vectors_config=shape.sparse_vectors, metadata=shape.metadata
        )
        await client.create_payload_index(f"{prefix}_wiki", "source", models.PayloadSchemaType.KEYWORD)
        await store.upsert("wiki", points(1))
        await store.upsert("wiki", points(1))
        assert sum(asked.startswith(f"PUT /collections/{prefix}_wiki/index") for asked in switch.asked) == 3
        found = await client.get_collection(f"{prefix}_wiki")
        assert set(found.payload_schema) == set(FILTERED_FIELDS)
        await client.close()
        await store.close()


async def test_a_personas_collection_has_room_for_triggers(shared: QdrantProcess, prefix: str) -> None:
    store = server(shared.url, prefix=prefix)
    await store.upsert("persona_guide", points(1))
    client = AsyncQdrantClient(shared.url, check_compatibility=False)
    made = (await client.get_collection(f"{prefix}_persona_guide")).config.params.vectors
    assert isinstance(made, dict)
    assert made["trigger_dense"].size == DIMENSION
    await client.close()
    await store.close()


async def test_learned_weights_rank_without_idf(shared: QdrantProcess, prefix: str) -> None:
    store = server(shared.url, prefix=prefix, language=LEARNED)
    vector = np.ones(DIMENSION, np.float32)
    weights = [{1: 0.5, 7: 2.0}, {7: 1.0}, {3: 9.0}]
    await store.upsert(
        "wiki",
        [VectorPoint(chunk_id=key(n), dense=vector, text="", sparse=each) for n, each in enumerate(weights)],
    )
    found = await store.search("wiki", dense=None, text="", limit=5, sparse={7: 0.5, 1: 1.0})
    assert [(scored.key, scored.score) for scored in found.sparse] == [(key(0), 1.5), (key(1), 0.5)]
    assert (await store.weights("wiki", [key(0)]))[key(0)] == weights[0]
    await store.close()
