"""Logs as JSON lines on stderr, each with the id of its request, none with a key."""

from __future__ import annotations

import json
import logging
import re
import secrets
import sys
import time
from collections.abc import Iterable, MutableMapping
from typing import Any, TextIO

import structlog
from litestar.enums import ScopeType
from litestar.types import ASGIApp, Message, Receive, Scope, Send
from structlog.contextvars import bound_contextvars

REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
"""Others' ids are taken over only in this form."""
HIDDEN = "***"
SECRETS = re.compile(
    r"(?i)(bearer\s+|\b(?:api[-_]?key|token|password|secret)[\"']?\s*[=:]\s*[\"']?)[^\s\"'&,;]+|(://[^/\s:@]*:)[^/\s@]+(?=@)"
)
LONGEST = 10_000
"""Characters of one value; a longer one is cut."""

log = structlog.get_logger(__name__)


def set_up_logging(
    *, secret_values: Iterable[str] = (), level: int = logging.INFO, stream: TextIO | None = None
) -> None:
    """For the whole process, uvicorn's and other libraries' lines included."""
    hidden = tuple(value for value in secret_values if value)
    shared: list[structlog.types.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        Redact(hidden),
    ]
    # Our own lines are written without a detour through `logging`, which takes twice as long.
    structlog.configure(
        processors=[*shared, to_json_line],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(stream or sys.stderr),
    )
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.ExtraAdder(), *shared],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, to_json_line],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level)
    for name in ("uvicorn.error", "httpx", "httpcore"):
        # uvicorn tells of each of its steps, httpx of every URL, with what stands in it.
        logging.getLogger(name).setLevel(logging.WARNING)


def to_json_line(_logger: object, _method: str, event: MutableMapping[str, Any]) -> str:
    """ASCII only, so that not even U+2028 ends a line."""
    return json.dumps(event, default=str)


class Redact:
    """Hides what looks like a key, and the server's own keys wherever they stand."""

    def __init__(self, hidden: tuple[str, ...]) -> None:
        self.hidden = hidden

    def __call__(self, _logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        return {name: self._clean(value) for name, value in event.items()}

    def _clean(self, value: object) -> object:
        if not isinstance(value, str):
            return value
        for secret in self.hidden:
            value = value.replace(secret, HIDDEN)
        return SECRETS.sub(rf"\1\2{HIDDEN}", value[:LONGEST])


class RequestLog:
    """Around the application: takes over or makes the request's id, gives it back, and writes one line at the end."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            await self.app(scope, receive, send)
            return
        request_id = _request_id(scope["headers"])
        status = 0

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", request_id.encode())]
            await send(message)

        started = time.monotonic()
        with bound_contextvars(request_id=request_id):
            try:
                await self.app(scope, receive, send_with_id)
            finally:
                log.info(
                    "request",
                    method=scope["method"],
                    path=scope["path"][:500],
                    status=status,
                    milliseconds=round(1000 * (time.monotonic() - started), 1),
                )


def _request_id(headers: Iterable[tuple[bytes, bytes]]) -> str:
    for name, value in headers:
        if name.lower() == b"x-request-id":
            given = value.decode("latin-1").strip()
            if REQUEST_ID.fullmatch(given):
                return given
    return secrets.token_hex(16)
