"""A vector store that keeps token vectors beside the others, so that they come and go with them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from graph.knowledge import WIKI
from graph.model import SearchFilter, VectorPoint, VectorRankings
from graph.protocols import TokenStore, VectorStore


class VectorsWithTokens:
    """`VectorStore` over another one and a `TokenStore`, which has those of the wiki's chunks.

    All that removes chunks (an edit, a page that is gone, a batch cut short, a repair) removes vectors, and so token
    vectors too, also where the setting that makes them is off by now.
    """

    def __init__(self, vectors: VectorStore, tokens: TokenStore) -> None:
        self._vectors = vectors
        self._tokens = tokens

    async def upsert(self, collection: str, points: Sequence[VectorPoint]) -> None:
        """A point without token vectors leaves those that are there."""
        made = {point.chunk_id: point.tokens for point in points if point.tokens is not None}
        if made and collection == WIKI:
            await asyncio.to_thread(self._tokens.put, made)
        await self._vectors.upsert(collection, points)

    async def delete(self, collection: str, chunk_ids: Sequence[str]) -> None:
        await self._vectors.delete(collection, chunk_ids)
        if chunk_ids and collection == WIKI:
            await asyncio.to_thread(self._tokens.delete, chunk_ids)

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
        return await self._vectors.search(collection, dense=dense, text=text, limit=limit, where=where, sparse=sparse)

    async def vectors(self, collection: str, chunk_ids: Sequence[str]) -> Mapping[str, NDArray[np.float32]]:
        return await self._vectors.vectors(collection, chunk_ids)

    async def weights(self, collection: str, chunk_ids: Sequence[str]) -> Mapping[str, dict[int, float]]:
        return await self._vectors.weights(collection, chunk_ids)

    async def ids(self, collection: str) -> set[str]:
        return await self._vectors.ids(collection)

    async def optimize(self) -> None:
        await self._vectors.optimize()

    async def clear(self) -> None:
        await self._vectors.clear()
        await asyncio.to_thread(self._tokens.clear)

    async def close(self) -> None:
        await self._vectors.close()
        await asyncio.to_thread(self._tokens.close)
