"""What a thinking model says to itself is no part of its answer: `<think>…</think>` goes, however it is cut."""

from __future__ import annotations

import re

OPEN = re.compile(r"<(?:think|thinking|thought|reasoning)>", re.IGNORECASE)
CLOSE = re.compile(r"</(?:think|thinking|thought|reasoning)>\s*", re.IGNORECASE)
LONGEST_TAG = len("</reasoning>")
TAG_START = re.compile(r"</?[a-zA-Z]{0,9}$")


class ThinkFilter:
    """Feed it pieces; it lets through what is not thought.

    A tag opens a thought only at the start of a line, so that an answer may speak of the tag. A thought that is
    never closed is all that came.
    """

    def __init__(self) -> None:
        self._held = ""
        self._thinking = False
        self._line_start = True
        self._skip_space = False

    def feed(self, text: str) -> str:
        self._held += text
        return self._drain(final=False)

    def close(self) -> str:
        return self._drain(final=True)

    def _drain(self, *, final: bool) -> str:
        out: list[str] = []
        while self._held:
            if self._thinking:
                if not self._leave(final):
                    break
                continue
            if self._skip_space:
                self._held = self._held.lstrip()
                self._skip_space = not self._held
                continue
            taken = self._plain(final)
            if taken == 0:
                break
            out.append(self._take(taken))
        return "".join(text for text in out if text)

    def _leave(self, final: bool) -> bool:
        """Look for the end of the thought; whether there is something to go on with."""
        found = CLOSE.search(self._held)
        if found is None:
            self._held = "" if final else self._held[-LONGEST_TAG:]
            return False
        self._held = self._held[found.end() :]
        self._thinking = False
        self._skip_space = True
        return bool(self._held)

    def _plain(self, final: bool) -> int:
        """How many characters at the front are decided; 0 if more must come first."""
        at = self._held.find("<")
        if at != 0:
            return at if at > 0 else len(self._held)
        if not final and TAG_START.fullmatch(self._held):
            return 0
        for tag in (OPEN, CLOSE):
            if found := tag.match(self._held):
                return found.end()
        return 1

    def _take(self, length: int) -> str:
        text, self._held = self._held[:length], self._held[length:]
        if text[0] == "<" and length > 1:
            if CLOSE.match(text):
                self._skip_space = True
                return ""
            if self._line_start:
                self._thinking = True
                return ""
        tail = text.rpartition("\n")
        self._line_start = not tail[2].strip() and (bool(tail[1]) or self._line_start)
        return text
