"""The knowledge opened in this process: the module of the command line that brings in the models."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import structlog

from config.settings import Settings
from ingestion.language import detect_language
from server.answer.answer import whole_answer
from server.backends import Backends
from server.http.views import QueryRequest, QueryResponse, SearchRequest, SearchResponse, view_answer, view_search
from server.library import Library, open_library
from server.open import open_backends
from server.search import search

WARM_UP_CHARS = 200


@asynccontextmanager
async def opened(settings: Settings, *, command: str, rebuild: bool = False) -> AsyncIterator[Backends]:
    """Holds the store until the end; `command` is what others are told that it is held for."""
    _log_to_stderr()
    backends = await open_backends(settings, command=command, rebuild=rebuild)
    try:
        yield backends
    finally:
        await backends.close()


@asynccontextmanager
async def opened_library(settings: Settings, *, command: str, rebuild: bool = False) -> AsyncIterator[Library]:
    """The same with what fills the store."""
    _log_to_stderr()
    async with open_library(settings, command=command, rebuild=rebuild) as library:
        yield library


def _log_to_stderr() -> None:
    """Warnings as plain lines: structlog would write to stdout, where data goes."""
    structlog.configure(
        processors=[
            structlog.processors.format_exc_info,
            structlog.processors.KeyValueRenderer(key_order=["event"], drop_missing=True),
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
    )


class LocalKnowledge:
    """Answers as the server would, in its shapes."""

    def __init__(self, backends: Backends) -> None:
        self.backends = backends

    async def ask(self, request: QueryRequest) -> QueryResponse:
        await self._warm_up(request.question)
        answer = await whole_answer(request.to_question(), self.backends)
        return view_answer(answer, explain=request.explain)

    async def search(self, request: SearchRequest) -> SearchResponse:
        await self._warm_up(request.question)
        found = await search(request.to_question(), self.backends)
        return view_search(found, explain=request.explain)

    async def _warm_up(self, question: str) -> None:
        """The first text of a language loads its model, which would use up the graph leg's time."""
        start = question[:WARM_UP_CHARS]
        language = await asyncio.to_thread(detect_language, start, default="")
        await asyncio.to_thread(self.backends.recognizer.names, [start], language)


@asynccontextmanager
async def open_local(settings: Settings, *, command: str) -> AsyncIterator[LocalKnowledge]:
    async with opened(settings, command=command) as backends:
        yield LocalKnowledge(backends)
