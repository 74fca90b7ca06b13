"""Pages cut into chunks: along headings, through no table row or code fence, within the embedder's limit."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from semantic_text_splitter import TextSplitter

from graph.model import Chunk, Page, chunk_id, embedded_text, source_hash

TINY_SHARE = 8
"""A section under a 1/8 of the limit is too little to be found by itself; it joins a neighbour where both fit."""
MIN_ROOM_SHARE = 4
"""Titles and headings leave a chunk at least 1/4 of the limit for its text, even if the whole then exceeds it."""
SURELY_FITS = 0.9
FENCE = re.compile(r"(`{3,}|~{3,})")
ROW = re.compile(r"[^;:\n]{1,80}: [^;\n]*; ")
CELL_END = re.compile(r"; ")

CountTokens = Callable[[str], int]
Span = tuple[int, int]
"""Start and end offset in `Page.text`."""


@dataclass(frozen=True, slots=True)
class Passage:
    """What becomes a chunk: one section's own text, or several sections that were merged."""

    start: int
    end: int
    path: tuple[str, ...]
    anchor: str
    heading: int
    """Where its first heading line starts; `start` is after that line."""
    tokens: int = 0
    merged: bool = False
    """Whether its text begins with a heading line, since it holds several sections."""
    fits: bool = False
    """Whether it was counted already, as a whole, and is within the limit."""


def chunk_page(page: Page, *, count_tokens: CountTokens, max_tokens: int) -> list[Chunk]:
    """The chunks of a page, in order.

    Every character that is neither white space nor part of a heading line is in exactly one of them. `max_tokens`
    bounds `count_tokens(embedded_text(…))`. Only a row, fence or paragraph that alone exceeds it is cut: a row
    between its cells, a fence between its lines, a paragraph between sentences (words, if it must be).
    """
    cutter = _Cutter(page, count_tokens, max_tokens)
    chunks: list[Chunk] = []
    seen: Counter[str] = Counter()
    for passage in cutter.passages():
        text = page.text[passage.start : passage.end]
        hashed = source_hash(embedded_text(page.title, passage.path, text))
        chunks.append(
            Chunk(
                id=chunk_id(page.id, hashed, seen[hashed]),
                page_id=page.id,
                ordinal=len(chunks),
                start=passage.start,
                end=passage.end,
                text=text,
                heading_path=passage.path,
                anchor=passage.anchor,
                source_hash=hashed,
            )
        )
        seen[hashed] += 1
    return chunks


