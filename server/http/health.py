"""`/healthz`: the process lives. `/readyz`: and can answer. `/metrics`: how it has done."""

from __future__ import annotations

from typing import Literal

import structlog
from litestar import Response, get, head
from msgspec import UNSET, Struct, UnsetType

from graph.errors import TrivetError
from graph.jobs import JobState
from server.http.answerer import ESSENTIAL, Answerer
from server.http.auth import OPEN, is_authorized
from server.http.gate import UNCOUNTED
from server.http.metrics import MEDIA_TYPE
from server.http.query import PROBLEMS
from server.http.requests import ApiRequest
from server.http.work import ServingDependency

PROBE = {OPEN: True, UNCOUNTED: True}

log = structlog.get_logger(__name__)


class Health(Struct, frozen=True, kw_only=True):
    """Alive."""

    status: Literal["ok"] = "ok"


class Readiness(Struct, frozen=True, kw_only=True):
    """A "degraded" server answers, but lacks something it could use; what, is told to whoever has the key."""

    status: Literal["ready", "degraded", "unready"]
    dependencies: dict[str, str] | UnsetType = UNSET


@get("/healthz", opt=PROBE, security=[], tags=["health"], summary="Is the process alive?")
async def healthz() -> Health:
    """Asks nothing of what the server depends on."""
    return Health()


@head("/healthz", opt=PROBE, include_in_schema=False)
async def healthz_head() -> None:
    """Some watchers ask in this way."""


@get("/readyz", opt=PROBE, tags=["health"], summary="Can it answer?")
async def readyz(request: ApiRequest, serving: ServingDependency) -> Response[Readiness]:
    """503 where it cannot; each dependency is asked, within a second."""
    dependencies = await serving.answerer.check()
    known = is_authorized(request.scope["headers"], serving.options.api_key)
    status = _status(dependencies)
    body = Readiness(status=status, dependencies=dependencies if known else UNSET)
    return Response(body, status_code=503 if status == "unready" else 200)


@get(
    "/metrics",
    opt={UNCOUNTED: True},
    tags=["health"],
    media_type=MEDIA_TYPE,
    summary="How has it done?",
    responses={401: PROBLEMS[401]},
)
async def metrics(serving: ServingDependency) -> bytes:
    """In Prometheus' text format."""
    return serving.metrics.exposition(serving.answerer.breakers, await _job_counts(serving.answerer))


async def _job_counts(answerer: Answerer) -> dict[JobState, int]:
    """None where they cannot be read now: all else is told none the less."""
    try:
        return await answerer.librarian.job_counts() if answerer.librarian else {}
    except TrivetError as error:
        log.warning("the jobs cannot be counted", detail=str(error))
        return {}


def _status(dependencies: dict[str, str]) -> Literal["ready", "degraded", "unready"]:
    ill = {name for name, state in dependencies.items() if state not in {"ok", "off"}}
    if ill & ESSENTIAL:
        return "unready"
    return "degraded" if ill else "ready"
