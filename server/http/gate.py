"""How much is worked on at once, and how all of it ends when the server stops."""

from __future__ import annotations

import asyncio
from typing import Any

from litestar.enums import ScopeType
from litestar.middleware import ASGIMiddleware
from litestar.types import ASGIApp, Receive, Scope, Send

from server.http.problems import StoppingError, TooBusyError

UNCOUNTED = "uncounted"
"""The `opt` of a route that is answered however busy the server is."""


class Gate(ASGIMiddleware):
    """Lets `limit` requests in at once; one more is told at once to come again."""

    scopes = (ScopeType.HTTP,)
    exclude_opt_key = UNCOUNTED

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.active = 0

    async def handle(self, scope: Scope, receive: Receive, send: Send, next_app: ASGIApp) -> None:
        if self.active >= self.limit:
            raise TooBusyError(f"The server is working on {self.limit} requests already; try again in a second.")
        self.active += 1
        try:
            await next_app(scope, receive, send)
        finally:
            self.active -= 1


class Drain:
    """The work under way. `cut` ends it all; whoever waits for it then says so to its client."""

    def __init__(self) -> None:
        self.is_cut = False
        self._tasks: set[asyncio.Task[Any]] = set()

    def track(self, task: asyncio.Task[Any]) -> None:
        if self.is_cut:
            task.cancel()
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def cut(self) -> None:
        self.is_cut = True
        for task in self._tasks:
            task.cancel()

    @property
    def active(self) -> int:
        return len(self._tasks)

    def error(self) -> StoppingError:
        return StoppingError("The server is stopping; ask again in a moment.")