class _Cutter:
    def __init__(self, page: Page, count_tokens: CountTokens, max_tokens: int) -> None:
        self.page = page
        self.text = page.text
        self.max_tokens = max_tokens
        self.count_tokens = count_tokens
        self._prefixes: dict[tuple[str, ...], int] = {}
        self.special = count_tokens("")  # what the tokenizer adds to every text, such as [CLS] and [SEP]

    def passages(self) -> Iterator[Passage]:
        for passage in self._merge_tiny(self._sections()):
            if passage.fits or self._fits_alone(passage):
                yield passage
            else:
                yield from self._split(passage)

    def _sections(self) -> Iterator[Passage]:
        """The text of each section without its subsections, trimmed; sections of headings alone are left out."""
        sections = self.page.sections
        ends = [*(section.start for section in sections), len(self.text)]
        open_headings: list[tuple[int, str]] = []
        bodies: list[tuple[int, int, tuple[str, ...], str, int]] = [(0, ends[0], (), "", 0)]
        for section, end in zip(sections, ends[1:], strict=True):
            open_headings = [(level, title) for level, title in open_headings if level < section.level]
            open_headings.append((section.level, section.title))
            after = self.text.find("\n", section.start)
            start = end if after < 0 else min(after + 1, end)
            path = tuple(title for _, title in open_headings)
            bodies.append((start, end, path, section.anchor, section.start))
        for start, end, path, anchor, heading in bodies:
            trimmed = self._trim(start, end)
            if trimmed:
                path = self._short_enough(path)
                tokens = self._count(*trimmed)
                yield Passage(*trimmed, path=path, anchor=anchor, heading=heading, tokens=tokens)

    def _merge_tiny(self, sections: Iterator[Passage]) -> Iterator[Passage]:
        """Join a tiny section with the one before it, if they have the same parent or one is the other's parent."""
        tiny = self.max_tokens // TINY_SHARE
        last: Passage | None = None
        for section in sections:
            if last and min(last.tokens, section.tokens) < tiny and (joined := self._join(last, section)):
                last = joined
                continue
            if last:
                yield last
            last = section
        if last:
            yield last

    def _join(self, first: Passage, second: Passage) -> Passage | None:
        """Both as one passage, or None where they do not belong together or do not fit."""
        owner = first.path
        if second.path[: len(owner)] == owner and len(second.path) > len(owner):
            start = first.start
        elif not first.merged and owner and second.path[:-1] == owner[:-1]:
            # Siblings: the text starts with the first one's heading line, and their parent's headings are the path.
            owner, start = owner[:-1], first.heading
        else:
            return None
        tokens = first.tokens + second.tokens
        if tokens >= self.max_tokens:
            return None
        joined = Passage(
            start=start,
            end=second.end,
            path=owner,
            anchor=first.anchor,
            heading=first.heading,
            tokens=tokens,
            merged=start == first.heading,
            fits=True,
        )
        return joined if self._fits(joined, self.max_tokens) else None

    def _fits_alone(self, section: Passage) -> bool:
        """Its text is counted already; only a sum near the limit needs the exact count of the whole."""
        about = self._prefix(section.path) + section.tokens
        if about <= SURELY_FITS * self.max_tokens:
            return True
        return about <= self.max_tokens / SURELY_FITS and self._fits(section, self.max_tokens)

    def _split(self, passage: Passage) -> Iterator[Passage]:
        """A section that is too long, as passages of about equal size."""
        prefix = self._prefix(passage.path)
        limit = max(self.max_tokens, prefix + self.max_tokens // MIN_ROOM_SHARE)
        blocks = list(self._blocks(passage.start, passage.end))
        waiting = [(held, limit) for held in self._pack(blocks, limit - prefix)]
        while waiting:
            held, room = waiting.pop(0)
            piece = replace(passage, start=held[0][0], end=held[-1][1])
            # Counts of parts do not always add up to the count of the whole: halve what turns out too long.
            if self._fits(piece, limit) or piece.end - piece.start == 1:
                yield piece
            elif len(held) > 1:
                half = len(held) // 2
                waiting[:0] = [(held[:half], room), (held[half:], room)]
            else:
                waiting.insert(0, (self._cut(held[0], room // 2), room // 2))

    def _pack(self, blocks: Sequence[Span], room: int) -> Iterator[list[Span]]:
        """Neighbouring blocks held together up to `room` tokens; a larger block is cut into smaller ones first."""
        sized = [part for block in blocks for part in self._cut_to(block, max(room, 1))]
        total = sum(size for _, size in sized)
        target = total / math.ceil(total / max(room, 1)) if total else 0  # about equal, so no tiny rest at the end
        held: list[Span] = []
        filled = 0
        for block, size in sized:
            if held and (filled + size > room or filled + size / 2 > target):
                yield held
                held, filled = [], 0
            held.append(block)
            filled += size
        if held:
            yield held

    def _cut_to(self, block: Span, room: int) -> Iterator[tuple[Span, int]]:
        """A block with its size in tokens, or the parts of one that is larger than `room`."""
        waiting = [block]
        while waiting:
            part = waiting.pop(0)
            size = self._count(*part)
            if size <= room or part[1] - part[0] == 1:
                yield part, size
            else:
                waiting[:0] = self._cut(part, (part[1] - part[0]) * room // size)

    def _blocks(self, start: int, end: int) -> Iterator[Span]:
        """Code fences as wholes, every other line by itself: a paragraph, a list item, a table row."""
        lines = list(self._lines(start, end))
        fences = _closed_fences([self.text[a:b] for a, b in lines])
        number = 0
        while number < len(lines):
            last = fences.get(number, number)
            if trimmed := self._trim(lines[number][0], lines[last][1]):
                yield trimmed
            number = last + 1

    def _cut(self, block: Span, characters: int) -> list[Span]:
        """A block as at least two parts: lines of a fence, cells of a row, else sentences up to `characters`."""
        start, end = block
        text = self.text[start:end]
        if FENCE.match(text) and "\n" in text:
            return [trimmed for line in self._lines(start, end) if (trimmed := self._trim(*line))]
        if ROW.match(text):
            return self._cells(start, end)
        characters = min(characters, len(text) - 1)
        while characters > 1:
            parts = [(start + at, start + at + len(part)) for at, part in TextSplitter(characters).chunk_indices(text)]
            if len(parts) > 1:
                return parts
            characters //= 2
        return [(at, at + 1) for at in range(start, end) if not self.text[at].isspace()]

    def _cells(self, start: int, end: int) -> list[Span]:
        cuts = [start, *(match.end() for match in CELL_END.finditer(self.text, start, end)), end]
        return [trimmed for cell in pairwise(cuts) if (trimmed := self._trim(*cell))]

    def _lines(self, start: int, end: int) -> Iterator[Span]:
        while start < end:
            after = self.text.find("\n", start, end)
            stop = end if after < 0 else after
            yield start, stop
            start = stop + 1

    def _trim(self, start: int, end: int) -> Span | None:
        text = self.text[start:end]
        stripped = text.lstrip()
        start += len(text) - len(stripped)
        stripped = stripped.rstrip()
        return (start, start + len(stripped)) if stripped else None

    def _prefix(self, path: tuple[str, ...]) -> int:
        """What title and headings cost."""
        if path not in self._prefixes:
            self._prefixes[path] = self.count_tokens(embedded_text(self.page.title, path, ""))
        return self._prefixes[path]

    def _count(self, start: int, end: int) -> int:
        return self.count_tokens(self.text[start:end]) - self.special

    def _fits(self, passage: Passage, limit: int) -> bool:
        text = self.text[passage.start : passage.end]
        return self.count_tokens(embedded_text(self.page.title, passage.path, text)) <= limit

    def _short_enough(self, path: tuple[str, ...]) -> tuple[str, ...]:
        """The path without its outermost headings where title and headings would leave too little room for text."""
        most = self.max_tokens - self.max_tokens // MIN_ROOM_SHARE
        while path and self._prefix(path) > most:
            path = path[1:]
        return path


def _closed_fences(lines: Sequence[str]) -> dict[int, int]:
    """First line → last line of each code fence; one that never closes is no fence."""
    closed: dict[int, int] = {}
    opened, marks = -1, ""
    for number, line in enumerate(lines):
        stripped = line.strip()
        if marks:
            if stripped.startswith(marks) and not stripped.strip(marks[0]):
                closed[opened] = number
                marks = ""
        elif match := FENCE.match(stripped):
            opened, marks = number, match.group(1)
    return closed
