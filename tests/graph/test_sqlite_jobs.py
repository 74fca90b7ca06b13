"""The queue of jobs: each is done by one worker, and none is lost with it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from graph.jobs import Job, JobState
from graph.sqlite_jobs import KEPT, SqliteJobs


class Queue:
    """Jobs on a clock that the test turns."""

    def __init__(self, path: Path) -> None:
        self.now, self.path = 100.0, path
        self.jobs = self.opened()

    def opened(self, boot: str = "monday") -> SqliteJobs:
        return SqliteJobs(self.path, clock=lambda: self.now, boot=boot)


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[Queue]:
    made = Queue(tmp_path / "jobs.db")
    yield made
    made.jobs.close()


def taken(jobs: SqliteJobs, worker: str = "w") -> Job:
    job = jobs.take(worker, 30)
    assert job is not None
    return job


def test_first_come_first_served(queue: Queue) -> None:
    first = queue.jobs.submit("sync", {"source": "a"})
    second = queue.jobs.submit("sync", {"source": "b"})
    assert first.state is JobState.QUEUED
    running = taken(queue.jobs)
    assert (running.id, running.state, running.payload, running.tries) == (
        first.id,
        JobState.RUNNING,
        {"source": "a"},
        1,
    )
    assert taken(queue.jobs, "other").id == second.id
    assert queue.jobs.take("w", 30) is None
    queue.jobs.end(first.id, "w", JobState.DONE, result={"added": 3})
    done = queue.jobs.job(first.id)
    assert done is not None
    assert (done.state, done.result, bool(done.ended)) == (JobState.DONE, {"added": 3}, True)
    assert [job.id for job in queue.jobs.jobs()] == [second.id, first.id]
    assert queue.jobs.job("nobody") is None


def test_the_same_key_makes_one_job(queue: Queue) -> None:
    first = queue.jobs.submit("sync", {"source": "a"}, key="k")
    assert queue.jobs.submit("sync", {"source": "b"}, key="k") == first
    assert queue.jobs.submit("sync", {}, key="").id != queue.jobs.submit("sync", {}, key="").id


def test_a_worker_that_dies_loses_its_job_and_cannot_end_it(queue: Queue) -> None:
    job = queue.jobs.submit("sync", {})
    taken(queue.jobs, "dead")
    queue.now += 20
    assert queue.jobs.renew(job.id, "dead", 30, {"pages": 5})
    queue.now += 29
    assert queue.jobs.take("heir", 30) is None
    queue.now += 2
    assert (taken(queue.jobs, "heir").id, queue.jobs.renew(job.id, "dead", 30, {})) == (job.id, False)
    queue.jobs.end(job.id, "dead", JobState.DONE, result={})
    found = queue.jobs.job(job.id)
    assert found is not None
    assert (found.state, found.tries, found.progress) == (JobState.RUNNING, 2, {"pages": 5})


def test_a_restart_of_the_machine_ends_every_lease(queue: Queue) -> None:
    job = queue.jobs.submit("sync", {})
    taken(queue.jobs)
    queue.now = 1.0  # the clock began again
    after = queue.opened(boot="tuesday")
    assert taken(after, "new").id == job.id
    after.close()


def test_a_waiting_job_is_cancelled_at_once_and_a_running_one_when_its_worker_asks(queue: Queue) -> None:
    running, waiting = queue.jobs.submit("sync", {}), queue.jobs.submit("sync", {})
    taken(queue.jobs)
    cancelled = queue.jobs.cancel(waiting.id)
    assert cancelled is not None
    assert cancelled.state is JobState.CANCELLED
    asked = queue.jobs.cancel(running.id)
    assert asked is not None
    assert (asked.state, asked.cancelling) == (JobState.RUNNING, True)
    assert not queue.jobs.renew(running.id, "w", 30, {})
    queue.jobs.end(running.id, "w", JobState.CANCELLED, result={})
    assert queue.jobs.take("w", 30) is None
    assert queue.jobs.cancel("nobody") is None


def test_a_worker_that_stops_gives_its_jobs_back(queue: Queue) -> None:
    job = queue.jobs.submit("sync", {})
    taken(queue.jobs, "a")
    assert queue.jobs.release("b") == 0
    assert queue.jobs.release("a") == 1
    assert taken(queue.jobs, "b").id == job.id


def test_many_workers_never_share_a_job(queue: Queue) -> None:
    ids = {queue.jobs.submit("sync", {"n": n}).id for n in range(60)}
    got: list[str] = []

    def work(name: str) -> None:
        while (job := queue.jobs.take(name, 30)) is not None:
            got.append(job.id)

    threads = [threading.Thread(target=work, args=(f"w{n}",)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 60
    assert set(got) == ids


def test_old_jobs_are_forgotten_but_none_that_has_not_ended(queue: Queue) -> None:
    waiting = queue.jobs.submit("sync", {})
    running = taken(queue.jobs)
    assert running.id == waiting.id
    for _ in range(3):
        job = queue.jobs.submit("sync", {})
        taken(queue.jobs)
        queue.jobs.end(job.id, "w", JobState.DONE, result={})
    with queue.jobs._file.writing() as connection:
        connection.execute("UPDATE jobs SET number = number + ? WHERE number = 4", (KEPT + 10,))
    queue.jobs.submit("sync", {})
    assert len(queue.jobs.jobs()) == 3
    assert queue.jobs.job(running.id) is not None


def test_how_many_are_in_each_state(queue: Queue) -> None:
    assert set(queue.jobs.counts().values()) == {0}
    for source in "abc":
        queue.jobs.submit("sync", {"source": source})
    job = taken(queue.jobs)
    assert queue.jobs.counts()[JobState.RUNNING] == 1
    queue.jobs.end(job.id, "w", JobState.DONE, result={})
    counts = queue.jobs.counts()
    assert (counts[JobState.QUEUED], counts[JobState.RUNNING], counts[JobState.DONE]) == (2, 0, 1)
