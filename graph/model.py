"""The words of the product as types: Page → Chunk → Hit → Evidence; the entity graph is in `graph_model.py`.

All are frozen, slotted and keyword-only; nothing here knows a backend.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CHUNK_NAMESPACE = uuid.UUID("6d2f4a0e-6e0c-5f0b-9a55-747269766574")  # if it changed, so would every chunk's id
WIKI = "wiki"
"""The collection of the owner's own pages (mission.md §3.1); all others are small."""
TITLE, BARE = "title", "bare"
"""Embedding strategies: title and headings before the text, which is the default; the text alone."""


class PageType(StrEnum):
    """What a page is, found from its namespace, markup and shape."""

    ARTICLE = "article"
    LIST = "list"
    STUB = "stub"
    DISAMBIGUATION = "disambiguation"
    CATEGORY = "category"
    REDIRECT = "redirect"
    TEMPLATE = "template"
    TALK = "talk"
    USER = "user"
    FILE = "file"
    OTHER = "other"


EMBEDDED_TYPES = frozenset({PageType.ARTICLE, PageType.LIST, PageType.STUB})


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A wiki link: the title it points to, as a title (not a URL), and the words shown for it."""

    target: str
    shown: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading of a page. `start` is the character offset of its heading line in `Page.text`."""

    start: int
    level: int
    title: str
    anchor: str
    """What follows `#` in a URL that opens this section."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """What a forum post has and a wiki page has not. `opening` and `parent` are excerpts, of one line each, of the
    topic's first post and of the post it answers; "" where there is none that everybody may read."""

    number: int = 1
    author: str = ""
    author_role: str = ""
    """"admin", "moderator" or "staff"; "" for everybody else."""
    reply_to: str = ""
    """URL of the post that it answers, or ""."""
    opening: str = ""
    parent: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page of a wiki, cleaned. `text` keeps headings as `## …` lines, lists, tables as rows, and code."""

    source: str
    key: str
    """Unique in its source and stable over edits: a title, or a relative path."""
    title: str
    text: str = ""
    url: str = ""
    page_type: PageType = PageType.ARTICLE
    language: str = ""
    """ISO 639-1, where the page itself says so; else ""."""
    wiki_language: str = ""
    """What the page is most likely in, where its text does not tell."""
    revision: str = ""
    modified: str = ""
    """RFC 3339, or ""."""
    aliases: tuple[str, ...] = ()
    redirect_to: str = ""
    """For a redirect: the title it leads to; its own title is the alias."""
    links: tuple[Link, ...] = ()
    categories: tuple[str, ...] = ()
    sections: tuple[Section, ...] = ()
    post: Post | None = None

    @property
    def id(self) -> str:
        return f"{self.source}:{self.key}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedPage:
    """A page that is left out on purpose (`published: false`, empty, …)."""

    key: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedPage:
    """A page that could not be read. It is not a deleted page: what is stored of it stays."""

    key: str
    reason: str


SourceItem = Page | SkippedPage | FailedPage


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A passage of a page: `Page.text[start:end]`, with the headings it stands under."""

    id: str
    page_id: str
    ordinal: int
    start: int
    end: int
    text: str
    heading_path: tuple[str, ...] = ()
    anchor: str = ""
    source_hash: str = ""
    """SHA-1 (hex) of the exact text that was embedded."""
    strategy: str = TITLE
    """What was embedded beside the text; one of `ingestion/strategies.py`."""
    context: str = ""
    """What that strategy puts before the text when it is embedded. Readers never see it."""


def embedded_text(
    title: str, heading_path: tuple[str, ...], text: str, *, strategy: str = TITLE, context: str = ""
) -> str:
    """What is embedded for a chunk: title › heading path › context and text (mission.md §1.6); `bare`: text alone."""
    if strategy == BARE:
        return text
    return " › ".join((title, *heading_path, f"{context}\n\n{text}" if context else text))


def text_of(chunk: Chunk, title: str) -> str:
    """The exact text that is embedded for this chunk of a page of that title."""
    return embedded_text(title, chunk.heading_path, chunk.text, strategy=chunk.strategy, context=chunk.context)


def source_hash(embedded: str) -> str:
    return hashlib.sha1(embedded.encode(), usedforsecurity=False).hexdigest()


