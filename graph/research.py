"""Research and what is kept of it: Topic → ResearchPage → Fact, beside the owner's own pages (mission.md §6).

A topic is researched on the web; its passages live in `research_{category}` until it ends. A person approves facts,
which stay: in `knowledge_{category}`, or in `knowledge_evergreen` where they help with other topics too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, Protocol

KeptOrigin = Literal["research", "knowledge", "evergreen"]
EVERGREEN = "knowledge_evergreen"
"""The one collection of facts that help with any topic."""


class TopicState(StrEnum):
    """queued → researching → ok, thin or insufficient → extracting → review → done.

    Unattended, a topic that is not ok ends as `insufficient_research`. From every state but `researching` and
    `extracting` research can be begun again; what dies there goes on from there.
    """

    QUEUED = "queued"
    RESEARCHING = "researching"
    OK = "ok"
    THIN = "thin"
    INSUFFICIENT = "insufficient"
    INSUFFICIENT_RESEARCH = "insufficient_research"
    EXTRACTING = "extracting"
    REVIEW = "review"
    DONE = "done"
    FAILED = "failed"


_JUDGED = frozenset({TopicState.OK, TopicState.THIN, TopicState.INSUFFICIENT, TopicState.FAILED})
TRANSITIONS: Mapping[TopicState, frozenset[TopicState]] = {
    TopicState.QUEUED: frozenset({TopicState.RESEARCHING}),
    TopicState.RESEARCHING: _JUDGED | {TopicState.RESEARCHING, TopicState.QUEUED},
    TopicState.OK: frozenset({TopicState.RESEARCHING, TopicState.EXTRACTING}),
    TopicState.THIN: frozenset({TopicState.RESEARCHING, TopicState.EXTRACTING, TopicState.INSUFFICIENT_RESEARCH}),
    TopicState.INSUFFICIENT: frozenset({TopicState.RESEARCHING, TopicState.INSUFFICIENT_RESEARCH}),
    TopicState.INSUFFICIENT_RESEARCH: frozenset({TopicState.RESEARCHING}),
    TopicState.EXTRACTING: frozenset(
        {TopicState.REVIEW, TopicState.OK, TopicState.THIN, TopicState.FAILED, TopicState.EXTRACTING}
    ),
    TopicState.REVIEW: frozenset({TopicState.DONE, TopicState.RESEARCHING, TopicState.EXTRACTING}),
    TopicState.DONE: frozenset({TopicState.RESEARCHING, TopicState.EXTRACTING, TopicState.REVIEW}),
    TopicState.FAILED: frozenset({TopicState.RESEARCHING, TopicState.EXTRACTING}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """Something to be researched. `slug` is unique; times are RFC 3339 in UTC."""

    slug: str
    title: str
    category: str = "general"
    focus: str = ""
    """What of it matters, in a sentence."""
    kind: Literal["research", "analysis", "explanation"] = "research"
    """Whose focus list (mission.md §7) guides deep research where there is no model."""
    state: TopicState = TopicState.QUEUED
    reasons: tuple[str, ...] = ()
    """Why the gate judged it so, or why it failed."""
    deepened: int = 0
    """Rounds of deep research done."""
    created: str = ""
    changed: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicChange:
    """One line of a topic's history. `before` is "" for its beginning."""

    slug: str
    before: str
    after: str
    note: str = ""
    at: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResearchPage:
    """A web page that research has read, with its passages in order."""

    url: str
    """Where it was found in the end, redirects followed, without its fragment."""
    title: str
    passages: tuple[str, ...]
    author: str = ""
    published: str = ""
    """RFC 3339 or YYYY-MM-DD, as the page says; ""."""
    language: str = ""
    query: str = ""
    """The search that found it."""
    fetched: str = ""
    copies: tuple[str, ...] = ()
    """URLs of near-copies that were left out for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptPassage:
    """A passage that answers questions beside the wiki: of a research page, or an approved fact."""

    id: str
    """Also its id in the vector store."""
    collection: str
    origin: KeptOrigin
    topic: str
    """Slug."""
    url: str
    title: str
    text: str
    ordinal: int = 0
    published: str = ""
    language: str = ""
    category: str = ""
    expires: str = ""
    """RFC 3339; after it the passage answers no more. "": never."""


class FactState(StrEnum):
    """proposed → approved or rejected; each can be undone."""

    PROPOSED = "proposed"
    APPROVED = "approved"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One statement from one page, with the words of that page that support it."""

    id: str
    topic: str
    """Slug; also after that topic is gone."""
    category: str
    text: str
    quote: str
    """In the page word for word."""
    url: str
    title: str = ""
    published: str = ""
    state: FactState = FactState.PROPOSED
    evergreen: bool = False
    """Whether approval puts it into `knowledge_evergreen`."""
    extractive: bool = False
    """Whether it is a sentence of the page itself, chosen without a model."""
    support: float = 0.0
    """How well the quote supports the text, 0…1."""
    expires: str = ""
    version: int = 1
    """Grows with every change; who changes a fact says which version was looked at."""
    created: str = ""
    changed: str = ""
    changed_by: str = ""
    undoes: Mapping[str, str] = field(default_factory=dict)
    """What the last change replaced, by field; empty where there is nothing to undo."""


