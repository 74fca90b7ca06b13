"""A folder of Markdown files as a wiki: a GitHub wiki, an Obsidian vault, a Wiki.js or BookStack export."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from graph.errors import SourceError
from graph.model import FailedPage, Page, SkippedPage, SourceItem
from ingestion.front_matter import FrontMatter, read_front_matter
from ingestion.markdown import clean_markdown, first_heading
from ingestion.page_types import type_of_article
from ingestion.sanitize import clean_key, clean_text, clean_title, decode_bytes, printable_name
from ingestion.sources.folder_titles import FolderTitles, title_of_path

logger = logging.getLogger(__name__)

SUFFIXES = frozenset({".md", ".markdown", ".mdown", ".mkd", ".mdx"})
SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__", "venv"})
MAX_FILE_BYTES = 8 * 2**20
HEAD_BYTES = 65_536
"""How much of a file the first pass reads, for its title and aliases."""
MAX_DEPTH = 64


@dataclass(frozen=True, slots=True)
class MarkdownFolder:
    """Reads every Markdown file under `root`; links are resolved to titles by a first pass over the files' heads.

    `base_url` is what stands before a page's path, without its suffix, in the wiki's own URLs; without it a page's URL
    is its path. Symbolic links are never followed: inside the folder they would double pages, outside they leave it.
    """

    root: Path
    name: str
    base_url: str = ""
    kind: str = "markdown"

    def read(self) -> Iterator[SourceItem]:
        titles = FolderTitles()
        for path in self._files():
            if isinstance(path, str):
                self._learn(path, titles)
        for path in self._files():
            yield self._page(path, titles) if isinstance(path, str) else path

    def _files(self) -> Iterator[str | SkippedPage | FailedPage]:
        """Paths of Markdown files relative to the root, in order; and those that are left out, with the reason."""
        try:
            yield from self._walk("", depth=0)
        except OSError as error:
            reason = error.strerror or error
            raise SourceError(f"The folder {self.root} cannot be listed ({reason}); check its permissions.") from error

    def _walk(self, folder: str, *, depth: int) -> Iterator[str | SkippedPage | FailedPage]:
        with os.scandir(self.root / folder) as scan:
            entries = sorted(scan, key=lambda entry: entry.name)
        for entry in entries:
            path = f"{folder}/{entry.name}" if folder else entry.name
            if entry.name.startswith(".") or entry.name in SKIPPED_FOLDERS:
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from self._subfolder(path, depth=depth + 1)
            elif Path(entry.name).suffix.lower() in SUFFIXES or (entry.is_symlink() and entry.is_dir()):
                yield _refused(path, entry) or path

    def _subfolder(self, path: str, *, depth: int) -> Iterator[str | SkippedPage | FailedPage]:
        if depth > MAX_DEPTH:
            yield FailedPage(key=printable_name(path), reason=f"folders nested more than {MAX_DEPTH} deep")
            return
        try:
            yield from self._walk(path, depth=depth)
        except OSError as error:
            yield FailedPage(key=printable_name(path), reason=f"the folder cannot be listed: {error.strerror or error}")

    def _learn(self, path: str, titles: FolderTitles) -> None:
        try:
            head = clean_text(decode_bytes(self._bytes(path, HEAD_BYTES)[0], cut=True))
        except (OSError, ValueError):
            head = ""  # the second pass says what is wrong with it
        front, body = read_front_matter(head)
        if front.published:
            titles.add(path, _title(path, front, body), front.aliases)

    def _page(self, path: str, titles: FolderTitles) -> SourceItem:
        key = clean_key(path)
        try:
            data, size = self._bytes(path, MAX_FILE_BYTES)
            if size > MAX_FILE_BYTES:
                return FailedPage(key=key, reason=f"{size:,} bytes; a page may have {MAX_FILE_BYTES:,}")
            text = clean_text(decode_bytes(data))
        except OSError as error:
            return FailedPage(key=key, reason=f"cannot be read: {error.strerror or error}")
        except ValueError as error:
            return FailedPage(key=key, reason=str(error))
        if not text.strip():
            return SkippedPage(key=key, reason="empty")
        front, body = read_front_matter(text)
        if front.fault:
            logger.warning("%s: %s; only its plain lines were read", key, front.fault)
        if not front.published:
            return SkippedPage(key=key, reason="its front matter says that it is not published")
        return self._cleaned(path, key, front, body, titles)

    def _cleaned(self, path: str, key: str, front: FrontMatter, body: str, titles: FolderTitles) -> Page:
        title = titles.title_of(path) or _title(path, front, body)
        cleaned = clean_markdown(body, titles.resolver(path), title=title, name=key)
        return Page(
            source=self.name,
            key=key,
            title=title,
            text=cleaned.text,
            url=f"{self.base_url.rstrip('/')}/{quote(str(Path(path).with_suffix('')))}" if self.base_url else key,
            page_type=type_of_article(title, cleaned),
            language=front.language,
            modified=front.modified,
            aliases=titles.aliases_of(path),
            links=tuple(link for link in cleaned.links if link.target != title),
            categories=front.categories,
            sections=cleaned.sections,
        )

    def _bytes(self, path: str, most: int) -> tuple[bytes, int]:
        """At most `most` bytes of a file, and its whole size. Neither follows a link nor waits on a pipe."""
        descriptor = os.open(self.root / path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise ValueError("not a regular file")
            return file.read(most), status.st_size


def _title(path: str, front: FrontMatter, body: str) -> str:
    return front.title or clean_title(first_heading(body[:HEAD_BYTES])) or title_of_path(path)


def _refused(path: str, entry: os.DirEntry[str]) -> SkippedPage | FailedPage | None:
    """Why an entry is not read, if it is not."""
    if entry.is_symlink():
        return SkippedPage(key=printable_name(path), reason="a symbolic link")
    if not entry.is_file(follow_symlinks=False):
        return SkippedPage(key=printable_name(path), reason="not a regular file")
    if not path.isascii() and any("\udc80" <= ch <= "\udcff" for ch in path):
        return FailedPage(key=printable_name(path), reason="its name is not valid UTF-8; rename the file")
    return None
