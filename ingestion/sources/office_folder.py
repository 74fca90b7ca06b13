"""A folder of Office documents, or a single one, as a wiki: one page per file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar
from urllib.parse import unquote

from graph.errors import SourceError
from graph.model import Link
from graph.protocols import Source
from ingestion.file_content import FileContent, FileReader
from ingestion.office_content import LIBRARIES, missing
from ingestion.sources.file_folder import folder_of
from ingestion.sources.folder_titles import SCHEME, title_of_path
from ingestion.sources.kinds import Place, SourceOptions
from ingestion.sources.read_folder import ReadFolder

MAGIC = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
"""Of archives; and of what Microsoft puts encrypted files in."""
OPEN_COPY = "~$"
"""Word's own file beside a document that is open."""


def office_reader() -> FileReader:
    return FileReader("ingestion.office_text", seconds_per_megabyte=10.0)


@dataclass(frozen=True, slots=True)
class OfficeFolder(ReadFolder):
    """Links go by file names, under which each page is known too."""

    one: ClassVar[str] = "an Office file"
    kind: str = "office"
    reader: FileReader = field(default_factory=office_reader, kw_only=True, compare=False, repr=False)

    def is_page(self, path: str) -> bool:
        return path == self.only if self.only else is_office(path)

    def named(self, path: str) -> str:
        return _named(path)

    def missing(self, path: str) -> str:
        return missing(_suffix(path))

    def content(self, data: bytes, path: str) -> FileContent:
        return self.reader.read(data, head=_suffix(path).encode() + b"\n")

    def links(self, content: FileContent, named: str) -> Iterator[Link]:
        return _titled(content.links, named)


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
