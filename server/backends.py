"""Everything a question needs, opened once and passed in; no globals."""

from __future__ import annotations

from dataclasses import dataclass

from config.personas import Persona
from config.settings import Settings
from graph.recognizer import Recognizer
from graph.protocols import (
    ChatModel,
    Embedder,
    GraphStore,
    PageFetcher,
    Reranker,
    StateStore,
    VectorStore,
    WebSearch,
)


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

    async def close(self) -> None:
        """Close what was opened, in reverse order; `state` last, as the others may still read it."""
        for part in (self.fetcher, self.web, self.chat, self.reranker, self.embedder, self.graph, self.vectors):
            if part is not None:
                await part.close()
        self.state.close()
