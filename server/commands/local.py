"""The knowledge opened in this process: the module of the command line that brings in the models."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from config.settings import Settings
from server.answer.answer import whole_answer
from server.backends import Backends
from server.http.views import QueryRequest, QueryResponse, SearchRequest, SearchResponse, view_answer, view_search
from server.open import open_backends
from server.search import search


@asynccontextmanager
async def opened(settings: Settings, *, command: str, rebuild: bool = False) -> AsyncIterator[Backends]:
    """Holds the store until the end; `command` is what others are told that it is held for."""
    backends = await open_backends(settings, command=command, rebuild=rebuild)
    try:
        yield backends
    finally:
        await backends.close()


class LocalKnowledge:
    """Answers as the server would, in its shapes."""

    def __init__(self, backends: Backends) -> None:
        self.backends = backends

    async def ask(self, request: QueryRequest) -> QueryResponse:
        answer = await whole_answer(request.to_question(), self.backends)
        return view_answer(answer, explain=request.explain)

    async def search(self, request: SearchRequest) -> SearchResponse:
        found = await search(request.to_question(), self.backends)
        return view_search(found, explain=request.explain)


@asynccontextmanager
async def open_local(settings: Settings, *, command: str) -> AsyncIterator[LocalKnowledge]:
    async with opened(settings, command=command) as backends:
        yield LocalKnowledge(backends)
