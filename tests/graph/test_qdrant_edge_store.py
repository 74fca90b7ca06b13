"""What only the embedded engine's adapter does: its recipe, its files, and the disk it writes to."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from graph import collection_folder, qdrant_edge_index, qdrant_edge_store
from graph.errors import (
    DependencyFaultError,
    SettingsError,
    StoreCorruptError,
    StoreError,
    StoreFullError,
    StoreVersionError,
)
from graph.model import SearchFilter, VectorPoint
from graph.qdrant_edge_store import QdrantEdge
from tests.places import quick_folder


@pytest.fixture
def folder() -> Iterator[Path]:
    with quick_folder() as place:
        yield place / "vectors"


def point(number: int, text: str = "some words", *, size: int = 4) -> VectorPoint:
    dense = np.zeros(size, np.float32)
    dense[number % size] = 1.0
    return VectorPoint(chunk_id=str(uuid.UUID(int=number)), dense=dense, text=text, payload={"source": "w"})


async def filled(folder: Path, count: int = 3) -> None:
    store = QdrantEdge(folder, dimension=4)
    await store.upsert("wiki", [point(number) for number in range(count)])
    await store.close()


async def test_opening_again_finds_everything(folder: Path) -> None:
    await filled(folder)
    for _ in range(2):
        store = QdrantEdge(folder, dimension=4)
        assert len(await store.ids("wiki")) == 3
        assert len((await store.search("wiki", dense=None, text="words", limit=9)).sparse) == 3
        await store.close()


@pytest.mark.parametrize(
    ("dimension", "language", "says"),
    [
        (
            8,
            "english",
            r"wiki were made with dimension 4 and the settings say dimension 8; run `trivet ingest --rebuild`",
        ),
        (4, "french", r'"language": "english".*the settings say.*"language": "french".*`trivet ingest --rebuild`'),
    ],
)
async def test_a_collection_made_otherwise_is_refused(folder: Path, dimension: int, language: str, says: str) -> None:
    await filled(folder)
    store = QdrantEdge(folder, dimension=dimension, language=language)
    for use in (store.ids("wiki"), store.upsert("wiki", [point(1, size=dimension)]), store.optimize()):
        with pytest.raises(StoreVersionError, match=says):
            await use


async def test_vectors_of_another_size_are_refused_and_named(folder: Path) -> None:
    store = QdrantEdge(folder, dimension=4)
    await store.upsert("wiki", [point(0)])
    says = r"have 4 numbers and the embedder gave 8; run `trivet ingest --rebuild`"
    with pytest.raises(StoreVersionError, match=says):
        await store.upsert("wiki", [point(1), point(2, size=8)])
    with pytest.raises(StoreVersionError, match=says):
        await store.search("wiki", dense=np.ones(8, np.float32), text="", limit=3)
    assert len(await store.ids("wiki")) == 1
    await store.close()


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
async def test_a_vector_that_is_not_of_numbers_is_the_embedders_fault(folder: Path, value: float) -> None:
    store = QdrantEdge(folder, dimension=4)
    await store.upsert("wiki", [point(0)])
    bad = np.array([value, 0, 0, 0], np.float32)
    with pytest.raises(DependencyFaultError):
        await store.upsert("wiki", [VectorPoint(chunk_id=str(uuid.UUID(int=9)), dense=bad, text="", payload={})])
    with pytest.raises(DependencyFaultError):
        await store.search("wiki", dense=bad, text="words", limit=3)
    await store.close()


def test_a_language_without_bm25_is_a_setting(folder: Path) -> None:
    with pytest.raises(SettingsError, match="no BM25 for 'klingon'"):
        QdrantEdge(folder, dimension=4, language="klingon")
    assert not folder.exists()


async def test_the_language_decides_how_words_are_cut_down(folder: Path) -> None:
    store = QdrantEdge(folder, dimension=4, language="french")
    await store.upsert("wiki", [point(0, "les chevaux mangeaient")])
    assert (await store.search("wiki", dense=None, text="mangeait", limit=3)).sparse
    assert not (await store.search("wiki", dense=None, text="les", limit=3)).sparse
    await store.close()


@pytest.mark.parametrize("broken", ["collection.json", "data-*/edge_config.json", "data-*/segments/*/segment.json"])
async def test_a_broken_file_is_named(folder: Path, broken: str) -> None:
    await filled(folder)
    (path,) = (folder / "wiki").glob(broken)
    path.write_bytes(b"\0garbage")
    store = QdrantEdge(folder, dimension=4)
    with pytest.raises(StoreCorruptError, match=f"{folder}.*`trivet ingest --rebuild`"):
        await store.search("wiki", dense=None, text="words", limit=3)
    await store.close()


async def test_a_collection_that_was_not_finished_is_made_again(folder: Path) -> None:
    await filled(folder)
    (folder / "wiki" / "collection.json").unlink()
    store = QdrantEdge(folder, dimension=4)
    assert await store.ids("wiki") == set()
    await store.upsert("wiki", [point(7)])
    assert len(await store.ids("wiki")) == 1
    await store.close()


async def test_the_reserve_is_kept_and_reading_goes_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = QdrantEdge(folder, dimension=4)
    await store.upsert("wiki", [point(0)])
    monkeypatch.setattr(collection_folder, "ROOM", 2**60)
    for write in (store.upsert("wiki", [point(1)]), store.upsert("new", [point(1)])):
        with pytest.raises(StoreFullError, match=rf"MB are free at {folder} and the vector store needs 1,\d+"):
            await write
    assert len((await store.search("wiki", dense=None, text="words", limit=3)).sparse) == 1
    await store.delete("wiki", [str(uuid.UUID(int=0))])  # deleting makes room
    await store.close()


async def test_a_place_that_is_no_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "vectors").write_text("")
    with pytest.raises(StoreFullError, match=f"Cannot write to {tmp_path / 'vectors'}"):
        await QdrantEdge(tmp_path / "vectors", dimension=4).upsert("wiki", [point(0)])


async def test_a_closed_store_says_so(folder: Path) -> None:
    store = QdrantEdge(folder, dimension=4)
    await store.upsert("wiki", [point(0)])
    await store.close()
    await store.close()
    with pytest.raises(StoreError, match="closed"):
        await store.ids("wiki")


async def test_an_id_that_is_no_uuid_is_a_mistake_of_the_caller(folder: Path) -> None:
    store = QdrantEdge(folder, dimension=4)
    with pytest.raises(ValueError, match="hexadecimal UUID"):
        await store.upsert("wiki", [VectorPoint(chunk_id="x", dense=point(0).dense, text="", payload={})])
    await store.close()


async def test_a_large_collection_is_optimised_in_another_process(folder: Path) -> None:
    store = QdrantEdge(folder, dimension=4, exact_up_to=10)
    await store.upsert("wiki", [point(number) for number in range(100)])
    await store.upsert("small", [point(number) for number in range(5)])
    for turn in range(2):
        await store.optimize()
        assert len(await store.ids("wiki")) == 100 + turn
        await store.upsert("wiki", [point(100 + turn)])
        assert len(list((folder / "wiki").glob("data-*"))) == 1
    assert len((await store.search("wiki", dense=None, text="words", limit=500)).sparse) == 102
    await store.close()
    store = QdrantEdge(folder, dimension=4)
    assert len(await store.ids("wiki")) == 102
    await store.close()


@pytest.mark.parametrize(
    ("collection", "sources", "exact"),
    [("wiki", (), False), ("wiki", ("w",), False), ("wiki", ("few",), True), ("knowledge_physics", (), True)],
)
async def test_what_a_filter_leaves_few_of_is_searched_exactly(
    folder: Path, monkeypatch: pytest.MonkeyPatch, collection: str, sources: tuple[str, ...], exact: bool
) -> None:
    store = QdrantEdge(folder, dimension=4, exact_up_to=10)
    few = [replace(point(number), payload={"source": "few"}) for number in range(100, 110)]
    await store.upsert(collection, [*map(point, range(100)), *few])
    asked: list[bool] = []
    made = qdrant_edge_store.engine.SearchParams

    def recording(*, exact: bool, hnsw_ef: int) -> object:
        asked.append(exact)
        return made(exact=exact, hnsw_ef=hnsw_ef)

    monkeypatch.setattr(qdrant_edge_store.engine, "SearchParams", recording)
    where = SearchFilter(sources=sources)
    found = await store.search(collection, dense=point(3).dense, text="", limit=50, where=where)
    assert asked == [exact]
    assert len(found.dense) == (10 if sources == ("few",) else 50)
    await store.close()


async def test_an_optimisation_that_fails_changes_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = QdrantEdge(folder, dimension=4, exact_up_to=0)
    await store.upsert("wiki", [point(number) for number in range(20)])
    monkeypatch.setattr(qdrant_edge_store, "optimize_folder", sys.exit)  # is given a path, so it exits with 1
    with pytest.raises(StoreError, match="ended with code 1; searching it goes on"):
        await store.optimize()
    assert len(await store.ids("wiki")) == 20
    assert len(list((folder / "wiki").glob("data-*"))) == 1
    await store.close()


async def test_searches_go_on_while_a_copy_is_optimised(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The original is closed meanwhile, for its memory, and opened again by whoever asks."""
    monkeypatch.setattr(qdrant_edge_store, "optimize_folder", sleep_a_little)
    store = QdrantEdge(folder, dimension=4, exact_up_to=0)
    await store.upsert("wiki", [point(number) for number in range(20)])
    optimising = asyncio.create_task(store.optimize())
    while store._optimizer is None:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    assert "wiki" not in store._shards
    assert len(await store.ids("wiki")) == 20
    assert len(list((folder / "wiki").glob("data-*"))) == 2, "the copy is not a left-over"
    await optimising
    assert len(await store.ids("wiki")) == 20
    assert len(list((folder / "wiki").glob("data-*"))) == 1
    await store.close()


