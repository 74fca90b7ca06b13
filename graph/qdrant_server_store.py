"""Vectors in a Qdrant server: one collection there for each of ours, dense and BM25.

Nothing is connected to before the first use, so that a server that is down at start is simply tried again later.
"""

from __future__ import annotations

import asyncio
import math
import ssl
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

import certifi
import httpx
import numpy as np
from numpy.typing import NDArray

from graph.bm25 import SparseEncoder
from graph.errors import StoreError, TrivetError
from graph.imported_on_use import ImportedOnUse
from graph.model import Scored, SearchFilter, VectorPoint, VectorRankings
from graph.parts import parts
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
from graph.qdrant_server_collections import CollectionRecipe, FoundCollection
from graph.qdrant_server_faults import QdrantAddress, checked_key, is_dropped

if TYPE_CHECKING:
    from qdrant_client import AsyncQdrantClient, models
    from qdrant_client.common import client_exceptions
    from qdrant_client.http import exceptions
else:
    models = ImportedOnUse("qdrant_client.models")
    client_exceptions = ImportedOnUse("qdrant_client.common.client_exceptions")
    exceptions = ImportedOnUse("qdrant_client.http.exceptions")

WRITE_AT_ONCE = 128
"""Points in one request: making it keeps the event loop for 12 ms."""
NUMBERS_AT_ONCE = 500_000
"""Of dense vectors in one request, where they are long: 10 MB, and a server takes 32 by default."""
IDS_AT_ONCE = 5_000
VECTORS_AT_ONCE = 500
KNOWN_SECONDS = 30.0
"""How long what was seen of a collection holds: that it is ours, and small enough for exact search."""
OVERSAMPLING = 2.0
"""Hits by the vectors of one byte, as a multiple of those wanted, that the exact ones score again."""
STALE = (400, 404, 409)
"""What is answered where somebody removed or made the collection since it was looked at."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    exact: bool
    prepared: bool
    """Has its indexes, and is kept as the settings say."""
    until: float


class QdrantServer:
    """`VectorStore` in a server that others may use too: only what carries this store's mark is touched."""

    def __init__(
        self,
        url: str,
        *,
        api_key: str = "",
        prefix: str = "trivet",
        dimension: int,
        language: str,
        model: str = "",
        home: str = "",
        seconds: float = 10.0,
        quantization: str = "none",
        on_disk: bool = False,
        exact_up_to: int = EXACT_UP_TO,
        client: AsyncQdrantClient | None = None,
    ) -> None:
        """`seconds` is the deadline of a search, and of each batch of what is longer. `client` takes the place of a
        connection. Raises `SettingsError` for a URL, key or language that cannot be used."""
        self._encoder = SparseEncoder(language)
        self._recipe = CollectionRecipe(
            prefix=prefix,
            home=home,
            model=model,
            dimension=dimension,
            weights=self._encoder.recipe,
            idf=self._encoder.idf,
            quantized=quantization == "int8",
            on_disk=on_disk,
        )
        self._at = QdrantAddress(url, has_key=bool(api_key), seconds=seconds)
        self._key = checked_key(api_key)
        self._seconds = seconds
        self._exact_up_to = exact_up_to
        self._client = client
        self._closed = False
        self._seen: dict[str, _Seen] = {}
        self._new_enough = False
        import_module("qdrant_client")  # now, while opening may take its time, and not at the first question

    async def upsert(self, collection: str, points: Sequence[VectorPoint]) -> None:
        for point in points:
            check_vector(point.dense, self._recipe.dimension, self._at.shown)
        for part in parts(points, max(1, min(WRITE_AT_ONCE, NUMBERS_AT_ONCE // self._recipe.dimension))):
            await self._within(partial(self._upsert, collection, await asyncio.to_thread(self._points, part)))

    async def _upsert(self, collection: str, points: list[models.PointStruct], client: AsyncQdrantClient) -> None:
        await self._look(client, collection, create=True)
        await client.upsert(self._recipe.name_of(collection), points, wait=True)

    async def delete(self, collection: str, chunk_ids: Sequence[str]) -> None:
        for part in parts([*map(str, uuids(chunk_ids))], IDS_AT_ONCE):
            await self._within(partial(self._delete, collection, part))

    async def _delete(self, collection: str, ids: Sequence[str], client: AsyncQdrantClient) -> None:
        if await self._look(client, collection):
            selected = models.PointIdsList(points=list(ids))
            await client.delete(self._recipe.name_of(collection), selected, wait=True)

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
        queries: dict[str, Any] = {}
        if dense is not None:
            check_vector(dense, self._recipe.dimension, self._at.shown)
            queries["dense"] = dense.tolist()
        indices, values = await asyncio.to_thread(self._encoder.query, text, sparse)
        if indices:
            queries["sparse"] = {"indices": indices, "values": values}
        found = await self._within(partial(self._search, collection, queries, limit, _filter(where or SearchFilter())))
        return rankings_of(found, limit)

    async def _search(
        self,
        collection: str,
        queries: Mapping[str, Any],
        limit: int,
        where: Mapping[str, Any] | None,
        client: AsyncQdrantClient,
    ) -> dict[str, tuple[Scored, ...]]:
        """Each query's list, `PREFETCH` times as long as asked for."""
        seen = await self._look(client, collection)
        if seen is None or limit < 1 or not queries:
            return {}
        exact = seen.exact or await self._leaves_few(client, collection, where)
        params: dict[str, Any] = {"exact": exact, "hnsw_ef": SEARCH_WIDTH}
        if self._recipe.quantized:  # which exact search ignores
            params["quantization"] = {"rescore": True, "oversampling": OVERSAMPLING}
        shared = {"limit": limit * PREFETCH, "filter": where, "params": params}
        requests = [
            models.QueryRequest.model_validate({"query": {"nearest": query}, "using": using, **shared})
            for using, query in queries.items()
        ]
        answers = await client.query_batch_points(
            self._recipe.name_of(collection), requests, timeout=math.ceil(self._seconds)
        )
        return {using: ranked(answer.points) for using, answer in zip(queries, answers, strict=True)}

    async def _leaves_few(self, client: AsyncQdrantClient, collection: str, where: Mapping[str, Any] | None) -> bool:
        """Whether the filter leaves so few points of a large collection that the index would miss some."""
        if where is None:
            return False
        matching = models.Filter.model_validate(where)
        seconds = math.ceil(self._seconds)
        counted = await client.count(self._recipe.name_of(collection), matching, exact=True, timeout=seconds)
        return counted.count <= self._exact_up_to

    async def vectors(self, collection: str, chunk_ids: Sequence[str]) -> Mapping[str, NDArray[np.float32]]:
        found = await self._retrieved(collection, chunk_ids, "dense")
        return {key: np.array(vectors["dense"], np.float32) for key, vectors in found if "dense" in vectors}

    async def weights(self, collection: str, chunk_ids: Sequence[str]) -> Mapping[str, dict[int, float]]:
        found = await self._retrieved(collection, chunk_ids, "sparse")
        empty = models.SparseVector(indices=[], values=[])
        sparse = {key: vectors.get("sparse", empty) for key, vectors in found}
        return {key: dict(zip(vector.indices, vector.values, strict=True)) for key, vector in sparse.items()}

    async def _retrieved(self, collection: str, chunk_ids: Sequence[str], name: str) -> list[tuple[str, Any]]:
        """(chunk id, its vectors by name) of those that exist."""
        records: list[models.Record] = []
        for part in parts([*map(str, uuids(chunk_ids))], VECTORS_AT_ONCE):
            records += await self._within(partial(self._retrieve, collection, part, name))
        return [(str(each.id), each.vector or {}) for each in records]

    async def _retrieve(
        self, collection: str, ids: Sequence[str], name: str, client: AsyncQdrantClient
    ) -> Sequence[models.Record]:
        if not await self._look(client, collection):
            return ()
        there = self._recipe.name_of(collection)
        return await client.retrieve(there, list(ids), with_payload=False, with_vectors=[name])

    async def ids(self, collection: str) -> set[str]:
        found: set[str] = set()
        offset: Any = None
        while True:
            records, offset = await self._within(partial(self._scroll, collection, offset))
            found.update(str(record.id) for record in records)
            if offset is None:
                return found

    async def _scroll(
        self, collection: str, offset: Any, client: AsyncQdrantClient
    ) -> tuple[Sequence[models.Record], Any]:
        if not await self._look(client, collection):
            return (), None
        name = self._recipe.name_of(collection)
        return await client.scroll(name, offset=offset, limit=IDS_AT_ONCE, with_payload=False, with_vectors=False)

    async def optimize(self) -> None:
        """Nothing: the server does so by itself after writes, in the background."""

    async def clear(self) -> None:
        for name in await self._within(self._list):
            await self._within(partial(self._drop, name))
        self._seen.clear()

    async def _list(self, client: AsyncQdrantClient) -> list[str]:
        await self._check_version(client)
        listed = await client.get_collections()
        return [each.name for each in listed.collections if each.name.startswith(f"{self._recipe.prefix}_")]

    async def _drop(self, name: str, client: AsyncQdrantClient) -> None:
        there = await client.collection_exists(name)
        if there and self._recipe.is_ours(name, (await _describe(client, name)).metadata):
            await client.delete_collection(name)

    async def close(self) -> None:
        self._closed = True
        if self._client is not None:
            await self._client.close()

    # --- collections ----------------------------------------------------------------------------------------------

    async def _look(self, client: AsyncQdrantClient, collection: str, *, create: bool = False) -> _Seen | None:
        """What there is to know of a collection that is ours; None where there is none.

        Raises `StoreVersionError` where it is another's or was made otherwise.
        """
        seen = self._seen.get(collection)
        if seen is not None and time.monotonic() < seen.until and (seen.prepared or not create):
            return seen
        await self._check_version(client)
        name = self._recipe.name_of(collection)
        if not await client.collection_exists(name):
            if not create:
                return None
            await self._create(client, name, collection)
        found = await _describe(client, name)
        self._recipe.check(name, found, self._at.shown)
        if create:
            await self._prepare(client, name, found)
        until = time.monotonic() + KNOWN_SECONDS
        small = is_small(collection, found.points, self._exact_up_to)
        self._seen[collection] = _Seen(exact=small, prepared=create, until=until)
        return self._seen[collection]

    async def _create(self, client: AsyncQdrantClient, name: str, collection: str) -> None:
        shape = models.CreateCollection.model_validate(self._recipe.shape(collection))
        await client.create_collection(
            name, shape.vectors, sparse_vectors_config=shape.sparse_vectors, metadata=shape.metadata
        )

    async def _prepare(self, client: AsyncQdrantClient, name: str, found: FoundCollection) -> None:
        """Also what a writer that was killed, or had other settings, left undone."""
        for field in FILTERED_FIELDS:
            if field not in found.indexed:
                await client.create_payload_index(name, field, models.PayloadSchemaType.KEYWORD, wait=True)
        if not self._recipe.is_kept_so(found):
            wanted = models.VectorParamsDiff.model_validate(self._recipe.keeping())
            await client.update_collection(name, vectors_config={"dense": wanted})

    async def _check_version(self, client: AsyncQdrantClient) -> None:
        if not self._new_enough:
            self._at.check_version((await client.info()).version)
            self._new_enough = True

    # --- the connection -------------------------------------------------------------------------------------------

    async def _within(self, work: Callable[[AsyncQdrantClient], Awaitable[T]]) -> T:
        """What `work` gets before the deadline. It may be run twice: all of it is idempotent."""
        if self._closed:
            raise StoreError(f"The vector store in {self._at.shown} is closed.")
        client = self._client or self._connect()
        try:
            async with asyncio.timeout(self._seconds):
                try:
                    return await work(client)
                except exceptions.ApiException as error:
                    self._forget()
                    if not _is_worth_another(error):
                        raise
                return await work(client)
        except TimeoutError:
            self._forget()
            raise self._at.too_late() from None
        except (
            exceptions.ApiException,
            client_exceptions.QdrantException,
            httpx.HTTPError,
            AssertionError,  # what the client says of an answer without a result
            ValueError,  # of one that is no JSON
            RecursionError,
        ) as error:
            self._forget()
            raise self._translated(error) from None  # its text has the server's answer in it

    def _connect(self) -> AsyncQdrantClient:
        tls: dict[str, Any] = {}
        if self._at.url.startswith("https:"):
            # The system's certificates, or SSL_CERT_FILE's: a server in the house may have one of its own making.
            tls["verify"] = ssl.create_default_context()
            tls["verify"].load_verify_locations(certifi.where())
        self._client = import_module("qdrant_client").AsyncQdrantClient(
            url=self._at.url,
            timeout=math.ceil(self._seconds),
            check_compatibility=False,  # it warns, from a thread; `_check_version` refuses
            # Not as `api_key`: the client would warn of a server in the house that has no https.
            headers={"api-key": self._key} if self._key else None,
            trust_env=False,
            **tls,
        )
        return self._client

    def _forget(self) -> None:
        """After a fault another server may be there."""
        self._seen.clear()
        self._new_enough = False

    def _translated(self, error: Exception) -> TrivetError:
        match error:
            case exceptions.UnexpectedResponse():
                return self._at.refused(error.status_code or 0, error.headers, error.content)
            case client_exceptions.ResourceExhaustedResponse():
                return self._at.busy(float(error.retry_after_s))
            case client_exceptions.QdrantException():  # a Retry-After that is a date
                return self._at.busy(1.0)
            case exceptions.ResponseHandlingException():
                return self._at.unreachable(error.source)
            case _:
                return self._at.unreadable()

    # --- points ---------------------------------------------------------------------------------------------------

    def _points(self, points: Sequence[VectorPoint]) -> list[models.PointStruct]:
        made = []
        for point in points:
            vectors: dict[str, Any] = {"dense": point.dense.tolist()}
            indices, values = self._encoder.document(point.text, point.sparse)
            if indices:
                vectors["sparse"] = models.SparseVector(indices=indices, values=values)
            payload = storable_payload(point.payload)
            made.append(models.PointStruct(id=str(uuid.UUID(point.chunk_id)), vector=vectors, payload=payload))
        return made


def _filter(where: SearchFilter) -> dict[str, Any] | None:
    must = [{"key": field, "match": {"any": values}} for field, values in wanted(where).items()]
    return {"must": must} if must else None


async def _describe(client: AsyncQdrantClient, name: str) -> FoundCollection:
    return FoundCollection.from_json((await client.get_collection(name)).model_dump(mode="json"))


def _is_worth_another(error: exceptions.ApiException) -> bool:
    """Whether the connection was dropped, or what was seen of the collection is no longer so."""
    if isinstance(error, exceptions.ResponseHandlingException):
        return is_dropped(error.source)
    return isinstance(error, exceptions.UnexpectedResponse) and error.status_code in STALE
