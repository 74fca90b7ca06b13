"""Text from outside that is to be shown on a terminal."""

from __future__ import annotations

import re

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""What a page may carry and a terminal must not be sent: escape sequences, bidirectional overrides, surrogates."""


def clean(text: str) -> str:
    return CONTROL.sub("", text)


def sentence(text: str) -> str:
    """On one line."""
    return " ".join(clean(text).split())
