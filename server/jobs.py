"""Doing the jobs in the queue: one at a time, with a heartbeat; what is cut short goes back to the queue."""

from __future__ import annotations

import asyncio
import contextlib
import os
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from typing import Any

import structlog

from graph.errors import TrivetError
from graph.jobs import Job, JobState, JobStore

LEASE_SECONDS = 30.0
BEAT_SECONDS = 2.0
"""Between two signs of life; also how long a cancelled job goes on, and how old its progress may be."""
IDLE_SECONDS = 1.0
MOST_TRIES = 5
"""A job that takes its worker down with it is given up after so many."""
log = structlog.get_logger()

Report = Callable[[Mapping[str, Any]], None]
Work = Callable[[Job, Report], Awaitable[Mapping[str, Any]]]
"""Does a job, telling its progress; what it returns is the job's result."""


class JobRunner:
    """Takes jobs until it is closed. `wake` looks at the queue at once."""

    def __init__(self, store: JobStore, work: Mapping[str, Work]) -> None:
        self._store = store
        self._work = work
        self._name = f"{os.getpid()}-{uuid.uuid4().hex[:8]}"
        self._awake = asyncio.Event()
        self._loop: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._loop = asyncio.create_task(self._run(), name="jobs")

    def wake(self) -> None:
        self._awake.set()

    async def close(self) -> None:
        """What runs is stopped where it can go on later, and waits in the queue."""
        if self._loop is not None:
            self._loop.cancel()
            await asyncio.wait([self._loop])
        await asyncio.to_thread(self._store.release, self._name)

    async def _run(self) -> None:
        while True:
            try:
                job = await asyncio.to_thread(self._store.take, self._name, LEASE_SECONDS)
            except TrivetError as error:
                log.warning("the queue of jobs cannot be read", detail=str(error))
                job = None
            if job is not None:
                await self._do(job)
                continue
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(IDLE_SECONDS):
                    await self._awake.wait()
            self._awake.clear()

    async def _do(self, job: Job) -> None:
        work = self._work.get(job.kind)
        if work is None or job.tries > MOST_TRIES:
            why = f"gave up after {MOST_TRIES} tries" if work else f"no worker knows jobs of kind {job.kind!r}"
            await self._end(job, JobState.FAILED, {}, why)
            return
        progress: dict[str, Any] = {}
        task = asyncio.ensure_future(work(job, progress.update))
        try:
            await self._watch(job, task, progress)
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait([task])
        await self._close(job, task)

    async def _watch(self, job: Job, task: asyncio.Future[Mapping[str, Any]], progress: Mapping[str, Any]) -> None:
        """Until it is done, or is to stop: cancelled, or somebody else's."""
        while not task.done():
            await asyncio.wait([task], timeout=BEAT_SECONDS)
            if not await asyncio.to_thread(self._store.renew, job.id, self._name, LEASE_SECONDS, dict(progress)):
                return

    async def _close(self, job: Job, task: asyncio.Future[Mapping[str, Any]]) -> None:
        if task.cancelled():
            await self._end(job, JobState.CANCELLED, {})
            return
        error = task.exception()
        if error is None:
            await self._end(job, JobState.DONE, task.result())
        elif isinstance(error, TrivetError):
            await self._end(job, JobState.FAILED, {}, str(error))
        else:
            log.error("a job failed", kind=job.kind, job=job.id, exc_info=error)
            await self._end(job, JobState.FAILED, {}, f"an unforeseen {type(error).__name__}; the log has more")

    async def _end(self, job: Job, state: JobState, result: Mapping[str, Any], error: str = "") -> None:
        await asyncio.to_thread(self._store.end, job.id, self._name, state, result=result, error=error)


def plain(record: Any) -> dict[str, Any]:
    """A report or progress as JSON takes it."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(record).items()}
