"""A model that has begun to say the same again and again, told from one that writes a list."""

from __future__ import annotations

LONGEST = 400
"""Characters of the longest passage whose repetition is seen."""
TIMES = 4
SHORTEST = 240
"""Characters that must be a repetition: a rule, a row of dots or a refrain is shorter."""
STEP = 40
"""Characters between two looks."""


class Repetition:
    """Listens to a text that arrives in pieces."""

    def __init__(self) -> None:
        self._tail = ""
        self._heard = 0

    def heard_in(self, text: str) -> bool:
        """Whether the text so far ends in a passage that was just said four times, word for word."""
        self._tail = (self._tail + text)[-(TIMES + 1) * LONGEST :]
        self._heard += len(text)
        if self._heard < STEP:
            return False
        self._heard = 0
        return any(self._repeats(period) for period in range(1, LONGEST + 1))

    def _repeats(self, period: int) -> bool:
        length = max(TIMES * period, SHORTEST)
        if length > len(self._tail) or self._tail[-1] != self._tail[-1 - period]:
            return False
        end = self._tail[-length:]
        return end[period:] == end[:-period]
