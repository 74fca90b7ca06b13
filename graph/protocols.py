"""The seams: what each kind of backend must do, in model types only.

Methods that may wait are async; an adapter around blocking code runs it in a worker thread.
Each has one contract suite in `tests/contracts/`, run on the fake, the embedded and the real adapter.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from graph.feed import FeedItem
from graph.graph_model import Entity, GraphCounts, GraphPage, Mention, Neighbourhood, NeighbourhoodBounds
from graph.model import (
    ChatMessage,
    ChatPiece,
    Chunk,
    Manifest,
    SearchFilter,
    StoredChunk,
    VectorPoint,
    VectorRankings,
    WebResults,
)
from graph.web_page import WebPage


class Source(Protocol):
    """A wiki. Reading is blocking and streams: never more than one page in memory.

    It runs in a worker thread; a page that cannot be read is yielded as `FailedPage`, and only a
    source that cannot be read at all raises `SourceError`.
    """

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    def read(self) -> Iterator[FeedItem]: ...


@runtime_checkable
class ChangingSource(Source, Protocol):
    """A wiki that can say what has changed, so that following it does not mean reading it all.

    `read` of such a source ends with a `Checkpoint`, whose cursor was taken before its first page was read: what
    changes meanwhile is told again.
    """

    def changes(self, cursor: str) -> Iterator[FeedItem] | None:
        """What has changed since `cursor`, with a `Checkpoint` now and then and as its last item. None where the feed
        does not reach back so far: then all is read again, and what is gone is found by comparison.

        A page that cannot be fetched is a `FailedPage`, never a `GonePage`. A source that fails half-way raises its
        `SourceError`; what came before its last checkpoint counts.
        """
        ...

    def pages(self, keys: Sequence[str]) -> Iterator[FeedItem]:
        """These alone, as they are now: for pages that could not be read before."""
        ...


class Embedder(Protocol):
    """Texts to unit vectors, float32."""

    @property
    def model(self) -> str: ...
    @property
    def dimension(self) -> int: ...
    @property
    def max_tokens(self) -> int: ...
    async def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(n, dimension), row i for text i."""
        ...

    async def embed_question(self, question: str) -> NDArray[np.float32]:
        """(dimension,), with the model's query prefix where it has one."""
        ...

    def count_tokens(self, text: str) -> int: ...
    async def close(self) -> None: ...


@runtime_checkable
class SparseEmbedder(Embedder, Protocol):
    """One whose model also weighs the words (BGE-M3): token number → weight, in place of BM25."""

    async def embed_passages_both(self, texts: Sequence[str]) -> tuple[NDArray[np.float32], list[dict[int, float]]]:
        """As `embed_passages`, and the weights of each text."""
        ...

    async def embed_question_both(self, question: str) -> tuple[NDArray[np.float32], dict[int, float]]: ...