def chunk_id(page_id: str, hashed: str, occurrence: int) -> str:
    """A UUID that stays the same while the embedded text does, wherever in its page the chunk moves.

    `occurrence` counts equal texts within one page from 0. So an edit elsewhere in the page changes
    neither id nor vector, and both versions of an edited chunk can be stored side by side until the
    manifest says which one readers see.
    """
    return str(uuid.uuid5(CHUNK_NAMESPACE, f"{page_id}\x1f{hashed}\x1f{occurrence}"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What is stored of one page: the truth about which chunks readers may see."""

    page_id: str
    source: str
    key: str
    title: str
    url: str = ""
    page_type: PageType = PageType.ARTICLE
    language: str = ""
    revision: str = ""
    modified: str = ""
    page_hash: str = ""
    """SHA-1 over everything the source said of the page: equal means nothing to do."""
    redirect_to: str = ""
    aliases: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()
    categories: tuple[str, ...] = ()
    chunk_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredChunk:
    """A chunk as readers get it: live, with what its page says of itself."""

    chunk: Chunk
    title: str
    url: str
    page_type: PageType
    source: str
    language: str = ""
    modified: str = ""
    categories: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFilter:
    """Which pages may answer; empty means all. Every leg honours it.

    The vector stores know no dates, which change without any text that they hold: `server/candidates.py` looks them
    up in the manifest.
    """

    sources: tuple[str, ...] = ()
    page_types: tuple[PageType, ...] = ()
    languages: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    modified_from: date | None = None
    """In UTC. A page that does not say when it was changed passes neither this nor the next."""
    modified_to: date | None = None
    """That day included."""

    @property
    def asks_for_dates(self) -> bool:
        return self.modified_from is not None or self.modified_to is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorPoint:
    """A chunk as the vector store takes it: it makes BM25 of `text`, unless the embedder gave weights (`sparse`)."""

    chunk_id: str
    dense: NDArray[np.float32]
    text: str
    sparse: dict[int, float] | None = None
    tokens: NDArray[np.float32] | None = None
    """(tokens, width), a unit vector for each token, where late interaction is on."""
    payload: Mapping[str, str | int | list[str]] = field(default_factory=dict)
    """source, page_id, page_type, language, categories: what `SearchFilter` may ask for; strategy, where it is not
    the default one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """A key (chunk id or URL) with the score its ranking gave it; higher is better."""

    key: str
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorRankings:
    """One vector search: the engine's own RRF of both, and each list on its own (best first)."""

    fused: tuple[Scored, ...]
    dense: tuple[Scored, ...]
    sparse: tuple[Scored, ...]


class Leg(StrEnum):
    """The three the product stands on."""

    VECTOR = "vector"
    GRAPH = "graph"
    WEB = "web"


@dataclass(frozen=True, slots=True, kw_only=True)
class LegRank:
    """Where one ranking ("vector", "dense", "sparse", "graph", "web", "wiki") put a hit; ranks count from 1."""

    ranking: str
    rank: int
    score: float
    contribution: float = 0.0
    """What this rank added to the fused score: weight / (k + rank)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Why a hit is there."""

    ranks: tuple[LegRank, ...] = ()
    entities: tuple[str, ...] = ()
    """Names of the question's entities the graph leg started from, where they led here."""
    path: tuple[str, ...] = ()
    """Question entity → … → this page."""
    boost: float = 1.0
    """Of the source, the web page's domain and what noise takes off, multiplied."""
    domain_category: str = ""
    """Of a web page: how its domain is trusted."""
    late_score: float | None = None
    """Late interaction's sum of similarities, of the question's tokens each with its best; None where there is none."""
    rerank_score: float | None = None
    """The cross-encoder's logit, or None where it was not scored."""
    duplicates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A candidate on its way through fusion. Fusion works on `key` alone."""

    key: str
    score: float
    provenance: Provenance = field(default_factory=Provenance)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What an answer may rest on: a passage, where it is from, and why it was found. `number` counts from 1."""

    number: int
    key: str
    title: str
    url: str
    text: str
    """The passage itself."""
    context: str = ""
    """The passage with its neighbours; what the prompt shows. Empty means: the same as `text`."""
    heading_path: tuple[str, ...] = ()
    source: str = ""
    origin: str = "wiki"
    """"wiki", "web", or what was kept of it: "research", "knowledge", "evergreen"."""
    page_id: str = ""
    score: float = 0.0
    modified: str = ""
    provenance: Provenance = field(default_factory=Provenance)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebResult:
    """One line of a web search."""

    url: str
    title: str
    snippet: str
    engine: str = ""
    published: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebResults:
    """A web search: results, and which engines did not answer and why."""

    results: tuple[WebResult, ...]
    unresponsive: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatMessage:
    """`role` is "system", "user" or "assistant"."""

    role: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatPiece:
    """A piece of a model's answer as it arrives. The last one has `finish_reason` ("stop" or "length")."""

    text: str = ""
    finish_reason: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
