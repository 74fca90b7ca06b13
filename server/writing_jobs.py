"""The job that writes a piece: one that was cut short goes on from the section that is missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from graph.errors import StoreError
from graph.jobs import Job
from server.jobs import Report
from server.library import Library
from server.writing.model import WritingRequest
from server.writing.saved import request_from_json, to_json

WRITE = "write"


def payload_of(request: WritingRequest, piece_id: str = "") -> Mapping[str, Any]:
    """`piece_id`: of one to go on with; a new piece has the id of its job."""
    return {"piece": piece_id, "request": to_json(request)}


async def write_piece(library: Library, job: Job, report: Report) -> Mapping[str, Any]:
    """A model that fails leaves a partial piece and a job that is done: the result says so."""
    desk = library.pieces
    if desk is None:
        raise StoreError("This worker cannot write; start it with the settings of the server.")
    piece_id = str(job.payload.get("piece", "")) or job.id
    # A server that was killed between queue and file has only put it into the queue.
    await desk.begin(piece_id, request_from_json(job.payload.get("request")), job=job.id)
    await desk.reopen(piece_id, job=job.id)
    piece = await desk.carry_on(piece_id, lambda progress: report(msgspec.to_builtins(progress)))
    return {
        "piece": piece_id,
        "state": piece.state,
        "reason": piece.reason,
        "sections": len(piece.sections),
        "done": sum(one.state == "done" for one in piece.sections),
    }
