"""The flow of one question, over fakes: legs, their failures, filters, the way from question to evidence."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from config.personas import load_personas
from config.settings import RerankSettings, SearchSettings, Settings
from graph.breaker import Breaker
from graph.errors import DependencyDownError, NotFoundError, QuestionError, StoreError
from graph.graph_model import Entity
from graph.model import Leg, SearchFilter, VectorRankings, WebResult, WebResults
from graph.recognizer import Recognizer
from ingestion.ingest import ingest
from server.backends import Backends
from server.model import Question
from server.search import search
from tests.fake_state import FakeState
from tests.fakes import FakeGraph, FakeVectors, HashEmbedder
from tests.ingestion.small_wiki import ISLAND, SETTINGS, ListSource, page


class BrokenVectors(FakeVectors):
    async def search(self, *_: object, **__: object) -> VectorRankings:
        raise StoreError("the vectors cannot be read")


class SlowGraph(FakeGraph):
    async def find_entities(self, keys: Sequence[str]) -> dict[str, tuple[Entity, ...]]:
        await asyncio.sleep(5)
        return {}


class BuggyGraph(FakeGraph):
    async def find_entities(self, keys: Sequence[str]) -> dict[str, tuple[Entity, ...]]:
        raise KeyError("a fault of ours")


class WordReranker:
    """Scores by shared words; can be down, or out of time."""

    model = "words"

    def __init__(self, *, down: bool = False, scores: int = 100) -> None:
        self.down, self.scores = down, scores

    async def score(self, question: str, passages: Sequence[str], *, budget: float) -> list[float | None]:
        if self.down:
            raise DependencyDownError("the reranker is away", dependency="reranker")
        asked = set(question.lower().split())
        shared = [float(len(asked & set(p.lower().split()))) for p in passages]
        return [value if n < self.scores else None for n, value in enumerate(shared)]

    async def close(self) -> None: ...


class OneWebPage:
    def __init__(self, results: Sequence[WebResult] = ()) -> None:
        self.results = tuple(results)

    async def search(self, query: str, *, language: str, limit: int) -> WebResults:
        return WebResults(results=self.results)

    async def close(self) -> None: ...


async def opened(tmp_path: Path, **changes: object) -> Backends:
    """Fakes filled with the small wiki; `changes` replace parts afterwards."""
    settings = Settings(home=tmp_path, search=SearchSettings(graph_seconds=1.0, vector_threshold=-1))
    parts: dict[str, object] = {
        "settings": settings,
        "state": FakeState(),
        "vectors": changes.pop("vectors", FakeVectors()),
        "graph": changes.pop("graph", FakeGraph()),
        "embedder": HashEmbedder(),
        "recognizer": Recognizer(()),
        "reranker": None,
        "chat": None,
        "web": None,
        "fetcher": None,
        "personas": load_personas(None),
    }
    backends = Backends(**{**parts, **changes})  # type: ignore[arg-type]
    await ingest(ListSource(ISLAND), backends.knowledge, SETTINGS)
    return backends


async def test_a_page_two_hops_away_is_found_and_says_how(tmp_path: Path) -> None:
    backends = await opened(tmp_path)
    found = await search(Question(text="Who built things in the birthplace of Jon Holm's sibling?"), backends)
    titles = [evidence.title for evidence in found.evidence]
    assert "Ada Holm" in titles
    assert "Port Vale" in titles
    vale = found.evidence[titles.index("Port Vale")].provenance
    assert vale.path[0].lower() == "jon holm"
    assert vale.path[-1] == "Port Vale"
    assert found.legs == {"vector": "ok", "graph": "ok", "web": "off", "reranker": "off"}
    assert found.keywords == ("jon holm",)
    assert [evidence.number for evidence in found.evidence] == list(range(1, len(titles) + 1))


async def test_a_broken_leg_is_named_and_the_others_answer(tmp_path: Path) -> None:
    backends = await opened(tmp_path, vectors=BrokenVectors())
    found = await search(Question(text="Who kept Gull Rock Light?"), backends)
    assert found.legs["vector"] == "unavailable: the vectors cannot be read"
    assert found.evidence[0].title in {"Gull Rock", "Gull Rock Light"}


class DeadServer(FakeVectors):
    """Answers nothing, and counts how often it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    async def search(self, *_: object, **__: object) -> VectorRankings:
        self.asked += 1
        raise DependencyDownError("Qdrant cannot be reached", dependency="qdrant")

    async def vectors(self, *_: object) -> dict[str, NDArray[np.float32]]:
        self.asked += 1
        raise DependencyDownError("Qdrant cannot be reached", dependency="qdrant")


