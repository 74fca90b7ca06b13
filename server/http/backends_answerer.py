"""The `Answerer` over the opened backends: the one that is served."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import replace
from urllib.parse import urlsplit

from config.personas import Persona
from config.settings import Settings
from graph.errors import DependencyDownError, SettingsError, TrivetError
from graph.feedback import FeedbackStore
from graph.graph_model import NeighbourhoodBounds
from graph.home import FEEDBACK_FILE
from graph.sqlite_feedback import SqliteFeedback
from server.answer.answer import stream_answer, whole_answer
from server.answer.gate import check_question
from server.backends import Backends
from server.http.answerer import Answerer
from server.http.librarian import Librarian
from server.librarian import JobLibrarian
from server.library import open_library
from server.model import Answer, AnswerEvent, Question, SearchResult
from server.research.desk import Desk
from server.search import search
from server.writing.desk import PieceDesk

CHECK_SECONDS = 1.0
WARM_UP_SECONDS = 10.0
"""For reading a large graph; what does not fit goes on in the background."""
WARM_UP = "Where is the lighthouse?"
"""Any question will do."""


class BackendsAnswerer:
    """Passes everything on to the flow."""

    def __init__(
        self,
        backends: Backends,
        librarian: Librarian | None = None,
        feedback: FeedbackStore | None = None,
        desk: Desk | None = None,
        pieces: PieceDesk | None = None,
    ) -> None:
        self._backends = backends
        self.librarian = librarian
        self.desk = desk
        self.pieces = pieces
        self.feedback = feedback
        self.chat = backends.chat
        self.breakers = backends.breakers
        self.embedder = backends.embedder
        configured = backends.settings.answer.persona
        self.personas = (configured, *sorted(set(backends.personas) - {configured}))

    def persona(self, name: str) -> Persona:
        return self._backends.persona(name)

    async def search(self, question: Question) -> SearchResult:
        text = check_question(question.text, self._backends.settings.answer.question_chars)
        return await search(replace(question, text=text), self._backends)

    async def answer(self, question: Question) -> Answer:
        return await whole_answer(question, self._backends)

    def stream(self, question: Question) -> AsyncIterator[AnswerEvent]:
        return stream_answer(question, self._backends)

    async def check(self) -> dict[str, str]:
        backends = self._backends
        settings = backends.settings
        checks: dict[str, Awaitable[object]] = {
            "store": asyncio.to_thread(backends.state.meta, "schema"),
            "graph": backends.graph.counts(),
            "vectors": backends.vectors.ids("readiness"),
        }
        if backends.chat is not None:
            checks["llm"] = _reach("llm", settings.llm.url)
        if backends.web is not None:
            checks["web"] = _reach("web", settings.web.searxng_url)
        outcomes = await asyncio.gather(*(_outcome(check) for check in checks.values()))
        return {"llm": "off", "web": "off"} | dict(zip(checks, outcomes, strict=True))

    def announce(self, url: str) -> None:
        if self._backends.lock is not None:
            self._backends.lock.publish(url)


@asynccontextmanager
async def open_answerer(settings: Settings) -> AsyncIterator[Answerer]:
    async with open_library(settings, command="serve") as library:
        backends = library.backends
        persona = settings.answer.persona
        if persona not in backends.personas:
            known = ", ".join(sorted(backends.personas))
            raise SettingsError(f"answer.persona: there is no persona {persona!r}; there are {known}")
        await warm_up(backends)
        librarian = JobLibrarian(library)
        with closing(SqliteFeedback(settings.home / FEEDBACK_FILE)) as feedback:
            librarian.start()
            try:
                yield BackendsAnswerer(backends, librarian, feedback, library.desk, library.pieces)
            finally:
                await librarian.close()


async def warm_up(backends: Backends) -> None:
    """Load what is loaded on first use, so that it is not the first question that runs out of time."""
    for language in backends.settings.ingestion.ner_languages:
        await asyncio.to_thread(backends.recognizer.names, [WARM_UP], language)
    if backends.chat is not None:
        with suppress(TrivetError, TimeoutError):
            async with asyncio.timeout(WARM_UP_SECONDS):
                await backends.voices.prepare(backends.personas.values(), backends.embedder)
    with suppress(TrivetError, TimeoutError):  # a server that is down is named in every answer, not here
        async with asyncio.timeout(WARM_UP_SECONDS):
            await backends.graph.neighbourhood((), (), NeighbourhoodBounds())
        await search(Question(text=WARM_UP, use_web=False), backends)


async def _outcome(check: Awaitable[object]) -> str:
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            await check
    except TimeoutError:
        return f"no answer within {CHECK_SECONDS:g} s"
    except TrivetError as error:
        return str(error)
    return "ok"


async def _reach(name: str, url: str) -> None:
    """A connection and no more: a request would cost the service work, and its key."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        _, writer = await asyncio.open_connection(parts.hostname, port)
    except OSError as error:
        reason = "connection refused" if isinstance(error, ConnectionRefusedError) else str(error)
        raise DependencyDownError(f"{parts.hostname}:{port} cannot be reached: {reason}", dependency=name) from None
    writer.close()
