"""The store together with what fills it: registered sources and the queue of jobs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from config.settings import Settings
from graph.errors import NotFoundError
from graph.home import JOBS_FILE, SOURCES_FILE
from graph.jobs import JobStore
from graph.registry import RegisteredSource, Registry
from graph.sqlite_jobs import SqliteJobs
from graph.sqlite_registry import SqliteRegistry
from ingestion import sync
from ingestion.report import IngestReport, Progress
from ingestion.sources.detect import reopen
from server.backends import Backends
from server.open import open_backends

PUSHED = "pushed"
"""The kind of sources whose pages come by `POST /api/pages`: there is nothing to follow."""
Show = Callable[[Progress], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """Opened together, as the registry and the queue lie in the store's folder, under its lock."""

    backends: Backends
    registry: Registry
    jobs: JobStore

    def registered(self, name: str) -> RegisteredSource:
        """Raises `NotFoundError` with the names there are."""
        found = self.registry.source(name)
        if found is None:
            names = ", ".join(source.name for source in self.registry.sources()) or "none"
            raise NotFoundError(f"There is no source {name!r}; there are: {names}.")
        return found

    async def follow(
        self, source: RegisteredSource, *, whole: bool, prune: bool, on_progress: Show
    ) -> IngestReport | None:
        """What has changed in a source, or all of it; None where its pages are pushed."""
        if source.kind == PUSHED:
            return None
        return await sync.follow(
            source,
            reopen,
            self.backends.knowledge,
            self.registry,
            self.backends.settings.ingestion,
            whole=whole,
            prune=prune,
            on_progress=on_progress,
        )

    async def retry(self, source: RegisteredSource, *, on_progress: Show) -> IngestReport | None:
        """The pages that could not be read before; None where there are none."""
        if source.kind == PUSHED:
            return None
        return await sync.retry(
            source,
            reopen,
            self.backends.knowledge,
            self.registry,
            self.backends.settings.ingestion,
            on_progress=on_progress,
        )

    async def forget(self, name: str) -> int:
        """Remove a source with its pages; how many."""
        return await sync.forget(name, self.backends.knowledge, self.registry)


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
