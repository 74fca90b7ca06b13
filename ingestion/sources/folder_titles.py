"""What a folder of pages holds: its files, their titles, and which of them a link means."""

from __future__ import annotations

import hashlib
import json
import os
import posixpath
import re
import stat
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote

from graph.errors import SourceError
from graph.model import FailedPage, SkippedPage
from graph.names import name_key
from ingestion.sanitize import clean_title, printable_name

SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__", "venv"})
MAX_DEPTH = 64
NAMELESS = frozenset({"index", "_index", "readme"})
"""File names that say nothing: such a page stands for its folder."""
PAGE_SUFFIX = re.compile(r"\.(?:md|markdown|mdown|mkd|mdx|html?)$", re.IGNORECASE)
FILE_SUFFIX = re.compile(r"\.(?:md|markdown|mdown|mkd|mdx|html?|txt|text|rst|adoc|asciidoc|org)$", re.IGNORECASE)
OTHER_SUFFIX = re.compile(r"\.[a-z][a-z0-9]{0,4}$", re.IGNORECASE)
SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:|//")
URL = re.compile(r"(?:[a-zA-Z][a-zA-Z0-9+.-]*:)?//|mailto:", re.IGNORECASE)
WORD_JOIN = re.compile(r"[-_]+")
LOCALE = re.compile(r"^[a-z]{2}(?:-[a-z]{2,4})?/(?=.)", re.IGNORECASE)
"""Wiki.js writes it before a page's path, whose file may lie in no such folder."""


COARSE_NS = 2_000_000_000
"""FAT's clock. What changed so shortly before a look may change again without a new time: it is read next time too."""
READ_AGAIN = -1
"""In the place of a file's size: whatever it is next time, it is read."""

Mark = tuple[int, int]
"""Time of the last change in nanoseconds, and size in bytes."""


@dataclass(slots=True)
class Look:
    """What one walk through a folder found, in order."""

    files: dict[str, Mark] = field(default_factory=dict)
    """By path relative to the root."""
    others: list[SkippedPage | FailedPage] = field(default_factory=list)
    unlisted: list[str] = field(default_factory=list)
    """Folders, with "/" at their end, of which nothing is known: what was in them is neither there nor gone."""
    moment: int = field(default_factory=time.time_ns)
    log: tuple[int, int] | None = None
    """How far the wiki's own log of changes went before the walk, where it keeps one."""

    def mark(self, path: str) -> Mark:
        mtime, size = self.files[path]
        return mtime, READ_AGAIN if abs(self.moment - mtime) < COARSE_NS else size

    def hides(self, path: str) -> bool:
        return any(path.startswith(folder) for folder in self.unlisted)


class PageFiles(Protocol):
    """Which files of a folder are pages."""

    def is_page(self, path: str) -> bool: ...
    def left_out(self, path: str) -> str: ...
    def key_of(self, path: str) -> str: ...


def look_through(root: Path, pages: PageFiles) -> Look:
    """Raises `SourceError` where the folder itself cannot be listed."""
    look = Look()
    try:
        _walk(root, "", look, pages, depth=0)
    except OSError as error:
        reason = error.strerror or error
        raise SourceError(f"The folder {root} cannot be listed ({reason}); check its permissions.") from error
    return look


def _walk(root: Path, folder: str, look: Look, pages: PageFiles, *, depth: int) -> None:
    with os.scandir(root / folder) as scan:
        entries = sorted(scan, key=lambda entry: entry.name)
    for entry in entries:
        path = f"{folder}/{entry.name}" if folder else entry.name
        if entry.name.startswith(".") or entry.name in SKIPPED_FOLDERS:
            continue
        if entry.is_dir(follow_symlinks=False):
            _subfolder(root, path, look, pages, depth=depth + 1)
        elif pages.is_page(path) or (entry.is_symlink() and entry.is_dir()):
            _meet(path, entry, look, pages)