class ResearchStore(Protocol):
    """Topics, their pages and passages, facts. Blocking and quick, like `StateStore`; every call is one transaction.

    It says which passages there are; the vector store is written before a commit and cleaned after it, under a note
    (`begin`) by which a crash in between is found and mended.
    """

    # Topics
    def add_topic(self, topic: Topic) -> Topic:
        """Raises `ConflictError` where there is one of that slug."""
        ...

    def topic(self, slug: str) -> Topic | None: ...
    def topics(self, state: TopicState | None = None) -> Sequence[Topic]:
        """The oldest first."""
        ...

    def move_topic(
        self,
        slug: str,
        state: TopicState,
        *,
        note: str = "",
        reasons: Sequence[str] | None = None,
        deepened: int | None = None,
    ) -> Topic:
        """Raises `NotFoundError`, and `ConflictError` where `TRANSITIONS` has no such step."""
        ...

    def history(self, slug: str) -> Sequence[TopicChange]: ...

    # Pages and passages
    def put_page(self, slug: str, page: ResearchPage, passages: Sequence[KeptPassage]) -> None:
        """Replaces what was stored of that URL for that topic. Raises `NotFoundError` where the topic is gone."""
        ...

    def pages(self, slug: str) -> Sequence[ResearchPage]: ...
    def passages(self, ids: Sequence[str], *, expired: bool = False) -> Mapping[str, KeptPassage]:
        """Those that exist and have not expired; with `expired` those too."""
        ...

    def passages_of(self, slug: str, *, url: str | None = None) -> Sequence[KeptPassage]:
        """Research passages of a topic, or of one page of it, page by page."""
        ...

    def collections(self) -> Mapping[str, KeptOrigin]:
        """Those with a live passage, by name."""
        ...

    def ids(self, collection: str) -> set[str]:
        """Expired ones too: they have vectors until they are removed."""
        ...

    def every_collection(self) -> Sequence[str]:
        """Those that have a passage or ever had one, by name: where vectors may be."""
        ...

    def wipe_research(self, slug: str) -> None:
        """Pages and passages; the topic and its facts stay."""
        ...

    def remove_topic(self, slug: str) -> None:
        """With its history, pages, passages, and facts that nobody has approved. Approved ones survive.

        Raises `NotFoundError`.
        """
        ...

    # Facts
    def add_facts(self, facts: Sequence[Fact]) -> None:
        """Those whose id is known are left as they are. Raises `NotFoundError` where a fact's topic is gone."""
        ...

    def fact(self, fact_id: str) -> Fact | None: ...
    def facts(
        self,
        *,
        topic: str = "",
        category: str = "",
        state: FactState | None = None,
        limit: int = 100,
        after: str = "",
    ) -> Sequence[Fact]:
        """By time of creation and id. `after`: the id of the last one of the page before; raises `NotFoundError` where
        that one is gone."""
        ...

    def change_fact(self, fact: Fact, *, version: int, passage: KeptPassage | None) -> Fact:
        """Store it and its passage (None: it has none any more) in one transaction; its version grows by one, and
        `changed` is now.

        Raises `NotFoundError`, and `ConflictError` where its version is no longer `version`.
        """
        ...

    def fact_passage(self, fact_id: str) -> KeptPassage | None:
        """The one it answers with, also where that has expired."""
        ...

    def delete_fact(self, fact_id: str, *, version: int) -> None:
        """Raises as `change_fact` does."""
        ...

    def turn(self) -> AbstractContextManager[None]:
        """While it is held no other process writes passages, nor mends what is only half done. Blocks."""
        ...

    # The note by which vectors and this store agree again after a crash
    def begin(self, collection: str, *, adding: Sequence[str] = (), removing: Sequence[str] = ()) -> None: ...
    def end(self, collection: str) -> None: ...
    def unfinished(self) -> Mapping[str, set[str]]:
        """Collection → passage ids noted by what never ended."""
        ...

    def close(self) -> None: ...
