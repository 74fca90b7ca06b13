"""A folder of Office documents, or a single one, as a wiki: one page per file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, unquote

from graph.errors import SourceError
from graph.model import FailedPage, Link, Page, SkippedPage, SourceItem
from graph.protocols import Source
from ingestion.killable import TooMuchError
from ingestion.office_content import LIBRARIES, MAX_OFFICE_BYTES, OfficeContent, OfficeReader, missing
from ingestion.page_types import type_of_article
from ingestion.sources.file_folder import FileFolder, folder_of
from ingestion.sources.folder_titles import SCHEME, FolderTitles, Look, file_start, title_of_path
from ingestion.sources.kinds import Place, SourceOptions

MAGIC = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
"""Of archives; and of what Microsoft puts encrypted files in."""
OPEN_COPY = "~$"
"""Word's own file beside a document that is open."""


@dataclass(frozen=True, slots=True)
class OfficeFolder(FileFolder):
    """`only`: of all the files in `root` this one alone. A file's title is known when it is read, not before: links
    go by file names, under which each page is known too."""

    kind: str = "office"
    only: str = ""
    reader: OfficeReader = field(default_factory=OfficeReader, compare=False, repr=False)

    def is_page(self, path: str) -> bool:
        return path == self.only if self.only else is_office(path)

    def close(self) -> None:
        self.reader.close()

    def _titles(self, look: Look) -> FolderTitles:
        return FolderTitles()

    def _item(self, path: str, titles: FolderTitles) -> SourceItem:
        key = self.key_of(path)
        try:
            suffix = _suffix(path)
            if why := missing(suffix):
                return FailedPage(key=key, reason=why)
            data, size = file_start(self.root / path, MAX_OFFICE_BYTES)
            if size > MAX_OFFICE_BYTES:
                return FailedPage(key=key, reason=f"{size:,} bytes; an Office file may have {MAX_OFFICE_BYTES:,}")
            content = self.reader.read(data, suffix)
        except OSError as error:
            return FailedPage(key=key, reason=f"cannot be read: {error.strerror or error}")
        except (ValueError, TooMuchError) as error:
            return FailedPage(key=key, reason=str(error))
        url = f"{self.base_url.rstrip('/')}/{quote(path)}" if self.base_url else key
        return office_page(content, source=self.name, key=key, url=url, named=_named(path))


def office_page(content: OfficeContent, *, source: str, key: str, url: str, named: str) -> SourceItem:
    """A file's page. `named` is its title where it says none itself, and an alias where it does."""
    if content.problem:
        return FailedPage(key=key, reason=content.problem)
    if content.skipped:
        return SkippedPage(key=key, reason=content.skipped)
    title = content.title or named
    return Page(
        source=source,
        key=key,
        title=title,
        text=content.text,
        url=url,
        page_type=type_of_article(title, content.cleaned),
        language=content.language,
        modified=content.modified,
        aliases=(named,) if named.casefold() != title.casefold() else (),
        sections=content.sections,
        links=tuple(dict.fromkeys(_titled(content.links, named))),
    )


def _titled(links: Sequence[Link], own: str) -> Iterator[Link]:
    """Links to other Office files, by the names these have."""
    for link in links:
        # LibreOffice writes addresses as if the document were a folder: `../other.odt`.
        address = unquote(link.target.partition("#")[0]).replace("\\", "/")
        if not SCHEME.match(address) and is_office(address) and _named(address) != own:
            yield Link(target=_named(address), shown=link.shown)


def is_office(path: str) -> bool:
    return _suffix(path) in LIBRARIES and not path.rpartition("/")[2].startswith(OPEN_COPY)


def _suffix(path: str) -> str:
    return Path(path).suffix.lower()


def _named(path: str) -> str:
    return title_of_path(path[: -len(_suffix(path))])


@dataclass(frozen=True, slots=True)
class OfficeKind:
    name: str = "office"
    about: str = "an Office document (.docx, .odt, .pptx, .xlsx), or a folder of them; needs the extra `office`"

    def fits(self, place: Place) -> int:
        if place.path is None:
            return 0
        if place.head:
            return 95 if is_office(place.path.name) and place.head.startswith(MAGIC) else 0
        files = [name for name in place.names if not name.endswith("/")]
        pages = sum(map(is_office, files))
        return 55 if 2 * pages > len(files) else 10 if pages else 0

    def open(self, place: Place, options: SourceOptions) -> Source:
        """Raises `SourceError` also where what reads the files is not installed."""
        if place.path is not None and place.path.is_file():
            if not is_office(place.path.name):
                raise SourceError(f"{place.shown} is no Office file ({', '.join(LIBRARIES)}) or folder of them.")
            root, only, there = place.path.parent, place.path.name, frozenset({place.path.name})
        else:
            root, only, there = folder_of(place, "Office files"), "", place.names
        for suffix in sorted({_suffix(name) for name in there if is_office(name)}):
            if why := missing(suffix):
                raise SourceError(f"{place.shown} cannot be read yet: {why}.")
        return OfficeFolder(root=root, name=options.name, base_url=options.base_url, only=only)


KIND = OfficeKind()
