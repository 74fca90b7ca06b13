"""What research works with, and what a step of it comes to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from config.domains import Domains
from config.settings import ResearchSettings
from graph.protocols import ChatModel, PoliteFetcher, Reranker, WebSearch
from server.research.fact_check import NamesOf, no_names
from server.research.shelf import Shelf

MOST_URLS = 20
"""Named for one reason."""
MOST_REASONS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class ResearchTools:
    """Without `reranker` the gate does not judge quality, without `chat` questions about gaps are made by rule."""

    shelf: Shelf
    search: WebSearch
    fetcher: PoliteFetcher
    settings: ResearchSettings
    domains: Domains
    reranker: Reranker | None = None
    chat: ChatModel | None = None
    names_of: NamesOf = no_names
    """Blocking."""
    allow_private: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What one step found, and what it left out."""

    pages: int = 0
    """Kept, copies not counted."""
    chunks: int = 0
    fetched: int = 0
    searches: int = 0
    results: int = 0
    """Of all searches together."""
    copies: int = 0
    left_out: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """URLs by reason, some of them; how many there are is in `counts`."""
    counts: Mapping[str, int] = field(default_factory=dict)
    notes: Sequence[str] = ()


class LeftOut:
    """URLs by the reason for which they were left out; of many, the first few are named."""

    def __init__(self) -> None:
        self._urls: dict[str, list[str]] = {}
        self._seen: set[tuple[str, str]] = set()
        self.counts: Counter[str] = Counter()

    def add(self, reason: str, url: str) -> None:
        reason = reason if reason in self._urls or len(self._urls) < MOST_REASONS else "other reasons"
        if (reason, url) in self._seen:
            return
        self._seen.add((reason, url))
        self.counts[reason] += 1
        named = self._urls.setdefault(reason, [])
        if len(named) < MOST_URLS:
            named.append(url[:500])

    def take_back(self, reason: str, url: str) -> None:
        """It was kept after all."""
        if (reason, url) in self._seen:
            self._seen.discard((reason, url))
            self.counts[reason] -= 1
            self._urls[reason] = [named for named in self._urls[reason] if named != url[:500]]
            if not self.counts[reason]:
                del self.counts[reason], self._urls[reason]

    @property
    def urls(self) -> Mapping[str, Sequence[str]]:
        return {reason: tuple(named) for reason, named in self._urls.items()}
