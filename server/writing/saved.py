"""Sections and pieces to JSON and back, so that a piece can be gone on with by another process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from graph.errors import InputError
from server.writing.model import Piece, SectionResult, WritingRequest

T = TypeVar("T")


def to_json(value: Piece | SectionResult | WritingRequest) -> Any:
    """Plain dicts, lists, numbers and strings."""
    return msgspec.to_builtins(value)


def piece_json(piece: Piece) -> str:
    """For people and programs: indented."""
    return msgspec.json.format(msgspec.json.encode(piece), indent=2).decode() + "\n"


def sections_json(sections: Sequence[SectionResult]) -> str:
    return msgspec.json.encode(list(sections)).decode()


def section_from_json(value: Any) -> SectionResult:
    """What `to_json` made of it. Raises `InputError` where it is anything else."""
    return _read(value, SectionResult, "section")


def request_from_json(value: Any) -> WritingRequest:
    """Raises `InputError`."""
    return _read(value, WritingRequest, "request for a piece")


def sections_from_json(text: str | bytes) -> tuple[SectionResult, ...]:
    """What `sections_json` wrote, or the sections of a whole piece's JSON. Raises `InputError`."""
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise InputError(f"What was saved of the piece is no JSON ({error}); begin the piece anew.") from error
    listed = found.get("sections") if isinstance(found, dict) else found
    if not isinstance(listed, list):
        raise InputError("What was saved of the piece has no sections in it; begin the piece anew.")
    return tuple(section_from_json(one) for one in listed)


def _read(value: Any, kind: type[T], name: str) -> T:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise InputError(f"This is no saved {name}: {error}; begin the piece anew.") from error
