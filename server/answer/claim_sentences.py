"""The cited sentences of an answer: where each stands, and which pieces of evidence it rests on."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from server.answer.plain import BULLET, FENCE, HEADING, sentence_spans
from server.answer.quantities import blanked

LINK_END = re.compile(r"\]\([^()\s]{0,2000}\)")
ADDRESS = re.compile(r"https?://[^\s<>\"')\]]+")
MARKS = re.compile(r"\*{1,3}|_{2,3}|~~|`+|\|")
"""Markdown that stands within sentences. Code spans are read: a port or a file's name is a claim too."""
LEADING = re.compile(rf"(?:{BULLET.pattern}|{HEADING.pattern})")
DOUBLE_QUOTES = re.compile(
    r"\"[^\"\n]{1,600}\"|“[^“”\n]{1,600}”|«[^«»\n]{1,600}»|„[^„“”\n]{1,600}[“”]|「[^「」\n]{1,600}」"
)
ENDS_LINE = re.compile(r"[.!?…。！？:;|]\s*$")


@dataclass(frozen=True, slots=True)
class Marker:
    """`[number]` at `start` … `end`."""

    number: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class CitedSentence:
    """A sentence at `start` … `end` of the answer. `text` is that stretch with spaces for markers and Markdown."""

    start: int
    end: int
    text: str
    numbers: tuple[int, ...]


def cited_sentences(text: str, markers: Sequence[Marker]) -> list[CitedSentence]:
    """In order. A marker behind a full stop belongs to the sentence before it; code blocks have no sentences."""
    plain = _plain(text, markers)
    owners: dict[tuple[int, int], dict[int, None]] = {}
    before: tuple[int, int] | None = None
    for start, end in _stretches(text):
        spans = [(start + low, start + high) for low, high in _spans(plain[start:end])]
        for marker in markers:
            if start <= marker.start < end and (owner := _owner(marker.start, spans, before)):
                owners.setdefault(owner, {})[marker.number] = None
        before = spans[-1] if spans else before
    return [
        CitedSentence(start, end, plain[start:end], tuple(sorted(numbers)))
        for (start, end), numbers in sorted(owners.items())
    ]


def _plain(text: str, markers: Sequence[Marker]) -> str:
    """Of the same length."""
    text = blanked(text, [(marker.start, marker.end) for marker in markers])
    for mark in (LINK_END, ADDRESS, MARKS):
        text = mark.sub(lambda found: " " * len(found[0]), text)
    return text


def _owner(at: int, spans: Sequence[tuple[int, int]], before: tuple[int, int] | None) -> tuple[int, int] | None:
    """The sentence around a marker, else the one before it on its line, else the one after, else the line above's."""
    earlier = [span for span in spans if span[0] <= at]
    return earlier[-1] if earlier else spans[0] if spans else before


def _stretches(text: str) -> Iterator[tuple[int, int]]:
    """Lines outside code blocks; a line that goes on in small letters is one with the next. Bullets are left out."""
    in_code = False
    start = end = 0
    position = 0
    for line in text.splitlines(keepends=True):
        fence = FENCE.match(line) is not None
        goes_on = end > start and line[:1].islower() and not ENDS_LINE.search(text[start:end])
        if not goes_on or fence or in_code:
            if end > start:
                yield start, end
            leading = LEADING.match(line)
            start = position + (leading.end() if leading else 0)
        position += len(line)
        end = start if in_code or fence else max(position, start)
        in_code ^= fence
    if end > start:
        yield start, end


def _spans(stretch: str) -> list[tuple[int, int]]:
    """Sentences with a word in them; a full stop within quotation marks ends none unless the quotation ends there."""
    hidden = DOUBLE_QUOTES.sub(lambda found: found[0][0] + "x" * (len(found[0]) - 3) + found[0][-2:], stretch)
    return [
        (start, end)
        for start, end in sentence_spans(hidden)
        if any(character.isalnum() for character in stretch[start:end])
    ]
