"""An answer without an LLM: the best-supported sentences of the evidence, word for word, each with its number."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from graph.errors import DependencyError
from graph.model import Evidence
from graph.names import words
from graph.protocols import Reranker
from server.answer.citations import Marker, Piece
from server.answer.plain import CLOSED, CLOSED_WITHOUT_SPACE, sentences

MOST_SENTENCES = 3
CANDIDATES = 16
"""Sentences the cross-encoder reads: more of them cost time and are hardly ever chosen."""
SAME = 0.85
"""Share of the smaller sentence's words from which two sentences say the same."""
LOGIT_GAP = 5.0
"""A sentence that is this much below the best one, in logits, is no part of the answer."""
OVERLAP_LOGITS = 4.0
"""What all of the question's words in a sentence are worth beside the cross-encoder, which knows English best."""
PLACE_LOGITS = 0.3
"""What one place further down the evidence costs: the search has looked at more than one sentence.

These were chosen on hotpotqa_pool and popqa1000 (70 questions each, BM25's six best pages); near them, results differ
by less than the noise.
"""
OVERLAP_GAP = 0.5
"""The same for word overlap, as a share of the best one's."""


@dataclass(frozen=True, slots=True)
class Extract:
    """A sentence of evidence `number`, and the how-manieth of that evidence it is."""

    number: int
    place: int
    text: str


async def extract(
    question: str,
    evidence: Sequence[Evidence],
    reranker: Reranker | None,
    *,
    budget: float,
    most: int = MOST_SENTENCES,
    of_one: int = MOST_SENTENCES,
    without: Collection[str] = (),
) -> tuple[list[Extract], str]:
    """At most `most` sentences in reading order, and why no model chose them, if one should have (`reranker`: see
    `sentence_reader`).

    The evidence with the best sentence comes first; within one, which gives at most `of_one`, sentences keep the
    page's order. `without`: sentences that stand elsewhere already.
    """
    candidates = [pair for pair in _candidates(question, evidence) if pair[1].text not in without]
    if not candidates:
        return [], ""
    logits: list[float | None] = []
    problem = ""
    if reranker is not None:
        titles = {item.number: item.title for item in evidence}
        passages = [f"{titles[one.number]}. {one.text}" for _, one in candidates[:CANDIDATES]]
        try:
            logits = await reranker.score(question, passages, budget=budget)
        except DependencyError as error:
            problem = str(error)
    ranked = _blended(candidates, logits)
    gap = LOGIT_GAP
    if not ranked:
        ranked = _in_order(candidates, [0.0] * len(candidates))
        gap = OVERLAP_GAP * max(ranked[0][0], 0.0)
    near = [one for score, one in ranked if score >= ranked[0][0] - gap]
    return _readable(_distinct(near, most, of_one)), problem


def _blended(
    candidates: Sequence[tuple[float, Extract]], logits: Sequence[float | None]
) -> list[tuple[float, Extract]]:
    """Candidates by the cross-encoder's logit, shared words and place; empty where no logit came in time.

    What was not scored in time counts as an average one: its words alone can still bring it in.
    """
    known = [logit for logit in logits if logit is not None]
    if not known:
        return []
    average = sum(known) / len(known)
    return _in_order(candidates, [average if logit is None else logit for logit in logits])


def _in_order(candidates: Sequence[tuple[float, Extract]], logits: Sequence[float]) -> list[tuple[float, Extract]]:
    scored = [
        (logit + OVERLAP_LOGITS * overlap - PLACE_LOGITS * (one.number - 1), one)
        for logit, (overlap, one) in zip(logits, candidates, strict=False)
    ]
    return sorted(scored, key=lambda pair: (-pair[0], pair[1].number, pair[1].place))


def _candidates(question: str, evidence: Sequence[Evidence]) -> list[tuple[float, Extract]]:
    """All sentences, by the share of the question's words that they contain, rare words weighing more."""
    asked = set(words(question))
    found: list[tuple[Extract, set[str]]] = []
    for item in evidence:
        titled = set(words(item.title))
        for place, text in enumerate(sentences(item.context or item.text)):
            said = set(words(text))
            if len(said) > 1 and not text.endswith(":"):
                # The page's title counts half: a sentence rarely repeats whom the page is about.
                found.append((Extract(item.number, place, text), said | {f"title {word}" for word in titled}))
    frequency = Counter(word for _, said in found for word in said)
    weight = {word: math.log(1 + len(found) / (1 + frequency[word])) for word in asked}
    total = sum(weight.values()) or 1.0

    def overlap(said: set[str]) -> float:
        return sum(w for word, w in weight.items() if word in said) + 0.5 * sum(
            w for word, w in weight.items() if word not in said and f"title {word}" in said
        )

    ranked = [(overlap(said) / total, one) for one, said in found]
    return sorted(ranked, key=lambda pair: (-pair[0], pair[1].number, pair[1].place))


def _distinct(ranked: Sequence[Extract], most: int, of_one: int) -> list[Extract]:
    """The first so many that do not repeat one another."""
    chosen: list[Extract] = []
    seen: list[set[str]] = []
    taken: Counter[int] = Counter()
    for one in ranked:
        said = set(words(one.text))
        if taken[one.number] < of_one and all(len(said & other) < SAME * min(len(said), len(other)) for other in seen):
            chosen.append(one)
            seen.append(said)
            taken[one.number] += 1
        if len(chosen) == most:
            break
    return chosen


def _readable(chosen: Sequence[Extract]) -> list[Extract]:
    first = {number: rank for rank, number in reversed([(rank, one.number) for rank, one in enumerate(chosen)])}
    return sorted(chosen, key=lambda one: (first[one.number], one.place))


def written(extracts: Sequence[Extract]) -> list[Piece]:
    """The text of the answer: each sentence with its number behind it; a list item or table row gets a line."""
    pieces: list[Piece] = []
    length = 0
    for one, following in zip_longest(extracts, extracts[1:]):
        text = one.text if CLOSED_WITHOUT_SPACE.search(one.text) else f"{one.text} "
        marker = Marker(one.number, length + len(text), length + len(text) + len(f"[{one.number}]"))
        pieces += [text, marker]
        length = marker.end
        if following is not None:
            gap = " " if CLOSED.search(one.text) and CLOSED.search(following.text) else "\n"
            pieces.append(gap)
            length += len(gap)
    return pieces
