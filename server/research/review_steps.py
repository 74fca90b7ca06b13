"""One step of a fact's review and the way back, and what a person may give with a decision. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

from graph.errors import InputError
from graph.names import words
from graph.research import Fact, FactState
from graph.research_rules import moment
from graph.storable import storable
from server.answer.plain import visible
from server.research.facts import plain

LONGEST_TEXT = 2_000
LONGEST_NAME = 100
DAY = len("2027-01-31")


def changed(before: Fact, after: Fact, by: str) -> Fact:
    """With a note of what the change replaced."""
    now = _as_text(after)
    undoes = {name: value for name, value in _as_text(before).items() if now[name] != value}
    return replace(after, changed_by=by, undoes=undoes)


def restored(fact: Fact, by: str) -> Fact:
    """As it was before its last change. There is no way back from that."""
    said = {**_as_text(fact), **fact.undoes}
    return replace(
        fact,
        state=FactState(said["state"]),
        text=said["text"],
        quote=said["quote"],
        expires=said["expires"],
        evergreen=bool(said["evergreen"]),
        extractive=bool(said["extractive"]),
        support=float(said["support"]),
        changed_by=by,
        undoes={},
    )


def _as_text(fact: Fact) -> Mapping[str, str]:
    """All that a review can change."""
    return {
        "state": fact.state.value,
        "text": fact.text,
        "quote": fact.quote,
        "expires": fact.expires,
        "evergreen": "true" if fact.evergreen else "",
        "extractive": "true" if fact.extractive else "",
        "support": repr(fact.support),
    }


def name_of(by: str) -> str:
    """Of who decides, in one line. Raises `InputError`."""
    name = " ".join(visible(storable(by)).split())[:LONGEST_NAME]
    if not name:
        raise InputError("A decision needs the name of who makes it.")
    return name


def text_of(given: str) -> str:
    """A fact in a person's words, as plain text. Raises `InputError`."""
    written = plain(given)
    if not words(written) or len(written) > LONGEST_TEXT:
        raise InputError(f"A fact needs a text of one to {LONGEST_TEXT} characters with a word in it.")
    return written


def expiry_of(given: str, now: datetime) -> str:
    """RFC 3339 in UTC, "" for never; a day alone lasts to its end. Raises `InputError` for what is past."""
    given = given.strip()
    if len(given) == DAY and given.count("-") == 2:
        given += "T23:59:59Z"
    seconds = moment(given)
    if seconds is None:
        return ""
    if seconds <= now.timestamp():
        raise InputError(f"{given} is past: a fact that expires then would answer nothing; give a later time.")
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
