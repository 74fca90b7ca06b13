"""Doing the jobs in the queue: one at a time, with a heartbeat; what is cut short goes back to the queue."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import asdict
from typing import Any, TypeVar

import structlog

from graph.errors import StoreBusyError, TrivetError
from graph.jobs import Job, JobState, JobStore

LEASE_SECONDS = 30.0
BEAT_SECONDS = 2.0
"""Between two signs of life; also how long a cancelled job goes on, and how old its progress may be."""
IDLE_SECONDS = 1.0
MOST_TRIES = 5
"""A job that takes its worker down with it is given up after so many."""
log = structlog.get_logger()

T = TypeVar("T")
Report = Callable[[Mapping[str, Any]], None]
Work = Callable[[Job, Report], Awaitable[Mapping[str, Any]]]
"""Does a job, telling its progress; what it returns is the job's result."""
Turn = Callable[[], AbstractContextManager[object]]
"""The right to change the store, which one process has at a time. Raises `StoreBusyError` where another has it."""


class JobRunner:
    """Takes jobs until it is closed. `wake` looks at the queue at once."""

    def __init__(self, store: JobStore, work: Mapping[str, Work], *, turn: Turn = nullcontext) -> None:
        """`turn` is taken before a job and kept until it has ended: a lease alone would let a worker that slept
        through it (a paused process) write beside the one that took its job over."""
        self._store = store
        self._work = work
        self._turn = turn
        self._held = ExitStack()
        self._name = f"{os.getpid()}-{uuid.uuid4().hex[:8]}"
        self._awake = asyncio.Event()
        self._loop: asyncio.Task[None] | None = None
        self.ended: Counter[JobState] = Counter()
        """How many jobs ended in which way."""

    def start(self, *, until_empty: bool = False) -> asyncio.Task[None]:
        """The task that works; with `until_empty` it ends when no job waits."""
        self._loop = asyncio.create_task(self._run(until_empty=until_empty), name="jobs")
        return self._loop

    def wake(self) -> None:
        self._awake.set()

    async def close(self) -> None:
        """What runs is stopped where it can go on later, and waits in the queue."""
        if self._loop is not None:
            self._loop.cancel()
            await asyncio.wait([self._loop])
        given_back = await asyncio.to_thread(self._store.release, self._name)
        if given_back:
            log.info("job given back", jobs=given_back)

    async def _run(self, *, until_empty: bool) -> None:
        while True:
            try:
                if await self._do_next():
                    continue
                if until_empty and not await asyncio.to_thread(self._store.waiting):
                    return
            except TrivetError as error:
                if until_empty:
                    raise
                log.warning("the queue of jobs cannot be used", detail=str(error))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(IDLE_SECONDS):
                    await self._awake.wait()
            self._awake.clear()

    async def _do_next(self) -> bool:
        """Whether there was a job to do."""
        try:
            job = await _finished(self._take)
            if job is None:
                return False
            await self._do(job)
            return True
        finally:
            self._held.close()

    def _take(self) -> Job | None:
        """The next job, with the turn to do it. Blocking."""
        if not self._store.waiting():
            return None
        with ExitStack() as held:
            try:
                held.enter_context(self._turn())
            except StoreBusyError:
                return None
            job = self._store.take(self._name, LEASE_SECONDS)
            if job is not None:
                self._held = held.pop_all()
            return job

    async def _do(self, job: Job) -> None:
        said = {"job": job.id, "kind": job.kind, "source": str(job.payload.get("source", ""))}
        with structlog.contextvars.bound_contextvars(**said):
            log.info("job begun", tries=job.tries)
            begun = time.monotonic()
            state, error = await self._outcome(job)
            log.info("job ended", state=state, error=error, seconds=round(time.monotonic() - begun, 1))
        self.ended[state] += 1

    async def _outcome(self, job: Job) -> tuple[JobState, str]:
        """Do it; how it ended, and why it failed."""
        work = self._work.get(job.kind)
        if work is None or job.tries > MOST_TRIES:
            why = f"gave up after {MOST_TRIES} tries" if work else f"no worker knows jobs of kind {job.kind!r}"
            return await self._end(job, JobState.FAILED, {}, why)
        progress: dict[str, Any] = {}
        task = asyncio.ensure_future(work(job, progress.update))
        try:
            await self._watch(job, task, progress)
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait([task])
        return await self._close(job, task)

    async def _watch(self, job: Job, task: asyncio.Future[Mapping[str, Any]], progress: Mapping[str, Any]) -> None:
        """Until it is done, or is to stop: cancelled, or somebody else's."""
        while not task.done():
            await asyncio.wait([task], timeout=BEAT_SECONDS)
            if not await asyncio.to_thread(self._store.renew, job.id, self._name, LEASE_SECONDS, dict(progress)):
                return

    async def _close(self, job: Job, task: asyncio.Future[Mapping[str, Any]]) -> tuple[JobState, str]:
        if task.cancelled():
            return await self._end(job, JobState.CANCELLED, {})
        error = task.exception()
        if error is None:
            return await self._end(job, JobState.DONE, task.result())
        if isinstance(error, TrivetError):
            return await self._end(job, JobState.FAILED, {}, str(error))
        log.error("a job failed", exc_info=error)
        return await self._end(job, JobState.FAILED, {}, f"an unforeseen {type(error).__name__}; the log has more")

    async def _end(self, job: Job, state: JobState, result: Mapping[str, Any], error: str = "") -> tuple[JobState, str]:
        await asyncio.to_thread(self._store.end, job.id, self._name, state, result=result, error=error)
        return state, error


async def _finished(call: Callable[[], T]) -> T:
    """In a thread. Who is cancelled waits for it all the same: it must not take a job behind the back of `close`."""
    task = asyncio.ensure_future(asyncio.to_thread(call))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        task.exception()  # seen: nobody else will ask for it
        raise


def plain(record: Any) -> dict[str, Any]:
    """A report or progress as JSON takes it."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(record).items()}
