"""What every research store says alike: the steps of a topic, whose look at a fact is out of date, when it expires."""

from __future__ import annotations

from datetime import UTC, datetime

from graph.errors import ConflictError, InputError, NotFoundError
from graph.research import TRANSITIONS, Fact, Topic, TopicState


def topic_is_there(slug: str) -> ConflictError:
    return ConflictError(f"There is a topic {slug[:100]!r} already; choose another name, or remove that one first.")


def no_topic(slug: str) -> NotFoundError:
    return NotFoundError(f"There is no topic {slug[:100]!r}; `trivet research list` names those there are.")


def no_fact(fact_id: str) -> NotFoundError:
    return NotFoundError(f"There is no fact {fact_id[:100]!r}; it may have been deleted meanwhile.")


def check_step(topic: Topic, state: TopicState) -> None:
    """Raises `ConflictError` where a topic cannot go there from where it is."""
    if state not in TRANSITIONS[topic.state]:
        steps = ", ".join(sorted(TRANSITIONS[topic.state]))
        raise ConflictError(f"Topic {topic.slug!r} is {topic.state} and cannot become {state}, only {steps}.")


def check_version(fact_id: str, found: Fact | None, version: int) -> None:
    """Raises `NotFoundError` where it is gone, `ConflictError` where it is not what was looked at."""
    if found is None:
        raise no_fact(fact_id)
    if found.version != version:
        who = f" by {found.changed_by}" if found.changed_by else ""
        raise ConflictError(
            f"Fact {fact_id[:100]!r} was changed{who} meanwhile (it is version {found.version}, not {version}); "
            "look at it again."
        )


def moment(expires: str) -> float | None:
    """Seconds since 1970 of an expiry, in UTC where it names no zone; None for never. Raises `InputError`."""
    if not expires:
        return None
    try:
        at = datetime.fromisoformat(expires)
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise InputError(f"{expires[:100]!r} is no time to expire at; write it like 2027-01-31T12:00:00Z.") from None
