"""Vectors in the embedded Qdrant engine: one shard for each collection, dense and BM25."""

from __future__ import annotations

import asyncio
import ctypes
import multiprocessing
import shutil
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, cast

import numpy as np
import qdrant_edge as engine
from numpy.typing import NDArray

from graph.bm25 import SparseEncoder
from graph.collection_folder import CollectionFolder, check_room, folder_name, size_of, sync_files
from graph.errors import (
    StoreCorruptError,
    StoreError,
    StoreFullError,
)
from graph.model import WIKI, Scored, SearchFilter, VectorPoint, VectorRankings
from graph.qdrant_edge_index import has_memory, optimize_folder
from graph.qdrant_points import (
    EXACT_UP_TO,
    FILTERED_FIELDS,
    PREFETCH,
    SEARCH_WIDTH,
    check_vector,
    is_small,
    ranked,
    rankings_of,
    storable_payload,
    uuids,
    wanted,
)

FORMAT = 1
READ_AT_ONCE = 1_000
WRITE_AT_ONCE = 32
"""Points, 5 ms: the engine keeps Python's lock while it works, and other threads want a turn."""
FLUSH_AFTER = 4_000
"""Points after which the engine's log is folded into its segments, which takes it up to a second."""
POINT_ROOM = 8
"""Bytes on disk for one byte of vector, with its share of the log, BM25 and payload: twice what was measured."""