class TokenEmbedder(Protocol):
    """Texts to a unit vector for each of their tokens, float32, for late interaction (Khattab & Zaharia 2020)."""

    @property
    def model(self) -> str: ...
    @property
    def dimension(self) -> int: ...
    async def embed_passages(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """(tokens, dimension) for each text."""
        ...

    async def embed_question(self, question: str) -> NDArray[np.float32]:
        """(tokens, dimension)"""
        ...

    async def close(self) -> None: ...


class TokenStore(Protocol):
    """Token vectors by chunk id, rounded. Blocking, and quick: callers on the event loop use a worker thread."""

    def put(self, vectors: Mapping[str, NDArray[np.float32]]) -> None:
        """Idempotent; (tokens, dimension) each, rows of length 1."""
        ...

    def get(self, chunk_ids: Sequence[str]) -> Mapping[str, NDArray[np.int8]]:
        """(tokens, dimension) of those that exist; only the direction of a row means anything."""
        ...

    def delete(self, chunk_ids: Sequence[str]) -> None: ...
    def ids(self) -> set[str]: ...
    def size(self) -> tuple[int, int]:
        """(chunks, bytes of their vectors)"""
        ...

    def clear(self) -> None: ...
    def close(self) -> None: ...


class VectorStore(Protocol):
    """Dense and BM25 vectors of chunks. Writing is idempotent by chunk id."""

    async def upsert(self, collection: str, points: Sequence[VectorPoint]) -> None: ...
    async def delete(self, collection: str, chunk_ids: Sequence[str]) -> None: ...
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
        """Best `limit` of each ranking. `dense=None` (the embedder is down) leaves BM25 alone to rank.

        `sparse`: the question's weights, where the embedder gives them in place of BM25.

        Ties are ordered by chunk id. An unknown collection is empty, not an error. Where few points come into question,
        in any collection but the wiki or by the filter, none is missed.
        """
        ...

    async def vectors(self, collection: str, chunk_ids: Sequence[str]) -> Mapping[str, NDArray[np.float32]]:
        """The dense vectors of those that exist."""
        ...

    async def weights(self, collection: str, chunk_ids: Sequence[str]) -> Mapping[str, dict[int, float]]:
        """The sparse vectors of those that exist, as they were made by BM25 or given by the embedder."""
        ...

    async def ids(self, collection: str) -> set[str]: ...
    async def optimize(self) -> None:
        """Make searching fast after bulk work; may take minutes, never changes results' meaning."""
        ...

    async def clear(self) -> None:
        """Remove every collection of this store, and nothing of anybody else's."""
        ...

    async def close(self) -> None: ...


class GraphStore(Protocol):
    """Pages, entities, mentions, links and categories. Writes are idempotent."""

    async def put_pages(self, pages: Sequence[GraphPage]) -> None:
        """Replace what is known of these pages: title, links, categories. Chunks are added, never removed here."""
        ...

    async def remove_pages(self, page_ids: Sequence[str]) -> None:
        """The pages, their chunks, and every edge of either."""
        ...

    async def remove_chunks(self, chunk_ids: Sequence[str]) -> None: ...
    async def set_entities(self, entities: Sequence[Entity]) -> None:
        """Create or rename; replaces an entity's keys."""
        ...

    async def titled_entities(self) -> Mapping[str, Entity]:
        """All entities with `titled`, by id: the titles the mentions were last linked with."""
        ...

    async def set_mentions(self, mentions: Mapping[str, Sequence[Mention]]) -> None:
        """Replace all mentions of each chunk. Entities must exist."""
        ...

    async def prune_entities(self) -> int:
        """Remove entities that no page is about and no chunk names; how many."""
        ...

    async def find_entities(self, keys: Sequence[str]) -> Mapping[str, tuple[Entity, ...]]:
        """Entities by key, each tuple ordered by id; keys without one are absent."""
        ...

    async def neighbourhood(
        self, entity_ids: Sequence[str], chunk_ids: Sequence[str], bounds: NeighbourhoodBounds
    ) -> Neighbourhood:
        """What lies around these entities and chunks: all of a small graph, the nearest part of a large one."""
        ...

    async def linking_pages(self, entity_ids: Sequence[str]) -> set[str]:
        """Ids of the pages that link to any of these, whether the entity exists or the edge waits for it."""
        ...

    async def mentions_of(self, chunk_ids: Sequence[str]) -> Mapping[str, tuple[Mention, ...]]:
        """Each ordered by entity id; for `verify`, explanations and tests."""
        ...

    async def ids(self) -> tuple[set[str], set[str]]:
        """(page ids, chunk ids), for `verify`."""
        ...

    async def counts(self) -> GraphCounts: ...
    async def clear(self) -> None:
        """Remove everything of this store, and nothing of anybody else's."""
        ...

    async def close(self) -> None: ...


class StateStore(Protocol):
    """The manifest: which chunks are live, their text, and what work was begun and not finished.

    Readers see a page's new chunks and cease to see its old ones in the one transaction of `commit_pages`.
    Blocking, and quick: callers on the event loop use a worker thread.
    """

    def manifests(self, page_ids: Sequence[str]) -> Mapping[str, Manifest]: ...
    def all_manifests(self, source: str | None = None) -> Iterator[Manifest]:
        """Ordered by page id."""
        ...

    def begin_batch(self, adding: Sequence[str], removing: Sequence[str]) -> None:
        """Note which chunk ids other stores are about to gain and lose, before they do."""
        ...

    def commit_pages(self, pages: Sequence[tuple[Manifest, Sequence[Chunk], Mapping[str, Sequence[str]]]]) -> None:
        """Make these pages' chunks the live ones, all of them unlinked.

        The mapping: chunk id → names found in its text.
        """
        ...

    def commit_removal(self, page_ids: Sequence[str]) -> None: ...
    def end_batch(self) -> None: ...
    def unfinished(self) -> set[str]:
        """Chunk ids noted by a batch that never ended."""
        ...

    def chunks(self, chunk_ids: Sequence[str]) -> Mapping[str, StoredChunk]:
        """The live ones of these."""
        ...

    def neighbours(self, chunk_id: str, distance: int) -> Sequence[Chunk]:
        """The live chunks of the same page within `distance` ordinals, itself included, in order."""
        ...

    def chunk_names(self, chunk_ids: Sequence[str]) -> Mapping[str, tuple[str, ...]]: ...
    def live_ids(self) -> set[str]: ...
    def dangling_redirects(self, source: str) -> Sequence[tuple[str, str]]:
        """(title, where it should lead) of redirects that lead to no page."""
        ...

    def titles(self) -> Iterator[tuple[str, str, str]]:
        """(page id, title or alias, the page's own title) of every title, alias and resolved redirect."""
        ...

    # Linking (mission.md §2.7): which chunks' mentions may be out of date.
    def add_changed_keys(self, keys: Sequence[str]) -> None: ...
    def spread_changed_keys(self) -> int:
        """Mark the chunks whose text contains a changed key as unlinked, and forget the keys; how many were marked."""
        ...

    def unlink_pages(self, page_ids: Sequence[str]) -> None:
        """Mark all live chunks of these pages as unlinked."""
        ...

    def unlinked(self, limit: int) -> Sequence[str]: ...
    def mark_linked(self, chunk_ids: Sequence[str]) -> None: ...

    def meta(self, key: str) -> str | None: ...
    def set_meta(self, key: str, value: str) -> None: ...
    def transaction(self) -> AbstractContextManager[None]: ...
    def close(self) -> None: ...


class Reranker(Protocol):
    """A cross-encoder."""

    @property
    def model(self) -> str: ...
    async def score(self, question: str, passages: Sequence[str], *, budget: float) -> list[float | None]:
        """A logit for each passage, in order; None for those that did not fit into `budget` seconds.

        Passages are scored from the first on, so the caller puts the most promising first.
        """
        ...

    async def close(self) -> None: ...


class ChatModel(Protocol):
    """An LLM. Errors are `DependencyError`s; closing the iterator cancels the work upstream."""

    @property
    def model(self) -> str: ...
    @property
    def context_tokens(self) -> int: ...
    def count_tokens(self, text: str) -> int:
        """The model's own tokenizer where it is known, else a safe over-estimate."""
        ...

    def stream(
        self,
        messages: Sequence[ChatMessage],
        *,
        temperature: float,
        max_tokens: int,
        stop: Sequence[str] = (),
    ) -> AsyncIterator[ChatPiece]: ...

    async def close(self) -> None: ...


class WebSearch(Protocol):
    """A metasearch engine."""

    async def search(
        self,
        query: str,
        *,
        language: str,
        limit: int,
        page: int = 1,
        time_range: str = "",
        categories: Sequence[str] = (),
    ) -> WebResults:
        """`page` counts from 1; `time_range` is "", "day", "week", "month" or "year".

        Raises `DependencyDownError` where nothing was found because no engine behind it answered.
        """
        ...

    async def close(self) -> None: ...


class PageFetcher(Protocol):
    """A web page to readable text."""

    async def fetch(self, url: str) -> tuple[str, str]:
        """(title, main text). Raises `DependencyError` where there is nothing readable."""
        ...

    async def close(self) -> None: ...


@runtime_checkable
class PoliteFetcher(PageFetcher, Protocol):
    """One that can also read many pages of a host without being a burden to it."""

    async def read(self, url: str) -> WebPage:
        """With what the page says of itself. It waits for its turn, and asks for nothing that robots.txt forbids.

        Raises `DependencyError`, the reason in it, where there is no page to be had.
        """
        ...
