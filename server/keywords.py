"""A question's core keywords: the names, titles and quoted phrases in it, nothing made up (mission.md §2.4)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from graph.graph_model import Entity
from graph.names import words
from graph.titles import FUNCTION_WORDS, is_nameable, longest_from, name_keys

QUOTED = re.compile(r"[\"“”„«»「」『』]([^\"“”„«»「」『』]{2,200})[\"“”„«»「」『』]")
LONGEST_QUESTION = 400
"""Tokens of a question that are looked at; the rest of a very long one adds nothing but time."""


@dataclass(frozen=True, slots=True)
class Span:
    """A run of a question's tokens that may be a name."""

    key: str
    start: int
    length: int
    capitalised: bool
    """Written like a name: a capital or digit in it, or a script without capitals."""


@dataclass(frozen=True, slots=True)
class Keywords:
    """What a question names."""

    keys: tuple[str, ...]
    entities: Mapping[str, float]
    """Entity id → share: 1, or 1/n where one key means n entities."""
    names: Mapping[str, str]
    """Entity id → its name."""
    coverage: float
    """Share of the question's content words that lie in a matched title or name, 0 to 1."""


@dataclass(frozen=True, slots=True)
class QuestionWords:
    """A question as tokens, each with whether it is written like a name."""

    tokens: tuple[str, ...]
    capitalised: tuple[bool, ...]

    @property
    def written_small(self) -> bool:
        """Nothing after the first word has a capital: then capitals tell nothing."""
        return not any(self.capitalised[1:])

    @classmethod
    def of(cls, question: str) -> QuestionWords:
        tokens: list[str] = []
        capitalised: list[bool] = []
        for piece in question.split():
            found = words(piece)
            like_name = piece.lower() == piece.upper() or any(ch.isupper() or ch.isdigit() for ch in piece)
            tokens += found
            capitalised += [like_name and token not in FUNCTION_WORDS for token in found]
        return cls(tuple(tokens[:LONGEST_QUESTION]), tuple(capitalised[:LONGEST_QUESTION]))

    def spans(self) -> list[Span]:
        """Every run of tokens that could be a title or a name, longest first at each place."""
        spans = []
        for start in range(len(self.tokens)):
            for length in range(min(longest_from(self.tokens[start]), len(self.tokens) - start), 0, -1):
                key = " ".join(self.tokens[start : start + length])
                if is_nameable(key):
                    spans.append(Span(key, start, length, any(self.capitalised[start : start + length])))
        return spans


def keys_to_look_up(question: QuestionWords, text: str, names: Iterable[str]) -> list[str]:
    """All keys worth asking the graph for, without repeats."""
    quoted = name_keys(QUOTED.findall(text))
    return list(dict.fromkeys([*(span.key for span in question.spans()), *name_keys(names), *quoted]))


def choose_keywords(
    question: QuestionWords, text: str, names: Iterable[str], found: Mapping[str, Sequence[Entity]]
) -> Keywords:
    """The longest known name at each place, and what the recogniser and quotation marks name.

    A name known from text alone counts only where the question writes it like one: "film" was once taken for a
    name by the recogniser, and would lead every question about films astray.
    """
    chosen: list[str] = []
    covered: set[int] = set()
    position = 0
    for span in question.spans():
        if span.start < position or span.key not in found:
            continue
        titled = any(entity.titled for entity in found[span.key])
        if titled or span.capitalised or (question.written_small and span.length > 1):
            chosen.append(span.key)
            position = span.start + span.length
            covered.update(range(span.start, position))
    named = [key for key in (*name_keys(names), *name_keys(QUOTED.findall(text))) if key in found]
    keys = tuple(dict.fromkeys([*chosen, *named]))
    entities: dict[str, float] = {}
    labels: dict[str, str] = {}
    for key in keys:
        meant = preferred(key, found[key])
        for entity in meant:
            entities[entity.id] = max(entities.get(entity.id, 0.0), 1.0 / len(meant))
            labels[entity.id] = entity.name
    return Keywords(keys, entities, labels, coverage(question, covered))


def preferred(key: str, entities: Sequence[Entity]) -> Sequence[Entity]:
    """Of several that share a key: those with a title, and among them the one that bears it whole."""
    titled = [entity for entity in entities if entity.titled] or list(entities)
    exact = [entity for entity in titled if entity.id == key]
    return exact or titled


def coverage(question: QuestionWords, covered: set[int]) -> float:
    """Share of the content words inside matched names; 1 for a question without content words."""
    content = [index for index, token in enumerate(question.tokens) if token not in FUNCTION_WORDS]
    if not content:
        return 1.0
    return sum(index in covered for index in content) / len(content)