async def test_what_the_graph_finds_stands_while_the_vectors_are_away(tmp_path: Path) -> None:
    found = await search(Question(text="Who kept Gull Rock Light?"), await opened(tmp_path, vectors=DeadServer()))
    assert found.legs["vector"] == "unavailable: Qdrant cannot be reached"
    assert found.legs["graph"] == "ok"
    assert found.evidence[0].title in {"Gull Rock", "Gull Rock Light"}


async def test_nothing_found_while_the_vectors_are_away_is_not_called_nothing(tmp_path: Path) -> None:
    backends = await opened(tmp_path, vectors=DeadServer())
    with pytest.raises(DependencyDownError, match=r"cannot be searched now \(vector: unavailable: Qdrant cannot be"):
        await search(Question(text="which of them is it?"), backends)


async def test_a_dead_server_is_left_alone_for_a_while(tmp_path: Path) -> None:
    now = [0.0]
    breaker = Breaker("qdrant", failures=3, cooldown=5, clock=lambda: now[0])
    vectors = DeadServer()
    backends = await opened(tmp_path, vectors=vectors, breakers={Leg.VECTOR: breaker})
    question = Question(text="Who kept Gull Rock Light?")
    for _ in range(2):
        await search(question, backends)
    assert vectors.asked == 3
    third = await search(question, backends)
    assert vectors.asked == 3
    assert third.legs["vector"] == "unavailable: Qdrant cannot be reached (not asked again for 5 s)"
    now[0] = 6
    await search(question, backends)
    assert vectors.asked == 4


async def test_a_slow_server_counts_as_a_dead_one(tmp_path: Path) -> None:
    breaker = Breaker("neo4j", failures=2, cooldown=60)
    backends = await opened(tmp_path, graph=SlowGraph(), breakers={Leg.GRAPH: breaker})
    question = Question(text="Who kept Gull Rock Light?")
    legs = [(await search(question, backends)).legs["graph"] for _ in range(3)]
    assert legs[:2] == ["timeout after 1 s"] * 2
    assert legs[2].startswith("unavailable: timeout after 1 s (not asked again for ")


async def test_without_the_embedder_words_still_find(tmp_path: Path) -> None:
    class AwayEmbedder(HashEmbedder):
        async def embed_question(self, question: str) -> NDArray[np.float32]:
            raise DependencyDownError("Ollama cannot be reached", dependency="embedder")

    backends = await opened(tmp_path, embedder=AwayEmbedder())
    found = await search(Question(text="Who kept Gull Rock Light?"), backends)
    assert found.legs["vector"] == "ok (by words alone: Ollama cannot be reached)"
    assert found.evidence


async def test_a_slow_leg_is_cut_and_named(tmp_path: Path) -> None:
    found = await search(Question(text="Who kept Gull Rock Light?"), await opened(tmp_path, graph=SlowGraph()))
    assert found.legs["graph"] == "timeout after 1 s"
    assert found.evidence


async def test_a_fault_of_ours_in_one_leg_does_not_fail_the_answer(tmp_path: Path) -> None:
    found = await search(Question(text="Who kept Gull Rock Light?"), await opened(tmp_path, graph=BuggyGraph()))
    assert found.legs["graph"] == "failed: KeyError"
    assert found.evidence


