"""How much a step of research may still cost."""

from __future__ import annotations

import time
from collections.abc import Callable


class Budget:
    """Pages, seconds and a model's tokens that are left; what has run out is told by name."""

    def __init__(
        self, *, seconds: float, pages: int, tokens: int = 0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._end = clock() + seconds
        self._pages = pages
        self._tokens = tokens

    @property
    def seconds(self) -> float:
        """Left, 0 at least."""
        return max(self._end - self._clock(), 0.0)

    @property
    def pages(self) -> int:
        return self._pages

    @property
    def tokens(self) -> int:
        return self._tokens

    @property
    def spent(self) -> str:
        """What there is none left of, as half a sentence; "" while research can go on."""
        if self.seconds <= 0:
            return "its time is up"
        return "" if self._pages > 0 else "it has fetched as many pages as it may"

    def take_page(self) -> None:
        self._pages -= 1

    def take_tokens(self, count: int) -> None:
        self._tokens = max(self._tokens - count, 0)
