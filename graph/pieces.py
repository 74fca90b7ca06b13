"""Long pieces as they are kept while they are written, so that one that broke off can be gone on with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptPiece:
    """All as JSON, whose form is the writer's affair. Times are RFC 3339 in UTC."""

    id: str
    request: str
    sections: tuple[str, ...] = ()
    """By their numbers, each as it was last written; some may be missing."""
    piece: str = ""
    """The whole of it; empty while it is written, and where it broke off."""
    job: str = ""
    """The one that last wrote at it; empty where it was none."""
    created: str = ""
    changed: str = ""


class PieceStore(Protocol):
    """Blocking and quick, like `StateStore`."""

    def begin(self, piece_id: str, request: str, *, job: str = "") -> KeptPiece:
        """A new piece; one that is there stays as it is."""
        ...

    def reopen(self, piece_id: str, *, job: str) -> None:
        """It is that job's now, and there is no whole of it until `end`. Said twice of one job, it is said once: both
        who asked for the job and who does it say so."""
        ...

    def put_section(self, piece_id: str, number: int, section: str) -> None:
        """In place of what was there; what was the whole of it no longer is."""
        ...

    def end(self, piece_id: str, piece: str) -> None: ...
    def piece(self, piece_id: str) -> KeptPiece | None: ...
    def close(self) -> None: ...