async def test_a_filter_holds_in_every_leg(tmp_path: Path) -> None:
    backends = await opened(tmp_path)
    other = ListSource([page("Gull Rock", "Gull Rock in the other wiki.")], name="other")
    other.items = [p.__class__(**{**_fields(p), "source": "other"}) for p in other.items]  # type: ignore[misc]
    await ingest(other, backends.knowledge, SETTINGS)
    found = await search(Question(text="Gull Rock?", where=SearchFilter(sources=("other",))), backends)
    assert {evidence.source for evidence in found.evidence} == {"other"}
    nothing = await search(Question(text="Gull Rock?", where=SearchFilter(languages=("zh",))), backends)
    assert nothing.evidence == ()
    assert nothing.zone == "abstain"


async def test_a_filter_by_date_holds_in_every_leg_and_both_days_are_included(tmp_path: Path) -> None:
    backends = await opened(tmp_path)
    days = ("", "2026-01-30T23:59:59Z", "2026-01-31T00:00:00Z", "2026-02-01T23:59:59Z", "2026-02-02T00:00:00Z")
    pages = [page(f"Log {n}", f"Gull Rock was seen on day {n}.", modified=day) for n, day in enumerate(days)]
    await ingest(ListSource(pages, name="log"), backends.knowledge, SETTINGS)

    async def titles(**dates: date) -> set[str]:
        question = Question(text="Who saw Gull Rock?", where=SearchFilter(**dates), limit=20)  # type: ignore[arg-type]
        return {evidence.title for evidence in (await search(question, backends)).evidence}

    first, last = date(2026, 1, 31), date(2026, 2, 1)
    assert await titles(modified_from=first, modified_to=last) == {"Log 2", "Log 3"}
    assert await titles(modified_from=last) == {"Log 3", "Log 4"}
    assert await titles(modified_to=first) == {"Log 1", "Log 2"}
    assert await titles(modified_from=last, modified_to=first) == set()


async def test_a_new_date_counts_though_no_text_has_changed(tmp_path: Path) -> None:
    """The vectors stay as they are; only the manifest knows of it."""
    backends = await opened(tmp_path)
    since = Question(text="Who saw Gull Rock?", where=SearchFilter(modified_from=date(2026, 2, 1)))
    for modified, seen in (("2026-01-01T00:00:00Z", False), ("2026-03-01T00:00:00Z", True)):
        pages = [page("Log", "Gull Rock was seen.", modified=modified)]
        await ingest(ListSource(pages, name="log"), backends.knowledge, SETTINGS)
        assert bool((await search(since, backends)).evidence) is seen


@pytest.mark.parametrize(
    "where",
    [SearchFilter(sources=("w",)), SearchFilter(languages=("en",)), SearchFilter(modified_from=date(2000, 1, 1))],
)
async def test_a_filter_leaves_out_the_web_and_says_so(tmp_path: Path, where: SearchFilter) -> None:
    web = OneWebPage([WebResult(url="https://a.example/", title="Gull Rock", snippet="Gull Rock is a reef.")])
    found = await search(Question(text="Gull Rock?", where=where), await opened(tmp_path, web=web))
    assert found.legs["web"] == "off: a filter is set, which only pages of the wiki can pass"
    assert all(evidence.origin == "wiki" for evidence in found.evidence)


async def test_the_reranker_orders_and_its_failure_is_named(tmp_path: Path) -> None:
    question = Question(text="Which lighthouse stands on a reef?")
    good = await search(question, await opened(tmp_path, reranker=WordReranker()))
    assert good.legs["reranker"] == "ok"
    assert good.evidence[0].provenance.rerank_score is not None
    assert good.zone == "normal"
    down = await search(question, await opened(tmp_path / "b", reranker=WordReranker(down=True)))
    assert down.legs["reranker"] == "unavailable: the reranker is away"
    assert down.zone == "unknown"
    late = await search(question, await opened(tmp_path / "c", reranker=WordReranker(scores=1)))
    assert late.legs["reranker"].startswith("ok (1 of ")