class QdrantEdge:
    """`VectorStore` under one folder. The engine takes no lock on it: the caller holds the home's.

    A shard may be used by several threads at once (tried: two writers, a reader and the optimiser), but none of
    its calls lets go of Python's lock. So long work is cut into short calls, or done in a process of its own.
    Its log survives kill -9; `sync_files` after a write makes what was acknowledged survive a power cut too.
    """

    def __init__(
        self, folder: Path, *, dimension: int, language: str = "english", exact_up_to: int = EXACT_UP_TO
    ) -> None:
        self._folder = folder
        self._dimension = dimension
        self._exact_up_to = exact_up_to
        self._encoder = SparseEncoder(language)
        self._recipe = {"format": FORMAT, "dimension": dimension, "bm25": self._encoder.recipe}
        self._shards: dict[str, engine.EdgeShard] = {}
        self._unflushed: dict[str, int] = {}
        self._using = threading.RLock()
        """Around every call of the engine, so that a shard is not closed or replaced under one."""
        self._writing = threading.Lock()
        """Also held while a copy is optimised: what is written then would be lost."""
        self._optimizer: BaseProcess | None = None
        self._copying = False
        """Whether a collection has two folders for now, of which none is left over."""
        self._closed = False

    async def upsert(self, collection: str, points: Sequence[VectorPoint]) -> None:
        if points:
            await asyncio.to_thread(self._upsert, collection, points)

    def _upsert(self, collection: str, points: Sequence[VectorPoint]) -> None:
        made = [self._point(point) for point in points]
        parts = [made[start : start + WRITE_AT_ONCE] for start in range(0, len(made), WRITE_AT_ONCE)]
        check_room(self._folder, len(points) * self._dimension * 4 * POINT_ROOM)
        self._write(
            collection, [engine.UpdateOperation.upsert_points(part) for part in parts], len(points), create=True
        )

    def _point(self, point: VectorPoint) -> engine.Point:
        check_vector(point.dense, self._dimension, str(self._folder))
        sparse = engine.SparseVector(*self._encoder.document(point.text, point.sparse))
        vectors = {"dense": point.dense.tolist(), "sparse": sparse}
        return engine.Point(uuid.UUID(point.chunk_id), vectors, storable_payload(point.payload))

    async def delete(self, collection: str, chunk_ids: Sequence[str]) -> None:
        if chunk_ids:
            await asyncio.to_thread(self._delete, collection, chunk_ids)

    def _delete(self, collection: str, chunk_ids: Sequence[str]) -> None:
        ids: list[engine.PointId] = [*uuids(chunk_ids)]
        self._write(collection, [engine.UpdateOperation.delete_points(ids)], len(ids))

    def _write(
        self, collection: str, operations: Sequence[engine.UpdateOperation], points: int, *, create: bool = False
    ) -> None:
        name = folder_name(collection)
        with self._writing:
            for operation in operations:
                with self._using, self._errors():
                    shard = self._shard(name, create=create)
                    if shard is None:
                        return
                    shard.update(operation)
            with self._errors():
                sync_files(self._files(name).current() / "wal")
            self._unflushed[name] = self._unflushed.get(name, 0) + points
            if self._unflushed[name] >= FLUSH_AFTER:
                self._flush(name)

    def _flush(self, name: str) -> None:
        with self._using, self._errors():
            shard = self._shard(name)
            if shard is not None:
                shard.flush()
        self._unflushed[name] = 0

    async def search(
        self,
        collection: str,
        *,
        dense: NDArray[np.float32] | None,
        text: str,
        limit: int,
        where: SearchFilter | None = None,
        sparse: dict[int, float] | None = None,
    ) -> VectorRankings:
        words = await asyncio.to_thread(self._encoder.query, text, sparse)
        return await asyncio.to_thread(self._search, collection, dense, words, limit, where or SearchFilter())

    def _search(
        self,
        collection: str,
        dense: NDArray[np.float32] | None,
        words: tuple[list[int], list[float]],
        limit: int,
        where: SearchFilter,
    ) -> VectorRankings:
        queries = {"sparse": engine.Query.Nearest(engine.SparseVector(*words), using="sparse")}
        if dense is not None:
            check_vector(dense, self._dimension, str(self._folder))
            queries["dense"] = engine.Query.Nearest(dense.tolist(), using="dense")
        with self._using, self._errors():
            shard = self._shard(folder_name(collection))
            if shard is None or limit < 1:
                return VectorRankings(fused=(), dense=(), sparse=())
            matching = _filter(where)
            exact = self._is_exact(shard, collection, matching)
            found = _run(shard, queries, limit * PREFETCH, matching, exact=exact)
        return rankings_of(found, limit)

    def _is_exact(self, shard: engine.EdgeShard, collection: str, matching: engine.Filter | None) -> bool:
        """Also where the filter leaves few, counted exactly: the engine's estimate takes fields for independent, and
        2 ms for 6,000 points, 11 ms for 54,000, are less than a search that misses them costs."""
        if is_small(collection, shard.info().points_count, self._exact_up_to):
            return True
        return matching is not None and shard.count(engine.CountRequest(True, matching)) <= self._exact_up_to

    async def vectors(self, collection: str, chunk_ids: Sequence[str]) -> Mapping[str, NDArray[np.float32]]:
        found = await asyncio.to_thread(self._retrieve, collection, chunk_ids, "dense")
        return {key: np.array(vector, np.float32) for key, vector in found}

    async def weights(self, collection: str, chunk_ids: Sequence[str]) -> Mapping[str, dict[int, float]]:
        found = await asyncio.to_thread(self._retrieve, collection, chunk_ids, "sparse")
        return {key: dict(zip(vector.indices, vector.values, strict=True)) for key, vector in found}

    def _retrieve(self, collection: str, chunk_ids: Sequence[str], name: str) -> list[tuple[str, Any]]:
        """(chunk id, vector of that name)"""
        found: list[tuple[str, Any]] = []
        ids: list[engine.PointId] = [*uuids(chunk_ids)]
        for start in range(0, len(ids), READ_AT_ONCE):
            with self._using, self._errors():
                shard = self._shard(folder_name(collection))
                if shard is None:
                    break
                records = shard.retrieve(ids[start : start + READ_AT_ONCE], False, [name])
            found += [(str(record.id), cast(Mapping[str, Any], record.vector)[name]) for record in records]
        return found

    async def ids(self, collection: str) -> set[str]:
        return await asyncio.to_thread(self._ids, collection)

    def _ids(self, collection: str) -> set[str]:
        found: set[str] = set()
        offset: engine.PointId | None = None
        while True:
            request = engine.ScrollRequest(offset=offset, limit=READ_AT_ONCE, with_payload=False, with_vector=False)
            with self._using, self._errors():
                shard = self._shard(folder_name(collection))
                if shard is None:
                    return found
                records, offset = shard.scroll(request)
            found.update(str(record.id) for record in records)
            if offset is None:
                return found

    async def optimize(self) -> None:
        """Index what is large. Searches go on meanwhile, writes wait. Needs room for twice as much again."""
        await asyncio.to_thread(self._optimize)

    def _optimize(self) -> None:
        name = folder_name(WIKI)  # the others are searched exactly in any case, and so is a small one
        with self._writing:
            with self._using, self._errors():
                shard = self._shard(name)
                points = shard.info().points_count if shard is not None else 0
            if is_small(WIKI, points, self._exact_up_to):
                return
            self._flush(name)
            self._unload(name)
            if has_memory(name, points):
                self._optimize_copy(name)

    def _optimize_copy(self, name: str) -> None:
        """In another process, as the engine works for minutes with Python's lock held; so on a copy, as two
        processes must not have one shard open; so the copy then takes the place of the original."""
        files = self._files(name)
        old = files.current()
        check_room(self._folder, 2 * size_of(old))
        new = files.fresh()
        with self._errors(), self._two_folders():
            shutil.copytree(old, new)
            child = multiprocessing.get_context("spawn").Process(target=optimize_folder, args=(str(new),), daemon=True)
            child.start()
            self._optimizer = child
            if self._closed:
                child.terminate()
            child.join()
            self._optimizer = None
        if child.exitcode != 0:
            files.remove_all_but(old.name)
            raise StoreError(f"Optimising {old} ended with code {child.exitcode}; searching it goes on, more slowly.")
        with self._using, self._errors():
            shard = engine.EdgeShard.load(str(new))
            files.make_current(new)
            before = self._shards.pop(name, None)
            if before is not None:
                before.close()
            self._shards[name] = shard
            files.remove_all_but(new.name)

    @contextmanager
    def _two_folders(self) -> Iterator[None]:
        self._copying = True
        try:
            yield
        finally:
            self._copying = False

    def _unload(self, name: str) -> None:
        """Leave its memory to the copy, which needs as much again; who searches meanwhile opens it once more."""
        with self._using:
            shard = self._shards.pop(name, None)
            if shard is not None:
                shard.close()
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc keeps what was freed
        if trim is not None:
            trim(0)

    async def clear(self) -> None:
        await asyncio.to_thread(self._clear)

    def _clear(self) -> None:
        with self._writing, self._using, self._errors():
            for shard in self._shards.values():
                shard.close()
            self._shards.clear()
            if self._folder.exists():
                shutil.rmtree(self._folder)

    async def close(self) -> None:
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self._closed = True
        if (child := self._optimizer) is not None:
            child.terminate()  # its copy is thrown away
        with self._writing, self._using, self._errors():
            for shard in self._shards.values():
                shard.flush()
                shard.close()
            self._shards.clear()

    # --- shards ---------------------------------------------------------------------------------------------------

    def _files(self, name: str) -> CollectionFolder:
        return CollectionFolder(self._folder / name, self._recipe)

    def _shard(self, name: str, *, create: bool = False) -> engine.EdgeShard | None:
        """None where there is no such collection. The caller has `_using`."""
        if self._closed:
            raise StoreError(f"The vector store in {self._folder} is closed.")
        if name not in self._shards:
            files = self._files(name)
            if not files.exists and not create:
                return None
            check_room(self._folder, 0)
            if not files.exists:
                self._create(files)
            current = files.current()
            if not self._copying:
                files.remove_all_but(current.name)
            self._shards[name] = engine.EdgeShard.load(str(current))
        return self._shards[name]

    def _create(self, files: CollectionFolder) -> None:
        data = files.fresh()
        data.mkdir(parents=True)
        config = engine.EdgeConfig(
            vectors={"dense": engine.EdgeVectorParams(size=self._dimension, distance=engine.Distance.Cosine)},
            sparse_vectors={
                "sparse": engine.EdgeSparseVectorParams(modifier=engine.Modifier.Idf if self._encoder.idf else None)
            },
        )
        shard = engine.EdgeShard.create(str(data), config)
        for field in FILTERED_FIELDS:
            shard.update(engine.UpdateOperation.create_field_index(field, engine.PayloadSchemaType.Keyword))
        shard.flush()
        shard.close()
        files.make_current(data)

    # --- checks ---------------------------------------------------------------------------------------------------

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """The engine raises bare `Exception`s with a text, and a panic for a bug met in a broken file."""
        try:
            yield
        except StoreError:
            raise
        except BaseException as error:
            if isinstance(error, Exception) or type(error).__name__ == "PanicException":
                raise self._translated(error) from error
            raise

    def _translated(self, error: BaseException) -> StoreError:
        said = " ".join(str(error).split())
        if self._closed:
            return StoreError(f"The vector store in {self._folder} is closed.")
        if isinstance(error, OSError) or any(
            sign in said for sign in ("No space left", "Permission denied", "Read-only file system", "os error 28")
        ):
            return StoreFullError(f"Cannot write to {self._folder} ({said}); free some space or make it writable.")
        return StoreCorruptError(
            f"The vectors in {self._folder} cannot be used ({said}); restore a copy, or run `trivet ingest --rebuild`."
        )


def _run(
    shard: engine.EdgeShard,
    queries: Mapping[str, engine.Query],
    depth: int,
    where: engine.Filter | None,
    *,
    exact: bool,
) -> dict[str, tuple[Scored, ...]]:
    """Each query's list, best first. All in one pass over the shard."""
    params = engine.SearchParams(exact=exact, hnsw_ef=SEARCH_WIDTH)
    lists = [engine.QueryRequest(limit=depth, query=query, filter=where, params=params) for query in queries.values()]
    found = shard.query_batch(engine.QueryBatchRequest(lists))
    return {using: ranked(points) for using, points in zip(queries, found, strict=True)}


def _filter(where: SearchFilter) -> engine.Filter | None:
    conditions: list[engine.ConditionType] = [
        engine.FieldCondition(field, match=engine.MatchAny(values)) for field, values in wanted(where).items()
    ]
    return engine.Filter(must=conditions) if conditions else None
