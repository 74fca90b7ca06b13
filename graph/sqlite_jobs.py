"""The queue of jobs in SQLite."""
# ruff: noqa: S608 — queries are put together from constants; every value is a parameter

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from graph.errors import StoreBusyError, StoreCorruptError
from graph.jobs import ENDED, Job, JobState
from graph.sqlite_file import SqliteFile
from graph.storable import storable
from graph.timestamps import now

FORMAT = 1
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
KEPT = 1000
"""Jobs that have ended are forgotten beyond so many."""
SCHEMA = """
CREATE TABLE IF NOT EXISTS jobs (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, idempotency TEXT UNIQUE, kind TEXT NOT NULL,
    payload TEXT NOT NULL, state TEXT NOT NULL, progress TEXT NOT NULL, result TEXT NOT NULL, error TEXT NOT NULL,
    tries INTEGER NOT NULL, cancelling INTEGER NOT NULL, created TEXT NOT NULL, started TEXT NOT NULL,
    ended TEXT NOT NULL, worker TEXT NOT NULL, leased_until REAL NOT NULL,
    boot TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS jobs_by_state ON jobs (state, number)"""
# If not exists: a server and a worker that start together may both find no table yet.
MAKING_SECONDS = 0.2
"""One of them may also find the file locked, or half made and so none of ours; the other has made it by then."""
COLUMNS = "id, kind, payload, state, progress, result, error, tries, cancelling, created, started, ended"
NEXT = f"""
SELECT id FROM jobs WHERE state = '{JobState.QUEUED}'
OR (state = '{JobState.RUNNING}' AND (leased_until < ? OR boot != ?)) ORDER BY number LIMIT 1"""
MINE = f"id = ? AND worker = ? AND state = '{JobState.RUNNING}'"


class SqliteJobs:
    """`JobStore` on one file; every call is one transaction, so two workers never take the same job."""

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.monotonic, boot: str | None = None) -> None:
        """`clock` is one that all processes share and nobody sets; it begins again with each start of the machine
        (`boot`), with which every lease ends."""
        self._file = _opened(path)
        self._clock = clock
        self._boot = BOOT_ID.read_text(encoding="ascii").strip() if boot is None else boot

    def close(self) -> None:
        self._file.close()

    def submit(self, kind: str, payload: Mapping[str, Any], *, key: str = "") -> Job:
        job_id = uuid.uuid4().hex
        values = (job_id, storable(key) or None, kind, json.dumps(payload), JobState.QUEUED, now())
        with self._file.writing() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO jobs (id, idempotency, kind, payload, state, created, progress, result, error, "
                "tries, cancelling, started, ended, worker, leased_until, boot) "
                "VALUES (?, ?, ?, ?, ?, ?, '{}', '{}', '', 0, 0, '', '', '', 0, '')",
                values,
            )
            ended = ", ".join(f"'{state}'" for state in sorted(ENDED))
            connection.execute(
                f"DELETE FROM jobs WHERE state IN ({ended}) AND number <= (SELECT max(number) FROM jobs) - ?",
                (KEPT,),
            )
            row = connection.execute(
                f"SELECT {COLUMNS} FROM jobs WHERE id = ?1 OR (?2 IS NOT NULL AND idempotency = ?2)",
                values[:2],
            ).fetchone()
        return _job(row)

    def job(self, job_id: str) -> Job | None:
        rows = self._rows(f"SELECT {COLUMNS} FROM jobs WHERE id = ?", storable(job_id))
        return _job(rows[0]) if rows else None

    def jobs(self, limit: int = 100) -> Sequence[Job]:
        return [_job(row) for row in self._rows(f"SELECT {COLUMNS} FROM jobs ORDER BY number DESC LIMIT ?", limit)]

    def counts(self) -> dict[JobState, int]:
        found = {
            JobState(state): count for state, count in self._rows("SELECT state, count(*) FROM jobs GROUP BY state")
        }
        return {state: found.get(state, 0) for state in JobState}

    def waiting(self) -> bool:
        return bool(self._rows(NEXT, self._clock(), self._boot))

    def take(self, worker: str, seconds: float) -> Job | None:
        clock = self._clock()
        with self._file.writing() as connection:
            found = connection.execute(NEXT, (clock, self._boot)).fetchone()
            if found is None:
                return None
            row = connection.execute(
                f"UPDATE jobs SET state = ?, worker = ?, leased_until = ?, boot = ?, tries = tries + 1, started = ? "
                f"WHERE id = ? RETURNING {COLUMNS}",
                (JobState.RUNNING, worker, clock + seconds, self._boot, now(), found[0]),
            ).fetchone()
        return _job(row)

    def renew(self, job_id: str, worker: str, seconds: float, progress: Mapping[str, Any]) -> bool:
        with self._file.writing() as connection:
            row = connection.execute(
                f"UPDATE jobs SET leased_until = ?, progress = ? WHERE {MINE} RETURNING cancelling",
                (self._clock() + seconds, json.dumps(progress), job_id, worker),
            ).fetchone()
        return row is not None and not row[0]

    def end(self, job_id: str, worker: str, state: JobState, *, result: Mapping[str, Any], error: str = "") -> None:
        with self._file.writing() as connection:
            connection.execute(
                f"UPDATE jobs SET state = ?, result = ?, error = ?, ended = ?, cancelling = 0 WHERE {MINE}",
                (state, json.dumps(result), storable(error), now(), job_id, worker),
            )

    def cancel(self, job_id: str) -> Job | None:
        with self._file.writing() as connection:
            connection.execute(
                "UPDATE jobs SET state = ?, ended = ? WHERE id = ? AND state = ?",
                (JobState.CANCELLED, now(), storable(job_id), JobState.QUEUED),
            )
            connection.execute(
                "UPDATE jobs SET cancelling = 1 WHERE id = ? AND state = ?", (storable(job_id), JobState.RUNNING)
            )
        return self.job(job_id)

    def release(self, worker: str) -> int:
        with self._file.writing() as connection:
            return connection.execute(
                "UPDATE jobs SET state = ?, worker = '', leased_until = 0, tries = tries - 1 "
                "WHERE worker = ? AND state = ?",
                (JobState.QUEUED, worker, JobState.RUNNING),
            ).rowcount

    def _rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        with self._file.reading() as connection:
            return connection.execute(query, values).fetchall()


def _opened(path: Path) -> SqliteFile:
    try:
        return SqliteFile(path, schema=SCHEMA, version=FORMAT)
    except (StoreBusyError, StoreCorruptError):
        time.sleep(MAKING_SECONDS)
        return SqliteFile(path, schema=SCHEMA, version=FORMAT)


def _job(row: tuple[Any, ...]) -> Job:
    return Job(
        id=row[0],
        kind=row[1],
        payload=json.loads(row[2]),
        state=JobState(row[3]),
        progress=json.loads(row[4]),
        result=json.loads(row[5]),
        error=row[6],
        tries=row[7],
        cancelling=bool(row[8]),
        created=row[9],
        started=row[10],
        ended=row[11],
    )