async def test_the_web_is_a_leg_of_its_own(tmp_path: Path) -> None:
    result = WebResult(url="https://example.org/gull", title="Gulls", snippet="Gull Rock has many gulls.")
    backends = await opened(tmp_path, web=OneWebPage([result]))
    found = await search(Question(text="Gull Rock?"), backends)
    assert found.legs["web"].startswith("ok")
    web = next(evidence for evidence in found.evidence if evidence.origin == "web")
    assert web.url == "https://example.org/gull"
    off = await search(Question(text="Gull Rock?", use_web=False), backends)
    assert off.legs["web"] == "off"


async def test_a_blocked_domain_is_left_out_and_the_others_are_ordered_by_trust(tmp_path: Path) -> None:
    urls = ("https://spiegel.ltd/gull", "https://nobody.example/gull", "https://www.bbc.co.uk/gull")
    results = [WebResult(url=url, title=url, snippet=f"Gulls were seen at {n}.") for n, url in enumerate(urls)]
    backends = await opened(tmp_path, web=OneWebPage(results))
    found = await search(Question(text="Gull Rock?", limit=20), backends)
    web = [evidence for evidence in found.evidence if evidence.origin == "web"]
    assert [evidence.url for evidence in web] == [urls[2], urls[1]]
    assert [evidence.provenance.domain_category for evidence in web] == ["press", "unknown"]
    assert [evidence.provenance.boost for evidence in web] == [0.75, 0.6]
    assert "spiegel.ltd left out: the domain is blocked" in found.legs["web"]


async def test_a_persona_s_source_weights_order_and_one_that_is_not_there_is_said(tmp_path: Path) -> None:
    result = WebResult(url="https://www.w3.org/gull", title="Gulls", snippet="Gull Rock has very many gulls indeed.")
    plain = load_personas(None)["neutral"]
    personas = {
        name: plain.model_copy(update={"name": name, "source_weights": weights})
        for name, weights in {"neutral": {}, "bookish": {"web": 0.1}, "modern": {"wiki": 0.1}}.items()
    }
    backends = await opened(tmp_path, web=OneWebPage([result]), personas=personas)

    async def place(persona: str) -> int:
        found = await search(Question(text="Gull Rock?", persona=persona, limit=20), backends)
        return [evidence.origin for evidence in found.evidence].index("web")

    assert await place("modern") == 0 < await place("") < await place("bookish")
    assert await place("") == await place("neutral")
    with pytest.raises(NotFoundError, match="no persona 'pirate'; the personas are bookish, modern, neutral"):
        await search(Question(text="Gull Rock?", persona="pirate"), backends)


async def test_the_plain_setting_is_plain_rrf(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, search=SearchSettings(adaptive_weights=False), rerank=RerankSettings())
    backends = await opened(tmp_path, settings=settings)
    found = await search(Question(text="Who kept Gull Rock Light?"), backends)
    ranks = found.evidence[0].provenance.ranks
    assert {r.contribution for r in ranks if r.ranking in ("vector", "graph")} <= {1 / (60 + n) for n in range(1, 11)}


@pytest.mark.parametrize("text", ["", " \n", "???", "x" * 100_000])
async def test_a_question_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(QuestionError):
        await search(Question(text=text), await opened(tmp_path))


@pytest.mark.parametrize("text", ["the of and", "x" * 3000])
async def test_questions_that_name_nothing(tmp_path: Path, text: str) -> None:
    found = await search(Question(text=text), await opened(tmp_path))
    assert found.keywords == ()
    assert found.legs["graph"] == "ok"


def _fields(value: object) -> dict[str, object]:
    return {name: getattr(value, name) for name in value.__slots__}  # type: ignore[attr-defined]