def _subfolder(root: Path, path: str, look: Look, pages: PageFiles, *, depth: int) -> None:
    reason = f"folders nested more than {MAX_DEPTH} deep"
    try:
        if depth <= MAX_DEPTH:
            _walk(root, path, look, pages, depth=depth)
            return
    except OSError as error:
        reason = f"the folder cannot be listed: {error.strerror or error}"
    look.unlisted.append(f"{path}/")
    look.others.append(FailedPage(key=pages.key_of(f"{printable_name(path)}/"), reason=reason))


def _meet(path: str, entry: os.DirEntry[str], look: Look, pages: PageFiles) -> None:
    if refused := _refused(path, entry):
        look.others.append(refused)
    elif reason := pages.left_out(path):
        look.others.append(SkippedPage(key=pages.key_of(path), reason=reason))
    else:
        try:
            status = entry.stat(follow_symlinks=False)
            look.files[path] = status.st_mtime_ns, status.st_size
        except FileNotFoundError:
            pass  # deleted since the folder was listed
        except OSError:
            look.files[path] = 0, READ_AGAIN  # reading it will say what is wrong


def _refused(path: str, entry: os.DirEntry[str]) -> SkippedPage | FailedPage | None:
    """Why an entry is not read, if it is not."""
    if entry.is_symlink():
        return SkippedPage(key=printable_name(path), reason="a symbolic link")
    if not entry.is_file(follow_symlinks=False):
        return SkippedPage(key=printable_name(path), reason="not a regular file")
    if not path.isascii() and any("\udc80" <= ch <= "\udcff" for ch in path):
        return FailedPage(key=printable_name(path), reason="its name is not valid UTF-8; rename the file")
    return None


def file_start(path: Path, most: int) -> tuple[bytes, int]:
    """At most `most` bytes of a file, and its whole size. Neither follows a link nor waits on a pipe."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("not a regular file")
        return file.read(most), status.st_size


def stem_of(path: str) -> str:
    """A file's name as a name: without its suffix, `%3F` as "?", and Logseq's `___` as the "/" of a namespace."""
    stem = FILE_SUFFIX.sub("", posixpath.basename(path)).replace("___", "/")
    return unquote(stem, errors="strict") if _is_quoted(stem) else stem


def _is_quoted(stem: str) -> bool:
    try:
        return "%" in stem and unquote(stem, errors="strict").isprintable()
    except UnicodeDecodeError:
        return False


def title_of_path(path: str) -> str:
    """A title made of a file's name: `Other-Page.md` → "Other Page", `auth/index.md` → "auth"."""
    stem = stem_of(path)
    folder = posixpath.basename(posixpath.dirname(path))
    if stem.lower() in NAMELESS and folder:
        stem = folder
    return clean_title(stem if " " in stem else WORD_JOIN.sub(" ", stem)) or clean_title(stem) or "untitled"


def _name_key(name: str) -> str:
    """Links are loose about case, and about hyphens, underscores and spaces."""
    return " ".join(WORD_JOIN.sub(" ", name.replace("___", "/")).casefold().split())


