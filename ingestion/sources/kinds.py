"""What a kind of wiki must offer to be found by `trivet ingest PATH-OR-URL`, ours and third parties' alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from graph.protocols import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a wiki is, with what can be seen of it at a glance. Exactly one of `path` and `url` is set."""

    shown: str
    """For messages: printable, and without a password."""
    path: Path | None = None
    url: str = ""
    head: bytes = b""
    """A file's first 4,096 bytes."""
    names: frozenset[str] = frozenset()
    """A folder's files and folders, relative, "/" between, folders with one at the end; two levels, at most 2,000."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """What the owner says of a source."""

    name: str
    """Sets its pages apart from other sources'; safe in ids and file names."""
    base_url: str = ""
    """What stands before a page's name in the wiki's own URLs; "" where the source knows better."""
    extra: Mapping[str, str] = field(default_factory=dict)
    """`--option key=value`, for what only one kind knows ("strategy" of a forum, "api_key", …)."""
    delay: float = 0.0
    """Seconds between two requests to the same host, beside what the host itself asks for."""


class SourceKind(Protocol):
    """One kind of wiki. Third parties add theirs as entry points of the group `trivet.sources`."""

    @property
    def name(self) -> str:
        """What `--source` takes: "mediawiki-xml"."""
        ...

    @property
    def about(self) -> str:
        """Half a line for `--help` and the docs."""
        ...

    def fits(self, place: Place) -> int:
        """0: no. 1–100: how sure; the surest kind is taken. May ask a URL, but reads no more than a page."""
        ...

    def open(self, place: Place, options: SourceOptions) -> Source:
        """Raises `SourceError` where it cannot be read as this kind, saying what is there instead. Nothing is read yet
        but what that needs."""
        ...
