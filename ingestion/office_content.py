"""Office files to text, read in a child process that can be killed."""

from __future__ import annotations

import importlib.util

import msgspec

from graph.model import Link, Section
from ingestion.clean import CleanedText
from ingestion.killable import KillableWorker, TooMuchError

MEMORY_BYTES = 1_000_000_000
MAX_OFFICE_BYTES = 100 * 2**20
BASE_SECONDS = 10.0
SECONDS_PER_MEGABYTE = 10.0
MOST_SECONDS = 120.0
LOCKED = "it is encrypted; save it without a password"
LIBRARIES = {".docx": "docx", ".pptx": "pptx", ".xlsx": "openpyxl", ".odt": ""}
"""Suffix → the package that reads such a file; OpenDocument needs none beside what is there anyway."""


class OfficeContent(msgspec.Struct, frozen=True, kw_only=True):
    """A file's text. `skipped` says why there is none though the file is as it should be, `problem` what is wrong.
    The targets of `links` are addresses as the file has them."""

    title: str = ""
    text: str = ""
    sections: tuple[Section, ...] = ()
    links: tuple[Link, ...] = ()
    list_items: int = 0
    language: str = ""
    modified: str = ""
    skipped: str = ""
    problem: str = ""

    @property
    def cleaned(self) -> CleanedText:
        return CleanedText(text=self.text, sections=self.sections, links=self.links, list_items=self.list_items)


def missing(suffix: str) -> str:
    """What to do before such a file can be read; "" where it can."""
    library = LIBRARIES[suffix]
    if not library or importlib.util.find_spec(library) is not None:
        return ""
    return f"{suffix} files need the extra `office`; install it: pip install 'trivet[office]'"


class OfficeReader:
    """Reads one file after the other; a file that is too much costs its child."""

    def __init__(self) -> None:
        self._worker = KillableWorker("ingestion.office_text", memory_bytes=MEMORY_BYTES)

    def read(self, data: bytes, suffix: str) -> OfficeContent:
        """`suffix`: one of `LIBRARIES`. Raises `TooMuchError` where it takes more than its share of time or memory."""
        seconds = min(BASE_SECONDS + SECONDS_PER_MEGABYTE * len(data) / 1e6, MOST_SECONDS)
        answer = self._worker.call(suffix.encode() + b"\n" + data, seconds=seconds)
        try:
            content = msgspec.msgpack.decode(answer, type=OfficeContent)
        except msgspec.MsgspecError as error:
            raise TooMuchError("it cannot be read") from error
        if content.problem:
            self._worker.restart()  # what it grew to may leave no room for the next file
        return content

    def close(self) -> None:
        self._worker.close()
