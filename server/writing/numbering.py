"""One numbering for the whole piece: sources count from 1 in the order in which readers meet them. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from graph.model import Evidence
from server.model import Citation, Claim
from server.writing.model import Reference, SectionResult

LABEL = re.compile(r"\[(\d{1,4})\]")


class Numbering:
    """Takes the sections in order. Passages with one title and one address are one source."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, ...], int] = {}
        self._references: list[Reference] = []

    @property
    def references(self) -> tuple[Reference, ...]:
        return tuple(self._references)

    def section(self, own: SectionResult) -> SectionResult:
        """The same section with the piece's numbers, and its offsets moved to fit. Evidence that it does not cite has
        the number 0."""
        by_key = {item.key: item for item in own.evidence}
        citations = [one for one in sorted(own.citations, key=lambda one: one.start) if one.key in by_key]
        numbers = {one.number: self._number(by_key[one.key]) for one in citations}
        text, moved, placed = _rewritten(own.text, citations, numbers)
        cited = {one.key: numbers[one.number] for one in citations}
        claims = tuple(_claim(claim, numbers, moved) for claim in own.claims)
        evidence = tuple(replace(item, number=cited.get(item.key, 0)) for item in own.evidence)
        return replace(own, text=text, citations=tuple(placed), claims=claims, evidence=evidence)

    def _number(self, item: Evidence) -> int:
        identity = (item.url, item.title) if item.url else (item.key,)
        if identity not in self._numbers:
            self._numbers[identity] = number = len(self._numbers) + 1
            self._references.append(
                Reference(
                    number=number,
                    title=item.title,
                    heading_path=item.heading_path,
                    url=item.url,
                    origin=item.origin,
                    key=item.key,
                    page_id=item.page_id,
                )
            )
        return self._numbers[identity]


def _rewritten(
    text: str, citations: list[Citation], numbers: Mapping[int, int]
) -> tuple[str, dict[int, int], list[Citation]]:
    """The text with new numbers; where each offset of the old one is now; the citations there.

    Of two markers side by side that lead to one source now, the first stays.
    """
    moved: dict[int, int] = {}
    placed: list[Citation] = []
    out, position = "", 0
    for one in citations:
        for offset in range(position, one.start + 1):
            moved[offset] = len(out) + offset - position
        out += text[position : one.start]
        number = numbers[one.number]
        repeated = bool(placed) and placed[-1].end == len(out) and placed[-1].number == number
        start = len(out)
        if not repeated:
            out += f"[{number}]"
            placed.append(replace(one, number=number, start=start, end=len(out)))
        for offset in range(one.start + 1, one.end + 1):
            moved[offset] = len(out)
        position = one.end
    for offset in range(position, len(text) + 1):
        moved[offset] = len(out) + offset - position
    return out + text[position:], moved, placed


def _claim(claim: Claim, numbers: Mapping[int, int], moved: Mapping[int, int]) -> Claim:
    def renamed(found: re.Match[str]) -> str:
        number = int(found[1])
        return f"[{numbers[number]}]" if number in claim.numbers and number in numbers else found[0]

    return replace(
        claim,
        start=moved[claim.start],
        end=moved[claim.end],
        numbers=tuple(dict.fromkeys(numbers[n] for n in claim.numbers if n in numbers)),
        reason=LABEL.sub(renamed, claim.reason),
    )
