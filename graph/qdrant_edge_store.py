"""Vectors in the embedded Qdrant engine: one shard for each collection, dense and BM25."""

from __future__ import annotations

import asyncio
import json
import math
import os
import shutil
import threading
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import numpy as np
import qdrant_edge as engine
from numpy.typing import NDArray

from graph.errors import (
    DependencyFaultError,
    SettingsError,
    StoreCorruptError,
    StoreError,
    StoreFullError,
    StoreVersionError,
)
from graph.home import write_atomically
from graph.model import Scored, SearchFilter, VectorPoint, VectorRankings
from graph.storable import storable

FORMAT = 1
RRF_K = 60
"""Cormack et al. 2009. The engine counts ranks from 0 where the formula counts from 1, so it is given one more."""
PREFETCH = 4
"""Hits of each list that enter fusion, as a multiple of those asked for."""
EXACT_UP_TO = 20_000
"""Points up to which every vector is compared: approximate search over few, filtered points misses most of them
(mission.md §3.4), and comparing 6,000 takes 3 ms."""
K1, B, AVERAGE_LENGTH = 1.2, 0.75, 256.0
"""BM25's usual values, and the engine's; fixed, as they are part of what is stored."""
FILTERED_FIELDS = ("source", "page_type", "language", "categories")
READ_AT_ONCE = 1_000
ROOM = 64 * 1024 * 1024
"""Bytes that must be free. The engine writes through memory maps, and one that finds no block on a full disk
kills the process (SIGBUS). Opening a shard fills a map of 32 MB; a batch of 128 points takes 0.7 MB."""
POINT_ROOM = 8
"""Bytes on disk for one byte of vector, with its share of the log, BM25 and payload: twice what was measured."""


