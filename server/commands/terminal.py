"""Writing for people and for programs: wrapped and coloured on a terminal, plain in a pipe, one JSON with `--json`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from server.commands.sentences import clean

MAX_WIDTH = 100
"""Longer lines are hard to read."""


def colours() -> Literal["auto"] | None:
    """None, so no styles at all, where NO_COLOR is set; rich itself would still print bold."""
    return None if os.environ.get("NO_COLOR") else "auto"


class Printer:
    """One output stream. Text is never markup: titles may contain `[red]`."""

    def __init__(self, *, to_stderr: bool = False) -> None:
        self._console = Console(
            file=sys.stderr if to_stderr else sys.stdout, color_system=colours(), highlight=False, markup=False
        )
        self.is_terminal = self._console.is_terminal
        self._width = min(self._console.width, MAX_WIDTH)

    def line(self, *parts: str | tuple[str, str], indent: int = 0) -> None:
        """One paragraph of texts, each plain or with a style; wrapped with its indent only on a terminal."""
        text = Text()
        for part in parts:
            words, style = (part, "") if isinstance(part, str) else part
            text.append(clean(words), style=style)
        if self.is_terminal:
            self._console.print(Padding(text, (0, 0, 0, indent)), width=self._width)
        else:
            # Not through the console: it would break lines at 80 columns that a program may want to read.
            print(" " * indent + text.plain, file=self._console.file)

    def heading(self, words: str) -> None:
        self.line()
        self.line((words, "bold"))

    def pairs(self, rows: Iterable[tuple[str, str]], indent: int = 0) -> None:
        """Names and values in two columns."""
        rows = list(rows)
        width = max((len(name) for name, _ in rows), default=0)
        for name, value in rows:
            self.line((f"{name:<{width}}  ", "dim"), value, indent=indent)


def print_json(document: object) -> None:
    """One document on stdout; dataclasses become objects."""
    print(msgspec.json.format(msgspec.json.encode(document)).decode())


def fields_of(record: object, **more: object) -> Mapping[str, object]:
    """A dataclass as a mapping, with more fields."""
    return {**msgspec.to_builtins(record), **more}
