"""What the HTTP interfaces need in order to fill a store."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Protocol

from graph.jobs import Job, JobState
from graph.registry import RegisteredSource
from server.research.plan import Plan
from server.writing.model import WritingRequest


class Librarian(Protocol):
    """Sources and jobs, without the machinery behind them. Unknown names raise `NotFoundError`.

    `key`: what a client sends so that asking twice makes one job.
    """

    async def sources(self) -> Sequence[RegisteredSource]: ...
    async def add(
        self,
        location: str,
        *,
        name: str = "",
        kind: str = "",
        base_url: str = "",
        options: Mapping[str, str] | None = None,
        moved: bool = False,
        prune: bool = True,
        key: str = "",
    ) -> tuple[RegisteredSource, Job]:
        """Register a source and read it. Raises `SourceError` where there is none."""
        ...

    async def sync(self, name: str, *, whole: bool = False, key: str = "") -> Job: ...
    async def retry(self, name: str, *, key: str = "") -> Job: ...
    async def forget(self, name: str, *, key: str = "") -> Job: ...
    async def push(self, source: str, pages: Sequence[Mapping[str, Any]], gone: Sequence[str], *, key: str = "") -> Job:
        """Pages that are given, not fetched; `gone`: keys of those to remove."""
        ...

    async def research(self, plan: Plan, *, key: str = "") -> Job:
        """The topics it names must be there."""
        ...

    async def write(self, request: WritingRequest, *, piece_id: str = "", key: str = "") -> Job:
        """`piece_id`: of one to go on with; a new piece has the id of the job."""
        ...

    async def jobs(self, limit: int) -> Sequence[Job]: ...
    async def job_counts(self) -> dict[JobState, int]: ...
    async def job(self, job_id: str) -> Job: ...
    async def cancel(self, job_id: str) -> Job: ...
    def watch(self, job_id: str) -> AsyncIterator[Job]:
        """The job whenever something of it has changed, until it has ended."""
        ...
