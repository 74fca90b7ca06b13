"""The words of a section: a model's, sanitised as a whole, or the evidence's own sentences."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

from graph.breaker import Breaker
from graph.model import Evidence
from graph.names import words
from graph.protocols import ChatModel
from server.answer.citations import CitationSanitizer, Marker, Piece
from server.answer.extractive import Extract, extract
from server.answer.fence import EchoFilter
from server.answer.plain import CLOSED_WITHOUT_SPACE, FENCE
from server.answer.repetition import Repetition
from server.answer.streams import closing
from server.backends import Backends
from server.model import Citation
from server.writing.prompt import SectionPrompt

SENTENCES = 8
"""Of an extractive section; of each document at most two, so that it has several."""
SENTENCES_OF_ONE = 2
FEWEST_WORDS = 4
"""Of a sentence, where others have more: less says nothing by itself."""
HEADING_MARK = re.compile(r" {0,3}#{1,6}(?: +|$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A section's text with `[n]` for evidence n."""

    text: str
    citations: tuple[Citation, ...]
    evidence: tuple[Evidence, ...]
    sentences: tuple[str, ...] = ()
    """Taken from the evidence word for word."""
    notes: tuple[str, ...] = ()


async def generated(
    prompt: SectionPrompt, heading: str, chat: ChatModel, breaker: Breaker | None, heat: float
) -> Draft:
    """The model's words; empty text where it said nothing. Raises its `DependencyError`.

    They are taken as a whole, since what is checked and rewritten cannot be shown before.
    """
    said: list[str] = []
    notes: tuple[str, ...] = ()
    repetition = Repetition()
    with breaker.watch() if breaker else nullcontext():
        stream = chat.stream(prompt.messages, temperature=heat, max_tokens=prompt.max_tokens)
        async with closing(stream) as pieces:
            async for piece in pieces:
                said.append(piece.text)
                if piece.finish_reason == "length":
                    notes = ("the section was cut at its length limit",)
                if repetition.heard_in(piece.text):
                    notes = ("the model repeated itself, and was stopped there",)
                    break
    echoes = EchoFilter(prompt.nonce)
    text = without_headings(echoes.feed("".join(said)) + echoes.close(), heading)
    sanitizer = CitationSanitizer(len(prompt.evidence))
    written, citations = joined([*sanitizer.feed(text), *sanitizer.close()], prompt.evidence)
    return Draft(text=written, citations=citations, evidence=prompt.evidence, notes=notes)


def without_headings(text: str, heading: str) -> str:
    """A section's text with its own heading and those that a model put into it taken for what they are: lines."""
    lines: list[str] = []
    in_code = False
    for line in text.strip().splitlines():
        in_code ^= FENCE.match(line) is not None
        plain = line if in_code else HEADING_MARK.sub("", line, count=1)
        if not lines and plain.strip("*_: ").casefold() in ("", heading.casefold()):
            continue
        lines.append(f"**{plain.strip()}**" if plain != line and plain.strip() else plain)
    return "\n".join(lines)


async def extracted(
    query: str, evidence: Sequence[Evidence], backends: Backends, *, said: Collection[str] = ()
) -> Draft:
    """The best sentences of each document, a paragraph each; the one that fits best comes first. `said`: sentences of
    other sections, which are not repeated; so the text may be empty."""
    extracts, problem = await extract(
        query,
        evidence,
        backends.reranker,
        budget=backends.settings.rerank.budget_seconds,
        most=SENTENCES,
        of_one=SENTENCES_OF_ONE,
        without=said,
    )
    extracts = [one for one in extracts if len(words(one.text)) >= FEWEST_WORDS] or extracts
    text, citations = joined(_paragraphs(extracts), evidence)
    notes = (f"sentences were chosen by shared words alone: {problem}",) if problem else ()
    taken = tuple(one.text for one in extracts)
    return Draft(text=text, citations=citations, evidence=tuple(evidence), sentences=taken, notes=notes)


def _paragraphs(extracts: Sequence[Extract]) -> Iterable[Piece]:
    """Offsets in the markers are not set."""
    before: Extract | None = None
    for one in extracts:
        if before is not None:
            yield " " if before.number == one.number else "\n\n"
        yield one.text if CLOSED_WITHOUT_SPACE.search(one.text) else f"{one.text} "
        yield Marker(one.number, 0, 0)
        before = one


def joined(pieces: Iterable[Piece], evidence: Sequence[Evidence]) -> tuple[str, tuple[Citation, ...]]:
    """Text, and where each marker in it leads."""
    by_number = {item.number: item for item in evidence}
    text = ""
    citations: list[Citation] = []
    for piece in pieces:
        if isinstance(piece, str):
            text += piece
            continue
        item = by_number[piece.number]
        citations.append(
            Citation(
                number=item.number,
                start=len(text),
                end=len(text) + len(piece.text),
                key=item.key,
                title=item.title,
                url=item.url,
            )
        )
        text += piece.text
    return text, tuple(citations)
