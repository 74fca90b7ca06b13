"""Work that outlives a request: queued, leased, resumed after a crash, cancelled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol


class JobState(StrEnum):
    """queued → running → done, failed or cancelled; a worker that dies sends it back to queued."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


ENDED = frozenset({JobState.DONE, JobState.FAILED, JobState.CANCELLED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One piece of work. Times are RFC 3339 in UTC, or ""."""

    id: str
    kind: str
    payload: Mapping[str, Any] = field(default_factory=dict)
    state: JobState = JobState.QUEUED
    progress: Mapping[str, Any] = field(default_factory=dict)
    result: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""
    tries: int = 0
    """How often it was begun; what is given back in good order does not count."""
    cancelling: bool = False
    """Whether it was asked to stop and has not yet."""
    created: str = ""
    started: str = ""
    ended: str = ""


class JobStore(Protocol):
    """A queue, first come first served. Blocking and quick."""

    def submit(self, kind: str, payload: Mapping[str, Any], *, key: str = "") -> Job:
        """`key`: what a client sends so that asking twice makes one job (`Idempotency-Key`)."""
        ...

    def job(self, job_id: str) -> Job | None: ...
    def jobs(self, limit: int = 100) -> Sequence[Job]:
        """The newest first."""
        ...

    def counts(self) -> dict[JobState, int]:
        """How many of those that are remembered are in each state."""
        ...

    def waiting(self) -> bool:
        """Whether there is one that `take` would give."""
        ...

    def take(self, worker: str, seconds: float) -> Job | None:
        """The oldest that waits, or whose worker let its lease run out; it is this worker's for so long."""
        ...

    def renew(self, job_id: str, worker: str, seconds: float, progress: Mapping[str, Any]) -> bool:
        """False where it is to stop: cancelled, or another worker's by now."""
        ...

    def end(self, job_id: str, worker: str, state: JobState, *, result: Mapping[str, Any], error: str = "") -> None: ...
    def cancel(self, job_id: str) -> Job | None:
        """A waiting one ends at once, a running one when its worker renews; None where there is none."""
        ...

    def release(self, worker: str) -> int:
        """Back to the queue with what this worker holds, as it stops; that is not counted as a try. How many."""
        ...

    def close(self) -> None: ...
