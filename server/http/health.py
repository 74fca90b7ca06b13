"""`/healthz`: the process lives. `/readyz`: and can answer."""

from __future__ import annotations

from typing import Any, Literal

from litestar import HttpMethod, Request, Response, route
from msgspec import UNSET, Struct, UnsetType

from server.http.answerer import ESSENTIAL
from server.http.auth import OPEN, is_authorized
from server.http.gate import UNCOUNTED
from server.http.work import ServingDependency

PROBES = {OPEN: True, UNCOUNTED: True}
METHODS = [HttpMethod.GET, HttpMethod.HEAD]


class Health(Struct, frozen=True, kw_only=True):
    """Alive."""

    status: Literal["ok"] = "ok"


class Readiness(Struct, frozen=True, kw_only=True):
    """ "degraded" answers, but something it could use is missing; what, is told to whoever has the key."""

    status: Literal["ready", "degraded", "unready"]
    dependencies: dict[str, str] | UnsetType = UNSET


@route("/healthz", http_method=METHODS, opt=PROBES, status_code=200, tags=["health"], summary="Is the process alive?")
async def healthz() -> Health:
    """Asks nothing of what the server depends on."""
    return Health()


@route("/readyz", http_method=METHODS, opt=PROBES, status_code=200, tags=["health"], summary="Can it answer?")
async def readyz(request: Request[Any, Any, Any], serving: ServingDependency) -> Response[Readiness]:
    """503 where it cannot; each dependency is asked, within a second."""
    dependencies = await serving.answerer.check()
    ill = {name for name, state in dependencies.items() if state not in {"ok", "off"}}
    stopping = serving.drain.is_cut
    status: Literal["ready", "degraded", "unready"] = (
        "unready" if stopping or ill & ESSENTIAL else "degraded" if ill else "ready"
    )
    known = is_authorized(request.scope["headers"], serving.options.api_key)
    body = Readiness(status=status, dependencies=dependencies if known else UNSET)
    return Response(body, status_code=503 if status == "unready" else 200)
