"""What users of other systems reported of searching (field-issues.md), by its numbers there, on the stores of an owner;
those of ingestion are in tests/ingestion/test_field_issues.py."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from config.personas import load_personas
from config.settings import SearchSettings, Settings
from graph.bm25 import SparseEncoder
from graph.model import Evidence, Page, SearchFilter, VectorPoint, chunk_id
from graph.qdrant_edge_store import QdrantEdge
from graph.recognizer import Recognizer
from graph.sqlite_graph import SqliteGraph
from graph.sqlite_state import SqliteState
from ingestion.ingest import ingest
from server.backends import Backends
from server.candidates import live_only
from server.model import Question
from server.search import fuse_wiki, run_legs, search
from tests.fakes import HashEmbedder
from tests.ingestion.small_wiki import SETTINGS, ListSource, page

PATIENT = SearchSettings(vector_threshold=-1, vector_seconds=60, graph_seconds=60)


@pytest.fixture
async def backends(tmp_path: Path) -> AsyncIterator[Backends]:
    opened = Backends(
        settings=Settings(home=tmp_path, search=PATIENT),
        state=SqliteState(tmp_path / "state.db"),
        vectors=QdrantEdge(tmp_path / "vectors", dimension=64),
        graph=SqliteGraph(tmp_path / "graph.db"),
        embedder=HashEmbedder(64),
        recognizer=Recognizer(()),
        reranker=None,
        chat=None,
        web=None,
        fetcher=None,
        personas=load_personas(None),
    )
    yield opened
    await opened.close()


# --- 19: BM25 is made when a passage is stored, never for a question --------------------------------------------------


async def test_19_no_text_is_weighed_for_a_question(backends: Backends, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = [page(f"Lamp {n}", f"The lamp zq{n}x hangs in hall {n % 7}.") for n in range(50)]
    await ingest(ListSource(pages), backends.knowledge, SETTINGS)
    weighed: list[str] = []
    made = SparseEncoder.document

    def counting(self: SparseEncoder, text: str, learned: dict[int, float] | None) -> tuple[list[int], list[float]]:
        weighed.append(text)
        return made(self, text, learned)

    monkeypatch.setattr(SparseEncoder, "document", counting)
    for n in range(20):
        found = await search(Question(text=f"Where does the lamp zq{n}x hang?"), backends)
        assert found.legs["vector"] == "ok"
        assert any(rank.ranking == "sparse" for rank in found.evidence[0].provenance.ranks)
    assert weighed == []
    await ingest(ListSource([*pages, page("Bell", "A bell rings.")]), backends.knowledge, SETTINGS)
    assert len(weighed) == 1, "one page more weighs one passage more"


@pytest.mark.slow
async def test_19_fifty_thousand_passages_answer_the_first_question_as_fast_as_later_ones(tmp_path: Path) -> None:
    """In seconds of the processor, as the machine may be busy; also the question after each write."""
    store = QdrantEdge(tmp_path / "vectors", dimension=4)
    await store.upsert("wiki", [passage(n) for n in range(50_000)])
    first = [await seconds(store, n) for n in range(100)]
    later = [await seconds(store, n) for n in range(100)]
    written = []
    for n in range(20):
        await store.upsert("wiki", [passage(50_000 + n)])
        written.append(await seconds(store, n))
    await store.close()
    assert p95(first) < 3 * p95(later) + 0.005
    assert p95(written) < 3 * p95(later) + 0.005
    # Making BM25 of so many texts takes seconds.
    assert max(first + later + written) < 1.0


def passage(number: int) -> VectorPoint:
    words = [f"w{number % 997}", f"v{number % 4_999}", f"u{number}", "common", f"t{number % 31}"]
    dense = np.array([1, number % 7, number % 11, number % 13], np.float32)
    return VectorPoint(chunk_id=chunk_id("w:p", str(number), 0), dense=dense, text=" ".join(words))


async def seconds(store: QdrantEdge, number: int) -> float:
    began = time.process_time()
    found = await store.search("wiki", dense=None, text=f"u{number} v{number} common", limit=10)
    assert found.sparse[0].key == passage(number).chunk_id
    return time.process_time() - began


def p95(values: list[float]) -> float:
    return float(np.percentile(values, 95))


# --- 26: what a filter leaves out is in no leg ------------------------------------------------------------------------


def of(source: str, *pages: Page) -> ListSource:
    return ListSource([replace(each, source=source) for each in pages], name=source)


KEEPER = page("Jon Holm", "Jon Holm kept Gull Rock for forty years.")
BELL = page("Silver Bell", "The Silver Bell was cast in Port Vale.")
ROCK = page("Gull Rock", "Gull Rock has a Silver Bell, and Jon Holm rang it.")
NAMESAKE = page("Jon Holm", "Jon Holm kept Gull Rock, and the Silver Bell too.")


@pytest.mark.parametrize(
    "text", ["Where was the bell cast that Jon Holm rang?", "Jon Holm", "Gull Rock", "Silver Bell"]
)
async def test_26_nothing_of_another_wiki_is_in_any_leg(backends: Backends, text: str) -> None:
    """Both wikis name the same things, and the only way from the one page of A to the other leads through B."""
    await ingest(of("a", KEEPER, BELL), backends.knowledge, SETTINGS)
    await ingest(of("b", ROCK, NAMESAKE), backends.knowledge, SETTINGS)
    question = Question(text=text, where=SearchFilter(sources=("a",)), limit=20)
    sources = source_of(backends)
    vector, graph, _ = await run_legs(question, "en", backends)
    assert vector.found is not None
    assert graph.found is not None
    rankings = vector.found[0]
    reached = await live_only(graph.found, question.where, backends.state, limit=20)
    wiki = await fuse_wiki(question, rankings, graph.found, backends)
    for ranking in (rankings.dense, rankings.sparse, rankings.fused, reached, wiki.vector, wiki.graph, wiki.hits):
        assert {sources(hit.key) for hit in ranking} == {"a"}
    found = await search(question, backends)
    assert {evidence.title for evidence in found.evidence} == {"Jon Holm", "Silver Bell"}
    for evidence in found.evidence:
        assert evidence.source == "a"
        assert "too" not in shown(evidence)
        assert "rang it" not in shown(evidence)
        assert "Gull Rock" not in evidence.provenance.path[1:], "pages on the way are of this wiki alone"
    whole = await search(replace(question, where=SearchFilter()), backends)
    assert {evidence.source for evidence in whole.evidence} == {"a", "b"}


def source_of(backends: Backends) -> Callable[[str], str]:
    return lambda key: backends.state.chunks([key])[key].source


def shown(evidence: Evidence) -> str:
    return f"{evidence.text} {evidence.context}"


# --- 29: Chinese and Japanese are found by their words ----------------------------------------------------------------

CJK = [
    page("量子纠缠实验", "贝尔不等式的检验在一九七二年完成。"),
    page("经典力学", "牛顿提出了三条定律。"),
    page("量子力学史", "普朗克在一九〇〇年提出了假说。"),
    page("東京タワー", "高さは三百三十三メートルである。"),
    page("鉄道", "列車は線路の上を走る。"),
]


@pytest.mark.parametrize(
    ("text", "title", "named"),
    [
        ("量子纠缠是什么", "量子纠缠实验", False),  # a part of the title
        ("量子纠缠是什么？", "量子纠缠实验", False),
        ("量子纠缠实验是什么？", "量子纠缠实验", True),
        ("東京タワーの高さは？", "東京タワー", True),
    ],
)
async def test_29_a_page_is_found_by_the_words_of_its_title(
    backends: Backends, text: str, title: str, named: bool
) -> None:
    """By BM25 without an embedder's help; by the graph where the question has the whole title, as a name is no part
    of a longer one; and then both put it first."""
    pages = [replace(each, language="ja" if "タ" in each.title or "鉄" in each.title else "zh") for each in CJK]
    await ingest(ListSource(pages), backends.knowledge, SETTINGS)
    titles = {key: stored.title for key, stored in backends.state.chunks([*await backends.vectors.ids("wiki")]).items()}
    words = await backends.vectors.search("wiki", dense=None, text=text, limit=10)
    assert titles[words.sparse[0].key] == title
    _, graph, _ = await run_legs(Question(text=text), "zh", backends)
    assert graph.found is not None
    assert [titles[hit.key] for hit in graph.found.ranking(1)] == ([title] if named else [])
    found = await search(Question(text=text), backends)
    assert found.evidence[0].title == title
    assert {"sparse", "graph"} <= {rank.ranking for rank in found.evidence[0].provenance.ranks}
