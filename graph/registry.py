"""What is kept of sources beside their pages: where they are, how far they were followed, and what failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from graph.model import FailedPage


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredSource:
    """A source that `trivet sync` follows. All times are RFC 3339 in UTC, or ""."""

    name: str
    kind: str
    location: str
    """A path or URL, without credentials."""
    base_url: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    cursor: str = ""
    """Where its change feed stands; "" where all must be read."""
    added: str = ""
    last_run: str = ""
    last_error: str = ""
    """Why the last run failed as a whole; "" where it did not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A page that could not be read the last `tries` times."""

    source: str
    key: str
    reason: str
    first: str
    last: str
    tries: int


class Registry(Protocol):
    """Blocking and quick, like `StateStore`."""

    def sources(self) -> Sequence[RegisteredSource]:
        """Ordered by name."""
        ...

    def source(self, name: str) -> RegisteredSource | None: ...
    def put_source(self, source: RegisteredSource) -> None:
        """Create or replace by name."""
        ...

    def remove_source(self, name: str) -> bool:
        """And its dead letters; whether there was one."""
        ...

    def set_cursor(self, name: str, cursor: str) -> None: ...
    def forget_cursors(self) -> None:
        """After a rebuild: all must be read again."""
        ...

    def note_failures(self, name: str, failed: Sequence[FailedPage], settled: Sequence[str], now: str) -> None:
        """Dead letters for `failed`, and none any more for the keys in `settled`."""
        ...

    def dead_letters(self, name: str | None = None) -> Sequence[DeadLetter]:
        """Ordered by source and key."""
        ...

    def close(self) -> None: ...
