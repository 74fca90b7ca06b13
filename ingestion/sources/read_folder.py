"""A folder of files that a child process reads, whole or one of them: one page per file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import ClassVar
from urllib.parse import quote

from graph.model import FailedPage, Link, Page, SkippedPage, SourceItem
from ingestion.file_content import MAX_FILE_BYTES, FileContent, FileReader
from ingestion.killable import TooMuchError
from ingestion.page_types import type_of_article
from ingestion.sources.file_folder import FileFolder
from ingestion.sources.folder_titles import FolderTitles, Look, file_start


@dataclass(frozen=True, slots=True)
class ReadFolder(FileFolder):
    """`only`: of all the files in `root` this one alone. A file's title is known when it is read, not before, so
    nothing depends on others' titles."""

    one: ClassVar[str]
    """What a file is called: "a PDF file"."""
    only: str = ""
    reader: FileReader = field(kw_only=True, compare=False, repr=False)

    def close(self) -> None:
        self.reader.close()

    def named(self, path: str) -> str:
        """The title of a file that says none itself."""
        raise NotImplementedError

    def missing(self, path: str) -> str:
        """What to do before such a file can be read; "" where it can."""
        return ""

    def content(self, data: bytes, path: str) -> FileContent:
        return self.reader.read(data)

    def links(self, content: FileContent, named: str) -> Iterable[Link]:
        """A file's links, by the titles of where they lead."""
        return content.links

    def _titles(self, look: Look) -> FolderTitles:
        return FolderTitles()

    def _item(self, path: str, titles: FolderTitles) -> SourceItem:
        key, named = self.key_of(path), self.named(path)
        if why := self.missing(path):
            return FailedPage(key=key, reason=why)
        try:
            data, size = file_start(self.root / path, MAX_FILE_BYTES)
            if size > MAX_FILE_BYTES:
                return FailedPage(key=key, reason=f"{size:,} bytes; {self.one} may have {MAX_FILE_BYTES:,}")
            content = self.content(data, path)
        except OSError as error:
            return FailedPage(key=key, reason=f"cannot be read: {error.strerror or error}")
        except (ValueError, TooMuchError) as error:
            return FailedPage(key=key, reason=str(error))
        url = f"{self.base_url.rstrip('/')}/{quote(path)}" if self.base_url else key
        links = self.links(content, named)
        return file_page(content, source=self.name, key=key, url=url, named=named, links=links)


def file_page(
    content: FileContent, *, source: str, key: str, url: str, named: str, links: Iterable[Link] = ()
) -> SourceItem:
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
        links=tuple(dict.fromkeys(links)),
    )
