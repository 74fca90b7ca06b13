"""A page of the web as it was read, with what it says of itself."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class WebPage:
    """Its main text, and where it came from."""

    url: str
    """Where it was found in the end, redirects followed, without its fragment."""
    title: str
    text: str
    author: str = ""
    published: str = ""
    """YYYY-MM-DD or RFC 3339; "" where the page does not say."""
    language: str = ""
    """ISO 639-1."""
