"""How an answer's text compares with a set's answers. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

ARTICLES = frozenset({"a", "an", "the"})
SIGNS = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7af"
TOKEN = re.compile(rf"[{SIGNS}]|[^\W{SIGNS}]+")
"""A word; in scripts without spaces a sign, as MLQA and XQuAD are scored (Lewis and others 2020)."""


def tokens(text: str) -> list[str]:
    """Lower case, without punctuation and English articles: SQuAD's normalisation (Rajpurkar and others 2016)."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    return [token for token in TOKEN.findall(plain) if token not in ARTICLES]


def contains(text: str, answers: Sequence[str]) -> bool:
    """Whether the words of any answer stand in the text, side by side."""
    said = tokens(text)
    return any(_inside(wanted, said) for answer in answers if (wanted := tokens(answer)))


def _inside(wanted: Sequence[str], said: Sequence[str]) -> bool:
    width = len(wanted)
    return any(said[start : start + width] == wanted for start in range(len(said) - width + 1))


def exact(text: str, answers: Sequence[str]) -> bool:
    """Whether the text is an answer and nothing else, after normalisation."""
    return any(tokens(text) == tokens(answer) for answer in answers)


def f1(text: str, answers: Sequence[str]) -> float:
    """The best harmonic mean of precision and recall of the words over the answers (SQuAD's F1)."""
    return max((_f1(tokens(text), tokens(answer)) for answer in answers), default=0.0)


def _f1(said: Sequence[str], wanted: Sequence[str]) -> float:
    if not said or not wanted:
        return float(said == wanted)
    shared = sum((Counter(said) & Counter(wanted)).values())
    if not shared:
        return 0.0
    precision, recall = shared / len(said), shared / len(wanted)
    return 2 * precision * recall / (precision + recall)
