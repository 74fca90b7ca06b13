"""Near-copies among pages, by MinHash over runs of words (Broder 1997). Pure."""

from __future__ import annotations

import zlib

import numpy as np
from numpy.typing import NDArray

from graph.names import words

PERMUTATIONS = 128
"""The estimate's standard error is at most 0.044."""
SHINGLE = 3
"""Words. Longer runs make pages differ that differ in a word here and there."""
AT_ONCE = 4096
Signature = NDArray[np.uint32]
_random = np.random.default_rng(20_101)
_FACTORS = _random.integers(0, 2**63, PERMUTATIONS, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
_ADDED = _random.integers(0, 2**63, PERMUTATIONS, dtype=np.uint64)


def signature(text: str) -> Signature:
    """(128,), the same for the same words; all ones for a text without any."""
    smallest = np.full(PERMUTATIONS, np.iinfo(np.uint32).max, np.uint32)
    hashes = np.array(sorted(_shingles(text)), np.uint64)
    for start in range(0, len(hashes), AT_ONCE):
        # Multiply-shift hashing (Dietzfelbinger et al. 1997): the upper half of 64 bits, of which the rest is cut off.
        mixed = (hashes[start : start + AT_ONCE, None] * _FACTORS + _ADDED) >> np.uint64(32)
        smallest = np.minimum(smallest, mixed.min(axis=0).astype(np.uint32))
    return smallest


def similarity(one: Signature, other: Signature) -> float:
    """An estimate of the share of word runs that both have, of all that either has."""
    return float(np.mean(one == other))


class Copies:
    """The pages that are kept, and which of them another one repeats."""

    def __init__(self, least: float) -> None:
        self._least = least
        self._urls: list[str] = []
        self._signatures: list[Signature] = []

    def original(self, made: Signature) -> str | None:
        """The URL of the page that it is nearest to, where that is near enough."""
        if not self._urls:
            return None
        shared = np.mean(np.stack(self._signatures) == made, axis=1)
        best = int(np.argmax(shared))
        return self._urls[best] if shared[best] >= self._least else None

    def add(self, url: str, made: Signature) -> None:
        self._urls.append(url)
        self._signatures.append(made)


def _shingles(text: str) -> set[int]:
    """Hashes of 32 bits of every run of so many words; of the whole, where there are fewer."""
    tokens = words(text)
    if not tokens:
        return set()
    count = max(len(tokens) - SHINGLE + 1, 1)
    return {zlib.crc32(" ".join(tokens[at : at + SHINGLE]).encode()) for at in range(count)}
