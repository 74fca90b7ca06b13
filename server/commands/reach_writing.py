"""How `trivet write` reaches the writer: through the server that holds the store, or by opening it itself."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Protocol
from urllib.parse import quote

import msgspec

from config.settings import Settings
from server.commands.filling import serving_url
from server.commands.local import opened_library
from server.commands.remote import JOB_SECONDS, RemoteKnowledge, open_remote
from server.http.library_views import JobView
from server.http.writing_views import (
    PieceFormat,
    ResumeRequest,
    WriteRequest,
    WritingView,
    rendered,
    view_writing,
)
from server.writing.desk import PieceDesk
from server.writing.model import Progress

Show = Callable[[Progress], None]
PATH = "/api/write"


class ReachedWriting(Protocol):
    """Pieces, in the server's shapes."""

    async def begin(self, request: WriteRequest) -> str:
        """A new piece; its id."""
        ...

    async def write(self, piece_id: str, show: Show, *, resume: bool) -> WritingView:
        """Until it has ended; with `resume` what is missing is written first."""
        ...

    async def text(self, piece_id: str, form: PieceFormat) -> str: ...


@asynccontextmanager
async def reach_writing(settings: Settings) -> AsyncIterator[ReachedWriting]:
    """Raises `StoreBusyError` where the store is held by something that cannot be asked."""
    url = serving_url(settings)
    if url:
        async with open_remote(url, settings) as remote:
            yield RemoteWriting(remote)
        return
    async with opened_library(settings, command="write") as library:
        assert library.pieces is not None, "the store was opened with its pieces"
        yield LocalWriting(library.pieces)


class LocalWriting:
    """Over a store that is open here."""

    def __init__(self, desk: PieceDesk) -> None:
        self._desk = desk

    async def begin(self, request: WriteRequest) -> str:
        settled = await self._desk.settled(request.to_model())
        return (await self._desk.begin(uuid.uuid4().hex, settled)).id

    async def write(self, piece_id: str, show: Show, *, resume: bool) -> WritingView:
        await self._desk.carry_on(piece_id, show)
        return view_writing(await self._desk.piece(piece_id), None)

    async def text(self, piece_id: str, form: PieceFormat) -> str:
        return rendered((await self._desk.piece(piece_id)).piece, form)


class RemoteWriting:
    """Over HTTP. The job goes on if the command that waits for it does not."""

    def __init__(self, remote: RemoteKnowledge) -> None:
        self._remote = remote

    async def begin(self, request: WriteRequest) -> str:
        return msgspec.json.decode(await self._remote.post(PATH, request), type=JobView).id

    async def write(self, piece_id: str, show: Show, *, resume: bool) -> WritingView:
        view = await self._piece(piece_id)
        if resume and view.ended and view.state != "done":
            await self._remote.post(f"{_path(piece_id)}/resume", ResumeRequest())
            view = await self._piece(piece_id)
        while not view.ended:
            await asyncio.sleep(JOB_SECONDS)
            view = await self._piece(piece_id)
            if "stage" in view.progress:
                show(msgspec.convert(view.progress, Progress))
        return view

    async def text(self, piece_id: str, form: PieceFormat) -> str:
        return (await self._remote.send("GET", f"{_path(piece_id)}/piece?format={form}")).decode()

    async def _piece(self, piece_id: str) -> WritingView:
        return msgspec.json.decode(await self._remote.send("GET", _path(piece_id)), type=WritingView)


def _path(piece_id: str) -> str:
    return f"{PATH}/{quote(piece_id, safe='')}"
