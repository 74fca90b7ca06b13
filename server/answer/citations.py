"""Citations in a text that arrives in pieces: `[[n]]` becomes `[n]` where evidence n exists, and nothing where not.

Also taken: `[n]`, `【n】`, `[[1, 4]]`, `[[1-3]]`, `[[1], [4]]`, with spaces. Code is left alone. What the caller gets
never depends on how the text was cut, and no half marker ever leaves. White space around the whole text is dropped.
A marker never turns into a link or an image of the model's own: `[1](https://…)` becomes `[1] (https://…)`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

OPENERS = "[【"
CLOSERS = "]】"
IN_GROUP = frozenset("[]【】0123456789,;，、；-–— ")
LONGEST_GROUP = 64
"""Characters; a longer bracket, or run of backticks, is cut there."""
LONGEST_CODE = 400
"""Characters a code span may have; after that, or at an empty line, its backticks were only backticks."""
LONGEST_SPACE = 1000
ITEM = re.compile(r" *([0-9]{1,4}) *(?:[-–—] *([0-9]{1,4}) *)?")
SEPARATOR = re.compile(r"[,;，、；]")
SPECIAL = re.compile(r"[\[【`~!\s]")
"""Where something may begin; all before it is text."""
SPACE = re.compile(rf"\s{{1,{LONGEST_SPACE}}}")
RUN = re.compile(rf"`{{1,{LONGEST_GROUP}}}|~{{1,{LONGEST_GROUP}}}")
EMPTY_LINE = re.compile(r"\n[ \t]*\n")
CLOSING_LINE = re.compile(r" {0,3}(`*|~*)[ \t]*")


@dataclass(frozen=True, slots=True)
class Marker:
    """`[number]` in the answer: its text stands at `start` … `end`."""

    number: int
    start: int
    end: int

    @property
    def text(self) -> str:
        return f"[{self.number}]"


Piece = str | Marker
Step = tuple[int, Sequence[str | int]]
"""How many characters are used up, and what comes of them: text, or the number of a marker."""


class CitationSanitizer:
    """Feed it text as it comes; `count` pieces of evidence exist, numbered from 1.

    What cannot be decided yet is held back: a bracket that may become a marker, a code span that may close, white
    space that may come before a dropped marker. Every decision is made on a bounded stretch of text, and is the same
    when more text is known; that is why the result does not depend on the cuts.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._held = ""
        self._length = 0
        self._indent: int | None = 0
        """Spaces since the line began; None once there was anything else."""
        self._fence = ""
        """What opened the code block we are in."""
        self._after_marker = False
        self._marker_leads_line = False

    def feed(self, text: str) -> list[Piece]:
        self._held += text
        return self._drain(final=False)

    def close(self) -> list[Piece]:
        """What was held back; nothing may be fed after it."""
        return self._drain(final=True)

    def _drain(self, *, final: bool) -> list[Piece]:
        pieces: list[Piece] = []
        while self._held:
            step = self._in_block(final) if self._fence else self._step(final)
            if step is None:
                break
            taken, out = step
            self._follow_line(self._held[:taken])
            self._held = self._held[taken:]
            for part in out:
                self._append(part, pieces)
        return pieces

    def _append(self, part: str | int, pieces: list[Piece]) -> None:
        start = self._length
        if isinstance(part, int):
            self._length += len(f"[{part}]")
            pieces.append(Marker(part, start, self._length))
            return
        self._length += len(part)
        if pieces and isinstance(last := pieces[-1], str):
            pieces[-1] = last + part
        else:
            pieces.append(part)

    def _follow_line(self, taken: str) -> None:
        rest = taken.rpartition("\n")[2]
        before = 0 if "\n" in taken else self._indent
        self._indent = before + len(rest) if before is not None and not rest.strip(" ") else None

    def _step(self, final: bool) -> Step | None:
        """One decision outside code blocks; None where more text is needed."""
        after_marker, self._after_marker = self._after_marker, False
        head = self._held[0]
        if after_marker and (head == "(" or (head == ":" and self._marker_leads_line)):
            return 1, [f" {head}"]
        if head.isspace():
            return self._white_space(final)
        if head in OPENERS:
            return self._bracket(final)
        if head in "`~":
            return self._ticks(final)
        if head == "!":
            return self._exclamation(final)
        found = SPECIAL.search(self._held)
        end = found.start() if found else len(self._held)
        return end, [self._held[:end]]

    def _white_space(self, final: bool) -> Step | None:
        found = SPACE.match(self._held)
        assert found is not None
        end = found.end()
        if self._length == 0:
            return end, []
        if end == len(self._held) and end < LONGEST_SPACE:
            return (end, []) if final else None
        if self._held[end : end + 1] in tuple(OPENERS):
            group = self._group(end, final)
            if group is None:
                return None
            length, numbers = group
            if length and not numbers and "\n" not in found[0]:
                return end + length, []
        return end, [found[0]]

    def _bracket(self, final: bool) -> Step | None:
        group = self._group(0, final)
        if group is None:
            return None
        length, numbers = group
        if not length:
            return 1, [self._held[0]]
        if numbers:
            self._after_marker = True
            self._marker_leads_line = self._indent is not None
        return length, numbers

    def _group(self, start: int, final: bool) -> tuple[int, list[int]] | None:
        """Length of the marker that starts there and the numbers of it that exist; length 0 where it is only text."""
        depth = 0
        window = self._held[start : start + LONGEST_GROUP]
        for position, character in enumerate(window):
            if character not in IN_GROUP:
                return 0, []
            depth += (character in OPENERS) - (character in CLOSERS)
            if depth == 0:
                numbers = self._numbers(window[: position + 1])
                return (0, []) if numbers is None else (position + 1, numbers)
        return (0, []) if final or len(window) == LONGEST_GROUP else None

    def _numbers(self, group: str) -> list[int] | None:
        """Those that exist, in order and once each; None if this is no citation."""
        inner = re.sub(r"[\[\]【】]", ",", group)
        items = [item for item in SEPARATOR.split(inner) if item.strip()]
        found = [ITEM.fullmatch(item) for item in items]
        if not items or None in found:
            return None
        numbers: dict[int, None] = {}
        for match in found:
            assert match is not None
            first, last = int(match[1]), int(match[2] or match[1])
            if group[1] not in OPENERS and group[0] == "[" and max(first, last) > 999:
                return None  # "[2020]", "[1914-1918]": a year in brackets
            low, high = sorted((first, last))
            numbers.update(dict.fromkeys(range(max(low, 1), min(high, self._count) + 1)))
        return list(numbers)

    def _exclamation(self, final: bool) -> Step | None:
        """An image would be fetched by whoever shows the answer, so `![` loses its mark; "Yes![1]" keeps it."""
        following = self._held[1:2]
        if not following:
            return (1, ["!"]) if final else None
        if following != "[":
            return 1, ["!"]
        group = self._group(1, final)
        if group is None:
            return None
        return 1, ["!"] if group[0] else []

    def _ticks(self, final: bool) -> Step | None:
        found = RUN.match(self._held)
        assert found is not None
        run = found[0]
        if len(run) == len(self._held) and len(run) < LONGEST_GROUP and not final:
            return None
        if len(run) >= 3 and self._indent is not None and self._indent <= 3:
            opens = True if run[0] == "~" else self._opens_block(len(run), final)
            if opens is None:
                return None
            if opens:
                self._fence = run
                return len(run), [run]
        return (len(run), [run]) if run[0] == "~" else self._code_span(run, final)

    def _opens_block(self, start: int, final: bool) -> bool | None:
        """Whether no backtick follows on the line, as otherwise it is a code span."""
        window = self._held[start : start + LONGEST_CODE]
        for character in window:
            if character in "`\n":
                return character == "\n"
        return True if final or len(window) == LONGEST_CODE else None

    def _code_span(self, run: str, final: bool) -> Step | None:
        start = len(run)
        window = self._held[start : start + LONGEST_CODE]
        empty_line = EMPTY_LINE.search(window)
        last = empty_line.start() if empty_line else len(window)
        for found in RUN.finditer(window, 0, last):
            if found[0] == run and (found.end() < len(window) or final):
                return start + found.end(), [self._held[: start + found.end()]]
        undecided = not (final or empty_line or len(window) == LONGEST_CODE)
        return None if undecided else (start, [run])

    def _in_block(self, final: bool) -> Step | None:
        """A line of a code block, or what there is of it; the block ends with a line like the one that opened it."""
        end = self._held.find("\n")
        line = self._held if end < 0 else self._held[:end]
        whole = self._held if end < 0 else self._held[: end + 1]
        if self._indent != 0 or len(line) >= LONGEST_CODE:
            return len(whole), [whole]
        found = CLOSING_LINE.fullmatch(line)
        if found is None:
            return len(whole), [whole]
        if end < 0 and not final:
            return None
        if found[1].startswith(self._fence):
            self._fence = ""
            return len(line), [line]
        return len(whole), [whole]
