"""PDF files to text, read in a child process that can be killed."""

from __future__ import annotations

import msgspec

from graph.model import Section
from ingestion.clean import CleanedText
from ingestion.killable import KillableWorker, TooMuchError

MEMORY_BYTES = 1_000_000_000
MAX_PDF_BYTES = 100 * 2**20
BASE_SECONDS = 10.0
SECONDS_PER_MEGABYTE = 6.0
MOST_SECONDS = 120.0
"""pypdf reads some ten to fifty dense pages a second."""


class PdfContent(msgspec.Struct, frozen=True, kw_only=True):
    """A file's text. `skipped` says why there is none though the file is as it should be, `problem` what is wrong."""

    title: str = ""
    text: str = ""
    sections: tuple[Section, ...] = ()
    language: str = ""
    modified: str = ""
    skipped: str = ""
    problem: str = ""

    @property
    def cleaned(self) -> CleanedText:
        return CleanedText(text=self.text, sections=self.sections)


class PdfReader:
    """Reads one file after the other; a file that is too much costs its child."""

    def __init__(self) -> None:
        self._worker = KillableWorker("ingestion.pdf_text", memory_bytes=MEMORY_BYTES)

    def read(self, data: bytes) -> PdfContent:
        """Raises `TooMuchError` where it takes more than its share of time or memory."""
        seconds = min(BASE_SECONDS + SECONDS_PER_MEGABYTE * len(data) / 1e6, MOST_SECONDS)
        answer = self._worker.call(data, seconds=seconds)
        try:
            content = msgspec.msgpack.decode(answer, type=PdfContent)
        except msgspec.MsgspecError as error:
            raise TooMuchError("it cannot be read") from error
        if content.problem:
            self._worker.restart()  # what it grew to may leave no room for the next file
        return content

    def close(self) -> None:
        self._worker.close()
