"""Everything a question needs, opened once and passed in; no globals."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from config.domains import Domains, shipped_domains
from config.personas import Persona
from config.settings import Settings
from graph.breaker import Breaker
from graph.errors import NotFoundError
from graph.home import HomeLock
from graph.knowledge import Knowledge
from graph.protocols import (
    ChatModel,
    Embedder,
    GraphStore,
    PageFetcher,
    Reranker,
    StateStore,
    TokenEmbedder,
    TokenStore,
    VectorStore,
    WebSearch,
)
from graph.recognizer import Recognizer
from server.answer.voice import Voices
from server.graph_leg import WalkCache
from server.question_vectors import QuestionVectors
from server.rerank.late import LateInteraction
from server.research.shelf import Shelf


@dataclass(frozen=True, slots=True, kw_only=True)
class Backends:
    """None means: not configured, so the part of the flow that needs it is off and says so."""

    settings: Settings
    state: StateStore
    vectors: VectorStore
    graph: GraphStore
    embedder: Embedder
    recognizer: Recognizer
    reranker: Reranker | None
    chat: ChatModel | None
    web: WebSearch | None
    fetcher: PageFetcher | None
    personas: dict[str, Persona]
    domains: Domains = field(default_factory=shipped_domains)
    shelf: Shelf | None = None
    """Research and approved facts; its store is closed with these."""
    tokens: TokenStore | None = None
    """Closed by `vectors`, which writes to it."""
    token_embedder: TokenEmbedder | None = None
    walks: WalkCache = field(default_factory=WalkCache)
    question_vectors: QuestionVectors = field(default_factory=QuestionVectors)
    voices: Voices = field(default_factory=Voices)
    breakers: Mapping[str, Breaker] = field(default_factory=dict)
    """Of the legs that need a server, and of the "llm"; what is in the home folder is not given up on when it is slow.
    """
    lock: HomeLock | None = None
    """Holds the store's folder; None in tests on stores of their own."""

    @property
    def knowledge(self) -> Knowledge:
        return Knowledge(
            state=self.state,
            vectors=self.vectors,
            graph=self.graph,
            embedder=self.embedder,
            recognizer=self.recognizer,
            tokens=self.tokens,
            token_embedder=self.token_embedder,
            chat=self.chat,
        )

    @property
    def late(self) -> LateInteraction | None:
        """None where it is off."""
        if self.token_embedder is None or self.tokens is None:
            return None
        return LateInteraction(self.token_embedder, self.tokens)

    def persona(self, name: str) -> Persona:
        """By its name, "" for the configured one. Raises `NotFoundError`."""
        name = name or self.settings.answer.persona
        if name not in self.personas:
            known = ", ".join(sorted(self.personas))
            raise NotFoundError(f"There is no persona {name[:100]!r}; the personas are {known}.")
        return self.personas[name]

    async def close(self) -> None:
        """Close what was opened, in reverse order; state, research and then the lock last: the others may need them."""
        models = (self.chat, self.reranker, self.token_embedder, self.embedder)
        for part in (self.fetcher, self.web, *models, self.graph, self.vectors):
            if part is not None:
                await part.close()
        await asyncio.to_thread(self.walks.close)
        self.state.close()
        if self.shelf is not None:
            self.shelf.store.close()
        if self.lock is not None:
            self.lock.release()
