"""A benchmark's corpus as a source: one page per passage of a BEIR-style `corpus.jsonl`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from graph.errors import SourceError
from graph.model import FailedPage, Page, SkippedPage, SourceItem


class BeirCorpus:
    """`corpus.jsonl` with one `{"_id", "title", "text"}` a line."""

    kind = "beir"

    def __init__(self, folder: Path, *, name: str = "") -> None:
        self._path = folder / "corpus.jsonl"
        self.name = name or folder.name
        if not self._path.is_file():
            raise SourceError(
                f"{folder} has no corpus.jsonl: a BEIR-style folder needs corpus.jsonl, queries.jsonl and qrels"
            )

    def read(self) -> Iterator[SourceItem]:
        with self._path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield self._item(line, number)

    def _item(self, line: str, number: int) -> SourceItem:
        try:
            passage = json.loads(line)
            key, title, text = str(passage["_id"]), str(passage.get("title") or ""), str(passage["text"])
        except (ValueError, KeyError, TypeError) as error:
            return FailedPage(key=f"line {number}", reason=f"not a passage: {error}")
        if not text.strip():
            return SkippedPage(key=key, reason="empty")
        return Page(source=self.name, key=key, title=title or key, text=text)
