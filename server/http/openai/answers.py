"""Chat answers in OpenAI's form: one body for a whole one, a row of chunks for a streamed one."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from graph.model import Evidence
from server.http.event_stream import DONE, data_line
from server.http.openai.sources import (
    Annotation,
    FoundSource,
    WebuiSource,
    annotation,
    citation_urls,
    footer,
    search_results,
    webui_sources,
)
from server.http.options import HttpOptions
from server.http.problems import Problem, openai_error
from server.http.views import ClaimView, view_claim
from server.model import Answer, Mode, SearchResult, Zone

FinishReason = Literal["stop", "length"]


class ChatUsage(Struct, frozen=True, kw_only=True):
    """Tokens."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class AboutAnswer(Struct, frozen=True, kw_only=True):
    """Our own addition: how the answer came about. Clients ignore what they do not know."""

    mode: Mode
    zone: Zone
    persona: str
    language: str
    claims: tuple[ClaimView, ...]
    legs: dict[str, str]
    notes: tuple[str, ...]
    milliseconds: dict[str, float]


class AnswerMessage(Struct, frozen=True, kw_only=True):
    """What the assistant says."""

    content: str
    annotations: tuple[Annotation, ...] | UnsetType = UNSET
    role: str = "assistant"
    refusal: None = None


class Choice(Struct, frozen=True, kw_only=True):
    """The one answer."""

    message: AnswerMessage
    finish_reason: FinishReason
    index: int = 0
    logprobs: None = None


class ChatCompletion(Struct, frozen=True, kw_only=True):
    """A whole answer. `sources` is there in the mode for Open WebUI, the other lists in the default mode."""

    id: str
    created: int
    model: str
    choices: tuple[Choice, ...]
    usage: ChatUsage
    citations: tuple[str, ...] | UnsetType = UNSET
    search_results: tuple[FoundSource, ...] | UnsetType = UNSET
    sources: tuple[WebuiSource, ...] | UnsetType = UNSET
    trivet: AboutAnswer | UnsetType = UNSET
    object: str = "chat.completion"


