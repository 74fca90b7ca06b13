"""Token vectors beside the others: rounded little, gone with their chunk, and made anew for another model."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from graph.errors import StoreCorruptError
from graph.knowledge import WIKI
from graph.model import VectorPoint
from graph.protocols import VectorStore
from graph.qdrant_edge_store import QdrantEdge
from graph.qdrant_server_store import QdrantServer
from graph.sqlite_tokens import SqliteTokens, quantised
from graph.vectors_with_tokens import VectorsWithTokens
from tests.fakes import FakeVectors
from tests.services.qdrant_stand_in import QdrantProcess

ONE, OTHER = str(uuid.UUID(int=1)), str(uuid.UUID(int=2))
WIDTH = 8


def unit_rows(count: int, seed: int = 0) -> NDArray[np.float32]:
    rows = np.random.default_rng(seed).standard_normal((count, WIDTH))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


@pytest.fixture
def tokens(tmp_path: Path) -> Iterator[SqliteTokens]:
    with closing(SqliteTokens(tmp_path / "tokens.db", model="m", dimension=WIDTH)) as opened:
        yield opened


@pytest.fixture(params=["fake", "edge", "server"])
async def vectors(
    request: pytest.FixtureRequest, tokens: SqliteTokens, tmp_path: Path, shared: QdrantProcess, prefix: str
) -> AsyncIterator[VectorStore]:
    inner: VectorStore = FakeVectors()
    if request.param == "edge":
        inner = QdrantEdge(tmp_path / "vectors", dimension=4)
    elif request.param == "server":
        inner = QdrantServer(shared.url, prefix=prefix, dimension=4, language="english")
    store = VectorsWithTokens(inner, tokens)
    yield store
    await inner.close()


def point(chunk_id: str, rows: NDArray[np.float32] | None) -> VectorPoint:
    return VectorPoint(chunk_id=chunk_id, dense=np.array([1, 0, 0, 0], np.float32), text="lamp", tokens=rows)


async def test_they_come_and_go_with_the_chunk(vectors: VectorStore, tokens: SqliteTokens) -> None:
    await vectors.upsert(WIKI, [point(ONE, unit_rows(3)), point(OTHER, None)])
    assert tokens.ids() == {ONE}
    await vectors.upsert(WIKI, [point(ONE, None)])  # its page's type has changed, its text has not
    assert tokens.get([ONE, OTHER])[ONE].shape == (3, WIDTH)
    await vectors.delete(WIKI, [ONE])
    assert tokens.ids() == set()
    assert await vectors.ids(WIKI) == {OTHER}


async def test_they_are_those_of_the_wiki_alone(vectors: VectorStore, tokens: SqliteTokens) -> None:
    await vectors.upsert(WIKI, [point(ONE, unit_rows(3))])
    await vectors.upsert("persona", [point(ONE, unit_rows(5))])
    await vectors.delete("persona", [ONE])
    assert tokens.get([ONE])[ONE].shape == (3, WIDTH)


async def test_a_cleared_store_has_none(vectors: VectorStore, tokens: SqliteTokens) -> None:
    await vectors.upsert(WIKI, [point(ONE, unit_rows(3))])
    await vectors.clear()
    assert tokens.ids() == set()


def test_writing_twice_is_writing_once(tokens: SqliteTokens) -> None:
    for _ in range(2):
        tokens.put({ONE: unit_rows(3), OTHER: unit_rows(2)})
    assert tokens.size() == (2, 5 * WIDTH)
    assert tokens.get([OTHER, "no such"]).keys() == {OTHER}


def test_they_outlive_the_process(tmp_path: Path) -> None:
    path = tmp_path / "tokens.db"
    for _ in range(2):
        with closing(SqliteTokens(path, model="m", dimension=WIDTH)) as store:
            store.put({ONE: unit_rows(3)} if not store.ids() else {})
            assert store.ids() == {ONE}


def test_another_model_s_are_removed(tmp_path: Path) -> None:
    path = tmp_path / "tokens.db"
    with closing(SqliteTokens(path, model="m", dimension=WIDTH)) as store:
        store.put({ONE: unit_rows(3)})
    with closing(SqliteTokens(path, model="n", dimension=WIDTH)) as store:
        assert store.ids() == set()


def test_a_file_that_is_none_of_ours_is_named(tmp_path: Path) -> None:
    path = tmp_path / "tokens.db"
    path.write_bytes(b"not a database, and long enough to be looked at as one" * 100)
    with pytest.raises(StoreCorruptError, match=r"tokens\.db"):
        SqliteTokens(path, model="m", dimension=WIDTH)


@given(arrays(np.float32, (3, WIDTH), elements=st.floats(-1, 1, width=32)))
def test_rounding_keeps_the_direction(rows: NDArray[np.float32]) -> None:
    rows = rows + np.float32(0.01)  # none of length 0
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    if (lengths > 0.001).all():
        kept = quantised(rows / lengths).astype(np.float32)
        cosine = (kept * rows).sum(axis=1) / np.linalg.norm(kept, axis=1) / lengths[:, 0]
        assert (cosine > 0.999).all()
