"""The model `trivet/write`: a long piece about the last message of the user, told as an answer is."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

from graph.errors import DependencyDownError
from graph.model import Evidence
from server.model import Answer, AnswerEvent, Citation, DoneEvent, FoundEvent, SearchResult, TextEvent
from server.writing.desk import PieceDesk
from server.writing.model import Piece, PieceDone, SectionDone, SectionText, WritingRequest

MARKER = re.compile(r"(?<!\\)\[(\d{1,4})\]")


async def piece_events(topic: str, desk: PieceDesk) -> AsyncGenerator[AnswerEvent, None]:
    """Sections as they are done, in order. Nothing is kept, and who goes away ends it. Raises what `write` raises, and
    `DependencyDownError` where no section could be written."""
    texts: list[str] = []
    written, told = False, 0
    async with aclosing(desk.write(WritingRequest(topic=topic))) as events:
        async for event in events:
            if isinstance(event, SectionDone):
                written = written or event.section.state == "done"
            elif isinstance(event, SectionText):
                texts.append(event.text)
            elif isinstance(event, PieceDone):
                if not written:
                    raise DependencyDownError(event.piece.reason, dependency="llm")
                answer = answer_of(event.piece, "".join(texts))
                yield FoundEvent(found=_found(answer, topic))
                yield DoneEvent(answer=answer)
            while written and told < len(texts):
                told += 1
                if texts[told - 1]:
                    yield TextEvent(text=texts[told - 1])


def answer_of(piece: Piece, text: str) -> Answer:
    """The n-th entry of evidence is the piece's n-th reference."""
    by_key = {item.key: item for section in piece.sections for item in section.evidence}
    evidence = tuple(replace(by_key[one.key], number=one.number) for one in piece.references)
    unknown = all(section.mode == "unknown" for section in piece.sections)
    return Answer(
        text=text,
        mode="generated" if piece.model else "abstained" if unknown else "extractive",
        persona=piece.persona,
        model=piece.model,
        evidence=evidence,
        citations=tuple(_citations(text, {item.number: item for item in evidence})),
        legs=piece.legs,
        zone="abstain" if unknown else "normal",
        language=piece.language,
        notes=(*piece.notes, *((piece.reason,) if piece.reason else ())),
        prompt_tokens=sum(section.tokens.prompt for section in piece.sections),
    )


def _citations(text: str, by_number: dict[int, Evidence]) -> list[Citation]:
    found = []
    for marker in MARKER.finditer(text):
        item = by_number.get(int(marker[1]))
        if item is not None:
            found.append(
                Citation(
                    number=item.number,
                    start=marker.start(),
                    end=marker.end(),
                    key=item.key,
                    title=item.title,
                    url=item.url,
                )
            )
    return found


def _found(answer: Answer, topic: str) -> SearchResult:
    return SearchResult(
        question=topic,
        language=answer.language,
        keywords=(),
        evidence=answer.evidence,
        legs=answer.legs,
        zone=answer.zone,
    )
