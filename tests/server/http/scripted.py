"""An answerer that follows a script, so that the HTTP interfaces can be tested without a wiki or a model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace

from config.personas import Persona, load_personas
from config.settings import Settings
from graph.breaker import Breaker
from graph.errors import QuestionError
from graph.feedback import FeedbackStore
from graph.model import ChatMessage, ChatPiece, Evidence, LegRank, Provenance
from server.http.answerer import Answerer, OpenAnswerer
from server.http.librarian import Librarian
from server.model import (
    Answer,
    AnswerEvent,
    Citation,
    CitationEvent,
    DoneEvent,
    FoundEvent,
    Question,
    SearchResult,
    TextEvent,
)
from server.research.desk import Desk
from server.writing.desk import PieceDesk
from tests.fake_feedback import FakeFeedback
from tests.fakes import HashEmbedder

EVIDENCE = (
    Evidence(
        number=1,
        key="chunk-1",
        title="Animal Farm",
        url="https://wiki.example/Animal_Farm#Plot",
        text="Animal Farm is a novella by George Orwell.",
        context="Before. Animal Farm is a novella by George Orwell. After.",
        heading_path=("Plot",),
        source="books",
        page_id="books:Animal Farm",
        score=0.9,
        modified="2026-01-02T03:04:05Z",
        provenance=Provenance(
            ranks=(LegRank(ranking="graph", rank=1, score=0.5, contribution=0.016),),
            entities=("Animal Farm",),
            path=("Animal Farm", "George Orwell"),
            rerank_score=7.5,
        ),
    ),
    Evidence(number=2, key="chunk-2", title="Orwell", url="javascript:alert(1)", text="George Orwell was a writer."),
    Evidence(number=3, key="chunk-3", title="Animal Farm", url="https://wiki.example/Animal_Farm#Plot", text="Pigs."),
)
PIECES = ("George Orwell ", "wrote it ", "[1]", ", as another page ", "says ", "[2]", ".")
TEXT = "".join(PIECES)
LEGS = {"vector": "ok", "graph": "ok", "web": "off"}


def _citation(number: int) -> Citation:
    start = TEXT.index(f"[{number}]")
    entry = EVIDENCE[number - 1]
    return Citation(number=number, start=start, end=start + 3, key=entry.key, title=entry.title, url=entry.url)


CITATIONS = (_citation(1), _citation(2))
FOUND = SearchResult(
    question="Who wrote Animal Farm?",
    language="en",
    keywords=("Animal Farm",),
    evidence=EVIDENCE,
    legs=LEGS,
    zone="normal",
    milliseconds={"search": 12.5},
)
ANSWER = Answer(
    text=TEXT,
    mode="generated",
    persona="neutral",
    model="scripted",
    evidence=EVIDENCE,
    citations=CITATIONS,
    legs=LEGS | {"llm": "ok"},
    zone="normal",
    language="en",
    keywords=("Animal Farm",),
    notes=("a note",),
    prompt_tokens=50,
    completion_tokens=9,
    milliseconds={"legs": 10.5, "first_token": 20.0, "total": 40.25},
)


@dataclass
class ScriptedChat:
    """A language model that says what it was told to."""

    model: str = "scripted"
    context_tokens: int = 4096
    pieces: tuple[str, ...] = ('{"title": ', '"Animal Farm"}')
    fails: Exception | None = None
    asked: list[tuple[tuple[ChatMessage, ...], float, int, tuple[str, ...]]] = field(default_factory=list)

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    async def stream(
        self, messages: Sequence[ChatMessage], *, temperature: float, max_tokens: int, stop: Sequence[str] = ()
    ) -> AsyncIterator[ChatPiece]:
        self.asked.append((tuple(messages), temperature, max_tokens, tuple(stop)))
        if self.fails:
            raise self.fails
        for piece in self.pieces:
            yield ChatPiece(text=piece)
        yield ChatPiece(finish_reason="stop", prompt_tokens=11, completion_tokens=3)

    async def close(self) -> None: ...


@dataclass
class ScriptedAnswerer:
    """Answers every question the same way; what it should do beside that stands in its fields."""

    chat: ScriptedChat | None = None
    breakers: dict[str, Breaker] = field(default_factory=dict)
    librarian: Librarian | None = None
    desk: Desk | None = None
    pieces: PieceDesk | None = None
    feedback: FeedbackStore | None = field(default_factory=FakeFeedback)
    personas: tuple[str, ...] = ("neutral", "teacher")
    embedder: HashEmbedder = field(default_factory=lambda: HashEmbedder(8))
    fails: Exception | None = None
    """Raised instead of the first event."""
    breaks: Exception | None = None
    """Raised after the third piece of text."""
    pause: float = 0.0
    """Seconds before the search is done."""
    between: float = 0.0
    """Seconds before each piece of text."""
    repeats: int = 1
    """How often the pieces come."""
    state: dict[str, str] = field(default_factory=lambda: {"store": "ok", "vectors": "ok", "graph": "ok"})
    questions: list[Question] = field(default_factory=list)
    running: int = 0
    """Questions being worked on now."""
    begun: int = 0
    url: str = ""

    def announce(self, url: str) -> None:
        self.url = url

    def persona(self, name: str) -> Persona:
        return load_personas(None)[name or self.personas[0]]

    async def search(self, question: Question) -> SearchResult:
        async with aclosing(self.stream(question)) as events:
            async for event in events:
                if isinstance(event, FoundEvent):
                    return event.found
        raise AssertionError

    async def answer(self, question: Question) -> Answer:
        async with aclosing(self.stream(question)) as events:
            async for event in events:
                if isinstance(event, DoneEvent):
                    return event.answer
        raise AssertionError

    async def stream(self, question: Question) -> AsyncGenerator[AnswerEvent]:
        self.questions.append(question)
        self.begun += 1
        self.running += 1
        try:
            if not question.text.strip():
                raise QuestionError("the question is empty: write one")
            await asyncio.sleep(self.pause)
            if self.fails:
                raise self.fails
            yield FoundEvent(found=replace(FOUND, question=question.text))
            for event in self._written():
                await asyncio.sleep(self.between)
                yield event
                if self.breaks and isinstance(event, CitationEvent):
                    raise self.breaks
            yield DoneEvent(answer=replace(ANSWER, text=TEXT * self.repeats, persona=question.persona or "neutral"))
        finally:
            self.running -= 1

    def _written(self) -> Iterator[AnswerEvent]:
        for _ in range(self.repeats):
            for piece in PIECES:
                yield TextEvent(text=piece)
                if piece in ("[1]", "[2]"):
                    yield CitationEvent(citation=CITATIONS[int(piece[1]) - 1])

    async def check(self) -> dict[str, str]:
        return self.state


def opening(answerer: Answerer) -> OpenAnswerer:
    """For `create_app`."""

    @asynccontextmanager
    async def open_answerer(_: Settings) -> AsyncIterator[Answerer]:
        yield answerer

    return open_answerer
