"""What a claim cites, read once, and which of its sentences speak of what the claim speaks of."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from graph.model import Evidence
from server.answer.claim_names import NameIndex, index_of
from server.answer.claim_words import content, language_of
from server.answer.plain import plain_line, sentences, visible
from server.answer.quantities import Quantities, quantities

WINDOW = 3
"""Sentences of evidence that one claim may be made of."""
GAIN = 0.22
"""Share of a claim's words that a further sentence must add to belong to its window."""
NEAR = 0.7
"""A sentence that has this share of the best one's words may be meant as well.

These three were chosen on one half of squad_dev's articles (`tests/benchmarks/claims.py`).
"""
TITLE_WEIGHT = 0.3
"""Of a word of the page's title, which every sentence of the page may leave out."""
FEWEST = 2
"""Words that a clause needs to be looked for by itself."""
CLAUSES = re.compile(r"[;:]|, (?=(?:and|but|while|whereas|et|mais|und|aber|y|pero)\b)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A stretch of evidence, mostly a sentence."""

    text: str
    words: frozenset[str]
    quantities: Quantities
    names: NameIndex


@dataclass(frozen=True, slots=True, kw_only=True)
class Grounds:
    """All that one claim cites."""

    label: str
    """As in "is not in [1] or [3]"."""
    title: str
    passages: tuple[Passage, ...]
    head: Passage
    """Titles and headings."""
    rest: Passage
    """The whole text, with its code and headings."""
    language: str


def read_passage(text: str) -> Passage:
    return Passage(text=text, words=content(text), quantities=quantities(text), names=index_of(text))


def grounds_of(items: Sequence[Evidence]) -> Grounds:
    """What several pieces of evidence say together."""
    whole = "\n".join(visible(item.context or item.text) for item in items)
    titles = [plain_line(item.title) for item in items]
    head = ". ".join((*titles, *(plain_line(part) for item in items for part in item.heading_path)))
    said = [sentence for item in items for sentence in sentences(item.context or item.text)]
    return Grounds(
        label=" or ".join(f"[{item.number}]" for item in items),
        title=titles[0] if titles else "",
        passages=tuple(read_passage(sentence) for sentence in said),
        head=read_passage(head),
        rest=read_passage(whole),
        language=language_of(whole),
    )


class Matter:
    """Which sentences of the evidence speak of what the claim speaks of, by shared words, rare ones weighing more."""

    def __init__(self, claim: str, grounds: Grounds) -> None:
        """`claim`: without its numbers and dates, so that a wrong one does not lead to where it is right."""
        self.said = content(claim)
        self._clauses = [(start, end, content(claim[start:end])) for start, end in _clauses(claim)]
        self._passages = grounds.passages
        frequency = Counter(word for passage in grounds.passages for word in passage.words & self.said)
        count = len(grounds.passages)
        self._weight = {
            word: math.log(1 + (count + 1) / (1 + frequency[word]))
            * (TITLE_WEIGHT if word in grounds.head.words else 1.0)
            for word in self.said
        }
        everywhere = grounds.rest.words | grounds.head.words
        self.share = len(self.said & everywhere) / len(self.said) if self.said else 1.0

    def window(self, without: frozenset[str] = frozenset()) -> list[Passage]:
        """The best sentence, those nearly as good, and those that add what it lacks; all, if no word is shared."""
        return self._window(self.said - without)

    def window_at(self, at: int, without: frozenset[str] = frozenset()) -> list[Passage]:
        """The same for what stands at a place of the claim: its clause may be from another sentence."""
        chosen = self._window(self.said - without)
        for start, end, said in self._clauses:
            if start <= at < end and len(said - without) >= FEWEST and len(self._clauses) > 1:
                chosen += [passage for passage in self._window(said - without) if passage not in chosen]
        return chosen

    def _window(self, wanted: frozenset[str]) -> list[Passage]:
        scored = sorted(
            ((self._sum(one.words & wanted), -place) for place, one in enumerate(self._passages)), reverse=True
        )
        if not scored or not scored[0][0]:
            return list(self._passages)
        top = scored[0][0]
        chosen = [self._passages[-place] for score, place in scored if score >= NEAR * top]
        lacking = wanted.difference(*(passage.words for passage in chosen))
        while len(chosen) < WINDOW:
            following = max(self._passages, key=lambda passage: self._sum(passage.words & lacking))
            if self._sum(following.words & lacking) < GAIN * self._sum(wanted):
                break
            chosen.append(following)
            lacking -= following.words
        return chosen

    def _sum(self, found: Iterable[str]) -> float:
        return sum(self._weight[word] for word in found)


def _clauses(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for found in CLAUSES.finditer(text):
        yield start, found.start()
        start = found.end()
    yield start, len(text)
