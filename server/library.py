"""The store together with what fills it: registered sources and the queue of jobs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from config.settings import Settings
from graph.errors import NotFoundError
from graph.home import JOBS_FILE, SOURCES_FILE
from graph.jobs import ENDED, Job, JobStore
from graph.registry import RegisteredSource, Registry
from graph.sqlite_jobs import SqliteJobs
from graph.sqlite_registry import SqliteRegistry
from ingestion.sources.detect import recognise
from ingestion.sync import register
from server.backends import Backends
from server.jobs import JobRunner
from server.open import open_backends
from server.source_jobs import registered, work_on

WATCH_SECONDS = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """Opened together, as the registry and the queue lie in the store's folder, under its lock."""

    backends: Backends
    registry: Registry
    jobs: JobStore


@asynccontextmanager
async def open_library(settings: Settings, *, command: str, rebuild: bool = False) -> AsyncIterator[Library]:
    """As `open_backends`. After a rebuild every source is to be read again."""
    backends = await open_backends(settings, command=command, rebuild=rebuild)
    try:
        registry = SqliteRegistry(settings.home / SOURCES_FILE)
        try:
            if rebuild:
                registry.forget_cursors()
            jobs = SqliteJobs(settings.home / JOBS_FILE)
            try:
                yield Library(backends=backends, registry=registry, jobs=jobs)
            finally:
                jobs.close()
        finally:
            registry.close()
    finally:
        await backends.close()


class JobLibrarian:
    """What a server does for whoever fills its store: every change is a job."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._runner = JobRunner(library.jobs, work_on(library.backends, library.registry))

    def start(self) -> None:
        self._runner.start()

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
        await asyncio.to_thread(registered, self._library.registry, name)
        return await self._submit("sync", {"source": name, "whole": whole}, key)

    async def retry(self, name: str, *, key: str = "") -> Job:
        await asyncio.to_thread(registered, self._library.registry, name)
        return await self._submit("retry", {"source": name}, key)

    async def forget(self, name: str, *, key: str = "") -> Job:
        await asyncio.to_thread(registered, self._library.registry, name)
        return await self._submit("forget", {"source": name}, key)

    async def push(self, source: str, pages: Sequence[Mapping[str, Any]], gone: Sequence[str], *, key: str = "") -> Job:
        """Pages that are given, not fetched; `gone`: keys of those to remove."""
        return await self._submit("pages", {"source": source, "pages": list(pages), "gone": list(gone)}, key)

    async def jobs(self, limit: int) -> Sequence[Job]:
        return await asyncio.to_thread(self._library.jobs.jobs, limit)

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
