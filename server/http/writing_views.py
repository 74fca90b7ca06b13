"""The bodies of `/api/write`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from graph.jobs import ENDED, Job, JobState
from server.focus import Kind
from server.http.views import CitationView, ClaimView, Filter, view_citation, view_claim
from server.writing.desk import FiledPiece
from server.writing.html import piece_html
from server.writing.markdown import piece_markdown
from server.writing.model import (
    Piece,
    Reference,
    SectionMode,
    SectionResult,
    SectionState,
    SectionTokens,
    TokenReport,
    WritingRequest,
)
from server.writing.saved import piece_json

PieceFormat = Literal["md", "html", "json"]
PieceState = Literal["queued", "running", "done", "partial", "failed", "cancelled"]


class WriteRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A piece to be written."""

    topic: Annotated[str, Meta(min_length=1, examples=["Lighthouses of Brittany"])]
    kind: Kind = "explanation"
    outline: Annotated[
        Sequence[str], Meta(max_length=1_000, description="Up to 50 headings, instead of those of the kind.")
    ] = ()
    persona: Annotated[str, Meta(max_length=500, description="Who writes; empty: the configured one.")] = ""
    sequential: Annotated[bool, Meta(description="One section after the other, each knowing all before it.")] = False
    language: Annotated[str, Meta(max_length=20, description="ISO 639-1; empty: the persona's or the topic's.")] = ""
    web: Annotated[bool, Meta(description="Whether the web is searched too, where it is on.")] = True
    filter: Filter = Filter()

    def to_model(self) -> WritingRequest:
        return WritingRequest(
            topic=self.topic,
            kind=self.kind,
            outline=tuple(self.outline),
            persona=self.persona,
            sequential=self.sequential,
            language=self.language,
            use_web=self.web,
            where=self.filter.to_model(),
        )


class ResumeRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Nothing needs to be said: what is missing is written."""


class SectionView(Struct, frozen=True, kw_only=True):
    """A section; `[n]` in `text` is the piece's n-th reference, `evidence` how many passages it was given."""

    number: int
    heading: str
    state: SectionState
    mode: SectionMode
    reason: str
    text: str
    citations: tuple[CitationView, ...]
    claims: tuple[ClaimView, ...]
    confidence: float | None
    queries: tuple[str, ...]
    evidence: int
    rewrites: int
    tokens: SectionTokens
    notes: tuple[str, ...]


class WritingView(Struct, frozen=True, kw_only=True):
    """A piece, or as much of it as there is; `reason` says why it is partial or failed."""

    id: str
    topic: str
    kind: Kind
    state: PieceState
    reason: str
    persona: str
    model: str
    language: str
    progress: Mapping[str, Any]
    sections: tuple[SectionView, ...]
    references: tuple[Reference, ...]
    tokens: TokenReport
    legs: dict[str, str]
    notes: tuple[str, ...]
    job: str
    created: str
    changed: str

    @property
    def ended(self) -> bool:
        return self.state not in ("queued", "running")


def view_writing(filed: FiledPiece, job: Job | None) -> WritingView:
    """`job`: the one that last wrote at it; None where it is none, or forgotten."""
    piece, state = filed.piece, state_of(filed, job)
    reason = job.error if job is not None and job.error and not filed.ended else piece.reason
    return WritingView(
        id=filed.id,
        topic=piece.topic,
        kind=piece.kind,
        state=state,
        reason="" if state in ("queued", "running") else reason,
        persona=piece.persona,
        model=piece.model,
        language=piece.language,
        progress=job.progress if job is not None else {},
        sections=tuple(view_section(one) for one in piece.sections),
        references=piece.references,
        tokens=piece.tokens,
        legs=piece.legs,
        notes=piece.notes,
        job=filed.job,
        created=filed.created,
        changed=filed.changed,
    )


def state_of(filed: FiledPiece, job: Job | None) -> PieceState:
    if job is not None and job.state not in ENDED:
        return "queued" if job.state is JobState.QUEUED else "running"
    if filed.ended:
        return filed.piece.state
    if job is None or job.state is JobState.DONE:
        return "partial"
    return "failed" if job.state is JobState.FAILED else "cancelled"


def view_section(section: SectionResult) -> SectionView:
    return SectionView(
        number=section.number,
        heading=section.heading,
        state=section.state,
        mode=section.mode,
        reason=section.reason,
        text=section.text,
        citations=tuple(view_citation(one) for one in section.citations),
        claims=tuple(view_claim(one) for one in section.claims),
        confidence=section.confidence,
        queries=section.queries,
        evidence=len(section.evidence),
        rewrites=section.rewrites,
        tokens=section.tokens,
        notes=section.notes,
    )


def rendered(piece: Piece, form: PieceFormat) -> str:
    return {"md": piece_markdown, "html": piece_html, "json": piece_json}[form](piece)
