"""Pieces that outlive who writes them: every finished section is kept, and one that broke off is gone on with."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

import msgspec

from graph.errors import NotFoundError
from graph.pieces import KeptPiece, PieceStore
from server.backends import Backends
from server.writing.model import (
    Piece,
    PieceDone,
    Progress,
    SectionDone,
    SectionResult,
    WritingEvent,
    WritingRequest,
)
from server.writing.numbering import Numbering
from server.writing.run import token_report
from server.writing.saved import request_from_json, section_from_json
from server.writing.write import check_request, write


@dataclass(frozen=True, slots=True, kw_only=True)
class FiledPiece:
    """A piece with where it stands. `ended`: `piece` is the whole of it, and not only what there is so far."""

    id: str
    request: WritingRequest
    piece: Piece
    ended: bool
    job: str
    created: str
    changed: str


class PieceDesk:
    """What commands, jobs and HTTP call."""

    def __init__(self, backends: Backends, pieces: PieceStore) -> None:
        self._backends = backends
        self.pieces = pieces

    async def settled(self, request: WritingRequest) -> WritingRequest:
        """The request with what the settings leave open, so that it is the same when it is gone on with. Raises what
        `write` raises before its first event; nothing is searched for yet."""
        await check_request(request, self._backends)
        return replace(request, persona=self._backends.persona(request.persona).name)

    def write(self, request: WritingRequest) -> AsyncGenerator[WritingEvent, None]:
        """A piece of which nothing is kept."""
        return write(request, self._backends)

    async def begin(self, piece_id: str, request: WritingRequest, *, job: str = "") -> FiledPiece:
        """File it; one that is there stays as it is."""
        text = msgspec.json.encode(request).decode()
        await asyncio.to_thread(lambda: self.pieces.begin(piece_id, text, job=job))
        return await self.piece(piece_id)

    async def reopen(self, piece_id: str, *, job: str) -> None:
        await asyncio.to_thread(lambda: self.pieces.reopen(piece_id, job=job))

    async def piece(self, piece_id: str) -> FiledPiece:
        """Raises `NotFoundError`, and `InputError` where it was kept by another version."""
        return filed(await self._kept(piece_id))

    async def carry_on(self, piece_id: str, report: Callable[[Progress], None]) -> Piece:
        """Write what is missing of it. One that is done is left alone."""
        kept = await self._kept(piece_id)
        before = filed(kept)
        if before.ended and before.piece.state == "done":
            return before.piece
        async with aclosing(write(before.request, self._backends, done=sections_of(kept))) as events:
            async for event in events:
                if isinstance(event, Progress):
                    report(event)
                elif isinstance(event, SectionDone):
                    await self._keep(piece_id, event.section)
                elif isinstance(event, PieceDone):
                    text = msgspec.json.encode(event.piece).decode()
                    await asyncio.to_thread(self.pieces.end, piece_id, text)
                    return event.piece
        raise AssertionError("a piece ends with PieceDone")

    async def _kept(self, piece_id: str) -> KeptPiece:
        kept = await asyncio.to_thread(self.pieces.piece, piece_id)
        if kept is None:
            raise NotFoundError(f"There is no piece {piece_id[:100]!r}; the oldest are forgotten.")
        return kept

    async def _keep(self, piece_id: str, section: SectionResult) -> None:
        text = msgspec.json.encode(section).decode()
        await asyncio.to_thread(self.pieces.put_section, piece_id, section.number, text)


def filed(kept: KeptPiece) -> FiledPiece:
    """Raises `InputError` where it was kept by another version."""
    request = request_from_json(msgspec.json.decode(kept.request))
    return FiledPiece(
        id=kept.id,
        request=request,
        piece=msgspec.json.decode(kept.piece, type=Piece) if kept.piece else piece_so_far(request, sections_of(kept)),
        ended=bool(kept.piece),
        job=kept.job,
        created=kept.created,
        changed=kept.changed,
    )


def sections_of(kept: KeptPiece) -> list[SectionResult]:
    return [section_from_json(msgspec.json.decode(one)) for one in kept.sections]


def piece_so_far(request: WritingRequest, sections: Sequence[SectionResult]) -> Piece:
    """What there is of a piece that is being written, or broke off."""
    numbering = Numbering()
    told = tuple(numbering.section(one) for one in sections)
    failed = next((one for one in told if one.state == "failed"), None)
    why = f"section {failed.number} ({failed.heading!r}) failed: {failed.reason}" if failed else "it is not finished"
    return Piece(
        topic=" ".join(request.topic.split()),
        kind=request.kind,
        persona=request.persona,
        model="",
        language=request.language,
        state="partial",
        reason=why,
        sections=told,
        references=numbering.references,
        tokens=token_report(told),
    )
