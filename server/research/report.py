"""What a run of research tells in the end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from graph.research import TopicState


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicReport:
    """What became of one topic."""

    slug: str
    title: str = ""
    state: TopicState | None = None
    """None: it was deleted meanwhile."""
    reasons: tuple[str, ...] = ()
    pages: int = 0
    """All that are stored of it now; chunks and facts likewise."""
    chunks: int = 0
    facts: int = 0
    rounds: int = 0
    """Of deep research, in this run."""
    left_out: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """URLs that were found and not kept, by reason; of many, some."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """How many they are."""
    notes: tuple[str, ...] = ()
    """Like search engines that did not answer."""
    seconds: float = 0.0
    error: str = ""
    """Why it could not be done; "" where it was, whatever the verdict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """Of all topics of a run, in the order in which they were done."""

    topics: tuple[TopicReport, ...] = ()
    not_begun: tuple[str, ...] = ()
    """Slugs for which the time was too short."""
    seconds: float = 0.0

    @property
    def partial(self) -> bool:
        return bool(self.not_begun) or any(topic.error for topic in self.topics)
