"""How a command reaches topics and facts: through the server that holds the store, or by opening it itself."""

from __future__ import annotations

import getpass
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, closing
from typing import Protocol

from config.settings import Settings
from graph.home import RESEARCH_FILE, prepare_home
from graph.research import FactState, TopicState
from graph.sqlite_research import SqliteResearch
from server.commands.filling import serving_url
from server.commands.local import opened_library
from server.commands.remote import open_remote
from server.commands.remote_research import RemoteDesk
from server.http.knowledge import fact_page
from server.http.research_views import (
    BulkChange,
    FactPage,
    FactView,
    FinishedView,
    FinishRequest,
    Outcome,
    RunRequest,
    TopicFileView,
    TopicRequest,
    TopicView,
    view_fact,
    view_finished,
    view_outcome,
    view_topic,
    view_topic_file,
)
from server.research.desk import Desk, FilingCabinet
from server.research.plan import RunProgress
from server.research.report import RunReport


class ReachedCabinet(Protocol):
    """What is only looked up or put into the queue, in the server's shapes."""

    async def add(self, request: TopicRequest) -> TopicView: ...
    async def topics(self, state: TopicState | None) -> Sequence[TopicView]: ...
    async def topic(self, slug: str) -> TopicFileView: ...
    async def facts(
        self, *, topic: str, category: str, state: FactState | None, limit: int, cursor: str
    ) -> FactPage: ...
    async def fact(self, fact_id: str) -> FactView: ...


class ReachedDesk(ReachedCabinet, Protocol):
    """The same with what changes the store."""

    async def delete(self, slug: str) -> None: ...
    async def finish(self, slug: str, request: FinishRequest) -> FinishedView: ...
    async def run(self, request: RunRequest, show: Callable[[RunProgress], None]) -> RunReport: ...
    async def change(self, changes: Sequence[BulkChange], by: str) -> Sequence[Outcome]: ...


@asynccontextmanager
async def reach_cabinet(settings: Settings) -> AsyncIterator[ReachedCabinet]:
    """Also beside a command that holds the store: SQLite lets several processes read and write."""
    url = serving_url(settings)
    if url:
        async with open_remote(url, settings) as remote:
            yield RemoteDesk(remote)
        return
    prepare_home(settings.home)
    with closing(SqliteResearch(settings.home / RESEARCH_FILE)) as store:
        yield LocalCabinet(FilingCabinet(store))


@asynccontextmanager
async def reach_desk(settings: Settings, *, command: str) -> AsyncIterator[ReachedDesk]:
    """Raises `StoreBusyError` where the store is held by something that cannot be asked."""
    url = serving_url(settings)
    if url:
        async with open_remote(url, settings) as remote:
            yield RemoteDesk(remote)
        return
    async with opened_library(settings, command=command) as library:
        assert library.desk is not None, "the store was opened with its research"
        yield LocalDesk(library.desk)


def who() -> str:
    """Whose change it is: the next one to look at a fact is told."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container's user may have no name
        return "somebody at the command line"


class LocalCabinet:
    """Over a store that is open here."""

    def __init__(self, cabinet: FilingCabinet) -> None:
        self._cabinet = cabinet

    async def add(self, request: TopicRequest) -> TopicView:
        return view_topic(await self._cabinet.add(request.to_model()))

    async def topics(self, state: TopicState | None) -> Sequence[TopicView]:
        return [view_topic(topic) for topic in await self._cabinet.topics(state)]

    async def topic(self, slug: str) -> TopicFileView:
        return view_topic_file(await self._cabinet.file(slug))

    async def facts(self, *, topic: str, category: str, state: FactState | None, limit: int, cursor: str) -> FactPage:
        return await fact_page(self._cabinet, topic=topic, category=category, state=state, limit=limit, cursor=cursor)

    async def fact(self, fact_id: str) -> FactView:
        return view_fact(await self._cabinet.fact(fact_id))


class LocalDesk(LocalCabinet):
    """The same with what changes both stores."""

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self._desk = desk

    async def delete(self, slug: str) -> None:
        await self._desk.delete(slug)

    async def finish(self, slug: str, request: FinishRequest) -> FinishedView:
        return view_finished(await self._desk.finish(slug, by=request.by, force=request.force))

    async def run(self, request: RunRequest, show: Callable[[RunProgress], None]) -> RunReport:
        return await self._desk.run(request.to_plan(), show)

    async def change(self, changes: Sequence[BulkChange], by: str) -> Sequence[Outcome]:
        done = await self._desk.change_all([change.to_model(by) for change in changes])
        return [view_outcome(outcome) for outcome in done]
