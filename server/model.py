"""What goes in and out of the server: a question, what was found, the answer and its events."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from graph.model import ChatMessage, Evidence, SearchFilter

Mode = Literal["generated", "extractive", "abstained", "refused"]
Zone = Literal["normal", "caution", "abstain", "unknown"]
"""How sure the reranker is that the evidence fits; "unknown" where nothing was reranked (mission.md §5.6)."""

Verdict = Literal["supported", "weak", "unsupported"]
"""What its evidence says of a claim: so it is; it is doubtful; it is not there (mission.md §5.5)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question as it was asked."""

    text: str
    history: tuple[ChatMessage, ...] = ()
    persona: str = ""
    """Empty: the configured one."""
    where: SearchFilter = field(default_factory=SearchFilter)
    limit: int = 0
    """Entries of evidence; 0: the configured number."""
    use_web: bool = True
    temperature: float | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """What was found, before anyone writes an answer."""

    question: str
    language: str
    keywords: tuple[str, ...]
    """The question's core keywords, as the graph leg used them."""
    evidence: tuple[Evidence, ...]
    legs: dict[str, str]
    """Leg or stage → "ok", "off", or why it gave nothing ("timeout after 2 s")."""
    zone: Zone = "unknown"
    milliseconds: dict[str, float] = field(default_factory=dict)
    """Stage → time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """`[[number]]` in an answer and what it leads to. Offsets are characters in the answer's text."""

    number: int
    start: int
    end: int
    key: str
    title: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A cited sentence of an answer, and whether what it cites says so. Offsets are characters in the answer's text."""

    start: int
    end: int
    numbers: tuple[int, ...]
    """The evidence it cites."""
    verdict: Verdict
    reason: str = ""
    """Why it is not supported, for people: "the number 42 is not in [1]"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A whole answer. `text` has `[n]` where `citations` stand."""

    text: str
    mode: Mode
    persona: str
    model: str
    evidence: tuple[Evidence, ...]
    citations: tuple[Citation, ...]
    legs: dict[str, str]
    zone: Zone
    language: str
    keywords: tuple[str, ...] = ()
    claims: tuple[Claim, ...] = ()
    """Its cited sentences, in order, each checked against its evidence; none where `answer.check_claims` is off."""
    notes: tuple[str, ...] = ()
    """What a reader should know: "the model answered nothing", "history could not be condensed", …"""
    finish_reason: Literal["stop", "length"] = "stop"
    prompt_tokens: int = 0
    completion_tokens: int = 0
    milliseconds: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundEvent:
    """First event of an answer: what it will rest on."""

    found: SearchResult


@dataclass(frozen=True, slots=True, kw_only=True)
class TextEvent:
    """A piece of the answer, already sanitised; the pieces join to `Answer.text` exactly."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CitationEvent:
    """A citation whose marker was just sent."""

    citation: Citation


@dataclass(frozen=True, slots=True, kw_only=True)
class DoneEvent:
    """Last event: the whole answer."""

    answer: Answer


AnswerEvent = FoundEvent | TextEvent | CitationEvent | DoneEvent