async def test_without_memory_for_it_nothing_is_indexed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(qdrant_edge_index, "free_memory", lambda: 79_999)
    monkeypatch.setattr(qdrant_edge_store, "optimize_folder", sys.exit)  # would raise
    store = QdrantEdge(folder, dimension=4, exact_up_to=0)
    await store.upsert("wiki", [point(number) for number in range(20)])
    await store.optimize()
    assert len((await store.search("wiki", dense=point(3).dense, text="", limit=5)).dense) == 5
    monkeypatch.setattr(qdrant_edge_index, "free_memory", lambda: 80_000)
    with pytest.raises(StoreError, match="ended with code 1"):
        await store.optimize()
    await store.close()


async def test_closing_does_not_wait_for_the_optimiser(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(qdrant_edge_store, "optimize_folder", sleep_long)
    store = QdrantEdge(folder, dimension=4, exact_up_to=0)
    await store.upsert("wiki", [point(number) for number in range(20)])
    optimising = asyncio.create_task(store.optimize())
    while store._optimizer is None:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    await store.close()
    with pytest.raises(StoreError):
        await optimising
    store = QdrantEdge(folder, dimension=4)
    assert len(await store.ids("wiki")) == 20
    await store.close()


def sleep_a_little(_: str) -> None:
    time.sleep(2)


def sleep_long(_: str) -> None:
    time.sleep(600)


async def test_data_that_is_not_current_is_cleared_away(folder: Path) -> None:
    await filled(folder)
    (folder / "wiki" / "data-1").mkdir()
    (folder / "wiki" / "data-1" / "half").write_text("copied")
    store = QdrantEdge(folder, dimension=4)
    assert len(await store.ids("wiki")) == 3
    assert [path.name for path in (folder / "wiki").glob("data-*")] == ["data-2"]
    await store.close()


KILLED = """
import asyncio, sys
from pathlib import Path
from graph.qdrant_edge_store import QdrantEdge
from tests.graph.test_qdrant_edge_store import point
async def run():
    store = QdrantEdge(Path(sys.argv[1]), dimension=4)
    for batch in range(5):
        await store.upsert("wiki", [point(batch * 10 + number) for number in range(10)])
    await store.delete("wiki", [point(0).chunk_id])
    print("acknowledged", flush=True)
    sys.stdin.read()
asyncio.run(run())
"""


def write_and_be_killed(folder: Path) -> None:
    other = subprocess.Popen([sys.executable, "-c", KILLED, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert other.stdout is not None
    assert other.stdout.readline() == b"acknowledged\n"
    other.send_signal(signal.SIGKILL)
    other.communicate()


async def test_what_was_acknowledged_survives_kill_9(folder: Path) -> None:
    write_and_be_killed(folder)
    store = QdrantEdge(folder, dimension=4)
    assert await store.ids("wiki") == {point(number).chunk_id for number in range(1, 50)}
    assert len((await store.search("wiki", dense=None, text="words", limit=100)).sparse) == 49
    await store.close()
