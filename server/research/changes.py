"""One change of a fact, as a command or a request says it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from graph.errors import InputError, TrivetError
from graph.research import Fact
from server.research.review import Review

MOST_CHANGES = 1_000
"""At once."""
NOBODY = "somebody over HTTP"
"""Who does not say."""


class Action(StrEnum):
    """What is done with a fact."""

    KEEP = "keep"
    EDIT = "edit"
    REJECT = "reject"
    UNDO = "undo"
    DELETE = "delete"


@dataclass(frozen=True, slots=True, kw_only=True)
class FactChange:
    """What is None stays as it is."""

    id: str
    action: Action
    version: int | None = None
    """That was looked at; None: whatever it is by now."""
    by: str = ""
    evergreen: bool | None = None
    expires: str | None = None
    """"": never."""
    text: str | None = None
    quote: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """The fact as it is now (None: deleted), and what is amiss with an edit."""

    fact: Fact | None
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one of many: the fact as it is now (None: deleted), or why not."""

    id: str
    fact: Fact | None = None
    note: str = ""
    error: TrivetError | None = None


async def make_all(changes: Sequence[FactChange], review: Review) -> tuple[Outcome, ...]:
    """One after the other: one that is refused does not hold up the others. The same change twice is one.

    Where a service or the disk fails, the rest is not tried.
    """
    wanted = list(dict.fromkeys(changes))
    outcomes: list[Outcome] = []
    for place, change in enumerate(wanted):
        try:
            done = await make(change, review)
            outcomes.append(Outcome(id=change.id, fact=done.fact, note=done.note))
        except InputError as error:
            outcomes.append(Outcome(id=change.id, error=error))
        except TrivetError as error:
            outcomes += [Outcome(id=left.id, error=error) for left in wanted[place:]]
            break
    return tuple(outcomes)


async def make(change: FactChange, review: Review) -> Changed:
    """Raises `NotFoundError`, and `ConflictError` where somebody else was quicker."""
    by = change.by or NOBODY
    _check(change)
    match change.action:
        case Action.KEEP:
            kept = await review.keep(
                change.id, by=by, version=change.version, evergreen=change.evergreen, expires=change.expires
            )
            return Changed(fact=kept)
        case Action.EDIT:
            edited = await review.edit(change.id, by=by, version=change.version, text=change.text, quote=change.quote)
            return Changed(fact=edited.fact, note=edited.reason)
        case Action.REJECT:
            return Changed(fact=await review.reject(change.id, by=by, version=change.version))
        case Action.UNDO:
            return Changed(fact=await review.undo(change.id, by=by, version=change.version))
        case Action.DELETE:
            await review.delete(change.id, by=by, version=change.version)
            return Changed(fact=None)


def _check(change: FactChange) -> None:
    """What would be ignored is an error."""
    keeping = change.evergreen is not None or change.expires is not None
    if keeping and change.action is not Action.KEEP:
        raise InputError(f"`evergreen` and `expires` go with keep, not with {change.action.value}.")
    if (change.text is not None or change.quote is not None) and change.action is not Action.EDIT:
        raise InputError(f"`text` and `quote` go with edit, not with {change.action.value}.")
