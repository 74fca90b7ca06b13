"""How a command reaches the knowledge: through the server that holds the store, or by opening the store itself."""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol, cast

from config.settings import Settings
from graph.home import HomeLock
from server.commands.remote import open_remote
from server.http.views import QueryRequest, QueryResponse, SearchRequest, SearchResponse


class Reached(Protocol):
    """What `ask` and `search` need, wherever it is."""

    async def ask(self, request: QueryRequest) -> QueryResponse: ...
    async def search(self, request: SearchRequest) -> SearchResponse: ...


@asynccontextmanager
async def reach(settings: Settings, *, command: str) -> AsyncIterator[Reached]:
    """Raises `StoreBusyError` where the store is held by something that cannot be asked."""
    holder = HomeLock.holder(settings.home)
    opened: AbstractAsyncContextManager[Reached]
    if holder is not None and holder.url:
        opened = open_remote(holder.url, settings)
    else:
        # The models take seconds to import, so this is done only where the store is opened here.
        local = importlib.import_module("server.commands.local")
        opened = cast(AbstractAsyncContextManager[Reached], local.open_local(settings, command=command))
    async with opened as reached:
        yield reached
