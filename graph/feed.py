"""What a source's change feed says beside the pages that have changed."""

from __future__ import annotations

from dataclasses import dataclass

from graph.model import SourceItem


@dataclass(frozen=True, slots=True, kw_only=True)
class GonePage:
    """A page that was deleted, moved away or hidden at the source."""

    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UnchangedPage:
    """A page that is still as it was when it was read last: its validators or its modification time say so."""

    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """All changes up to here have been told; the next look begins at `cursor`.

    A cursor is the source's own text (a time, a change number, validators as JSON), at most 16 MB.
    """

    cursor: str


FeedItem = SourceItem | GonePage | UnchangedPage | Checkpoint
