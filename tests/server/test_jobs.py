"""The runner of jobs: what is told while one runs, what becomes of it when it fails, is cancelled or cut short."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from config.settings import ServerSettings, Settings, VectorSettings
from graph.errors import SourceError, StoreBusyError, StoreFullError
from graph.jobs import ENDED, Job, JobState
from graph.sqlite_jobs import SqliteJobs
from graph.sqlite_registry import SqliteRegistry
from server import jobs as module
from server.jobs import MOST_TRIES, JobRunner, Report, Turn
from server.librarian import JobLibrarian
from server.library import Library, take_turn
from tests.server.answer.found import backends


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BEAT_SECONDS", 0.05)
    monkeypatch.setattr(module, "IDLE_SECONDS", 0.05)


@pytest.fixture
def store(tmp_path: Path) -> SqliteJobs:
    return SqliteJobs(tmp_path / "jobs.db")


async def count(job: Job, report: Report) -> Mapping[str, Any]:
    for n in range(int(job.payload["to"])):
        report({"pages": n + 1})
        await asyncio.sleep(0.02)
    return {"added": job.payload["to"]}


async def fail(job: Job, report: Report) -> Mapping[str, Any]:
    raise SourceError("There is nothing at /wiki; check the path.")


async def break_down(job: Job, report: Report) -> Mapping[str, Any]:
    raise KeyError("a fault of ours")


WORK = {"count": count, "fail": fail, "break": break_down}


@asynccontextmanager
async def running(store: SqliteJobs, turn: Turn = nullcontext) -> AsyncIterator[JobRunner]:
    runner = JobRunner(store, WORK, turn=turn)
    runner.start()
    try:
        yield runner
    finally:
        await runner.close()


async def ended(store: SqliteJobs, job: Job) -> Job:
    async with asyncio.timeout(20):
        while True:
            found = store.job(job.id)
            assert found is not None
            if found.state in ENDED:
                return found
            await asyncio.sleep(0.02)


async def test_jobs_are_done_in_order_and_say_how_far_they_are(store: SqliteJobs) -> None:
    first, second = store.submit("count", {"to": 10}), store.submit("count", {"to": 1})
    seen = []
    async with running(store):
        while (found := store.job(first.id)) is not None and found.state not in ENDED:
            seen.append(found.progress.get("pages", 0))
            await asyncio.sleep(0.02)
        assert (await ended(store, second)).result == {"added": 1}
    assert (await ended(store, first)).state is JobState.DONE
    assert seen == sorted(seen)
    assert 0 < max(seen) <= 10
    store.close()


async def test_a_job_that_fails_says_why_and_the_next_is_done(store: SqliteJobs) -> None:
    wrong, ours, unknown, fine = (
        store.submit("fail", {}),
        store.submit("break", {}),
        store.submit("dance", {}),
        store.submit("count", {"to": 1}),
    )
    async with running(store):
        assert (await ended(store, fine)).state is JobState.DONE
    assert (await ended(store, wrong)).error == "There is nothing at /wiki; check the path."
    assert (await ended(store, ours)).error == "an unforeseen KeyError; the log has more"
    assert (await ended(store, unknown)).error == "no worker knows jobs of kind 'dance'"
    store.close()


async def test_a_running_job_is_cancelled_within_a_heartbeat(store: SqliteJobs) -> None:
    job = store.submit("count", {"to": 10_000})
    async with running(store) as runner:
        while store.job(job.id) == job:  # noqa: ASYNC110 — another process writes it as a rule
            await asyncio.sleep(0.02)
        store.cancel(job.id)
        assert (await ended(store, job)).state is JobState.CANCELLED
        after = store.submit("count", {"to": 1})
        runner.wake()
        assert (await ended(store, after)).state is JobState.DONE
    store.close()


async def test_what_is_cut_short_by_a_stop_is_done_by_the_next_server(store: SqliteJobs) -> None:
    job = store.submit("count", {"to": 30})
    async with running(store):
        while store.job(job.id) == job:  # noqa: ASYNC110 — another process writes it as a rule
            await asyncio.sleep(0.02)
    waiting = store.job(job.id)
    assert waiting is not None
    assert (waiting.state, waiting.tries) == (JobState.QUEUED, 0)
    async with running(store):
        done = await ended(store, job)
    assert (done.state, done.tries) == (JobState.DONE, 1)
    store.close()


async def test_a_job_may_be_given_back_any_number_of_times(store: SqliteJobs) -> None:
    job = store.submit("count", {"to": 1})
    for n in range(MOST_TRIES + 1):
        assert store.take(f"stopping {n}", 30) is not None
        assert store.release(f"stopping {n}") == 1
    async with running(store):
        assert (await ended(store, job)).state is JobState.DONE
    store.close()


async def test_a_runner_that_empties_the_queue_ends_by_itself(store: SqliteJobs) -> None:
    store.submit("count", {"to": 1})
    store.submit("fail", {})
    runner = JobRunner(store, WORK)
    async with asyncio.timeout(20):
        await runner.start(until_empty=True)
    assert runner.ended == {JobState.DONE: 1, JobState.FAILED: 1}
    await runner.close()
    store.close()


async def test_jobs_wait_while_another_process_changes_the_store(store: SqliteJobs, tmp_path: Path) -> None:
    job = store.submit("count", {"to": 3})
    turn = partial(take_turn, tmp_path, command="serve")
    other = take_turn(tmp_path, command="ingest")
    async with running(store, turn):
        await asyncio.sleep(0.5)
        assert store.job(job.id) == job
        other.release()
        assert (await ended(store, job)).state is JobState.DONE
    take_turn(tmp_path, command="ingest").release()
    store.close()


async def test_the_turn_is_kept_until_the_job_has_stopped(store: SqliteJobs, tmp_path: Path) -> None:
    job = store.submit("count", {"to": 10_000})
    async with running(store, partial(take_turn, tmp_path, command="worker")):
        while store.job(job.id) == job:  # noqa: ASYNC110 — another process writes it as a rule
            await asyncio.sleep(0.02)
        with pytest.raises(StoreBusyError, match=r"in use by `worker` \(process"):
            take_turn(tmp_path, command="ingest")
    take_turn(tmp_path, command="ingest").release()
    store.close()


async def test_a_queue_that_fails_for_a_while_stops_nobody(store: SqliteJobs, monkeypatch: pytest.MonkeyPatch) -> None:
    renew, failures = store.renew, 2

    def failing(*given: Any) -> bool:
        nonlocal failures
        failures -= 1
        if failures >= 0:
            raise StoreFullError("Cannot write to jobs.db.")
        return renew(*given)

    monkeypatch.setattr(store, "renew", failing)
    monkeypatch.setattr(module, "LEASE_SECONDS", 0.1)
    job = store.submit("count", {"to": 10})
    async with running(store):
        assert (await ended(store, job)).state is JobState.DONE
    store.close()


async def test_a_job_that_takes_its_workers_down_is_given_up(store: SqliteJobs) -> None:
    job = store.submit("count", {"to": 1})
    for n in range(MOST_TRIES):
        assert store.take(f"dead {n}", -1) is not None
    async with running(store):
        given_up = await ended(store, job)
    assert (given_up.state, given_up.error) == (JobState.FAILED, f"gave up after {MOST_TRIES} tries")
    store.close()


def test_a_server_that_leaves_its_jobs_says_so_where_nobody_can_do_them(store: SqliteJobs, tmp_path: Path) -> None:
    for url, warnings in (("", 1), ("http://qdrant:6333", 0)):
        settings = Settings(server=ServerSettings(run_jobs=False), vectors=VectorSettings(qdrant_url=url))
        registry = SqliteRegistry(tmp_path / "sources.db")
        library = Library(backends=replace(backends(), settings=settings), registry=registry, jobs=store)
        with capture_logs() as said:
            JobLibrarian(library).start()  # without a loop: nothing is started
        assert len(said) == warnings
        registry.close()
    store.close()
