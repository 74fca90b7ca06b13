"""What the HTTP interfaces need of the product."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from config.personas import Persona
from config.settings import Settings
from graph.breaker import Breaker
from graph.feedback import FeedbackStore
from graph.protocols import ChatModel, Embedder
from server.http.librarian import Librarian
from server.model import Answer, AnswerEvent, Question, SearchResult
from server.research.desk import Desk
from server.writing.desk import PieceDesk

ESSENTIAL = frozenset({"store", "vectors"})
"""Without these there is no answer at all; without any other dependency there is a poorer one."""


class Answerer(Protocol):
    """Search and answers, without the machinery behind them."""

    @property
    def personas(self) -> tuple[str, ...]:
        """Names, the configured one first."""
        ...

    def persona(self, name: str) -> Persona:
        """By its name, "" for the configured one. Raises `NotFoundError`."""
        ...

    @property
    def chat(self) -> ChatModel | None: ...
    @property
    def embedder(self) -> Embedder: ...
    @property
    def breakers(self) -> Mapping[str, Breaker]:
        """Of what needs a server: the legs by their names, and the "llm"."""
        ...

    @property
    def librarian(self) -> Librarian | None:
        """Where the store is filled here too."""
        ...

    @property
    def desk(self) -> Desk | None:
        """Where there is research here too."""
        ...

    @property
    def pieces(self) -> PieceDesk | None:
        """Where long pieces are written here too."""
        ...

    @property
    def feedback(self) -> FeedbackStore | None:
        """Where it is kept."""
        ...

    async def search(self, question: Question) -> SearchResult: ...
    async def answer(self, question: Question) -> Answer: ...
    def stream(self, question: Question) -> AsyncIterator[AnswerEvent]: ...
    async def check(self) -> dict[str, str]:
        """Dependency → "ok", "off" or what is wrong with it."""
        ...

    def announce(self, url: str) -> None:
        """Tell the command line where this server is, now that it listens."""
        ...


OpenAnswerer = Callable[[Settings], AbstractAsyncContextManager[Answerer]]
