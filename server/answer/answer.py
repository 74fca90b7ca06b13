"""From a question to an answer: gate, condense, search, then a model's words, the evidence's own, or "I don't know".

`whole_answer` is built on `stream_answer`, so that both give the same text and the same sources.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Literal

from config.personas import Persona
from graph.breaker import Breaker
from graph.errors import DependencyDownError, DependencyFaultError
from graph.model import ChatPiece, Evidence, Leg, SearchFilter
from graph.protocols import ChatModel
from server.answer.citations import CitationSanitizer, Piece
from server.answer.claim_check import checked_claims
from server.answer.condense import condense
from server.answer.extractive import extract, written
from server.answer.fence import EchoFilter
from server.answer.gate import check_question, refused_for
from server.answer.plain import plain_line
from server.answer.prompt import Prompt, build_prompt
from server.answer.repetition import Repetition
from server.answer.sentence_reader import sentence_reader
from server.answer.streams import closing
from server.answer.wording import nearest, refused, searched
from server.backends import Backends
from server.kept_leg import KNOWLEDGE
from server.legs import OFF, OK
from server.model import (
    Answer,
    AnswerEvent,
    Citation,
    CitationEvent,
    Claim,
    DoneEvent,
    FoundEvent,
    Mode,
    Question,
    SearchResult,
    TextEvent,
)
from server.search import search

NEAREST_PAGES = 3
PLACES = {"wiki": (Leg.VECTOR, Leg.GRAPH), "web": (Leg.WEB,), KNOWLEDGE: (KNOWLEDGE,)}


async def whole_answer(question: Question, backends: Backends) -> Answer:
    """The answer at once; the same as the last event of `stream_answer`."""
    async with aclosing(stream_answer(question, backends)) as events:
        async for event in events:
            if isinstance(event, DoneEvent):
                return event.answer
    raise AssertionError("an answer ends with DoneEvent")


async def stream_answer(question: Question, backends: Backends) -> AsyncGenerator[AnswerEvent, None]:
    """`FoundEvent`, then text and citations as they come, and `DoneEvent` last.

    Raises `QuestionError` and `NotFoundError` (persona) before the first event; `SettingsError` (the model's window is
    too small) and the model's `DependencyError` after it. Closing it closes the model's stream.
    """
    text = check_question(question.text, backends.settings.answer.question_chars)
    persona = backends.persona(question.persona)
    draft = _Draft(persona)
    with draft.timed("total"):
        attack = refused_for(text)
        if attack is not None:
            reason, language = attack
            draft.found = SearchResult(
                question=text, language=language, keywords=(), evidence=(), legs={"gate": f"refused: {reason}"}
            )
            draft.mode = "refused"
            yield FoundEvent(found=draft.found)
            for event in draft.add([refused(persona.speaks(language))]):
                yield event
        else:
            draft.found = await _find(replace(question, text=text), backends, draft)
            yield FoundEvent(found=draft.found)
            async with aclosing(_compose(question, backends, draft)) as events:
                async for event in events:
                    yield event
            await _check_claims(backends, draft)
    yield DoneEvent(answer=draft.answer())


async def _find(question: Question, backends: Backends, draft: _Draft) -> SearchResult:
    with draft.timed("condense"):
        condensed = await condense(question.text, question.history, backends.chat)
    if condensed.note:
        draft.notes.append(condensed.note)
    found, (draft.samples, problem) = await asyncio.gather(
        search(replace(question, text=condensed.text, history=()), backends),
        _samples(condensed.text, draft.persona, backends),
    )
    if problem:
        draft.notes.append(problem)
    draft.legs = dict(found.legs)
    draft.milliseconds |= found.milliseconds
    if not found.evidence:
        draft.notes.append(_why_nothing(found, filtered=question.where != SearchFilter()))
    elif found.zone == "caution":
        draft.notes.append("the pages found may not answer this question")
    return found


async def _samples(focus: str, persona: Persona, backends: Backends) -> tuple[tuple[str, ...], str]:
    """Of the persona's voice, for the model; chosen while the search goes on, so that no word comes later for it."""
    if backends.chat is None:
        return (), ""
    return await backends.voices.chosen(persona, focus, backends.embedder, backends.question_vectors)


def _why_nothing(found: SearchResult, *, filtered: bool) -> str:
    if not any(_worked(found, leg) for leg in Leg):
        return "nothing could be searched: " + "; ".join(f"{leg} {found.legs.get(leg, OFF)}" for leg in Leg)
    failed = [f"{leg} {found.legs[leg]}" for leg in Leg if not _worked(found, leg) and not _is_off(found, leg)]
    if failed:
        return f"no page that could be searched fits the question; {'; '.join(failed)}"
    return "no page that the filter leaves fits the question" if filtered else "no page fits the question"


