"""Chunks as the vector store takes them: embedded now, or with the vectors that are stored already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from graph.bm25 import weighed
from graph.knowledge import WIKI
from graph.model import BARE, TITLE, Chunk, Manifest, VectorPoint, text_of
from graph.protocols import Embedder, SparseEmbedder, TokenEmbedder, VectorStore


async def embedded_points(
    embedder: Embedder,
    chunks: Sequence[Chunk],
    manifests: Mapping[str, Manifest],
    token_embedder: TokenEmbedder | None = None,
) -> list[VectorPoint]:
    """In the order of `chunks`; `manifests` by page id."""
    texts = [text_of(chunk, manifests[chunk.page_id].title) for chunk in chunks]
    weights: Sequence[dict[int, float] | None] = [None] * len(texts)
    if isinstance(embedder, SparseEmbedder):
        vectors, weights = await embedder.embed_passages_both(texts)
    else:
        vectors = await embedder.embed_passages(texts)
    tokens = await token_embedder.embed_passages(texts) if token_embedder else [None] * len(texts)
    return [
        replace(_point(chunk, manifests, vector, sparse), tokens=rows)
        for chunk, vector, sparse, rows in zip(chunks, vectors, weights, tokens, strict=True)
    ]


async def stored_points(
    vectors: VectorStore, embedder: Embedder, chunks: Sequence[Chunk], manifests: Mapping[str, Manifest]
) -> list[VectorPoint]:
    """Those of `chunks` that have a vector, without embedding again: for a move, or where a page's type or categories
    have changed and its text has not."""
    if not chunks:
        return []
    ids = [chunk.id for chunk in chunks]
    dense = await vectors.vectors(WIKI, ids)
    # BM25 is made again from the text; what the embedder weighed is not known from it.
    learned = await vectors.weights(WIKI, ids) if isinstance(embedder, SparseEmbedder) else {}
    return [_point(chunk, manifests, dense[chunk.id], learned.get(chunk.id)) for chunk in chunks if chunk.id in dense]


def payload_of(manifest: Manifest, strategy: str = TITLE) -> dict[str, str | int | list[str]]:
    """What a `SearchFilter` may ask of a vector, and which strategy made it where that is not the default one: so
    vectors from before there was a choice need not be written again."""
    return {
        "source": manifest.source,
        "page_id": manifest.page_id,
        "page_type": manifest.page_type.value,
        "language": manifest.language,
        "categories": list(manifest.categories),
        **({} if strategy == TITLE else {"strategy": strategy}),
    }


def _point(
    chunk: Chunk, manifests: Mapping[str, Manifest], dense: NDArray[np.float32], sparse: dict[int, float] | None
) -> VectorPoint:
    manifest = manifests[chunk.page_id]
    text = text_of(chunk, manifest.title)
    return VectorPoint(
        chunk_id=chunk.id,
        dense=dense,
        text=text if chunk.strategy == BARE else weighed(text, manifest.title),
        sparse=sparse,
        payload=payload_of(manifest, chunk.strategy),
    )
