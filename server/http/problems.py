"""Errors to HTTP: every status, kind and body, in one place.

Our own API answers with RFC 9457 problem details, `/v1` with OpenAI's envelope; both say the same sentence.
"""

from __future__ import annotations

import math
from http import HTTPStatus
from typing import Any

import msgspec
import structlog
from litestar import MediaType, Request, Response
from litestar.exceptions import (
    HTTPException,
    MethodNotAllowedException,
    NotFoundException,
    ValidationException,
)

from graph.errors import (
    ConflictError,
    DependencyBusyError,
    DependencyError,
    DependencyFaultError,
    InputError,
    NotFoundError,
    StoreError,
    TrivetError,
)
from server.research.desk import NotSetUpError

log = structlog.get_logger(__name__)

OPENAI_PREFIX = "/v1"
PROBLEM_MEDIA_TYPE = "application/problem+json"
CLIENT_CLOSED_REQUEST = 499
"""nginx's code; it is only ever seen in the log."""


class RequestError(InputError):
    """A request that cannot be used; `param` names the part that is wrong."""

    kind = "bad-request"

    def __init__(self, message: str, *, param: str | None = None) -> None:
        super().__init__(message)
        self.param = param


class BodyTimeoutError(RequestError):
    """The client began a body and did not end it."""

    kind = "slow-body"


class UnauthorizedError(TrivetError):
    kind = "unauthorized"


class UnknownModelError(NotFoundError):
    kind = "model-not-found"


class RemovedRouteError(NotFoundError):
    """A route of OpenAI's that is not offered here."""

    kind = "not-offered"


class TooBusyError(TrivetError):
    kind = "too-busy"


class DeadlineError(TrivetError):
    kind = "deadline"


class StoppingError(TrivetError):
    kind = "stopping"


class ClientGoneError(TrivetError):
    kind = "client-gone"


STATUSES: tuple[tuple[type[TrivetError], int], ...] = (
    (BodyTimeoutError, 408),
    (UnauthorizedError, 401),
    (NotFoundError, 404),
    (ConflictError, 409),
    (NotSetUpError, 409),
    (InputError, 400),
    (TooBusyError, 503),
    (StoppingError, 503),
    (DeadlineError, 504),
    (ClientGoneError, CLIENT_CLOSED_REQUEST),
    (DependencyFaultError, 502),
    (DependencyError, 503),
    (StoreError, 503),
    (TrivetError, 500),
)
"""The first that fits counts, so special cases stand before general ones."""

HTTP_KINDS = {400: "bad-request", 404: "not-found", 405: "method-not-allowed", 413: "too-large"}


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """RFC 9457 problem details. `type` is stable: programs may rely on it."""

    type: str
    title: str
    status: int
    detail: str
    param: str | msgspec.UnsetType = msgspec.UNSET
    """The part of the request that is wrong, where there is one."""

    @property
    def kind(self) -> str:
        return self.type.rpartition(":")[2]


class OpenAIError(msgspec.Struct, frozen=True, kw_only=True):
    """What OpenAI's clients read of an error."""

    message: str
    type: str
    param: str | None
    code: str | None


class OpenAIErrorBody(msgspec.Struct, frozen=True, kw_only=True):
    error: OpenAIError


def problem_of(error: BaseException) -> Problem:
    """What the client is told. Of an unforeseen error: only that there was one."""
    if isinstance(error, TrivetError):
        status = next(status for kind, status in STATUSES if isinstance(error, kind))
        param = error.param if isinstance(error, RequestError) else None
        return _problem(error.kind, status, str(error), param)
    if isinstance(error, HTTPException) and error.status_code < 500:
        kind = HTTP_KINDS.get(error.status_code, "bad-request")
        return _problem(kind, error.status_code, _sentence(error), None)
    return _problem("internal", 500, "Something went wrong here; the server's log says what.", None)


def _problem(kind: str, status: int, detail: str, param: str | None) -> Problem:
    title = "Client Closed Request" if status == CLIENT_CLOSED_REQUEST else HTTPStatus(status).phrase
    return Problem(
        type=f"urn:trivet:problem:{kind}",
        title=title,
        status=status,
        detail=detail,
        param=param or msgspec.UNSET,
    )


def _sentence(error: HTTPException) -> str:
    if isinstance(error, NotFoundException):
        return "There is nothing at this path; /schema lists what there is."
    if isinstance(error, MethodNotAllowedException):
        return "This path does not take this method; the Allow header lists those it takes."
    if isinstance(error, ValidationException) and isinstance(error.extra, list):
        faults = [f"{each.get('key')}: {each.get('message')}" for each in error.extra if isinstance(each, dict)]
        return "; ".join(faults) or error.detail
    if error.status_code == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        return "The request body is too large; server.max_body_bytes says how large it may be."
    return error.detail


def openai_error(problem: Problem) -> OpenAIErrorBody:
    """The same in OpenAI's words; its clients branch on `code` and `type`."""
    codes: dict[str, str] = {"unauthorized": "invalid_api_key", "model-not-found": "model_not_found"}
    param = {"model-not-found": "model"}.get(problem.kind, problem.param or None)
    return OpenAIErrorBody(
        error=OpenAIError(
            message=problem.detail,
            type="invalid_request_error" if problem.status < 500 else "server_error",
            param=param or None,
            code=codes.get(problem.kind, problem.kind.replace("-", "_")),
        )
    )


def error_headers(error: BaseException) -> dict[str, str]:
    if isinstance(error, DependencyBusyError):
        return {"retry-after": str(max(1, math.ceil(error.retry_after)))}
    if isinstance(error, TooBusyError | StoppingError):
        return {"retry-after": "1"}
    if isinstance(error, UnauthorizedError):
        return {"www-authenticate": 'Bearer realm="trivet"'}
    if isinstance(error, DeadlineError):
        # openai-python would send the same long question again, twice.
        return {"x-should-retry": "false"}
    if isinstance(error, BodyTimeoutError):
        return {"connection": "close"}
    if isinstance(error, HTTPException) and error.headers:
        return {name: value for name, value in error.headers.items() if name.lower() == "allow"}
    return {}


def log_error(error: BaseException, problem: Problem) -> None:
    """Faults of ours with their traceback, faults of what we depend on as a line, the client's own not at all."""
    if problem.kind == "internal":
        log.error("unforeseen error", exc_info=error)
    elif problem.status >= 500:
        log.warning("request failed", kind=problem.kind, detail=problem.detail)


def answer_error(request: Request[Any, Any, Any], error: Exception) -> Response[Problem | OpenAIErrorBody]:
    """The exception handler of the application."""
    problem = problem_of(error)
    log_error(error, problem)
    headers = error_headers(error)
    if is_openai_path(request.url.path):
        # Its clients take a 409 for a lock and send the same again.
        status = 400 if problem.status == HTTPStatus.CONFLICT else problem.status
        return Response(openai_error(problem), status_code=status, headers=headers, media_type=MediaType.JSON)
    return Response(problem, status_code=problem.status, headers=headers, media_type=PROBLEM_MEDIA_TYPE)


def is_openai_path(path: str) -> bool:
    return path == OPENAI_PREFIX or path.startswith(f"{OPENAI_PREFIX}/")
