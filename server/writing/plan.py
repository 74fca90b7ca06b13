"""Which sections a piece has, what each is about and what is searched for it (mission.md §7.1)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from config.settings import WritingSettings
from graph.errors import InputError
from graph.names import words
from server.answer.plain import visible
from server.focus import FOCUS_LISTS, FORMAL, KINDS, focus_words
from server.writing.model import PlannedSection, WritingRequest

MOST_SECTIONS = 50
HEADING_CHARS = 200
MOST_RESULTS = 50
MARK = re.compile(r"\A\s{0,20}(?:#{1,6}(?=\s|$)|[-*+•](?=\s|$)|\d{1,3}[.)](?=\s|$))")
"""What a list or a heading begins with in Markdown."""


def plan_of(
    topic: str, request: WritingRequest, settings: WritingSettings, language: str
) -> tuple[PlannedSection, ...]:
    """The sections in order. Raises `InputError` for an unknown kind and for an outline that is none."""
    if request.kind not in KINDS:
        raise InputError(f"There is no kind of piece {str(request.kind)[:60]!r}; the kinds are {', '.join(KINDS)}.")
    if request.outline:
        headings = checked_headings([(number, heading) for number, heading in enumerate(request.outline, 1)], "heading")
        return tuple(_planned(n, heading, heading, topic, settings, own=True) for n, heading in enumerate(headings, 1))
    planned = []
    for number, focus in enumerate(FOCUS_LISTS[request.kind], 1):
        said = focus_words(focus, language)
        section = _planned(number, said[:1].upper() + said[1:], said, topic, settings, formal=focus == FORMAL)
        planned.append(section)
    return tuple(planned)


def _planned(
    number: int,
    heading: str,
    focus: str,
    topic: str,
    settings: WritingSettings,
    *,
    own: bool = False,
    formal: bool = False,
) -> PlannedSection:
    """The first section is searched broadly, by the topic alone; a caller's own first heading is searched too."""
    focused = f"{topic} {focus}"
    if number == 1:
        queries = (topic, focused) if own else (topic,)
        results = min(2 * settings.results, MOST_RESULTS)
        return PlannedSection(
            number=1, heading=heading, focus=focus, queries=queries, tokens=settings.first_tokens, results=results
        )
    tokens = settings.formal_tokens if formal else settings.section_tokens
    return PlannedSection(
        number=number, heading=heading, focus=focus, queries=(focused,), tokens=tokens, results=settings.results
    )


def read_outline(text: str) -> tuple[str, ...]:
    """Headings from a file, one on each line; marks of lists and headings are taken off, blank lines left out.

    Raises `InputError` that names the line.
    """
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    return checked_headings([(number, MARK.sub("", line, count=1)) for number, line in lines], "line")


def checked_headings(headings: Sequence[tuple[int, str]], place: str) -> tuple[str, ...]:
    """`headings`: each with the number of its line. One to fifty, none empty, no two alike."""
    if not headings:
        raise InputError("The outline has no heading; write one on each line.")
    if len(headings) > MOST_SECTIONS:
        raise InputError(f"The outline has {len(headings)} headings; a piece may have {MOST_SECTIONS}.")
    seen: dict[str, int] = {}
    kept = []
    for number, raw in headings:
        heading = " ".join(visible(raw).split())
        key = " ".join(words(heading))
        if not key:
            raise InputError(f"The outline's {place} {number} is an empty heading; name the section or leave it out.")
        if len(heading) > HEADING_CHARS:
            raise InputError(f"The outline's {place} {number} has {len(heading)} characters; {HEADING_CHARS} may be.")
        if key in seen:
            raise InputError(
                f"The outline's {place} {number} repeats {place} {seen[key]} ({heading[:60]!r}); each section needs a "
                "heading of its own."
            )
        seen[key] = number
        kept.append(heading)
    return tuple(kept)
