"""URLs that are safe to show as links."""

from __future__ import annotations

from urllib.parse import quote, urlsplit


def followable(url: str) -> bool:
    """http(s), or a path within the wiki's folder; a page's own metadata can say `javascript:` or `//elsewhere`."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    if parts.scheme in {"http", "https"}:
        return bool(parts.netloc)
    return bool(url) and not parts.scheme and not parts.netloc


def link_or_name(url: str, key: str) -> str:
    """The URL, or a name of what has none that can be followed."""
    return url if followable(url) else f"urn:trivet:{quote(key)}"
