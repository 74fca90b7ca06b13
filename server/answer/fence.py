"""The fence around each piece of evidence: what stands inside cannot close it, and what a model repeats of it goes."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

from graph.model import Evidence
from server.answer.plain import place_of, visible

BRACKETED_NUMBERS = re.compile(r"[\[【]{1,2} {0,3}(\d{1,4}(?: {0,2}[-–,] {0,2}\d{1,4}){0,5}) {0,3}[\]】]{1,2}")
ANGLES = re.compile(r"<{3,}|>{3,}")
LONGEST_MARK = len(" evidence 1234>>>\n")


@dataclass(frozen=True, slots=True)
class Fence:
    """What keeps evidence apart from the rest of the prompt; `count` pieces of it have numbers."""

    nonce: str
    count: int

    @classmethod
    def of(cls, question: str, evidence: Sequence[Evidence]) -> Self:
        texts = (f"{item.key}\x1e{item.title}\x1e{item.context or item.text}" for item in evidence)
        return cls.over((question, *texts), count=len(evidence))

    @classmethod
    def over(cls, texts: Iterable[str], *, count: int = 0) -> Self:
        """The nonce is a word that none of these texts can know, as it depends on all of them."""
        content = "\x1f".join(texts)
        return cls(hashlib.sha256(content.encode("utf-8", "replace")).hexdigest()[:12], count)

    def around(self, item: Evidence, text: str) -> str:
        place = place_of(item.title, item.heading_path)
        origin = " · ".join(part for part in (item.origin, item.url, item.modified[:10]) if part)
        head = f"[[{item.number}]] {self.inert(' '.join(place.split()))}\n({self.inert(origin)})"
        return self.block(f"{head}\n{self.inert(text).strip()}", item.number)

    def block(self, text: str, number: int = 1, *, kind: str = "evidence") -> str:
        """Between its marks; the text must be inert."""
        return f"<<<{self.nonce} {kind} {number}>>>\n{text}\n<<<{self.nonce} end {number}>>>"

    def inert(self, text: str) -> str:
        """Page text that can neither close a fence nor pass for the number of a piece of evidence."""
        text = ANGLES.sub(lambda found: " ".join(found[0]), visible(text))
        return BRACKETED_NUMBERS.sub(self._parenthesised, text)

    def _parenthesised(self, found: re.Match[str]) -> str:
        numbers = re.findall(r"\d+", found[1])
        return f"({found[1]})" if any(1 <= int(number) <= self.count for number in numbers) else found[0]


class EchoFilter:
    """Takes the fence's marks out of a text that arrives in pieces: very small models repeat them."""

    def __init__(self, nonce: str) -> None:
        self._start = f"<<<{nonce}"
        self._mark = re.compile(rf"{self._start}(?: (?:evidence|end) ?\d{{0,4}})?>{{0,3}}\n?")
        self._held = ""

    def feed(self, text: str) -> str:
        self._held += text
        return self._drain(final=False)

    def close(self) -> str:
        return self._drain(final=True)

    def _drain(self, *, final: bool) -> str:
        out = ""
        while (at := self._held.find(self._start)) >= 0:
            out += self._held[:at]
            self._held = self._held[at:]
            rest = self._held[len(self._start) :]
            if not final and len(rest) < LONGEST_MARK and "\n" not in rest:
                return out
            self._held = self._mark.sub("", self._held, count=1)
        kept = 0 if final else self._begun()
        out += self._held[: len(self._held) - kept]
        self._held = self._held[len(self._held) - kept :]
        return out

    def _begun(self) -> int:
        """How many characters at the end may be the beginning of a mark."""
        longest = min(len(self._start) - 1, len(self._held))
        return next((size for size in range(longest, 0, -1) if self._held.endswith(self._start[:size])), 0)
