"""What a model answered when asked for facts, read for all that can be read of it. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

LONGEST_ANSWER = 40_000
MOST_OBJECTS = 200
MOST_READ = 20
"""Pairs that are looked at; a model may go on and on."""
FACT_KEYS = ("fact", "statement", "claim", "text")
QUOTE_KEYS = ("quote", "quotation", "evidence", "source_quote", "supporting_quote", "source")
DECODER = json.JSONDecoder(strict=False)  # a model breaks lines within strings


@dataclass(frozen=True, slots=True)
class Pair:
    """A fact and the quotation that goes with it, as the model wrote them."""

    fact: str
    quote: str


@dataclass(frozen=True, slots=True)
class Answered:
    """The pairs, and where there is none what is wrong, as a part of a sentence."""

    pairs: tuple[Pair, ...]
    problem: str = ""


def read_answer(text: str) -> Answered:
    """Whole objects are read wherever they stand: in a list, a code block, in prose, before the answer was cut off."""
    text = text[:LONGEST_ANSWER]
    if not text.strip():
        return Answered((), "it was empty")
    keys: dict[str, None] = {}
    pairs: list[Pair] = []
    objects = list(_objects(text))
    for value in objects:
        if pair := _pair(value):
            pairs.append(pair)
        else:
            keys |= dict.fromkeys(list(value)[:6])
        if len(pairs) == MOST_READ:
            break
    if pairs:
        return Answered(tuple(pairs))
    return Answered((), _problem(text, len(objects), [*keys]))


def _problem(text: str, found: int, keys: list[str]) -> str:
    if found:
        named = ", ".join(repr(key[:30]) for key in keys[:6]) or "none"
        return f'its objects have other keys ({named}) than "fact" and "quote", or no text in them'
    if "".join(text.replace("```json", "").replace("```", "").split()) in ("[]", "{}"):
        return "it was an empty list"
    if "{" in text or "[" in text:
        return "it is no valid JSON"
    return "it is prose, not JSON"


def _objects(text: str) -> Iterator[dict[str, object]]:
    """The innermost whole objects, in order."""
    at = text.find("{")
    for _ in range(MOST_OBJECTS):
        if at < 0:
            return
        try:
            value, at = DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            at += 1
        else:
            yield from _within(value)
        at = text.find("{", at)


def _within(value: object) -> Iterator[dict[str, object]]:
    """`{"facts": [{…}]}` is its list; an object without one is itself."""
    waiting: list[object] = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting.extend(reversed(value))
        elif isinstance(value, dict):
            inner = [one for one in value.values() if _holds_objects(one)]
            waiting.extend(reversed(inner))
            if not inner:
                yield value


def _holds_objects(value: object) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and any(isinstance(one, dict) for one in value))


def _pair(value: dict[str, object]) -> Pair | None:
    named = {key.strip().casefold().replace(" ", "_"): text for key, one in value.items() if (text := _text(one))}
    fact = next((named[key] for key in FACT_KEYS if key in named), "")
    quote = next((named[key] for key in QUOTE_KEYS if key in named), "")
    return Pair(fact, quote) if fact and quote else None


def _text(value: object) -> str:
    """A list of texts is one quotation with what lies between left out."""
    if isinstance(value, list):
        return " … ".join(part.strip() for part in value if isinstance(part, str) and part.strip())
    return value.strip() if isinstance(value, str) else ""
