"""A page's text to passages, and the passages that best fit a question. Pure."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from graph.names import words

MAX_WORDS = 150
K1, B = 1.2, 0.75
"""BM25's usual constants (Robertson & Zaragoza 2009)."""
SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+|(?<=[。！？])")


def split_passages(text: str, max_words: int = MAX_WORDS) -> list[str]:
    """Neighbouring paragraphs grouped up to `max_words`; a longer paragraph is cut at its sentences."""
    passages: list[str] = []
    group: list[str] = []
    size = 0
    for part in _parts(text, max_words):
        length = len(words(part))
        if group and size + length > max_words:
            passages.append("\n".join(group))
            group, size = [], 0
        group.append(part)
        size += length
    if group:
        passages.append("\n".join(group))
    return passages


def best_passages(passages: Sequence[str], question: str, limit: int) -> list[str]:
    """The `limit` best by BM25 over the question's words, best first; ties, and no match at all, in page order."""
    return [passages[place] for place, _ in by_bm25(passages, question)[:limit]]


def by_bm25(texts: Sequence[str], question: str) -> list[tuple[int, float]]:
    """(place, score) of each text, best first; ties, and no match at all, in the order they come in."""
    scores = bm25_scores([words(text) for text in texts], words(question))
    return sorted(enumerate(scores), key=lambda pair: (-pair[1], pair[0]))


def bm25_scores(documents: Sequence[Sequence[str]], query: Sequence[str]) -> list[float]:
    """One score for each document; frequencies and lengths are of these documents alone."""
    if not documents:
        return []
    mean_length = sum(map(len, documents)) / len(documents) or 1.0
    counts = [Counter(document) for document in documents]
    scores = [0.0] * len(documents)
    for term in sorted(set(query)):
        frequency = sum(term in count for count in counts)
        idf = math.log(1 + (len(documents) - frequency + 0.5) / (frequency + 0.5))
        for i, count in enumerate(counts):
            if tf := count[term]:
                scores[i] += idf * tf * (K1 + 1) / (tf + K1 * (1 - B + B * len(documents[i]) / mean_length))
    return scores


def _parts(text: str, max_words: int) -> Iterator[str]:
    """Paragraphs, or the pieces of one that is too long."""
    for line in text.splitlines():
        paragraph = " ".join(line.split())
        if not paragraph:
            continue
        if len(words(paragraph)) <= max_words:
            yield paragraph
            continue
        for sentence in SENTENCE_END.split(paragraph):
            yield from _cut(sentence, max_words)


def _cut(sentence: str, max_words: int) -> Iterator[str]:
    """Cut what has no sentence ends; in scripts without spaces every character is a word."""
    if len(words(sentence)) <= max_words:
        if sentence:
            yield sentence
        return
    pieces = sentence.split(" ")
    if len(pieces) == 1:
        for start in range(0, len(sentence), max_words):
            yield sentence[start : start + max_words]
        return
    middle = len(pieces) // 2
    yield from _cut(" ".join(pieces[:middle]), max_words)
    yield from _cut(" ".join(pieces[middle:]), max_words)
