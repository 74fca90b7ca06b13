"""Voice chunks: which samples of a persona's voice go into the prompt (mission.md §4.7).

They are ranked by their triggers alone, and pass by fusion and the reranker: a sample shows how to say something, so
how well it answers the question is of no account.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from config.personas import Persona
from graph.errors import DependencyError
from graph.protocols import Embedder
from server.question_vectors import QuestionVectors

MOST = 3
NEARLY = 0.05
"""How much less near than the second sample a third one may be (cosine)."""
SECONDS = 2.0
"""Longer is not worth waiting for: the answer is as true without samples."""


class Voices:
    """The triggers of each persona as vectors, embedded when they are first needed and kept in memory."""

    def __init__(self) -> None:
        self._triggers: dict[str, NDArray[np.float32]] = {}

    async def prepare(self, personas: Iterable[Persona], embedder: Embedder) -> None:
        """Embed them now, so that no question waits for it. Raises `DependencyError`."""
        for persona in personas:
            if persona.voice_chunks:
                await self._embedded(persona, embedder)

    async def chosen(
        self, persona: Persona, focus: str, embedder: Embedder, vectors: QuestionVectors
    ) -> tuple[tuple[str, ...], str]:
        """The two or three samples nearest to the focus, nearest first; and why there are none, if there should be.

        `vectors`: the search's, which embeds the same text at the same time.
        """
        if not persona.voice_chunks:
            return (), ""
        try:
            async with asyncio.timeout(SECONDS):
                triggers = await self._embedded(persona, embedder)
                question = (await vectors.of(focus, embedder)).dense
        except DependencyError as error:
            return (), f"answered without samples of the persona's voice: {error}"
        except TimeoutError:
            return (), f"answered without samples of the persona's voice: embedding took over {SECONDS:g} s"
        return tuple(persona.voice_chunks[place].text for place in nearest(triggers @ question)), ""

    async def _embedded(self, persona: Persona, embedder: Embedder) -> NDArray[np.float32]:
        """(chunks, dimension); a persona is read once, so its name stands for it."""
        if persona.name not in self._triggers:
            triggers = [chunk.trigger for chunk in persona.voice_chunks]
            self._triggers[persona.name] = await embedder.embed_passages(triggers)
        return self._triggers[persona.name]


def nearest(cosines: NDArray[np.float32]) -> list[int]:
    """The places of the two best, and of the third where it is about as good; ties go by place."""
    order = [int(place) for place in np.argsort(-cosines, kind="stable")[:MOST]]
    if len(order) == MOST and cosines[order[2]] < cosines[order[1]] - NEARLY:
        del order[2]
    return order
