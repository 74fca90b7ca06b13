"""What a server does for whoever fills its store: every change is a job."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import structlog

from graph.errors import NotFoundError
from graph.jobs import ENDED, Job, JobState
from graph.registry import RegisteredSource
from ingestion.sources.detect import recognise
from ingestion.sync import register
from server.jobs import JobRunner
from server.library import Library
from server.research.plan import Plan
from server.research_jobs import RESEARCH, payload_of
from server.source_jobs import work_on
from server.writing.model import WritingRequest
from server.writing_jobs import WRITE
from server.writing_jobs import payload_of as writing_payload_of

WATCH_SECONDS = 0.5
log = structlog.get_logger()


class JobLibrarian:
    """The `Librarian` of `server/http/librarian.py`."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._runner = JobRunner(library.jobs, work_on(lambda: nullcontext(library)), turn=library.turn)

    def start(self) -> None:
        """Do the jobs here, unless the settings leave them to workers."""
        settings = self._library.backends.settings
        if settings.server.run_jobs:
            self._runner.start()
        elif not settings.vectors.qdrant_url:
            log.warning("jobs wait until this server stops: server.run_jobs is off, and it holds the vectors")

    async def close(self) -> None:
        await self._runner.close()

    async def sources(self) -> Sequence[RegisteredSource]:
        return await asyncio.to_thread(self._library.registry.sources)

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

        def note() -> RegisteredSource:
            found = recognise(
                location, name=name or None, kind=kind or None, base_url=base_url or None, options=options
            )
            return register(self._library.registry, found, moved=moved)

        source = await asyncio.to_thread(note)
        return source, await self._submit("sync", {"source": source.name, "whole": True, "prune": prune}, key)

    async def sync(self, name: str, *, whole: bool = False, key: str = "") -> Job:
        """Raises `NotFoundError`, as the next ones do."""
        await asyncio.to_thread(self._library.registered, name)
        return await self._submit("sync", {"source": name, "whole": whole}, key)

    async def retry(self, name: str, *, key: str = "") -> Job:
        await asyncio.to_thread(self._library.registered, name)
        return await self._submit("retry", {"source": name}, key)

    async def forget(self, name: str, *, key: str = "") -> Job:
        await asyncio.to_thread(self._library.registered, name)
        return await self._submit("forget", {"source": name}, key)

    async def push(self, source: str, pages: Sequence[Mapping[str, Any]], gone: Sequence[str], *, key: str = "") -> Job:
        """Pages that are given, not fetched; `gone`: keys of those to remove."""
        return await self._submit("pages", {"source": source, "pages": list(pages), "gone": list(gone)}, key)

    async def research(self, plan: Plan, *, key: str = "") -> Job:
        return await self._submit(RESEARCH, payload_of(plan), key)

    async def write(self, request: WritingRequest, *, piece_id: str = "", key: str = "") -> Job:
        return await self._submit(WRITE, writing_payload_of(request, piece_id), key)

    async def jobs(self, limit: int) -> Sequence[Job]:
        return await asyncio.to_thread(self._library.jobs.jobs, limit)

    async def job_counts(self) -> dict[JobState, int]:
        return await asyncio.to_thread(self._library.jobs.counts)

    async def job(self, job_id: str) -> Job:
        return _there(await asyncio.to_thread(self._library.jobs.job, job_id), job_id)

    async def cancel(self, job_id: str) -> Job:
        return _there(await asyncio.to_thread(self._library.jobs.cancel, job_id), job_id)

    async def watch(self, job_id: str) -> AsyncIterator[Job]:
        """The job whenever something of it has changed, until it has ended."""
        seen = None
        while True:
            job = await self.job(job_id)
            if job != seen:
                seen = job
                yield job
            if job.state in ENDED:
                return
            await asyncio.sleep(WATCH_SECONDS)

    async def _submit(self, kind: str, payload: Mapping[str, Any], key: str) -> Job:
        job = await asyncio.to_thread(lambda: self._library.jobs.submit(kind, payload, key=key))
        self._runner.wake()
        return job


def _there(job: Job | None, job_id: str) -> Job:
    if job is None:
        raise NotFoundError(f"There is no job {job_id[:100]!r}; `GET /api/jobs` lists them.")
    return job