def _is_off(found: SearchResult, leg: Leg) -> bool:
    return found.legs.get(leg, OFF).startswith(OFF)


def _worked(found: SearchResult, leg: str) -> bool:
    """A leg's status is "ok", or begins so where there is more to say."""
    return found.legs.get(leg, OFF).startswith(OK)


async def _compose(question: Question, backends: Backends, draft: _Draft) -> AsyncGenerator[AnswerEvent, None]:
    """The text of an answer whose evidence is known."""
    chat = backends.chat
    draft.legs.setdefault("llm", "off")
    if draft.found.zone == "abstain" or not draft.found.evidence:
        for event in draft.add(_do_not_know(draft)):
            yield event
        draft.mode = "abstained"
        return
    if chat is not None:
        async with aclosing(_generate(question, chat, backends.breakers.get("llm"), draft)) as events:
            async for event in events:
                yield event
    if not draft.text:
        for event in draft.add(await _extract(backends, draft)):
            yield event


async def _generate(
    question: Question, chat: ChatModel, breaker: Breaker | None, draft: _Draft
) -> AsyncGenerator[AnswerEvent, None]:
    """The model's answer. Nothing comes, and a note says why, if the model cannot be reached or writes nothing."""
    draft.model = chat.model
    found = draft.found
    with draft.timed("prompt"):
        prompt = build_prompt(
            question=found.question,
            persona=draft.persona,
            evidence=found.evidence,
            zone=found.zone,
            language=found.language,
            count_tokens=chat.count_tokens,
            context_tokens=chat.context_tokens,
            max_tokens=question.max_tokens,
            direction="\n".join(turn.content for turn in question.history if turn.role in ("system", "developer")),
            samples=draft.samples,
        )
    if prompt.used < len(found.evidence):
        draft.notes.append(
            f"{len(found.evidence) - prompt.used} of {len(found.evidence)} pieces did not fit the prompt"
        )
    echoes = EchoFilter(prompt.nonce)
    sanitizer = CitationSanitizer(prompt.used)
    try:
        async with closing(_ask(question, chat, prompt, draft)) as pieces:
            async for piece in _watched(pieces, breaker):
                for event in draft.add(sanitizer.feed(echoes.feed(piece.text))):
                    yield event
    except DependencyDownError as error:
        if draft.text:
            # The reader has half an answer: that the model is down now is no reason to call it whole.
            raise DependencyFaultError(f"the answer broke off: {error}", dependency=error.dependency) from error
        draft.legs["llm"] = str(error)
        draft.notes.append(f"the model did not answer, so these are the best sentences found: {error}")
        return
    for event in draft.add([*sanitizer.feed(echoes.close()), *sanitizer.close()]):
        yield event
    draft.close_generated()


async def _watched(pieces: AsyncIterator[ChatPiece], breaker: Breaker | None) -> AsyncIterator[ChatPiece]:
    """The breaker learns whether the model begins to answer; while it is open the model is not asked."""
    with breaker.watch() if breaker else nullcontext():
        first = await anext(pieces, None)
    if first is not None:
        yield first
        async for piece in pieces:
            yield piece


async def _ask(question: Question, chat: ChatModel, prompt: Prompt, draft: _Draft) -> AsyncIterator[ChatPiece]:
    """The model's stream; what it says of itself is noted."""
    stream = chat.stream(
        prompt.messages,
        temperature=draft.persona.temperature if question.temperature is None else question.temperature,
        max_tokens=prompt.max_tokens,
        stop=question.stop,
    )
    begun = time.perf_counter()
    repetition = Repetition()
    async with closing(stream) as pieces:
        async for piece in pieces:
            if piece.text:
                draft.milliseconds.setdefault("first_token", 1000 * (time.perf_counter() - begun))
            draft.hear(piece)
            yield piece
            if repetition.heard_in(piece.text):
                draft.finish_reason, draft.cut = "length", "the model repeated itself, and was stopped there"
                break
    draft.milliseconds["llm"] = 1000 * (time.perf_counter() - begun)


async def _extract(backends: Backends, draft: _Draft) -> list[Piece]:
    found = draft.found
    draft.mode = "extractive"
    draft.model = ""
    with draft.timed("extract"):
        reader = sentence_reader(found.language, backends.reranker, backends.embedder, backends.question_vectors)
        extracts, problem = await extract(
            found.question, found.evidence, reader, budget=backends.settings.rerank.budget_seconds
        )
    if problem:
        draft.notes.append(f"sentences were chosen by shared words alone: {problem}")
    if not extracts:
        draft.mode = "abstained"
        return _do_not_know(draft)
    return written(extracts)


