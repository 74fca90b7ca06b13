"""Pages that were read, with what their host calls their version: asked for again, they need not be sent again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

from graph.web_page import WebPage

MAX_CHARACTERS = 20_000_000
MAX_VALIDATOR = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    page: WebPage
    etag: str
    modified: str


class KeptPages:
    """In memory, the ones used last."""

    def __init__(self, max_characters: int = MAX_CHARACTERS) -> None:
        self._max_characters = max_characters
        self._characters = 0
        self._kept: OrderedDict[str, _Kept] = OrderedDict()

    def headers(self, url: str) -> Mapping[str, str]:
        """To be sent with the request for it."""
        kept = self._kept.get(url)
        if kept is None:
            return {}
        found = {"If-None-Match": kept.etag, "If-Modified-Since": kept.modified}
        return {name: value for name, value in found.items() if value}

    def put(self, url: str, page: WebPage, headers: Mapping[str, str]) -> None:
        """Where its host gave it a version; else it is asked for anew each time."""
        self._drop(url)
        etag, modified = (_plain(headers.get(name, "")) for name in ("etag", "last-modified"))
        if not etag and not modified:
            return
        self._kept[url] = _Kept(page=page, etag=etag, modified=modified)
        self._characters += len(page.text)
        while self._characters > self._max_characters:
            self._drop(next(iter(self._kept)))

    def get(self, url: str) -> WebPage | None:
        kept = self._kept.get(url)
        if kept is None:
            return None
        self._kept.move_to_end(url)
        return kept.page

    def _drop(self, url: str) -> None:
        if kept := self._kept.pop(url, None):
            self._characters -= len(kept.page.text)


def _plain(value: str) -> str:
    """Only what can be sent back as it is."""
    return value if value.isascii() and value.isprintable() and len(value) <= MAX_VALIDATOR else ""
