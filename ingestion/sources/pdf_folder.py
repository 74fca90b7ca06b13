"""A folder of PDF files, or a single one, as a wiki: one page per file, its bookmarks as sections."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from graph.errors import SourceError
from graph.protocols import Source
from ingestion.file_content import FileReader
from ingestion.sources.file_folder import folder_of
from ingestion.sources.folder_titles import title_of_path
from ingestion.sources.kinds import Place, SourceOptions
from ingestion.sources.read_folder import ReadFolder

MAGIC = b"%PDF-"
SUFFIX = ".pdf"


def pdf_reader() -> FileReader:
    """pypdf reads some ten to fifty dense pages a second."""
    return FileReader("ingestion.pdf_text", seconds_per_megabyte=6.0)


@dataclass(frozen=True, slots=True)
class PdfFolder(ReadFolder):
    """PDF files link to each other by address at best."""

    one: ClassVar[str] = "a PDF file"
    kind: str = "pdf"
    reader: FileReader = field(default_factory=pdf_reader, kw_only=True, compare=False, repr=False)

    def is_page(self, path: str) -> bool:
        return path == self.only if self.only else path.lower().endswith(SUFFIX)

    def named(self, path: str) -> str:
        return title_of_path(path[: -len(SUFFIX)])


@dataclass(frozen=True, slots=True)
class PdfKind:
    name: str = "pdf"
    about: str = "a PDF file, or a folder of them"

    def fits(self, place: Place) -> int:
        if place.path is None:
            return 0
        if place.head:
            return 95 if MAGIC in place.head[:1024] else 0
        files = [name for name in place.names if not name.endswith("/")]
        pages = sum(name.lower().endswith(SUFFIX) for name in files)
        return 55 if 2 * pages > len(files) else 10 if pages else 0

    def open(self, place: Place, options: SourceOptions) -> Source:
        if place.path is not None and place.path.is_file():
            if MAGIC not in place.head[:1024]:
                raise SourceError(f"{place.shown} is no PDF file; give one, or a folder of them.")
            root, only = place.path.parent, place.path.name
        else:
            root, only = folder_of(place, "PDF files"), ""
        return PdfFolder(root=root, name=options.name, base_url=options.base_url, only=only)


KIND = PdfKind()