async def _check_claims(backends: Backends, draft: _Draft) -> None:
    """A refusal names pages and claims nothing of them."""
    if not backends.settings.answer.check_claims or draft.mode == "abstained":
        return
    with draft.timed("claims"):
        draft.claims = await checked_claims(
            draft.text,
            draft.citations,
            draft.found.evidence,
            language=draft.found.language,
            names_of=backends.recognizer.names,
            reranker=backends.reranker,
            settings=backends.settings.answer,
        )


def _do_not_know(draft: _Draft) -> list[Piece]:
    """The persona's refusal, what was searched, and the pages that came nearest, with their numbers."""
    found = draft.found
    language = draft.persona.speaks(found.language)
    places = [place for place, legs in PLACES.items() if any(_worked(found, leg) for leg in legs)]
    lines = [draft.persona.refusal_in(found.language)]
    if places:
        lines.append(searched(language, places))
    pages: dict[str, Evidence] = {}
    for item in found.evidence:
        pages.setdefault(item.page_id or item.url or item.title, item)
    if pages:
        names = [f"{plain_line(item.title)} [[{item.number}]]" for item in list(pages.values())[:NEAREST_PAGES]]
        lines.append(nearest(language, names))
    sanitizer = CitationSanitizer(len(found.evidence))
    return [*sanitizer.feed("\n\n".join(lines)), *sanitizer.close()]


NOTHING_FOUND = SearchResult(question="", language="", keywords=(), evidence=(), legs={})


@dataclass(slots=True)
class _Draft:
    """An answer as it grows."""

    persona: Persona
    found: SearchResult = NOTHING_FOUND
    samples: tuple[str, ...] = ()
    """Of the persona's voice."""
    mode: Mode = "generated"
    model: str = ""
    text: str = ""
    citations: list[Citation] = field(default_factory=list)
    claims: tuple[Claim, ...] = ()
    notes: list[str] = field(default_factory=list)
    legs: dict[str, str] = field(default_factory=dict)
    finish_reason: Literal["stop", "length"] = "stop"
    cut: str = "the answer was cut at its length limit"
    """Why, where `finish_reason` is "length"."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    milliseconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        begun = time.perf_counter()
        try:
            yield
        finally:
            self.milliseconds[stage] = 1000 * (time.perf_counter() - begun)

    def add(self, pieces: list[Piece]) -> Iterator[AnswerEvent]:
        """Append to the text; a marker leads to the evidence with its number, and to nothing else."""
        for piece in pieces:
            if isinstance(piece, str):
                self.text += piece
                yield TextEvent(text=piece)
                continue
            item = next(one for one in self.found.evidence if one.number == piece.number)
            citation = Citation(
                number=piece.number, start=piece.start, end=piece.end, key=item.key, title=item.title, url=item.url
            )
            assert piece.start == len(self.text)
            self.text += piece.text
            self.citations.append(citation)
            yield TextEvent(text=piece.text)
            yield CitationEvent(citation=citation)

    def hear(self, piece: ChatPiece) -> None:
        if piece.finish_reason:
            self.finish_reason = "length" if piece.finish_reason == "length" else "stop"
        self.prompt_tokens = piece.prompt_tokens or self.prompt_tokens
        self.completion_tokens = piece.completion_tokens or self.completion_tokens

    def close_generated(self) -> None:
        """Say what became of the model's answer once it is whole."""
        if not self.text:
            reason = " and stopped at its length limit" if self.finish_reason == "length" else ""
            self.legs["llm"] = f"{self.model} answered nothing{reason}"
            self.notes.append(f"{self.model} answered nothing{reason}, so these are the best sentences found")
            self.finish_reason = "stop"
            return
        self.legs["llm"] = "ok"
        if self.finish_reason == "length":
            self.notes.append(self.cut)
        if not self.citations and self.text.startswith(self.persona.refusal_in(self.found.language)):
            self.mode = "abstained"
        elif not self.citations:
            self.notes.append("the model cited nothing; the sources are what it was given")

    def answer(self) -> Answer:
        return Answer(
            text=self.text,
            mode=self.mode,
            persona=self.persona.name,
            model=self.model,
            evidence=self.found.evidence,
            citations=tuple(self.citations),
            claims=self.claims,
            legs=self.legs or dict(self.found.legs),
            zone=self.found.zone,
            language=self.found.language,
            keywords=self.found.keywords,
            notes=tuple(self.notes),
            finish_reason=self.finish_reason,
            prompt_tokens=self.prompt_tokens,
            completion_tokens=self.completion_tokens,
            milliseconds={stage: round(value, 1) for stage, value in self.milliseconds.items()},
        )
