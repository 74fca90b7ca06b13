"""A folder of files as a wiki: how its pages are found, read and followed."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from graph.errors import SourceError
from graph.feed import Checkpoint, FeedItem, GonePage, UnchangedPage
from graph.model import FailedPage, Page, SkippedPage, SourceItem
from ingestion.sanitize import clean_key, clean_text, decode_bytes
from ingestion.sources.folder_titles import READ_AGAIN, FolderTitles, Look, Mark, file_start, look_through
from ingestion.sources.kinds import Place

MAX_FILE_BYTES = 8 * 2**20
HEAD_BYTES = 65_536
"""How much of a file the first pass reads, for its title and aliases."""
MAX_CURSOR = 16 * 2**20
CLEANING = 1
"""Counted up when the same file gives another page: then a cursor of before leads to a full read."""


@dataclass(frozen=True, slots=True)
class FileFolder(ABC):
    """What all folders of files have in common; a kind says which files are pages, and makes a page of one.

    Symbolic links are never followed: inside the folder they would double pages, outside they leave it.
    """

    root: Path
    name: str
    base_url: str = ""
    kind: str = ""

    @abstractmethod
    def is_page(self, path: str) -> bool: ...
    @abstractmethod
    def _titles(self, look: Look) -> FolderTitles:
        """The titles of all pages, by a first pass over the files."""

    @abstractmethod
    def _item(self, path: str, titles: FolderTitles) -> SourceItem:
        """The page of a file, or why there is none."""

    def close(self) -> None:  # noqa: B027 - most have nothing to end
        """Ends what reading has started; called after each look."""

    def left_out(self, path: str) -> str:
        """Why a page is not read, judged by its path; "" if it is."""
        return ""

    def key_of(self, path: str) -> str:
        return clean_key(path)

    def read(self) -> Iterator[FeedItem]:
        return self._closing(self._all())

    def changes(self, cursor: str) -> Iterator[FeedItem] | None:
        known = self._known(cursor)
        return None if known is None else self._closing(self._changes(*known))

    def pages(self, keys: Sequence[str]) -> Iterator[FeedItem]:
        return self._closing(self._some(keys))

    def _closing(self, items: Iterator[FeedItem]) -> Iterator[FeedItem]:
        try:
            yield from items
        finally:
            self.close()

    def _all(self) -> Iterator[FeedItem]:
        look = self._look()
        if not look.files and not look.others:
            raise SourceError(f"The folder {self.root} holds no page of this kind; check the path, or mount its disk.")
        titles = self._titles(look)
        marks: dict[str, Mark] = {}
        for path in look.files:
            item = self._item(path, titles)
            marks[path] = _mark_after(look, path, item)
            yield item
        yield from look.others
        yield Checkpoint(cursor=self._cursor(look, marks, titles.digest()))

    def _some(self, keys: Sequence[str]) -> Iterator[FeedItem]:
        look = self._look()
        if keys and not look.files:
            raise self._vanished(len(keys))
        titles = self._titles(look)
        wanted = dict.fromkeys(keys)
        for path in look.files:
            if (key := self.key_of(path)) in wanted:
                del wanted[key]
                yield from hidden_too(self._item(path, titles))
        for other in look.others:
            if other.key in wanted:
                del wanted[other.key]
                yield other
        for key in wanted:
            unknown = any(key.startswith(self.key_of(folder)) for folder in look.unlisted)
            yield FailedPage(key=key, reason="its folder cannot be listed") if unknown else GonePage(key=key)

    def _changes(self, known: Mapping[str, Mark], digest: str) -> Iterator[FeedItem]:
        look = self._look()
        if known and not look.files:
            raise self._vanished(len(known))
        changed = {path for path, mark in look.files.items() if known.get(path) != mark}
        missing = [path for path in known if path not in look.files]
        others = {other.key for other in look.others}
        stored = {self.key_of(path) for path in known}
        marks = {path: look.mark(path) for path in look.files}
        titles: FolderTitles | None = None
        if changed or missing:
            titles = self._titles(look)
            if titles.digest() != digest:
                changed = set(look.files)  # a link on any page may lead elsewhere now
        for path in look.files:
            if titles is None or path not in changed:
                yield UnchangedPage(key=self.key_of(path))
                continue
            item = self._item(path, titles)
            marks[path] = _mark_after(look, path, item)
            yield from hidden_too(item) if path in known else [item]
        for path in missing:
            if look.hides(path):
                marks[path] = (known[path][0], READ_AGAIN)
                yield FailedPage(key=self.key_of(path), reason="its folder cannot be listed")
            elif self.key_of(path) not in others:
                yield GonePage(key=self.key_of(path))
        for other in look.others:
            yield from hidden_too(other) if other.key in stored else [other]
        yield Checkpoint(cursor=self._cursor(look, marks, titles.digest() if titles else digest))

    def _cursor(self, look: Look, marks: Mapping[str, Mark], digest: str) -> str:
        cursor = json.dumps({"as": self._settings(), "titles": digest, "files": marks}, separators=(",", ":"))
        return cursor if len(cursor) <= MAX_CURSOR else ""  # then each look is a full read

    def _known(self, cursor: str) -> tuple[dict[str, Mark], str] | None:
        """Files and digest of a cursor; None for one that is not ours, or of other settings."""
        try:
            found = json.loads(cursor)
            if found["as"] != self._settings():
                return None
            return {str(path): (int(mark[0]), int(mark[1])) for path, mark in found["files"].items()}, found["titles"]
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
            return None

    def _settings(self) -> list[str]:
        return [self.kind, self.base_url, str(CLEANING)]

    def _vanished(self, count: int) -> SourceError:
        return SourceError(
            f"The folder {self.root} held {count:,} pages and now holds none; check that its disk is mounted, "
            "or remove the source if they are meant to be gone."
        )

    def _look(self) -> Look:
        return look_through(self.root, self)


@dataclass(frozen=True, slots=True)
class TextFileFolder(FileFolder):
    """Files of text in one of its encodings; a kind makes titles and pages of the text."""

    @abstractmethod
    def learn(self, path: str, head: str, titles: FolderTitles) -> None:
        """Notes title and aliases of the page that begins with `head`."""

    @abstractmethod
    def page(self, path: str, text: str, titles: FolderTitles) -> Page | SkippedPage:
        """The page of a file that holds `text`."""

    def _titles(self, look: Look) -> FolderTitles:
        titles = FolderTitles()
        for path in look.files:
            try:
                head = clean_text(decode_bytes(file_start(self.root / path, HEAD_BYTES)[0], cut=True))
            except (OSError, ValueError):
                head = ""  # reading the page says what is wrong with it
            self.learn(path, head, titles)
        return titles

    def _item(self, path: str, titles: FolderTitles) -> SourceItem:
        key = self.key_of(path)
        try:
            data, size = file_start(self.root / path, MAX_FILE_BYTES)
            if size > MAX_FILE_BYTES:
                return FailedPage(key=key, reason=f"{size:,} bytes; a page may have {MAX_FILE_BYTES:,}")
            text = clean_text(decode_bytes(data))
        except OSError as error:
            return FailedPage(key=key, reason=f"cannot be read: {error.strerror or error}")
        except ValueError as error:
            return FailedPage(key=key, reason=str(error))
        return self.page(path, text, titles) if text.strip() else SkippedPage(key=key, reason="empty")


def _mark_after(look: Look, path: str, item: SourceItem) -> Mark:
    """What could not be read is read again, though its time and size stay: its permissions may be mended."""
    return (look.files[path][0], READ_AGAIN) if isinstance(item, FailedPage) else look.mark(path)


def hidden_too(item: SourceItem) -> Iterator[FeedItem]:
    """An item; and where it is left out now, also that what is stored of it must go."""
    yield item
    if isinstance(item, SkippedPage):
        yield GonePage(key=item.key)


def folder_of(place: Place, what: str) -> Path:
    """The folder at a place; raises `SourceError` where there is none."""
    if place.path is None or not place.path.is_dir():
        raise SourceError(f"{place.shown} is no folder; {what} are read from a folder: give the one that holds them.")
    return place.path
