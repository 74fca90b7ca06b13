"""A benchmark's passages many times over, each time about other things: a wiki of any size from a small one.

Every capitalised word of a copy gets an ending of its own ("Lothair" → "Lothairqxb"), so that a copy's names, links
and rare words are its own as another article's would be, while its length and its common words stay real. Its vector
is the original's, turned by a fixed random step (cosine about .9), and its names are the original's, renamed.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graph.model import Page, SourceItem
from graph.protocols import Embedder
from graph.recognizer import Recognizer
from ingestion.sources.beir import BeirCorpus

NAME = re.compile(r"\b[^\W\d_a-z][^\W\d_]{2,}\b")
"""A word in capitals of three letters or more."""
ENDING = re.compile(r"qx[a-z]+\b")
"""No word of the benchmarks ends so."""
TURN = 0.48
"""Length of the step beside the unit vector: cos = 1 / sqrt(1 + .48²) = .90."""


def ending(copy: int) -> str:
    """ "" for the originals, "qxa" for the first copy, then "qxb" …"""
    letters = ""
    while copy > 0:
        copy, rest = divmod(copy - 1, 26)
        letters = chr(ord("a") + rest) + letters
    return f"qx{letters}" if letters else ""


def renamed(text: str, mark: str) -> str:
    return NAME.sub(rf"\g<0>{mark}", text) if mark else text


def original(text: str) -> str:
    return ENDING.sub("", text)


@dataclass(frozen=True, slots=True)
class Enlarged:
    """`size` passages of `folders`: the originals first, then their copies."""

    folders: Sequence[Path]
    size: int
    name: str = "enlarged"
    kind: str = "beir"

    def read(self) -> Iterator[SourceItem]:
        yield from islice(self._all(), self.size)

    def _all(self) -> Iterator[SourceItem]:
        copy = 0
        while True:
            mark = ending(copy)
            for folder in self.folders:
                for item in BeirCorpus(folder).read():
                    if isinstance(item, Page):
                        key = f"{folder.name}/{item.key}/{copy}"
                        yield Page(
                            source=self.name,
                            key=key,
                            title=renamed(item.title, mark),
                            text=renamed(item.text, mark),
                        )
            copy += 1


@dataclass(slots=True)
class TurningEmbedder:
    """The real vectors of originals, kept in a file between runs; a copy's is its original's, turned."""

    real: Embedder
    path: Path
    _known: dict[str, NDArray[np.float32]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.path.exists():
            with np.load(self.path) as kept:
                self._known = dict(zip(kept["texts"].tolist(), kept["vectors"], strict=True))

    @property
    def model(self) -> str:
        return self.real.model

    @property
    def dimension(self) -> int:
        return self.real.dimension

    @property
    def max_tokens(self) -> int:
        return self.real.max_tokens

    async def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        keys = [_hash(original(text)) for text in texts]
        lacking = {key: original(text) for key, text in zip(keys, texts, strict=True) if key not in self._known}
        if lacking:
            made = await self.real.embed_passages(list(lacking.values()))
            self._known.update(zip(lacking, made, strict=True))
        return np.stack(
            [
                self._known[key] if original(text) == text else turned(self._known[key], text)
                for key, text in zip(keys, texts, strict=True)
            ]
        )

    async def embed_question(self, question: str) -> NDArray[np.float32]:
        return await self.real.embed_question(question)

    def count_tokens(self, text: str) -> int:
        """An original's: the endings are ours, and would make every copy longer than any real page."""
        return self.real.count_tokens(original(text))

    def keep(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(self.path, texts=np.array(list(self._known)), vectors=np.stack(list(self._known.values())))

    async def close(self) -> None:
        await self.real.close()


def turned(vector: NDArray[np.float32], text: str) -> NDArray[np.float32]:
    """Another unit vector near this one, the same for the same text."""
    chance = np.random.default_rng(int(_hash(text), 16) % 2**32)
    step = chance.standard_normal(len(vector)).astype(np.float32)
    beside = vector + TURN * step / np.linalg.norm(step)
    return (beside / np.linalg.norm(beside)).astype(np.float32)


class RenamingRecognizer(Recognizer):
    """Reads each original once."""

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[str, tuple[str, ...]] = {}

    def names(self, texts: Sequence[str], language: str) -> list[tuple[str, ...]]:
        originals = [original(text) for text in texts]
        lacking = [text for text in dict.fromkeys(originals) if text not in self._known]
        self._known.update(zip(lacking, super().names(lacking, language), strict=True))
        marks = [found[0] if (found := ENDING.search(text)) else "" for text in texts]
        return [
            tuple(renamed(name, mark) for name in self._known[text])
            for text, mark in zip(originals, marks, strict=True)
        ]


def _hash(text: str) -> str:
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
