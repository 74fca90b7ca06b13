"""A long piece from beginning to end: plan, evidence for every section, words, checks (mission.md §7)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from server.backends import Backends
from server.writing.model import Piece, PieceDone, SectionResult, WritingEvent, WritingRequest


async def whole_piece(request: WritingRequest, backends: Backends, *, done: Sequence[SectionResult] = ()) -> Piece:
    """The piece at once; the same as the last event of `write`."""
    async with aclosing(write(request, backends, done=done)) as events:
        async for event in events:
            if isinstance(event, PieceDone):
                return event.piece
    raise AssertionError("a piece ends with PieceDone")


async def write(
    request: WritingRequest, backends: Backends, *, done: Sequence[SectionResult] = ()
) -> AsyncGenerator[WritingEvent, None]:
    """Events of a piece, `PieceDone` last. `done`: sections saved before, which are kept as they are.

    Raises before the first event: `QuestionError` (topic empty, too long, refused), `InputError` (outline),
    `NotFoundError` (persona), `ConflictError` (`done` is of another piece), `SettingsError` (the window is too small).
    A model that fails ends the piece with `state` "partial" and raises nothing. Closing it stops all work.
    """
    raise NotImplementedError
    yield  # an async generator
