"""Research and knowledge through the server that holds the store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from graph.errors import DependencyFaultError
from graph.jobs import JobState
from graph.research import FactState, TopicState
from server.commands.remote import RemoteKnowledge
from server.http.library_views import JobView
from server.http.research_views import (
    BulkChange,
    BulkRequest,
    BulkResponse,
    FactPage,
    FactView,
    FinishedView,
    FinishRequest,
    Outcome,
    RunRequest,
    TopicFileView,
    TopicRequest,
    TopicView,
)
from server.research.plan import RunProgress
from server.research.report import RunReport

TOPICS = "/api/topics"
FACTS = "/api/facts"


class RemoteDesk:
    """The `ReachedDesk` over HTTP."""

    def __init__(self, remote: RemoteKnowledge) -> None:
        self._remote = remote

    async def add(self, request: TopicRequest) -> TopicView:
        return msgspec.json.decode(await self._remote.post(TOPICS, request), type=TopicView)

    async def topics(self, state: TopicState | None) -> Sequence[TopicView]:
        query = f"?state={state.value}" if state else ""
        return msgspec.json.decode(await self._remote.send("GET", f"{TOPICS}{query}"), type=list[TopicView])

    async def topic(self, slug: str) -> TopicFileView:
        return msgspec.json.decode(await self._remote.send("GET", _topic(slug)), type=TopicFileView)

    async def delete(self, slug: str) -> None:
        await self._remote.send("DELETE", _topic(slug))

    async def finish(self, slug: str, request: FinishRequest) -> FinishedView:
        return msgspec.json.decode(await self._remote.post(f"{_topic(slug)}/finish", request), type=FinishedView)

    async def run(self, request: RunRequest, show: Callable[[RunProgress], None]) -> RunReport:
        """The job goes on if the command that waits for it does not."""
        job = msgspec.json.decode(await self._remote.post("/api/research", request), type=JobView)

        def told(progress: Mapping[str, Any]) -> None:
            if "stage" in progress:
                show(msgspec.convert(progress, RunProgress))

        job = await self._remote.finished(job, told)
        if job.state is JobState.DONE:
            return msgspec.convert(job.result, RunReport)
        why = job.error or f"the job was {job.state.value}"
        raise DependencyFaultError(f"The server could not do the research: {why}", dependency="server")

    async def facts(self, *, topic: str, category: str, state: FactState | None, limit: int, cursor: str) -> FactPage:
        given = {"topic": topic, "category": category, "state": state.value if state else "", "cursor": cursor}
        query = urlencode({"limit": limit, **{name: value for name, value in given.items() if value}})
        return msgspec.json.decode(await self._remote.send("GET", f"{FACTS}?{query}"), type=FactPage)

    async def fact(self, fact_id: str) -> FactView:
        path = f"{FACTS}/{quote(fact_id, safe='')}"
        return msgspec.json.decode(await self._remote.send("GET", path), type=FactView)

    async def change(self, changes: Sequence[BulkChange], by: str) -> Sequence[Outcome]:
        request = BulkRequest(changes=changes, by=by)
        return msgspec.json.decode(await self._remote.post(f"{FACTS}/bulk", request), type=BulkResponse).outcomes


def _topic(slug: str) -> str:
    return f"{TOPICS}/{quote(slug, safe='')}"
