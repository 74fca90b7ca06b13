"""What is kept: both stores agree after every write, also where it was cut short at any point."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import pytest

from graph.collection_folder import folder_name
from graph.errors import ConflictError, DependencyDownError, InputError, NotFoundError
from graph.model import VectorPoint
from graph.protocols import VectorStore
from graph.qdrant_edge_store import QdrantEdge
from graph.research import EVERGREEN, Fact, FactState, ResearchPage, ResearchStore, Topic
from graph.sqlite_research import SqliteResearch
from server.research.shelf import Shelf, knowledge_collection, note_all, research_collection
from tests.fake_research import FakeResearch
from tests.fakes import FakeVectors, HashEmbedder

TOPIC = Topic(slug="gull-rock", title="Gull Rock", category="coast")
OLD = ResearchPage(url="https://example.org/rock", title="Gull Rock", passages=("Lit in 1890.", "Ada Holm kept it."))
NEW = replace(OLD, passages=("Lit in 1891.", "Ada Holm kept it.", "It has 99 steps."))
FACT = Fact(
    id="fact-1", topic="gull-rock", category="coast", text="Lit in 1890.", quote="Lit", url=OLD.url, title="Gull Rock"
)
APPROVED = replace(FACT, state=FactState.APPROVED)
DIMENSION = 64


class Crash(BaseException):
    """The process is gone: nothing after it runs."""


class Breaking:
    """Another store that ends the process at the `at`-th writing call of all that share `calls`: half of the points
    are before the call has done anything, half of them after it."""

    WRITES = frozenset(
        "begin end put_page wipe_research remove_topic change_fact delete_fact upsert delete clear".split()
    )

    def __init__(self, inner: object, calls: Iterator[int], at: int) -> None:
        self._inner, self._calls, self._at = inner, calls, at

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)
        return partial(self._call, method) if name in self.WRITES else method

    def _call(self, method: Callable[..., Any], *given: Any, **named: Any) -> Any:
        point = 2 * next(self._calls)
        if point == self._at:
            raise Crash
        done = method(*given, **named)
        if point + 1 != self._at:
            return done
        if asyncio.iscoroutine(done):
            return _crash_after(done)
        raise Crash


async def _crash_after(done: Awaitable[None]) -> None:
    await done
    raise Crash


class HeldVectors(FakeVectors):
    """The first who writes has written, and is held before it goes on."""

    def __init__(self) -> None:
        super().__init__()
        self.written, self.go = asyncio.Event(), asyncio.Event()

    async def upsert(self, collection: str, points: Sequence[VectorPoint]) -> None:
        await super().upsert(collection, points)
        if not self.written.is_set():
            self.written.set()
            await self.go.wait()


@pytest.fixture
def stores() -> tuple[FakeResearch, FakeVectors]:
    return FakeResearch(), FakeVectors()


def shelf_on(store: ResearchStore, vectors: VectorStore) -> Shelf:
    return Shelf(store, vectors, HashEmbedder(DIMENSION))


async def agrees(store: ResearchStore, vectors: VectorStore) -> bool:
    names = store.every_collection()
    return not store.unfinished() and all([store.ids(name) == await vectors.ids(name) for name in names])


async def texts(store: ResearchStore, vectors: VectorStore, collection: str, question: str = "lit kept") -> list[str]:
    """What readers find."""
    found = await vectors.search(collection, dense=None, text=question, limit=10)
    return sorted(passage.text for passage in store.passages([hit.key for hit in found.fused]).values())


async def test_a_page_is_found_and_its_new_version_takes_its_place(stores: tuple[FakeResearch, FakeVectors]) -> None:
    store, vectors = stores
    shelf = shelf_on(*stores)
    store.add_topic(TOPIC)
    assert await shelf.put_page(TOPIC, OLD) == 2
    assert await texts(store, vectors, "research_coast") == ["Ada Holm kept it.", "Lit in 1890."]
    assert await shelf.put_page(TOPIC, NEW) == 3
    assert await texts(store, vectors, "research_coast") == ["Ada Holm kept it.", "Lit in 1891."]
    assert await agrees(*stores)
    assert await shelf.wipe("gull-rock") == 3
    assert await vectors.ids("research_coast") == set()
    assert await agrees(*stores)


async def test_passages_say_where_they_are_from(stores: tuple[FakeResearch, FakeVectors]) -> None:
    store, vectors = stores
    store.add_topic(TOPIC)
    await shelf_on(*stores).put_page(TOPIC, replace(OLD, published="2020-01-02", language="en", passages=("Lit.", " ")))
    (passage,) = store.passages_of("gull-rock")
    assert (passage.origin, passage.topic, passage.url) == ("research", "gull-rock", OLD.url)
    assert (passage.published, passage.language, passage.category) == ("2020-01-02", "en", "coast")
    (point,) = vectors.collections["research_coast"].values()
    assert "Gull Rock › Lit." in point.text


async def test_the_same_page_of_two_topics_is_kept_twice(stores: tuple[FakeResearch, FakeVectors]) -> None:
    store, vectors = stores
    shelf = shelf_on(*stores)
    other = replace(TOPIC, slug="other")
    for topic in (TOPIC, other):
        store.add_topic(topic)
        await shelf.put_page(topic, OLD)
    await shelf.remove_topic("gull-rock")
    assert {passage.topic for passage in store.passages(sorted(await vectors.ids("research_coast"))).values()} == {
        "other"
    }
    assert await agrees(*stores)


async def test_approval_answers_and_its_undoing_does_not(stores: tuple[FakeResearch, FakeVectors]) -> None:
    store, vectors = stores
    shelf = shelf_on(*stores)
    store.add_topic(TOPIC)
    store.add_facts([FACT])
    approved = await shelf.put_fact(APPROVED, version=1)
    assert await texts(store, vectors, "knowledge_coast") == ["Lit in 1890."]
    edited = await shelf.put_fact(replace(approved, text="Lit in 1891.", evergreen=True), version=2)
    assert await vectors.ids("knowledge_coast") == set()
    assert await texts(store, vectors, EVERGREEN) == ["Lit in 1891."]
    rejected = await shelf.put_fact(replace(edited, state=FactState.REJECTED), version=3)
    assert store.collections() == {}
    again = await shelf.put_fact(replace(rejected, state=FactState.APPROVED), version=4)
    await shelf.remove_topic("gull-rock")
    assert await texts(store, vectors, EVERGREEN) == ["Lit in 1891."]
    await shelf.delete_fact("fact-1", version=again.version)
    assert await vectors.ids(EVERGREEN) == set()
    assert await agrees(*stores)


async def test_two_who_review_at_once_have_one_effect(stores: tuple[FakeResearch, FakeVectors]) -> None:
    store, vectors = stores
    shelf = shelf_on(*stores)
    store.add_topic(TOPIC)
    store.add_facts([FACT])
    reviews = [replace(APPROVED, text=f"Lit in 189{n}.", changed_by=f"reader {n}") for n in range(8)]
    done = await asyncio.gather(*(shelf.put_fact(fact, version=1) for fact in reviews), return_exceptions=True)
    assert sum(isinstance(each, Fact) for each in done) == 1
    assert sum(isinstance(each, ConflictError) for each in done) == 7
    assert len(await vectors.ids("knowledge_coast")) == 1
    assert await agrees(*stores)


async def test_two_processes_write_in_turn(tmp_path: Path) -> None:
    """Each has its own connection and shelf; else one would mend what the other is in the midst of."""
    files = [SqliteResearch(tmp_path / "research.db") for _ in range(2)]
    vectors = HeldVectors()
    worker, server = (shelf_on(store, vectors) for store in files)
    files[0].add_topic(TOPIC)
    first = asyncio.create_task(worker.put_page(TOPIC, OLD))
    await vectors.written.wait()
    others = [asyncio.create_task(server.put_page(TOPIC, replace(OLD, url="https://example.org/2")))]
    others.append(asyncio.create_task(server.recover()))
    await asyncio.wait(others, timeout=0.2)
    assert not any(task.done() for task in others)
    vectors.go.set()
    await asyncio.gather(first, *others)
    assert len(files[0].ids("research_coast")) == 4
    assert await agrees(files[1], vectors)
    for store in files:
        store.close()


async def test_what_is_gone_meanwhile_leaves_no_vector(stores: tuple[FakeResearch, FakeVectors]) -> None:
    store, vectors = stores
    shelf = shelf_on(*stores)
    with pytest.raises(NotFoundError):
        await shelf.put_page(TOPIC, OLD)
    with pytest.raises(NotFoundError):
        await shelf.put_fact(APPROVED, version=1)
    store.add_topic(TOPIC)
    with pytest.raises(InputError, match="no time to expire at"):
        await shelf.put_fact(replace(APPROVED, expires="soon"), version=1)
    assert await vectors.ids("knowledge_coast") == set()
    assert await agrees(*stores)


async def test_a_topic_that_is_removed_while_its_page_is_embedded(stores: tuple[FakeResearch, FakeVectors]) -> None:
    store, vectors = stores

    class Removing(HashEmbedder):
        async def embed_passages(self, texts: Sequence[str]) -> Any:
            if store.topic("gull-rock"):
                store.remove_topic("gull-rock")
            return await super().embed_passages(texts)

    store.add_topic(TOPIC)
    with pytest.raises(NotFoundError):
        await Shelf(store, vectors, Removing(DIMENSION)).put_page(TOPIC, OLD)
    assert await vectors.ids("research_coast") == set()
    assert await agrees(*stores)


# --- cut short ------------------------------------------------------------------------------------------------------


async def _replace(shelf: Shelf) -> None:
    await shelf.put_page(TOPIC, NEW)


async def _wipe(shelf: Shelf) -> None:
    await shelf.wipe("gull-rock")


async def _remove(shelf: Shelf) -> None:
    await shelf.remove_topic("gull-rock")


async def _edit(shelf: Shelf) -> None:
    await shelf.put_fact(replace(APPROVED, text="Lit in 1891."), version=2)


async def _reject(shelf: Shelf) -> None:
    await shelf.put_fact(replace(FACT, state=FactState.REJECTED), version=2)


async def _delete(shelf: Shelf) -> None:
    await shelf.delete_fact("fact-1", version=2)


async def filled(store: ResearchStore, vectors: VectorStore) -> None:
    shelf = shelf_on(store, vectors)
    store.add_topic(TOPIC)
    await shelf.put_page(TOPIC, OLD)
    store.add_facts([FACT])
    await shelf.put_fact(APPROVED, version=1)


async def cut(act: Callable[[Shelf], Awaitable[None]], store: ResearchStore, vectors: VectorStore, at: int) -> None:
    calls = iter(range(1_000))
    broken = [Breaking(inner, calls, at) for inner in (store, vectors)]
    with suppress(Crash):
        await act(shelf_on(cast(ResearchStore, broken[0]), cast(VectorStore, broken[1])))


@pytest.mark.parametrize("at", range(11))
@pytest.mark.parametrize("act", [_replace, _wipe, _remove, _edit, _reject, _delete])
async def test_cut_short_anywhere_it_is_the_old_or_the_new(
    act: Callable[[Shelf], Awaitable[None]], at: int, stores: tuple[FakeResearch, FakeVectors]
) -> None:
    await filled(*stores)
    store, vectors = stores
    before = {name: await texts(store, vectors, name) for name in ("research_coast", "knowledge_coast")}
    finished = FakeResearch(), FakeVectors()
    await filled(*finished)
    await act(shelf_on(*finished))
    after = {name: await texts(*finished, name) for name in before}
    await cut(act, store, vectors, at)
    assert {name: await texts(store, vectors, name) for name in before} in (before, after)
    await shelf_on(*stores).recover()
    assert await agrees(*stores)
    found = {name: await texts(store, vectors, name) for name in before}
    assert found in (before, after)
    if store.topic("gull-rock") is None:
        assert await vectors.ids("research_coast") == set()
    with suppress(ConflictError, NotFoundError):  # done again, it is done
        await act(shelf_on(*stores))
    assert {name: await texts(store, vectors, name) for name in before} == after
    assert await agrees(*stores)


@asynccontextmanager
async def on_disk(home: Path) -> AsyncIterator[tuple[SqliteResearch, QdrantEdge]]:
    store, vectors = SqliteResearch(home / "research.db"), QdrantEdge(home / "vectors", dimension=DIMENSION)
    try:
        yield store, vectors
    finally:
        await vectors.close()
        store.close()


@pytest.mark.parametrize("at", range(11))
async def test_cut_short_anywhere_on_disk(at: int, tmp_path: Path) -> None:
    async with on_disk(tmp_path) as stores:
        await filled(*stores)
        await cut(_replace, *stores, at)
    async with on_disk(tmp_path) as stores:
        await shelf_on(*stores).recover()
        assert await agrees(*stores)
        found = [passage.text for passage in stores[0].passages_of("gull-rock")]
        assert found in (list(OLD.passages), list(NEW.passages))


async def test_a_write_mends_what_the_one_before_left(stores: tuple[FakeResearch, FakeVectors]) -> None:
    await filled(*stores)
    await cut(_replace, *stores, 3)  # new vectors are written, and nothing committed
    await shelf_on(*stores).put_page(TOPIC, replace(OLD, url="https://example.org/other"))
    assert await agrees(*stores)


async def test_who_is_cancelled_leaves_a_whole_write(stores: tuple[FakeResearch, FakeVectors]) -> None:
    store, vectors = stores

    class Slow(FakeVectors):
        async def upsert(self, collection: str, points: Sequence[VectorPoint]) -> None:
            await asyncio.sleep(0.05)
            await vectors.upsert(collection, points)

        async def delete(self, collection: str, chunk_ids: Sequence[str]) -> None:
            await vectors.delete(collection, chunk_ids)

    store.add_topic(TOPIC)
    work = asyncio.create_task(shelf_on(store, Slow()).put_page(TOPIC, OLD))
    await asyncio.sleep(0.02)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert len(store.passages_of("gull-rock")) == 2
    assert await agrees(*stores)


async def test_vectors_that_were_cleared_are_made_again(stores: tuple[FakeResearch, FakeVectors]) -> None:
    store, vectors = stores
    await filled(*stores)
    note_all(store)
    await vectors.clear()

    class Down(HashEmbedder):
        async def embed_passages(self, texts: Sequence[str]) -> Any:
            raise DependencyDownError("the embedder is away", dependency="ollama")

    with pytest.raises(DependencyDownError):
        await Shelf(store, vectors, Down(DIMENSION)).recover()
    assert await Shelf(store, vectors, HashEmbedder(32)).recover() == 3
    assert await agrees(*stores)
    assert {point.dense.shape for point in vectors.collections["knowledge_coast"].values()} == {(32,)}


async def test_verify_counts_and_repair_mends(stores: tuple[FakeResearch, FakeVectors]) -> None:
    store, vectors = stores
    shelf = shelf_on(*stores)
    await filled(*stores)
    kept = next(iter(store.ids("knowledge_coast")))
    stray = replace(vectors.collections["knowledge_coast"][kept], chunk_id="00000000-0000-0000-0000-000000000001")
    await vectors.upsert("research_coast", [stray])
    await vectors.delete("knowledge_coast", [kept])
    faults = await shelf.faults()
    assert faults.missing == {"knowledge_coast": {kept}}
    assert faults.orphaned == {"research_coast": {stray.chunk_id}}
    await shelf.repair()
    assert await agrees(*stores)
    faults = await shelf.faults()
    assert not any((faults.missing, faults.orphaned, faults.unfinished))


async def test_a_move_needs_no_embedder(stores: tuple[FakeResearch, FakeVectors]) -> None:
    store, vectors = stores
    await filled(*stores)
    target, embedder = FakeVectors(), HashEmbedder(DIMENSION)
    assert await Shelf(store, vectors, embedder).copy_to(target) == 3
    assert embedder.embedded == []
    assert await texts(store, target, "knowledge_coast") == await texts(store, vectors, "knowledge_coast")
    assert await agrees(store, target)


# --- names ----------------------------------------------------------------------------------------------------------

CATEGORIES = (
    "coast", "Coast", "a b", "a/b", "a-b", "../../etc", "..", "", " ", "x" * 300, "x" * 301, "日本語", "日本語" * 100,
    "evergreen", "Küste", "küste", "a\x00b", "a\udc9ab", "%2F", "a_b", "-", "a-12345678", "coast\n", "🌊",
    "\u00e9", "e\u0301",
)  # fmt: skip


def test_names_of_collections_are_safe_readable_and_distinct() -> None:
    names = [make(each) for make in (research_collection, knowledge_collection) for each in CATEGORIES]
    assert len({*names, EVERGREEN}) == len(names) + 1
    for name in names:
        assert len(name) <= 100
        assert len(quote(name)) <= 100
        assert folder_name(name) == quote(name)  # nothing in it needs escaping but letters
        assert not set(name) & set("/\\.%\x00 ")
    assert research_collection("coast") == "research_coast"
    assert research_collection("Sea birds").startswith("research_sea-birds-")
    assert knowledge_collection("日本語").startswith("knowledge_日本語")


def test_a_name_that_another_category_was_given_is_not_taken() -> None:
    made = research_collection("a b")
    assert research_collection(made.removeprefix("research_")) != made
