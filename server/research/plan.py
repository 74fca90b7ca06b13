"""What a run of research is asked for, and what it tells on its way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum


class WhenThin(StrEnum):
    """What is done with a topic of which too little was found."""

    DEEPEN = "deepen"
    """Deep research, as many rounds as the settings say; then it is given up as `insufficient_research`."""
    STOP = "stop"
    """It is left as it is, for a person to decide."""
    ACCEPT = "accept"
    """Facts are drawn from what there is, if the verdict was THIN."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Which topics, and how."""

    topics: tuple[str, ...] = ()
    """Slugs; those named are researched again. Empty: the queue, and what was cut short."""
    deep: bool = False
    """Deep research in any case, one round at least."""
    when_thin: WhenThin = WhenThin.DEEPEN
    minutes: float = 0.0
    """For the whole run; 0: the settings'."""
    since: str = ""
    """RFC 3339, of a job that is done once more after it was cut short: what was begun since then is not begun anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunProgress:
    """How far a run is."""

    topic: str
    stage: str
    """Like "researching" or "extracting"."""
    detail: str = ""
    """What it is at: a search, a URL."""
    pages: int = 0
    chunks: int = 0


Report = Callable[[RunProgress], None]