class Delta(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a chunk adds to the message."""

    role: str | UnsetType = UNSET
    content: str | UnsetType = UNSET
    annotations: tuple[Annotation, ...] | UnsetType = UNSET


class ChunkChoice(Struct, frozen=True, kw_only=True):
    """`finish_reason` is null until the end, never missing."""

    delta: Delta = Delta()
    finish_reason: FinishReason | None = None
    index: int = 0
    logprobs: None = None


class StatusData(Struct, frozen=True, kw_only=True):
    """A line of progress."""

    description: str
    done: bool


class WebuiEvent(Struct, frozen=True, kw_only=True):
    """What Open WebUI shows beside the text."""

    type: Literal["source", "status"]
    data: WebuiSource | StatusData


class ChatChunk(Struct, frozen=True, kw_only=True):
    """One event of a streamed answer."""

    id: str
    created: int
    model: str
    choices: tuple[ChunkChoice, ...]
    usage: ChatUsage | UnsetType | None = UNSET
    citations: tuple[str, ...] | UnsetType = UNSET
    search_results: tuple[FoundSource, ...] | UnsetType = UNSET
    event: WebuiEvent | UnsetType = UNSET
    trivet: AboutAnswer | UnsetType = UNSET
    object: str = "chat.completion.chunk"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatWriter:
    """One answer's chunks and body: one id and one `created` throughout."""

    model: str
    options: HttpOptions
    wants_usage: bool = False
    with_sources: bool = True
    """False for background requests: no citations, no word about the search."""
    id: str = field(default_factory=lambda: f"chatcmpl-{secrets.token_hex(12)}")
    created: int = field(default_factory=lambda: int(time.time()))

    @property
    def for_webui(self) -> bool:
        return self.with_sources and self.options.citation_mode == "openwebui"

    @property
    def annotated(self) -> bool:
        return self.with_sources and self.options.citation_mode == "annotations"

    def whole(self, answer: Answer) -> ChatCompletion:
        message = AnswerMessage(
            content=answer.text + self._footer(answer.evidence),
            annotations=annotations_of(answer) if self.annotated else UNSET,
        )
        return ChatCompletion(
            id=self.id,
            created=self.created,
            model=self.model,
            choices=(Choice(message=message, finish_reason=answer.finish_reason),),
            usage=usage_of(answer),
            citations=citation_urls(answer.evidence) if self.annotated else UNSET,
            search_results=search_results(answer.evidence) if self.annotated else UNSET,
            sources=webui_sources(answer.evidence) if self.for_webui else UNSET,
            trivet=about(answer) if self.with_sources else UNSET,
        )

    def begin(self) -> Iterator[bytes]:
        yield self._chunk(Delta(role="assistant", content=""))
        if self.for_webui:
            yield self._event(WebuiEvent(type="status", data=StatusData(description="Searching", done=False)))

    def found(self, found: SearchResult) -> Iterator[bytes]:
        if self.for_webui:
            said = f"Found {len(found.evidence)} passages ({_legs(found.legs)})"
            yield self._event(WebuiEvent(type="status", data=StatusData(description=said, done=True)))
            for source in webui_sources(found.evidence):
                yield self._event(WebuiEvent(type="source", data=source))

    def text(self, text: str) -> bytes:
        return self._chunk(Delta(content=text))

    def end(self, answer: Answer) -> Iterator[bytes]:
        if last := self._footer(answer.evidence):
            yield self.text(last)
        if self.annotated and answer.citations:
            # In one chunk, as OpenAI does: its Python client adds up lists in a second one only by an `index` key.
            yield self._chunk(Delta(annotations=annotations_of(answer)))
        yield data_line(
            self._body(
                choices=(ChunkChoice(finish_reason=answer.finish_reason),),
                citations=citation_urls(answer.evidence) if self.annotated else UNSET,
                search_results=search_results(answer.evidence) if self.annotated else UNSET,
                trivet=about(answer) if self.with_sources else UNSET,
            )
        )
        if self.wants_usage:
            yield data_line(self._body(choices=(), usage=usage_of(answer)))
        yield DONE

    def fault(self, problem: Problem) -> Iterator[bytes]:
        """No `finish_reason`: an answer that broke off did not stop."""
        yield data_line(openai_error(problem))
        yield DONE

    def empty(self) -> bytes:
        """A sign of life for clients that choke on comments."""
        return self._chunk(Delta(content=""))

    def _footer(self, evidence: tuple[Evidence, ...]) -> str:
        return footer(evidence) if self.options.sources_footer and self.with_sources else ""

    def _chunk(self, delta: Delta) -> bytes:
        return data_line(self._body(choices=(ChunkChoice(delta=delta),)))

    def _event(self, event: WebuiEvent) -> bytes:
        return data_line(self._body(choices=(ChunkChoice(),), event=event))

    def _body(
        self,
        *,
        choices: tuple[ChunkChoice, ...],
        usage: ChatUsage | None = None,
        citations: tuple[str, ...] | UnsetType = UNSET,
        search_results: tuple[FoundSource, ...] | UnsetType = UNSET,
        event: WebuiEvent | UnsetType = UNSET,
        trivet: AboutAnswer | UnsetType = UNSET,
    ) -> ChatChunk:
        return ChatChunk(
            id=self.id,
            created=self.created,
            model=self.model,
            choices=choices,
            usage=usage if self.wants_usage else UNSET,
            citations=citations,
            search_results=search_results,
            event=event,
            trivet=trivet,
        )


def annotations_of(answer: Answer) -> tuple[Annotation, ...]:
    return tuple(annotation(citation) for citation in answer.citations)


def usage_of(answer: Answer) -> ChatUsage:
    return ChatUsage(
        prompt_tokens=answer.prompt_tokens,
        completion_tokens=answer.completion_tokens,
        total_tokens=answer.prompt_tokens + answer.completion_tokens,
    )


def about(answer: Answer) -> AboutAnswer:
    return AboutAnswer(
        mode=answer.mode,
        zone=answer.zone,
        persona=answer.persona,
        language=answer.language,
        claims=tuple(view_claim(claim) for claim in answer.claims),
        legs=answer.legs,
        notes=answer.notes,
        milliseconds=answer.milliseconds,
    )


def _legs(legs: dict[str, str]) -> str:
    return ", ".join(f"{leg}: {status}" for leg, status in legs.items() if status != "off")
