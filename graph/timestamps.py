"""The time as it is stored."""

from __future__ import annotations

from datetime import UTC, datetime


def now() -> str:
    """RFC 3339 in UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
