"""A folder of PDF files, or a single one, as a wiki: one page per file, its bookmarks as sections."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import quote

from graph.errors import SourceError
from graph.model import FailedPage, Page, SkippedPage, SourceItem
from graph.protocols import Source
from ingestion.killable import TooMuchError
from ingestion.page_types import type_of_article
from ingestion.pdf_content import MAX_PDF_BYTES, PdfContent, PdfReader
from ingestion.sources.file_folder import FileFolder, folder_of
from ingestion.sources.folder_titles import FolderTitles, Look, file_start, title_of_path
from ingestion.sources.kinds import Place, SourceOptions

MAGIC = b"%PDF-"
SUFFIX = ".pdf"


@dataclass(frozen=True, slots=True)
class PdfFolder(FileFolder):
    """`only`: of all the files in `root` this one alone. A file's title is known when it is read, not before."""

    kind: str = "pdf"
    only: str = ""
    reader: PdfReader = field(default_factory=PdfReader, compare=False, repr=False)

    def is_page(self, path: str) -> bool:
        return path == self.only if self.only else path.lower().endswith(SUFFIX)

    def close(self) -> None:
        self.reader.close()

    def _titles(self, look: Look) -> FolderTitles:
        return FolderTitles()  # PDF files link to each other by address at best: nothing depends on others' titles

    def _item(self, path: str, titles: FolderTitles) -> SourceItem:
        key = self.key_of(path)
        try:
            data, size = file_start(self.root / path, MAX_PDF_BYTES)
            if size > MAX_PDF_BYTES:
                return FailedPage(key=key, reason=f"{size:,} bytes; a PDF file may have {MAX_PDF_BYTES:,}")
            content = self.reader.read(data)
        except OSError as error:
            return FailedPage(key=key, reason=f"cannot be read: {error.strerror or error}")
        except (ValueError, TooMuchError) as error:
            return FailedPage(key=key, reason=str(error))
        return pdf_page(
            content, source=self.name, key=key, url=self._url(path), named=title_of_path(path[: -len(SUFFIX)])
        )

    def _url(self, path: str) -> str:
        return f"{self.base_url.rstrip('/')}/{quote(path)}" if self.base_url else self.key_of(path)


def pdf_page(content: PdfContent, *, source: str, key: str, url: str, named: str) -> SourceItem:
    """A file's page. `named` is its title where it says none itself, and an alias where it does."""
    if content.problem:
        return FailedPage(key=key, reason=content.problem)
    if content.skipped or not content.text:
        return SkippedPage(key=key, reason=content.skipped or "empty")
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
    )


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
