"""The native API's bodies: what may be asked, and how evidence and answers are shown."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from graph.model import ChatMessage, Evidence, LegRank, PageType, Provenance, SearchFilter
from server.http.links import followable
from server.model import Answer, Citation, Claim, Mode, Question, SearchResult, Verdict, Zone

MAX_EVIDENCE = 50
MAX_TOKENS = 1_000_000
MAX_STOPS = 16

Name = Annotated[str, Meta(max_length=500)]
# `Sequence`, as Litestar's document says of a variadic tuple with a `Meta` that its items may be anything.
Names = Annotated[Sequence[Name], Meta(max_length=100)]
QuestionText = Annotated[
    str, Meta(min_length=1, examples=["Who wrote Animal Farm?"], description="The question, in whatever language.")
]
Limit = Annotated[int, Meta(ge=0, le=MAX_EVIDENCE, description="Entries of evidence; 0: the configured number.")]
Temperature = Annotated[float, Meta(ge=0, le=2, description="Of the model; null: the persona's.")]
MaxTokens = Annotated[int, Meta(ge=1, le=MAX_TOKENS, description="Upper size of the answer; null: the persona's.")]
Stop = Annotated[str, Meta(min_length=1, max_length=200)]
Stops = Annotated[Sequence[Stop], Meta(max_length=MAX_STOPS, description="The answer ends before any of these.")]


class Filter(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which pages may answer; an empty list means all."""

    sources: Names = ()
    page_types: Annotated[Sequence[PageType], Meta(max_length=20)] = ()
    languages: Names = ()
    categories: Names = ()
    modified_from: Annotated[date, Meta(description="Pages changed on that day (UTC) or later.")] | None = None
    modified_to: Annotated[date, Meta(description="Pages changed on that day (UTC) or earlier.")] | None = None

    def to_model(self) -> SearchFilter:
        return SearchFilter(
            sources=tuple(self.sources),
            page_types=tuple(self.page_types),
            languages=tuple(self.languages),
            categories=tuple(self.categories),
            modified_from=self.modified_from,
            modified_to=self.modified_to,
        )


