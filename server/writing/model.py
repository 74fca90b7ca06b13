"""What goes in and out of writing: a request, its sections, the piece, and what is told meanwhile."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from graph.model import Evidence, SearchFilter
from server.focus import Kind
from server.model import Citation, Claim

SectionState = Literal["done", "failed", "skipped"]
"""`failed`: its words could not be written, `reason` says why. `skipped`: not begun, as another section failed."""
SectionMode = Literal["generated", "extractive", "unknown"]
"""Whose words they are: a model's, the evidence's own, or those that say that nothing is known."""
Stage = Literal["searching", "writing", "checking", "rewriting"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WritingRequest:
    """One piece as it was asked for."""

    topic: str
    kind: Kind = "explanation"
    outline: tuple[str, ...] = ()
    """The caller's headings instead of the kind's focus list."""
    persona: str = ""
    """Empty: the configured one."""
    sequential: bool = False
    """One section after the other, each knowing what stands in all before it."""
    language: str = ""
    """ISO 639-1; empty: the persona's, else the topic's."""
    use_web: bool = True
    where: SearchFilter = field(default_factory=SearchFilter)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedSection:
    """What a section is to be. `number` counts from 1."""

    number: int
    heading: str
    focus: str
    """What it is about, within the topic."""
    queries: tuple[str, ...]
    tokens: int
    """Of evidence, at most."""
    results: int
    """Entries of evidence to choose from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionTokens:
    """Counted with the model's tokenizer, where there is one; the largest prompt that was sent for it."""

    context: int = 0
    """The evidence in the prompt, with its fences."""
    summary: int = 0
    prompt: int = 0
    answer: int = 0
    """What the prompt left for the model's words; `prompt + answer` is never more than `window`."""
    window: int = 0
    """Of the model; 0 without one."""
    broad: int = 0
    """Of the first section: what its context would be, did all that was found for it belong to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionResult:
    """A section as it was written, with all that is needed to go on with the piece later.

    Its own numbering: `[n]` in `text` is evidence n. In a `Piece` it is the piece's. Offsets are characters in `text`.
    """

    number: int
    heading: str
    state: SectionState
    mode: SectionMode = "generated"
    reason: str = ""
    text: str = ""
    evidence: tuple[Evidence, ...] = ()
    """What it was given, cited or not."""
    citations: tuple[Citation, ...] = ()
    claims: tuple[Claim, ...] = ()
    """Its sentences, checked. One without citations is checked against all of the section's evidence."""
    confidence: float | None = None
    """Mean of its claims: 1 where supported, ½ where weak, 0 where not. None where nothing is claimed."""
    queries: tuple[str, ...] = ()
    rewrites: int = 0
    tokens: SectionTokens = field(default_factory=SectionTokens)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """What `[number]` in a piece leads to."""

    number: int
    title: str
    heading_path: tuple[str, ...]
    url: str
    origin: str
    key: str
    page_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenReport:
    """Context of all sections, beside what it were if each had the broad context of the first (mission.md §7.3)."""

    focused: int = 0
    broad: int = 0
    prompt: int = 0
    """Of the largest prompt."""
    window: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A whole piece, or as much of it as could be written; its sections are numbered as one text."""

    topic: str
    kind: Kind
    persona: str
    model: str
    """Empty where the sentences are the evidence's own."""
    language: str
    state: Literal["done", "partial"]
    reason: str = ""
    """Why it is partial; names the section that failed first."""
    sections: tuple[SectionResult, ...]
    references: tuple[Reference, ...]
    tokens: TokenReport = field(default_factory=TokenReport)
    legs: dict[str, str] = field(default_factory=dict)
    """As far as they were not as they should be."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far the piece is."""

    done: int
    total: int
    stage: Stage
    section: int
    """Which section `stage` is about."""
    heading: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionBegun:
    """A section's evidence is found, and its words begin."""

    number: int
    heading: str
    queries: tuple[str, ...]
    sources: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionDone:
    """As soon as it is so, in any order: what to save, so that the piece can be gone on with. Also for failed ones."""

    section: SectionResult


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionText:
    """A section for readers, in Markdown, in the order of the piece and with its numbers; heading included.

    The texts join to the piece's Markdown up to the references. A section is told once all before it are.
    """

    number: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PieceDone:
    """Last event."""

    piece: Piece


WritingEvent = Progress | SectionBegun | SectionDone | SectionText | PieceDone
