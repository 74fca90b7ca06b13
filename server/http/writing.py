"""`/api/write`: long pieces, as jobs whose sections are kept."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Annotated

from litestar import Controller, Response, delete, get, post
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import FromPath, JSONBody, QueryParameter
from litestar.response import Stream
from msgspec import Struct

from graph.errors import ConflictError, NotFoundError
from graph.jobs import ENDED, Job
from server.http.event_stream import MEDIA_TYPE, encoded, event_stream, named_event
from server.http.librarian import Librarian
from server.http.library import IdempotencyKey, librarian_of
from server.http.library_views import JobView, view_job
from server.http.query import PROBLEMS, UNKNOWN_PERSONA, problem_response
from server.http.requests import ApiRequest
from server.http.work import Serving, ServingDependency
from server.http.writing_views import (
    PieceFormat,
    ResumeRequest,
    SectionView,
    WriteRequest,
    WritingView,
    rendered,
    state_of,
    view_section,
    view_writing,
)
from server.writing.desk import FiledPiece, PieceDesk
from server.writing.html import POLICY
from server.writing_jobs import WRITE

WATCH_SECONDS = 0.5
UNKNOWN_PIECE = {404: problem_response("There is no such piece.")}
KEY_USED = {409: problem_response("The Idempotency-Key is another request's.")}
IS_DONE = {409: problem_response("The piece is done.")}
MEDIA_TYPES = {"md": "text/markdown", "html": "text/html", "json": "application/json"}
RENDERED = {200: ResponseSpec(str, description="The piece.", media_type="text/markdown", generate_examples=False)}
NOT_RUN = {"content-security-policy": f"{POLICY}; sandbox", "x-content-type-options": "nosniff"}
Form = Annotated[PieceFormat, QueryParameter(name="format", description="Markdown, HTML or JSON.")]


class WritingController(Controller):
    """Pieces. Writing one is a job: the answer is 202, and the job's id is the piece's."""

    path = "/api/write"
    tags = ("writing",)

    @post(status_code=202, summary="Write a piece", responses=PROBLEMS | UNKNOWN_PERSONA | KEY_USED)
    async def write(
        self, data: JSONBody[WriteRequest], serving: ServingDependency, key: IdempotencyKey = ""
    ) -> JobView:
        """Section by section, each from evidence of its own. What cannot be written is refused at once."""
        desk = pieces_of(serving)
        request = await desk.settled(data.to_model())
        job = await librarian_of(serving).write(request, key=key)
        if job.kind != WRITE or job.payload.get("piece"):
            raise key_used()
        await desk.begin(job.id, request, job=job.id)
        return view_job(job)

    @get("/{piece_id:str}", summary="A piece, as far as it is written", responses=PROBLEMS | UNKNOWN_PIECE)
    async def piece(self, piece_id: FromPath[str], serving: ServingDependency) -> WritingView:
        """Sections with their citations, references, and the tokens that were used."""
        filed = await pieces_of(serving).piece(piece_id)
        return view_writing(filed, await job_of(filed, librarian_of(serving)))

    @get(
        "/{piece_id:str}/events",
        media_type=MEDIA_TYPE,
        summary="Follow a piece",
        responses=PROBLEMS | UNKNOWN_PIECE,
    )
    async def events(self, piece_id: FromPath[str], request: ApiRequest, serving: ServingDependency) -> Stream:
        """Server-sent events: `section` in the order of the piece, `job` with the progress, at last `done`.

        The job goes on when its reader goes away; whoever comes back is told every section again.
        """
        desk, librarian = pieces_of(serving), librarian_of(serving)
        await desk.piece(piece_id)
        return event_stream(encoded(await serving.begin(request, watch(piece_id, desk, librarian)), _event))

    @get("/{piece_id:str}/piece", summary="A piece for readers", responses=RENDERED | PROBLEMS | UNKNOWN_PIECE)
    async def read(self, piece_id: FromPath[str], serving: ServingDependency, form: Form = "md") -> Response[bytes]:
        """As Markdown, HTML or JSON."""
        filed = await pieces_of(serving).piece(piece_id)
        text = rendered(filed.piece, form)
        return Response(text.encode(), media_type=f"{MEDIA_TYPES[form]}; charset=utf-8", headers=NOT_RUN)

    @delete("/{piece_id:str}", status_code=202, summary="Stop writing", responses=PROBLEMS | UNKNOWN_PIECE)
    async def cancel(self, piece_id: FromPath[str], serving: ServingDependency) -> WritingView:
        """The sections that are done are kept, and the piece can be gone on with."""
        filed = await pieces_of(serving).piece(piece_id)
        librarian = librarian_of(serving)
        if await job_of(filed, librarian) is not None:
            await librarian.cancel(filed.job)
        return view_writing(filed, await job_of(filed, librarian))

    @post(
        "/{piece_id:str}/resume",
        status_code=202,
        summary="Go on with a piece",
        responses=PROBLEMS | UNKNOWN_PIECE | IS_DONE,
    )
    async def resume(
        self,
        piece_id: FromPath[str],
        data: JSONBody[ResumeRequest],
        serving: ServingDependency,
        key: IdempotencyKey = "",
    ) -> JobView:
        """From the section that failed. One that is being written has its job already."""
        return view_job(await resumed(piece_id, serving, key))


async def resumed(piece_id: str, serving: Serving, key: str) -> Job:
    desk, librarian = pieces_of(serving), librarian_of(serving)
    filed = await desk.piece(piece_id)
    under_way = await job_of(filed, librarian)
    if under_way is not None and under_way.state not in ENDED:
        return under_way
    if state_of(filed, under_way) == "done":
        raise ConflictError(f"The piece {piece_id!r} is done; there is nothing to go on with.")
    job = await librarian.write(filed.request, piece_id=piece_id, key=key)
    if job.payload.get("piece") != piece_id:
        raise key_used()
    if job.state not in ENDED:
        await desk.reopen(piece_id, job=job.id)
    return job


def key_used() -> ConflictError:
    return ConflictError("The Idempotency-Key was sent with another request; choose another one.")


async def job_of(filed: FiledPiece, librarian: Librarian) -> Job | None:
    """None where no job wrote it, or it is forgotten."""
    if not filed.job:
        return None
    try:
        return await librarian.job(filed.job)
    except NotFoundError:
        return None


async def watch(
    piece_id: str, desk: PieceDesk, librarian: Librarian
) -> AsyncGenerator[SectionView | JobView | WritingView, None]:
    """Each section once it and all before it are done: from then on its numbers stay. The whole of it last."""
    told, seen = 0, None
    while True:
        # The job first: what it has written by its end is read after it.
        job = await job_of(await desk.piece(piece_id), librarian)
        filed = await desk.piece(piece_id)
        view = view_writing(filed, job)
        for section in filed.piece.sections[told:]:
            if section.number != told + 1 or (section.state != "done" and not view.ended):
                break
            told += 1
            yield view_section(section)
        if job is not None and job != seen:
            seen = job
            yield view_job(job)
        if view.ended:
            yield view
            return
        await asyncio.sleep(WATCH_SECONDS)


def _event(item: Struct) -> bytes:
    """Of a section, a job, or the whole piece."""
    name = "section" if isinstance(item, SectionView) else "job" if isinstance(item, JobView) else "done"
    return named_event(name, item)


def pieces_of(serving: ServingDependency) -> PieceDesk:
    if serving.answerer.pieces is None:
        raise NotFoundError("This server only answers questions; pieces are written elsewhere.")
    return serving.answerer.pieces