class HistoryMessage(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An earlier turn of the conversation."""

    role: Literal["user", "assistant"]
    content: str


class SearchRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to look for."""

    question: QuestionText
    limit: Limit = 0
    filter: Filter = Filter()
    persona: Annotated[
        str, Meta(max_length=50, description="Who answers, and by whose source weights; empty: the configured one.")
    ] = ""
    web: Annotated[bool, Meta(description="Whether the web may be asked too.")] = True
    explain: Annotated[bool, Meta(description="Whether to say why each piece of evidence is there.")] = False

    def to_question(self) -> Question:
        return Question(
            text=self.question,
            persona=self.persona,
            where=self.filter.to_model(),
            limit=self.limit,
            use_web=self.web,
        )


class QueryRequest(SearchRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to answer, and how."""

    history: Annotated[Sequence[HistoryMessage], Meta(max_length=10_000, description="Oldest first.")] = ()
    temperature: Temperature | None = None
    max_tokens: MaxTokens | None = None
    stop: Stops = ()

    def to_question(self) -> Question:
        return Question(
            text=self.question,
            history=tuple(ChatMessage(role=turn.role, content=turn.content) for turn in self.history),
            persona=self.persona,
            where=self.filter.to_model(),
            limit=self.limit,
            use_web=self.web,
            temperature=self.temperature,
            max_tokens=self.max_tokens,
            stop=tuple(self.stop),
        )


class RankView(Struct, frozen=True, kw_only=True):
    """Where one ranking put the evidence, and what that added to its fused score."""

    ranking: str
    rank: int
    score: float
    contribution: float


class ProvenanceView(Struct, frozen=True, kw_only=True):
    """Why a piece of evidence is there."""

    ranks: tuple[RankView, ...]
    entities: tuple[str, ...]
    path: tuple[str, ...]
    boost: float
    rerank_score: float | None
    duplicates: tuple[str, ...]
    late_score: float | None = None
    domain_category: str = ""
    """Of a web page: what its domain is trusted as (docs/domains.md)."""


class EvidenceView(Struct, frozen=True, kw_only=True):
    """A passage an answer may rest on. `key`, `page_id`, `context` and `provenance` are there with `explain`.

    `url` is empty where there is none that can be followed. `origin`: `wiki`, `web`, or what is kept of it: `research`,
    `knowledge` (approved by a person), `evergreen` (the same, of use with any topic); `source` is then the topic.
    """

    number: int
    title: str
    heading_path: tuple[str, ...]
    url: str
    text: str
    origin: str
    source: str
    modified: str
    score: float
    key: str | UnsetType = UNSET
    page_id: str | UnsetType = UNSET
    context: str | UnsetType = UNSET
    provenance: ProvenanceView | UnsetType = UNSET


class CitationView(Struct, frozen=True, kw_only=True):
    """`[number]` at `answer[start:end]`, and the evidence it stands for."""

    number: int
    start: int
    end: int
    title: str
    url: str


class ClaimView(Struct, frozen=True, kw_only=True):
    """The cited sentence `answer[start:end]`, the evidence it cites, and whether that says so.

    `reason` says why it is not supported; empty where it is.
    """

    start: int
    end: int
    numbers: tuple[int, ...]
    verdict: Verdict
    reason: str


class Usage(Struct, frozen=True, kw_only=True):
    """Tokens of the model; zero where none was asked."""

    prompt_tokens: int
    completion_tokens: int


class SearchResponse(Struct, frozen=True, kw_only=True):
    """What was found."""

    question: str
    language: str
    keywords: tuple[str, ...]
    zone: Zone
    evidence: tuple[EvidenceView, ...]
    legs: dict[str, str]
    milliseconds: dict[str, float]


class QueryResponse(Struct, frozen=True, kw_only=True):
    """An answer with what it rests on."""

    answer: str
    mode: Mode
    zone: Zone
    persona: str
    model: str
    language: str
    keywords: tuple[str, ...]
    citations: tuple[CitationView, ...]
    claims: tuple[ClaimView, ...]
    evidence: tuple[EvidenceView, ...]
    legs: dict[str, str]
    notes: tuple[str, ...]
    finish_reason: Literal["stop", "length"]
    usage: Usage
    milliseconds: dict[str, float]
    id: str = ""
    """For `POST /api/feedback`; empty where no server answered."""


def view_search(found: SearchResult, *, explain: bool) -> SearchResponse:
    return SearchResponse(
        question=found.question,
        language=found.language,
        keywords=found.keywords,
        zone=found.zone,
        evidence=view_evidence(found.evidence, explain=explain),
        legs=found.legs,
        milliseconds=found.milliseconds,
    )


def view_answer(answer: Answer, *, explain: bool, answer_id: str = "") -> QueryResponse:
    return QueryResponse(
        answer=answer.text,
        mode=answer.mode,
        zone=answer.zone,
        persona=answer.persona,
        model=answer.model,
        language=answer.language,
        keywords=answer.keywords,
        citations=tuple(view_citation(citation) for citation in answer.citations),
        claims=tuple(view_claim(claim) for claim in answer.claims),
        evidence=view_evidence(answer.evidence, explain=explain),
        legs=answer.legs,
        notes=answer.notes,
        finish_reason=answer.finish_reason,
        usage=Usage(prompt_tokens=answer.prompt_tokens, completion_tokens=answer.completion_tokens),
        milliseconds=answer.milliseconds,
        id=answer_id,
    )


def view_citation(citation: Citation) -> CitationView:
    return CitationView(
        number=citation.number,
        start=citation.start,
        end=citation.end,
        title=citation.title,
        url=citation.url if followable(citation.url) else "",
    )


def view_claim(claim: Claim) -> ClaimView:
    return ClaimView(
        start=claim.start, end=claim.end, numbers=claim.numbers, verdict=claim.verdict, reason=claim.reason
    )


def view_evidence(evidence: tuple[Evidence, ...], *, explain: bool) -> tuple[EvidenceView, ...]:
    return tuple(_explained(entry) if explain else _short(entry) for entry in evidence)


def _short(entry: Evidence) -> EvidenceView:
    return EvidenceView(
        number=entry.number,
        title=entry.title,
        heading_path=entry.heading_path,
        url=entry.url if followable(entry.url) else "",
        text=entry.text,
        origin=entry.origin,
        source=entry.source,
        modified=entry.modified,
        score=entry.score,
    )


def _explained(entry: Evidence) -> EvidenceView:
    return msgspec.structs.replace(
        _short(entry),
        key=entry.key,
        page_id=entry.page_id,
        context=entry.context or entry.text,
        provenance=_provenance(entry.provenance),
    )


def _provenance(provenance: Provenance) -> ProvenanceView:
    return ProvenanceView(
        ranks=tuple(_rank(rank) for rank in provenance.ranks),
        entities=provenance.entities,
        path=provenance.path,
        boost=provenance.boost,
        domain_category=provenance.domain_category,
        late_score=provenance.late_score,
        rerank_score=provenance.rerank_score,
        duplicates=provenance.duplicates,
    )


def _rank(rank: LegRank) -> RankView:
    return RankView(ranking=rank.ranking, rank=rank.rank, score=rank.score, contribution=rank.contribution)
