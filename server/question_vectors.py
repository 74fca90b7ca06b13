"""The vectors of the last questions: the same one asked again needs no model."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graph.protocols import Embedder, SparseEmbedder

QUESTIONS_KEPT = 512
"""About 1 MB of vectors of 384 numbers."""


@dataclass(frozen=True, slots=True)
class QuestionVector:
    """`dense` (dimension,) may not be written to: it is handed out again. `sparse` where the embedder weighs words."""

    dense: NDArray[np.float32]
    sparse: dict[int, float] | None = None


@dataclass(slots=True)
class _Asked:
    """A question that is being embedded, and how many wait for it."""

    task: asyncio.Task[QuestionVector]
    waiting: int = 0


class QuestionVectors:
    """Least recently used first out. Safe while a process has one embedder, which backends have: a text's vector
    depends on nothing else. What failed is not kept. Used on the event loop alone."""

    def __init__(self, most: int = QUESTIONS_KEPT) -> None:
        self._most = most
        self._kept: OrderedDict[str, QuestionVector] = OrderedDict()
        self._asked: dict[str, _Asked] = {}

    async def of(self, question: str, embedder: Embedder) -> QuestionVector:
        """Legs that ask at once share one call, which ends with the last that waits. Raises the embedder's
        `DependencyError`."""
        if found := self._kept.get(question):
            self._kept.move_to_end(question)
            return found
        if question not in self._asked:
            self._asked[question] = _Asked(asyncio.create_task(_embedded(question, embedder)))
        asked = self._asked[question]
        asked.waiting += 1
        try:
            made = await asyncio.shield(asked.task)
        finally:
            asked.waiting -= 1
            if self._asked.get(question) is asked and (asked.task.done() or not asked.waiting):
                del self._asked[question]
            if not asked.waiting and not asked.task.done():
                asked.task.cancel()
        self._kept[question] = made
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)
        return made


async def _embedded(question: str, embedder: Embedder) -> QuestionVector:
    sparse = None
    if isinstance(embedder, SparseEmbedder):
        dense, sparse = await embedder.embed_question_both(question)
    else:
        dense = await embedder.embed_question(question)
    dense.flags.writeable = False
    return QuestionVector(dense, sparse)
