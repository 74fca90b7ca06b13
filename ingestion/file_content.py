"""What a file of another program comes to, and the child process, which can be killed, that reads it."""

from __future__ import annotations

import msgspec

from graph.model import Link, Section
from ingestion.clean import CleanedText
from ingestion.killable import KillableWorker, TooMuchError

MAX_FILE_BYTES = 100 * 2**20
MEMORY_BYTES = 1_000_000_000
BASE_SECONDS = 10.0
MOST_SECONDS = 120.0


class FileContent(msgspec.Struct, frozen=True, kw_only=True):
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


class FileReader:
    """Reads one file after the other; a file that is too much costs its child."""

    def __init__(self, module: str, *, seconds_per_megabyte: float) -> None:
        """`module`: what the child runs."""
        self._worker = KillableWorker(module, memory_bytes=MEMORY_BYTES)
        self._seconds_per_megabyte = seconds_per_megabyte

    def read(self, data: bytes, head: bytes = b"") -> FileContent:
        """`head`: said to the child before the file. Raises `TooMuchError` where the file takes more than its share of
        time or memory."""
        seconds = min(BASE_SECONDS + self._seconds_per_megabyte * len(data) / 1e6, MOST_SECONDS)
        answer = self._worker.call(head + data, seconds=seconds)
        try:
            content = msgspec.msgpack.decode(answer, type=FileContent)
        except msgspec.MsgspecError as error:
            raise TooMuchError("it cannot be read") from error
        if content.problem:
            self._worker.restart()  # what it grew to may leave no room for the next file
        return content

    def close(self) -> None:
        self._worker.close()