@dataclass(slots=True)
class FolderTitles:
    """Filled by `add`, one page at a time; then it resolves links."""

    _titles: dict[str, str] = field(default_factory=dict)
    """Path → title."""
    _aliases: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _by_path: dict[str, str] = field(default_factory=dict)
    """Path without suffix → path."""
    _by_name: dict[str, dict[str, int]] = field(default_factory=dict)
    """Name → paths, each with 0 where it is the file's own (its name, or its path from one of its folders on), 1 for
    its title or an alias: what is written on one page never hides another of just that file name."""

    def add(self, path: str, title: str, aliases: tuple[str, ...]) -> None:
        stem = clean_title(stem_of(path))
        if stem.lower() not in NAMELESS and name_key(WORD_JOIN.sub(" ", stem)) != name_key(title):
            aliases = (*aliases, stem)
        self.put(path, title, aliases)
        own = self._path_names(path)
        self._by_path.setdefault(_name_key(own[0]), path)
        for rank, names in ((0, own), (1, [title, *aliases])):
            for key in map(_name_key, names):
                self._by_name.setdefault(key, {}).setdefault(path, rank)

    def put(self, path: str, title: str, aliases: tuple[str, ...] = ()) -> None:
        """Notes a page whose links are resolved by other rules than a folder's."""
        self._titles[path] = title
        self._aliases[path] = tuple(dict.fromkeys(alias for alias in aliases if alias != title))

    def digest(self) -> str:
        """The same as long as every link means the same page."""
        known = sorted((path, title, *self._aliases[path]) for path, title in self._titles.items())
        return hashlib.sha1(json.dumps(known).encode(), usedforsecurity=False).hexdigest()

    def title_of(self, path: str) -> str:
        return self._titles.get(path, "")

    def aliases_of(self, path: str) -> tuple[str, ...]:
        return self._aliases.get(path, ())

    def resolver(self, path: str, base_url: str = "") -> PageResolver:
        """For the links of one page. Absolute ones below `base_url` are links within the wiki."""
        return PageResolver(self, path, base_url)

    def at(self, path: str) -> str:
        """The title of the page at just this path from the root; "" if there is none."""
        return self._titles.get(self._by_path.get(_name_key(PAGE_SUFFIX.sub("", path)), ""), "")

    def find(self, name: str, near: str) -> str:
        """The title of the page of that name; of several the one in the same folder, then the one least deep."""
        name = PAGE_SUFFIX.sub("", name.strip("/"))
        ranks = self._by_name.get(_name_key(name)) or self._by_name.get(_name_key(FILE_SUFFIX.sub("", name)), {})
        folder, base = posixpath.dirname(near), posixpath.basename(name)
        best = min(
            ranks,
            key=lambda p: (ranks[p], stem_of(p) != base, posixpath.dirname(p) != folder, p.count("/"), p),
            default="",
        )
        return self._titles.get(best, "")

    @staticmethod
    def _path_names(path: str) -> list[str]:
        """The path without suffix, then from each of its folders on; a page that stands for its folder is named so."""
        parts = FILE_SUFFIX.sub("", path).split("/")
        parts[-1] = stem_of(path)
        if parts[-1].lower() in NAMELESS and len(parts) > 1:
            parts = parts[:-1]
        return ["/".join(parts[start:]) for start in range(len(parts))]


@dataclass(frozen=True, slots=True)
class PageResolver:
    """What the links of the page at `path` mean."""

    titles: FolderTitles
    path: str
    base_url: str = ""

    def wiki_link(self, name: str, shown: str) -> str:
        if URL.match(name):
            return ""
        target = self.titles.find(name, self.path)
        if not target and name.startswith("."):
            target = self.path_link(name) if "/" in name else ""
        if not target and shown:
            target = self.titles.find(shown, self.path)  # Gollum (GitHub's wikis) writes [[shown|page]]
        return target or clean_title(name)

    def path_link(self, href: str) -> str:
        address = unquote(href.partition("#")[0].partition("?")[0])
        base = self.base_url.rstrip("/")
        if base and address.startswith(f"{base}/"):
            address = address[len(base) :]
        if not address or SCHEME.match(address):
            return ""
        if OTHER_SUFFIX.search(address) and not PAGE_SUFFIX.search(address):
            return self.titles.find(address, self.path)  # a file; or a page named "config.edn"
        folder = "" if address.startswith("/") else posixpath.dirname(self.path)
        joined = posixpath.normpath(posixpath.join(folder, address.lstrip("/")))
        if joined == ".":
            return self.titles.at("index") or self.titles.at("readme") or self.titles.find("index", self.path)
        tried = [] if joined.startswith("..") else [joined, LOCALE.sub("", joined)]
        found = next((title for name in tried if (title := self.titles.at(name))), "")
        found = found or next((title for name in tried if (title := self.titles.find(name, self.path))), "")
        return found or self.titles.find(posixpath.basename(joined), self.path) or clean_title(stem_of(joined))
