"""Text as every store can hold it."""

from __future__ import annotations

import re

UNSTORABLE = re.compile("[\0\ud800-\udfff]")
"""NUL ends a string in C (SQLite's functions, FTS5 queries); a lone surrogate has no UTF-8."""


def storable(text: str) -> str:
    """The text with each character no store can hold replaced by U+FFFD, so that offsets stay right."""
    return UNSTORABLE.sub("\ufffd", text)
