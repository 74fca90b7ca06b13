"""Is a quotation really in a page, and as which of its words? Exact but for how text is written, never by likeness."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from graph.names import words
from server.answer.plain import INVISIBLE, REFERENCE

FEWEST_WORDS = 3
"""A quotation of fewer is found on any page."""
FEWEST_IN_A_PIECE = 2
MOST_PIECES = 6
LONGEST_SPAN = 1_500
"""Characters from the first word of a quotation to its last, what it leaves out included."""
LONGEST_QUOTE = 3_000
MOST_BEGINNINGS = 500
"""Places at which a quotation may begin that are tried: a page can repeat one word without end."""
LONGEST_CLUSTER = 16
PAUSE = re.compile(r"[\[(]?(?:\.\.\.+|…)[\])]?")
QUOTE_MARKS = frozenset("\"'`´“”„‟‘’‚‛«»‹›「」『』〝〞＂＇")
HYPHENS = frozenset("-‐‑﹣－")
DASHES = frozenset("‒–—―−﹘")
EDGES = "".join(QUOTE_MARKS) + " \t\r\n.,;:!?。、，；：！？()[]*_"
ENDERS = '.!?。！？"”’»)'


@dataclass(frozen=True, slots=True)
class Reading:
    """A text as it is compared, and where each of those characters begins and ends in the text itself."""

    text: str
    folded: str
    starts: tuple[int, ...]
    ends: tuple[int, ...]


def read(text: str) -> Reading:
    """Case, width, white space, kinds of quotation marks and dashes made alike; hyphens within words, with or without a
    line's end behind them, and reference marks like [12] count for nothing."""
    kept: list[tuple[str, int, int]] = []
    for character, start, end in _characters(text):
        last = kept[-1][0] if kept else " "
        if character == " " and last in " -‐":
            continue
        if character in "-‐":
            if last == " " and kept:
                kept.pop()
                character = "-"
            elif not last.isalpha():
                character = "-"
            if kept and kept[-1][0] in "-‐":
                continue
        elif last == "‐" and character.isalpha():
            kept.pop()
        kept.append((character, start, end))
    folded = "".join(character for character, _, _ in kept).replace("‐", "-")
    return Reading(text, folded, tuple(start for _, start, _ in kept), tuple(end for _, _, end in kept))


def find_quote(quote: str, page: Reading) -> str | None:
    """The page's own words for it, in one line, what the quotation leaves out as " … "; None where they are not there.

    A quotation is cut at its "…"; the pieces must stand in the page in their order and not far apart.
    """
    if len(quote) > LONGEST_QUOTE:
        return None
    parts = PAUSE.split(quote)
    pieces = [piece for part in parts if (piece := part.strip(EDGES))]
    counts = [len(words(piece)) for piece in pieces]
    if sum(counts) < FEWEST_WORDS or len(pieces) > MOST_PIECES:
        return None
    if len(pieces) > 1 and min(counts) < FEWEST_IN_A_PIECE:
        return None
    folded = [read(piece).folded.strip() for piece in pieces]
    spans = _spans(folded, page) if all(folded) else None
    if spans is None:
        return None
    closed = parts[-1].rstrip().endswith(tuple(ENDERS))
    return " … ".join(_words_of(page, start, end, closed=closed and (start, end) == spans[-1]) for start, end in spans)


def _spans(pieces: Sequence[str], page: Reading) -> list[tuple[int, int]] | None:
    """Where the pieces stand in the folded page: the first place at which all follow closely enough."""
    at = -1
    for _ in range(MOST_BEGINNINGS):
        at = _next(pieces[0], page.folded, at + 1, len(page.folded))
        if at < 0:
            return None
        spans = [(at, at + len(pieces[0]))]
        for piece in pieces[1:]:
            found = _next(piece, page.folded, spans[-1][1], at + LONGEST_SPAN)
            if found < 0:
                break
            spans.append((found, found + len(piece)))
        if len(spans) == len(pieces) and spans[-1][1] - at <= LONGEST_SPAN:
            return spans
    return None


def _next(piece: str, text: str, start: int, limit: int) -> int:
    """The first place of whole words at or after `start`; -1 where there is none before `limit`."""
    at = text.find(piece, start, limit)
    while at >= 0 and not (_begins(text, at) and _ends(text, at + len(piece))):
        at = text.find(piece, at + 1, limit)
    return at


def _begins(text: str, at: int) -> bool:
    before, first = text[at - 1 : at], text[at]
    if first.isdigit() and before and before in ".,-":
        return before != "-" and not text[at - 2 : at - 1].isdigit()
    return not (_spelled(before) and _spelled(first))


def _ends(text: str, end: int) -> bool:
    last, after = text[end - 1], text[end : end + 1]
    if last.isdigit() and after and after in ".,":
        return not text[end + 1 : end + 2].isdigit()
    return not (_spelled(last) and _spelled(after))


def _spelled(character: str) -> bool:
    """Whether it is part of a word that has more characters: in scripts without spaces each is a word of its own."""
    return character.isalnum() and unicodedata.category(character) != "Lo"


def _words_of(page: Reading, start: int, end: int, *, closed: bool) -> str:
    first, last = page.starts[start], page.ends[end - 1]
    while closed and page.text[last : last + 1] and page.text[last] in ENDERS:
        last += 1
    return " ".join(page.text[first:last].split())


def _characters(text: str) -> Iterator[tuple[str, int, int]]:
    """Each compared character with the stretch it stands for; marks belong to the letter before them."""
    left_out = {
        at for pattern in (INVISIBLE, REFERENCE) for found in pattern.finditer(text) for at in range(*found.span())
    }
    at = 0
    while at < len(text):
        end = at + 1
        while (
            end < len(text) and end - at < LONGEST_CLUSTER and text[end] > "\u02ff" and unicodedata.combining(text[end])
        ):
            end += 1
        if at not in left_out:
            for character in _folded(text[at:end]):
                yield character, at, end
        at = end


def _folded(cluster: str) -> str:
    if cluster in QUOTE_MARKS:
        return "'"
    if cluster in HYPHENS:
        return "‐"
    if cluster in DASHES:
        return "-"
    if cluster.isspace():
        return " "
    if cluster.isascii():
        return cluster.lower()
    normal = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", cluster).casefold())
    return normal.replace(" ", "") or cluster
