"""A folder of Markdown files as a wiki: a vault of Obsidian, a graph of Logseq, an export of Wiki.js or BookStack, …"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from graph.model import Page, SkippedPage
from graph.protocols import Source
from ingestion.front_matter import FrontMatter
from ingestion.markdown import clean_markdown, first_heading
from ingestion.page_types import type_of_article
from ingestion.sanitize import clean_title
from ingestion.sources.file_folder import HEAD_BYTES, MAX_FILE_BYTES, TextFileFolder, folder_of
from ingestion.sources.folder_titles import FolderTitles, file_start, stem_of
from ingestion.sources.kinds import Place, SourceOptions
from ingestion.sources.markdown_flavours import BY_NAME, FLAVOURS, NAVIGATION, PLAIN, Flavour
from ingestion.sources.text_folder import clean_plain, plain_title

logger = logging.getLogger(__name__)

__all__ = ["KIND", "KINDS", "MAX_FILE_BYTES", "SUFFIXES", "MarkdownFolder"]

SUFFIXES = frozenset({".md", ".markdown", ".mdown", ".mkd", ".mdx"})
LOOKED_AT = 8
"""Files whose first lines may tell a flavour."""
LOOKED_BYTES = 1_024
SEEN_ENTRIES = 5_000


@dataclass(frozen=True, slots=True)
class MarkdownFolder(TextFileFolder):
    """Reads every Markdown file under `root`; links are resolved to titles by a first pass over the files' heads.

    `kind` names the flavour. `base_url` is what stands before a page's path, without its suffix, in the wiki's own
    URLs; without it a page's URL is its path.
    """

    kind: str = PLAIN.name

    @property
    def flavour(self) -> Flavour:
        return BY_NAME[self.kind]

    def is_page(self, path: str) -> bool:
        suffix = Path(path).suffix.lower()
        if suffix not in SUFFIXES and suffix not in self.flavour.suffixes:
            return False
        return self.flavour.kept_out is None or not self.flavour.kept_out.fullmatch(path)

    def left_out(self, path: str) -> str:
        return "navigation, not a page" if stem_of(path).lower() in NAVIGATION else ""

    def learn(self, path: str, head: str, titles: FolderTitles) -> None:
        if _is_org(path):
            titles.add(path, plain_title(head, ".org") or self.flavour.title(path, FrontMatter(), ""), ())
            return
        front, body = self.flavour.read(head)
        if front.published:
            titles.add(path, self._title(path, front, body), (*front.aliases, *self.flavour.aliases(path)))

    def page(self, path: str, text: str, titles: FolderTitles) -> Page | SkippedPage:
        key, flavour = self.key_of(path), self.flavour
        if _is_org(path):
            front, body = FrontMatter(), text
        else:
            front, body = flavour.read(text)
        if front.fault:
            logger.warning("%s: %s; only its plain lines were read", key, front.fault)
        if not front.published:
            return SkippedPage(key=key, reason="its front matter says that it is not published")
        title = titles.title_of(path) or self._title(path, front, body)
        if _is_org(path):
            cleaned = clean_plain(body, ".org", title=title)
        else:
            resolver = titles.resolver(path, self.base_url)
            cleaned = clean_markdown(
                body, resolver, title=title, name=key, words_first=flavour.words_first, tags=flavour.tags
            )
        address = quote(str(Path(path).with_suffix("")))
        return Page(
            source=self.name,
            key=key,
            title=title,
            text=cleaned.text,
            url=f"{self.base_url.rstrip('/')}/{address}" if self.base_url else key,
            page_type=type_of_article(title, cleaned),
            language=front.language,
            modified=front.modified,
            aliases=titles.aliases_of(path),
            links=tuple(link for link in cleaned.links if link.target != title),
            categories=tuple(dict.fromkeys((*front.categories, *cleaned.categories, *flavour.categories(path)))),
            sections=cleaned.sections,
        )

    def _title(self, path: str, front: FrontMatter, body: str) -> str:
        return self.flavour.title(path, front, clean_title(first_heading(body[:HEAD_BYTES])))


def _is_org(path: str) -> bool:
    return path.lower().endswith(".org")


@dataclass(frozen=True, slots=True)
class MarkdownKind:
    """One flavour as a kind of source; the plain one takes what no other recognises."""

    flavour: Flavour

    @property
    def name(self) -> str:
        return self.flavour.name

    @property
    def about(self) -> str:
        return self.flavour.about

    def fits(self, place: Place) -> int:
        if place.path is None or not place.path.is_dir():
            return 0
        if self.flavour is PLAIN:
            return _share_of_markdown(place)
        if not _share_of_markdown(place):
            return 0
        signs = [name for name in place.names if self.flavour.sign.fullmatch(name)]
        if any(name.endswith("/") for name in signs):
            return 90  # the tool's own folder
        mark = self.flavour.mark
        if mark is not None and any(mark.match(head) for head in _heads(place)):
            return 80
        return 75 if signs else 0

    def open(self, place: Place, options: SourceOptions) -> Source:
        root = folder_of(place, "Markdown files")
        return MarkdownFolder(root=root, name=options.name, base_url=options.base_url, kind=self.name)


def _share_of_markdown(place: Place) -> int:
    """50 where a folder is mostly Markdown, 30 where it only holds some, 0 where there is none at any depth."""
    suffixes = [Path(name).suffix.lower() for name in place.names if not name.startswith(".")]
    count = sum(suffix in SUFFIXES for suffix in suffixes)
    if count:
        return 50 if count >= suffixes.count(".txt") else 30
    seen = 0
    for _, folders, files in os.walk(place.path or "."):
        folders[:] = [folder for folder in folders if not folder.startswith(".")]
        if any(Path(file).suffix.lower() in SUFFIXES for file in files):
            return 40
        seen += len(files) + len(folders)
        if seen > SEEN_ENTRIES:
            break
    return 0


def _heads(place: Place) -> Iterator[str]:
    """The first lines of some pages, those of the upper folders first."""
    pages = (name for name in place.names if Path(name).suffix.lower() in SUFFIXES and not name.startswith("."))
    for name in sorted(pages, key=lambda name: (name.count("/"), name))[:LOOKED_AT]:
        try:
            yield file_start((place.path or Path()) / name, LOOKED_BYTES)[0].decode("utf-8", "replace").lstrip("\ufeff")
        except (OSError, ValueError):
            continue


KIND = MarkdownKind(PLAIN)
KINDS = (KIND, *(MarkdownKind(flavour) for flavour in FLAVOURS))
