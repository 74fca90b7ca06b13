"""What ingestion writes to and search reads from, as one object."""

from __future__ import annotations

from dataclasses import dataclass

from graph.model import WIKI as WIKI
from graph.protocols import ChatModel, Embedder, GraphStore, StateStore, TokenEmbedder, TokenStore, VectorStore
from graph.recognizer import Recognizer


@dataclass(frozen=True, slots=True, kw_only=True)
class Knowledge:
    """The stores and the models that fill them."""

    state: StateStore
    vectors: VectorStore
    graph: GraphStore
    embedder: Embedder
    recognizer: Recognizer
    tokens: TokenStore | None = None
    """None where there are no token vectors and none are wanted."""
    token_embedder: TokenEmbedder | None = None
    """Makes them for what is ingested; None where late interaction is off."""
    chat: ChatModel | None = None
    """Writes what the embedding strategy `llm-blurb` puts before a text; None where no model is configured."""