class QdrantEdge:
    """`VectorStore` under one folder. The engine takes no lock: the caller holds the home's.

    A shard may be searched, written and optimised from several threads at once (tried: two writers, a reader
    and the optimiser); only opening one needs a lock of ours. Its log survives kill -9; `flush` after each
    write, about 0.1 s, makes what was acknowledged survive a power cut too.
    """

    def __init__(self, folder: Path, *, dimension: int, language: str = "english") -> None:
        self._folder = folder
        self._dimension = dimension
        bm25 = {"tokenizer": "multilingual", "language": language, "k1": K1, "b": B, "average_length": AVERAGE_LENGTH}
        self._recipe = {"format": FORMAT, "dimension": dimension, "bm25": bm25}
        self._bm25 = _bm25(language)
        self._shards: dict[str, engine.EdgeShard] = {}
        self._opening = threading.Lock()
        self._optimizing = threading.Lock()
        self._closed = False

    async def upsert(self, collection: str, points: Sequence[VectorPoint]) -> None:
        if points:
            await asyncio.to_thread(self._upsert, collection, points)

    def _upsert(self, collection: str, points: Sequence[VectorPoint]) -> None:
        made = [self._point(point) for point in points]
        shard = self._made_shard(collection)
        self._check_room(len(points) * self._dimension * 4 * POINT_ROOM)
        with self._errors():
            shard.update(engine.UpdateOperation.upsert_points(made))
            shard.flush()

    def _point(self, point: VectorPoint) -> engine.Point:
        self._check_vector(point.dense)
        vectors = {"dense": point.dense.tolist(), "sparse": self._bm25.embed_document(storable(point.text))}
        return engine.Point(
            uuid.UUID(point.chunk_id), vectors, {key: _payload(value) for key, value in point.payload.items()}
        )

    async def delete(self, collection: str, chunk_ids: Sequence[str]) -> None:
        if chunk_ids:
            await asyncio.to_thread(self._delete, collection, chunk_ids)

    def _delete(self, collection: str, chunk_ids: Sequence[str]) -> None:
        shard = self._shard(collection)
        if shard is not None:
            with self._errors():
                shard.update(engine.UpdateOperation.delete_points(_uuids(chunk_ids)))
                shard.flush()

    async def search(
        self,
        collection: str,
        *,
        dense: NDArray[np.float32] | None,
        text: str,
        limit: int,
        where: SearchFilter | None = None,
    ) -> VectorRankings:
        return await asyncio.to_thread(self._search, collection, dense, text, limit, where or SearchFilter())

    def _search(
        self, collection: str, dense: NDArray[np.float32] | None, text: str, limit: int, where: SearchFilter
    ) -> VectorRankings:
        shard = self._shard(collection)
        if shard is None or limit < 1:
            return VectorRankings(fused=(), dense=(), sparse=())
        queries = {"sparse": engine.Query.Nearest(self._bm25.embed_query(storable(text)), using="sparse")}
        if dense is not None:
            self._check_vector(dense)
            queries["dense"] = engine.Query.Nearest(dense.tolist(), using="dense")
        with self._errors():
            found = _run(shard, queries, limit * PREFETCH, _filter(where))
        return VectorRankings(
            fused=_ranked(found["fused"], limit),
            dense=_ranked(found.get("dense", ()), limit),
            sparse=_ranked(found["sparse"], limit),
        )

    async def vectors(self, collection: str, chunk_ids: Sequence[str]) -> Mapping[str, NDArray[np.float32]]:
        return await asyncio.to_thread(self._vectors, collection, chunk_ids)

    def _vectors(self, collection: str, chunk_ids: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        shard = self._shard(collection)
        found: dict[str, NDArray[np.float32]] = {}
        if shard is None:
            return found
        wanted = _uuids(chunk_ids)
        for start in range(0, len(wanted), READ_AT_ONCE):
            with self._errors():
                records = shard.retrieve(wanted[start : start + READ_AT_ONCE], False, ["dense"])
                vectors = {str(record.id): cast(Mapping[str, list[float]], record.vector) for record in records}
            found.update({chunk_id: np.array(vector["dense"], np.float32) for chunk_id, vector in vectors.items()})
        return found

    async def ids(self, collection: str) -> set[str]:
        return await asyncio.to_thread(self._ids, collection)

    def _ids(self, collection: str) -> set[str]:
        shard = self._shard(collection)
        found: set[str] = set()
        offset: engine.PointId | None = None
        while shard is not None:
            request = engine.ScrollRequest(offset=offset, limit=READ_AT_ONCE, with_payload=False, with_vector=False)
            with self._errors():
                records, offset = shard.scroll(request)
            found.update(str(record.id) for record in records)
            if offset is None:
                break
        return found

    async def optimize(self) -> None:
        """Writes every vector anew, so it needs room for as much again."""
        await asyncio.to_thread(self._optimize)

    def _optimize(self) -> None:
        with self._optimizing:
            for stamp in sorted(self._folder.glob("*/collection.json")):
                shard = self._open(stamp.parent)
                self._check_room(sum(file.stat().st_blocks * 512 for file in stamp.parent.rglob("*")))
                if shard is not None:
                    with self._errors():
                        shard.optimize()
                        shard.flush()

    async def close(self) -> None:
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        with self._opening, self._errors():
            self._closed = True
            for shard in self._shards.values():
                shard.close()
            self._shards.clear()

    # --- shards ---------------------------------------------------------------------------------------------------

    def _shard(self, collection: str) -> engine.EdgeShard | None:
        """None where there is no such collection."""
        name = _folder_name(collection)
        return self._shards.get(name) or self._open(self._folder / name)

    def _made_shard(self, collection: str) -> engine.EdgeShard:
        """The collection's, made if need be."""
        shard = self._shard(collection) or self._open(self._folder / _folder_name(collection), create=True)
        assert shard is not None
        return shard

    def _open(self, place: Path, *, create: bool = False) -> engine.EdgeShard | None:
        with self._opening:
            if self._closed:
                raise StoreError(f"The vector store in {self._folder} is closed.")
            if place.name in self._shards:
                return self._shards[place.name]
            stamp, data = place / "collection.json", place / "shard"
            if stamp.exists():
                self._check_recipe(place, stamp)
            elif not create:
                return None
            self._check_room(0)
            if not stamp.exists():
                self._create(place, data, stamp)
            with self._errors():
                self._shards[place.name] = shard = engine.EdgeShard.load(str(data))
            return shard

    def _create(self, place: Path, data: Path, stamp: Path) -> None:
        """The stamp comes last: without it, what is there is the rest of an attempt that was cut short."""
        with self._errors():
            shutil.rmtree(place, ignore_errors=True)
            data.mkdir(parents=True)
            config = engine.EdgeConfig(
                vectors={"dense": engine.EdgeVectorParams(size=self._dimension, distance=engine.Distance.Cosine)},
                sparse_vectors={"sparse": engine.EdgeSparseVectorParams(modifier=engine.Modifier.Idf)},
            )
            shard = engine.EdgeShard.create(str(data), config)
            for field in FILTERED_FIELDS:
                shard.update(engine.UpdateOperation.create_field_index(field, engine.PayloadSchemaType.Keyword))
            shard.flush()
            shard.close()
        write_atomically(stamp, json.dumps(self._recipe, indent=2) + "\n")

    def _check_recipe(self, place: Path, stamp: Path) -> None:
        try:
            made_with = json.loads(stamp.read_bytes())
        except (OSError, ValueError) as error:
            raise StoreCorruptError(
                f"{stamp} cannot be read ({error}); restore it, or run `trivet ingest --rebuild`."
            ) from error
        if made_with != self._recipe:
            differing = sorted(key for key in self._recipe if made_with.get(key) != self._recipe[key])
            raise StoreVersionError(
                f"The vectors in {place} were made with {_listed(made_with, differing)} and the settings say "
                f"{_listed(self._recipe, differing)}; run `trivet ingest --rebuild`, or change the setting back."
            )

    # --- checks ---------------------------------------------------------------------------------------------------

    def _check_vector(self, vector: NDArray[np.float32]) -> None:
        if vector.shape != (self._dimension,):
            raise StoreVersionError(
                f"The vectors in {self._folder} have {self._dimension} numbers and the embedder gave {vector.size}; "
                "run `trivet ingest --rebuild`, or change the embedder back."
            )
        if not np.isfinite(vector).all():  # the engine takes it, and then nothing compares with it
            raise DependencyFaultError("The embedder gave a vector that is not of numbers.", dependency="embedder")

    def _check_room(self, needed: int) -> None:
        place = next(folder for folder in (self._folder, *self._folder.parents) if folder.exists())
        disk = os.statvfs(place)
        free = disk.f_bavail * disk.f_frsize
        if free < ROOM + needed:
            raise StoreFullError(
                f"Only {free // 2**20:,} MB are free at {self._folder} and the vector store needs "
                f"{(ROOM + needed) // 2**20:,} MB; free some space and run it again."
            )

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


def _bm25(language: str) -> engine.Bm25:
    """The same for documents and questions. The stemmer and the stop words are the language's; the tokenizer
    also cuts Chinese and Japanese into words."""
    try:
        return engine.Bm25(
            engine.Bm25Config(
                k=K1,
                b=B,
                avg_len=AVERAGE_LENGTH,
                tokenizer=engine.TokenizerType.Multilingual,
                ascii_folding=True,
                language=language,
            )
        )
    except ValueError as error:
        raise SettingsError(f"The vector store knows no BM25 for {language!r}: {error}.") from error


def _run(
    shard: engine.EdgeShard, queries: Mapping[str, engine.Query], depth: int, where: engine.Filter | None
) -> dict[str, list[engine.ScoredPoint]]:
    """Each query's list and, as "fused", the engine's own fusion of them. All in one pass over the shard."""
    params = engine.SearchParams(exact=shard.info().points_count <= EXACT_UP_TO)
    lists = [engine.QueryRequest(limit=depth, query=query, filter=where, params=params) for query in queries.values()]
    fused = engine.QueryRequest(
        limit=depth * len(queries),  # all there is, so that equal scores are ordered by us
        query=cast(engine.Fusion, engine.Fusion.Rrf(k=RRF_K + 1)),  # the stubs do not know that it is one
        prefetches=[engine.Prefetch(limit=depth, query=q, filter=where, params=params) for q in queries.values()],
    )
    return dict(zip((*queries, "fused"), shard.query_batch(engine.QueryBatchRequest([*lists, fused])), strict=True))


def _ranked(points: Iterable[engine.ScoredPoint], limit: int) -> tuple[Scored, ...]:
    best_first = sorted((-point.score, str(point.id)) for point in points if math.isfinite(point.score))
    return tuple(Scored(key=key, score=-score) for score, key in best_first[:limit])


def _filter(where: SearchFilter) -> engine.Filter | None:
    wanted = {
        "source": where.sources,
        "page_type": tuple(map(str, where.page_types)),
        "language": where.languages,
        "categories": where.categories,
    }
    conditions: list[engine.ConditionType] = [
        engine.FieldCondition(field, match=engine.MatchAny([storable(value) for value in values]))
        for field, values in wanted.items()
        if values
    ]
    return engine.Filter(must=conditions) if conditions else None


def _payload(value: str | int | list[str]) -> str | int | list[str]:
    if isinstance(value, list):
        return [storable(item) for item in value]
    return storable(value) if isinstance(value, str) else value


def _uuids(chunk_ids: Iterable[str]) -> list[engine.PointId]:
    """Of those that are UUIDs: nothing else can be here."""
    found: list[engine.PointId] = []
    for chunk_id in chunk_ids:
        try:
            found.append(uuid.UUID(chunk_id))
        except ValueError:
            continue
    return found


def _folder_name(collection: str) -> str:
    """Any name as that of a folder that is no other and lies nowhere else."""
    return quote(storable(collection), safe="").replace(".", "%2E")


def _listed(recipe: Mapping[str, Any], keys: Iterable[str]) -> str:
    return ", ".join(f"{key} {json.dumps(recipe.get(key))}" for key in keys)
