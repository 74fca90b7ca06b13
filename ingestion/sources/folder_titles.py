"""The titles of all pages in a folder, and which of them a link means."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass, field
from urllib.parse import unquote

from graph.names import name_key
from ingestion.sanitize import clean_title

NAMELESS = frozenset({"index", "_index", "readme"})
"""File names that say nothing: such a page stands for its folder."""
PAGE_SUFFIX = re.compile(r"\.(?:md|markdown|mdown|mkd|mdx|html?)$", re.IGNORECASE)
OTHER_SUFFIX = re.compile(r"\.[a-z][a-z0-9]{0,4}$", re.IGNORECASE)
SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:|//")
WORD_JOIN = re.compile(r"[-_]+")


def stem_of(path: str) -> str:
    return PAGE_SUFFIX.sub("", posixpath.basename(path))


def title_of_path(path: str) -> str:
    """A title made of a file's name: `Other-Page.md` → "Other Page", `auth/index.md` → "auth"."""
    stem = stem_of(path)
    folder = posixpath.basename(posixpath.dirname(path))
    if stem.lower() in NAMELESS and folder:
        stem = folder
    stem = stem.replace("___", "/")  # Logseq's namespaces
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
    _by_name: dict[str, list[str]] = field(default_factory=dict)
    """Title, alias, file name, and path from each of its folders on → paths."""

    def add(self, path: str, title: str, aliases: tuple[str, ...]) -> None:
        stem = clean_title(stem_of(path).replace("___", "/"))
        if stem.lower() not in NAMELESS and name_key(WORD_JOIN.sub(" ", stem)) != name_key(title):
            aliases = (*aliases, stem)
        self._titles[path] = title
        self._aliases[path] = tuple(dict.fromkeys(alias for alias in aliases if alias != title))
        names = {title, *aliases, *self._path_names(path)}
        for key in {_name_key(name) for name in names}:
            self._by_name.setdefault(key, []).append(path)

    def title_of(self, path: str) -> str:
        return self._titles.get(path, "")

    def aliases_of(self, path: str) -> tuple[str, ...]:
        return self._aliases.get(path, ())

    def resolver(self, path: str) -> PageResolver:
        """For the links of one page."""
        return PageResolver(self, path)

    def find(self, name: str, near: str) -> str:
        """The title of the page of that name; of several the one in the same folder, then the one least deep."""
        paths = self._by_name.get(_name_key(PAGE_SUFFIX.sub("", name.strip("/"))), ())
        folder = posixpath.dirname(near)
        best = min(paths, key=lambda p: (posixpath.dirname(p) != folder, p.count("/"), p), default="")
        return self._titles.get(best, "")

    @staticmethod
    def _path_names(path: str) -> list[str]:
        parts = PAGE_SUFFIX.sub("", path).split("/")
        if parts[-1].lower() in NAMELESS:
            parts = parts[:-1]
        return ["/".join(parts[start:]) for start in range(len(parts))]


@dataclass(frozen=True, slots=True)
class PageResolver:
    """What the links of the page at `path` mean."""

    titles: FolderTitles
    path: str

    def wiki_link(self, name: str, shown: str) -> str:
        target = self.titles.find(name, self.path)
        if not target and shown:
            target = self.titles.find(shown, self.path)  # Gollum (GitHub's wikis) writes [[shown|page]]
        return target or clean_title(name)

    def path_link(self, href: str) -> str:
        address = unquote(href.partition("#")[0].partition("?")[0])
        if not address or SCHEME.match(address):
            return ""
        if OTHER_SUFFIX.search(address) and not PAGE_SUFFIX.search(address):
            return self.titles.find(address, self.path)  # a file; or a page named "config.edn"
        folder = "" if address.startswith("/") else posixpath.dirname(self.path)
        joined = posixpath.normpath(posixpath.join(folder, address.lstrip("/")))
        if joined == ".":
            return self.titles.find("index", self.path)
        found = self.titles.find(joined, self.path) if not joined.startswith("..") else ""
        return found or self.titles.find(posixpath.basename(joined), self.path) or clean_title(stem_of(joined))
