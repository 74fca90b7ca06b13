"""Search results and backends for tests of answers: what was found is scripted, all else is real or a working fake."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from config.personas import load_personas
from config.settings import Settings
from graph.model import Evidence
from graph.protocols import ChatModel, Reranker
from graph.recognizer import Recognizer
from server.backends import Backends
from server.model import Question, SearchResult, Zone
from tests.fakes import FakeGraph, FakeState, FakeVectors, HashEmbedder

FARM = Evidence(
    number=1,
    key="farm-1",
    title="Animal Farm",
    url="https://wiki.example/Animal_Farm#Plot",
    text="Animal Farm is a novella by George Orwell. It was first published in August 1945.",
    heading_path=("Plot",),
    page_id="wiki:Animal Farm",
    modified="2026-01-02T03:04:05Z",
)
ORWELL = Evidence(
    number=2,
    key="orwell-1",
    title="George Orwell",
    url="https://wiki.example/George_Orwell",
    text="George Orwell was born in Motihari in 1903.",
    context="Eric Blair took a pen name. George Orwell was born in Motihari in 1903. He died in London in 1950.",
    page_id="wiki:George Orwell",
)
NEWS = Evidence(
    number=3,
    key="https://news.example/a",
    title="Farm news",
    url="https://news.example/a",
    text="Pigs fly.",
    origin="web",
)
EVIDENCE = (FARM, ORWELL, NEWS)
LEGS = {"vector": "ok", "graph": "ok", "web": "ok (1 engine silent)", "reranker": "ok"}


@dataclass(slots=True)
class ScriptedSearch:
    """Gives the same evidence to every question, and remembers the questions."""

    evidence: Sequence[Evidence] = EVIDENCE
    zone: Zone = "normal"
    language: str = "en"
    legs: dict[str, str] = field(default_factory=lambda: dict(LEGS))
    asked: list[Question] = field(default_factory=list)

    async def __call__(self, question: Question, backends: Backends) -> SearchResult:
        self.asked.append(question)
        return SearchResult(
            question=question.text,
            language=self.language,
            keywords=("animal farm",),
            evidence=tuple(replace(item) for item in self.evidence),
            legs=dict(self.legs),
            zone=self.zone,
            milliseconds={"legs": 1.0},
        )


def backends(chat: ChatModel | None = None, reranker: Reranker | None = None) -> Backends:
    return Backends(
        settings=Settings(),
        state=FakeState(),
        vectors=FakeVectors(),
        graph=FakeGraph(),
        embedder=HashEmbedder(),
        recognizer=Recognizer(()),
        reranker=reranker,
        chat=chat,
        web=None,
        fetcher=None,
        personas=load_personas(None),
    )
