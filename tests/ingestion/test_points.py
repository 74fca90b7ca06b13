"""An embedder that weighs words itself: its weights are stored and searched with in place of BM25."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from config.personas import load_personas
from config.settings import SearchSettings, Settings
from graph.bm25 import LEARNED
from graph.knowledge import WIKI
from graph.names import words
from graph.protocols import SparseEmbedder
from graph.qdrant_edge_store import QdrantEdge
from graph.recognizer import Recognizer
from ingestion.ingest import ingest
from ingestion.migrate import migrate
from ingestion.verify import repair, verify
from server.backends import Backends
from server.model import Question
from server.search import search
from tests.fake_state import FakeState
from tests.fakes import FakeGraph, HashEmbedder
from tests.ingestion.small_wiki import ISLAND, SETTINGS, ListSource, page


class WeighingEmbedder(HashEmbedder):
    """A word weighs as often as it occurs, but for "lamp", which this model holds to be worth a hundred."""

    async def embed_passages_both(self, texts: Sequence[str]) -> tuple[NDArray[np.float32], list[dict[int, float]]]:
        return await self.embed_passages(texts), [weights(text) for text in texts]

    async def embed_question_both(self, question: str) -> tuple[NDArray[np.float32], dict[int, float]]:
        return await self.embed_question(question), weights(question)


def weights(text: str) -> dict[int, float]:
    counts = Counter(words(text))
    return {number(word): 100.0 if word == "lamp" else float(count) for word, count in counts.items()}


def number(word: str) -> int:
    return int(hashlib.sha1(word.encode()).hexdigest()[:7], 16)


@pytest.fixture
async def backends(tmp_path: Path) -> AsyncIterator[Backends]:
    embedder = WeighingEmbedder()
    assert isinstance(embedder, SparseEmbedder)
    assert not isinstance(HashEmbedder(), SparseEmbedder)
    made = Backends(
        settings=Settings(home=tmp_path, search=SearchSettings(vector_threshold=-1, graph_seconds=30)),
        state=FakeState(),
        vectors=QdrantEdge(tmp_path / "vectors", dimension=embedder.dimension, language=LEARNED),
        graph=FakeGraph(),
        embedder=embedder,
        recognizer=Recognizer(()),
        reranker=None,
        chat=None,
        web=None,
        fetcher=None,
        personas=load_personas(None),
    )
    yield made
    await made.vectors.close()


LAMPS = page("Lamps", "A lamp hangs here.")
HERONS = page("Herons", "The heron, the heron and the heron stand near the lamp house lampless.")


async def test_the_learned_weights_rank(backends: Backends) -> None:
    await ingest(ListSource([*ISLAND, LAMPS, HERONS]), backends.knowledge, SETTINGS)
    found = await search(Question(text="heron lamp"), backends)
    sparse = {item.title: rank for item in found.evidence for rank in item.provenance.ranks if rank.ranking == "sparse"}
    assert sparse["Lamps"].score >= 100 * 100
    ids = sorted(await backends.vectors.ids(WIKI))
    stored = await backends.vectors.weights(WIKI, ids)
    chunks = backends.state.chunks(ids)
    lamp = next(key for key, chunk in chunks.items() if chunk.title == "Lamps")
    assert stored[lamp][number("lamp")] == 100
    assert number("hangs") in stored[lamp]


async def test_they_are_kept_where_a_page_changes_around_them_and_made_again_by_repair(backends: Backends) -> None:
    await ingest(ListSource([LAMPS]), backends.knowledge, SETTINGS)
    (key,) = await backends.vectors.ids(WIKI)
    before = await backends.vectors.weights(WIKI, [key])
    retyped = page("Lamps", "A lamp hangs here.", categories=("Light",))
    await ingest(ListSource([retyped]), backends.knowledge, SETTINGS)
    assert await backends.vectors.weights(WIKI, [key]) == before
    await backends.vectors.delete(WIKI, [key])
    assert (await repair(backends.knowledge, SETTINGS)).clean
    assert await backends.vectors.weights(WIKI, [key]) == before


async def test_they_move_with_the_vectors(backends: Backends, tmp_path: Path) -> None:
    await ingest(ListSource([*ISLAND, LAMPS]), backends.knowledge, SETTINGS)
    other = QdrantEdge(tmp_path / "other", dimension=backends.embedder.dimension, language=LEARNED)
    report = await migrate(backends.knowledge, vectors=other)
    ids = sorted(await backends.vectors.ids(WIKI))
    assert report.chunks == len(ids)
    assert await other.weights(WIKI, ids) == await backends.vectors.weights(WIKI, ids)
    assert (await verify(backends.knowledge)).clean
    await other.close()
