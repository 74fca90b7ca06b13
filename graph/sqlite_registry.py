"""The registry of sources in SQLite, in a file of its own: a rebuild empties the store and keeps what is followed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from graph.model import FailedPage
from graph.registry import DeadLetter, RegisteredSource
from graph.sqlite_file import SqliteFile
from graph.storable import storable

FORMAT = 1
SCHEMA = """
CREATE TABLE sources (
    name TEXT PRIMARY KEY, kind TEXT NOT NULL, location TEXT NOT NULL, base_url TEXT NOT NULL, options TEXT NOT NULL,
    cursor TEXT NOT NULL, added TEXT NOT NULL, last_run TEXT NOT NULL, last_error TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE dead_letters (
    source TEXT NOT NULL, key TEXT NOT NULL, reason TEXT NOT NULL, first TEXT NOT NULL, last TEXT NOT NULL,
    tries INTEGER NOT NULL, PRIMARY KEY (source, key)) WITHOUT ROWID"""
PUT_SOURCE = """
INSERT INTO sources VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (name) DO UPDATE SET kind = excluded.kind, location = excluded.location, base_url = excluded.base_url,
options = excluded.options, cursor = excluded.cursor, added = excluded.added, last_run = excluded.last_run,
last_error = excluded.last_error"""
PUT_LETTER = """
INSERT INTO dead_letters VALUES (?1, ?2, ?3, ?4, ?4, 1)
ON CONFLICT (source, key) DO UPDATE SET reason = excluded.reason, last = excluded.last, tries = tries + 1"""


class SqliteRegistry:
    """`Registry` on one file."""

    def __init__(self, path: Path) -> None:
        self._file = SqliteFile(path, schema=SCHEMA, version=FORMAT)

    def close(self) -> None:
        self._file.close()

    def sources(self) -> Sequence[RegisteredSource]:
        return [_source(row) for row in self._rows("SELECT * FROM sources ORDER BY name")]

    def source(self, name: str) -> RegisteredSource | None:
        rows = self._rows("SELECT * FROM sources WHERE name = ?", name)
        return _source(rows[0]) if rows else None

    def put_source(self, source: RegisteredSource) -> None:
        values = (
            source.name, source.kind, source.location, source.base_url, json.dumps(dict(source.options)),
            source.cursor, source.added, source.last_run, source.last_error,
        )  # fmt: skip
        with self._file.writing() as connection:
            connection.execute(PUT_SOURCE, tuple(map(storable, values)))

    def remove_source(self, name: str) -> bool:
        with self._file.writing() as connection:
            connection.execute("DELETE FROM dead_letters WHERE source = ?", (name,))
            return connection.execute("DELETE FROM sources WHERE name = ?", (name,)).rowcount > 0

    def set_cursor(self, name: str, cursor: str) -> None:
        with self._file.writing() as connection:
            connection.execute("UPDATE sources SET cursor = ? WHERE name = ?", (storable(cursor), name))

    def forget_cursors(self) -> None:
        with self._file.writing() as connection:
            connection.execute("UPDATE sources SET cursor = ''")

    def note_failures(self, name: str, failed: Sequence[FailedPage], settled: Sequence[str], now: str) -> None:
        with self._file.writing() as connection:
            gone = ((name, storable(key)) for key in settled)
            connection.executemany("DELETE FROM dead_letters WHERE source = ? AND key = ?", gone)
            letters = ((name, storable(page.key), storable(page.reason), now) for page in failed)
            connection.executemany(PUT_LETTER, letters)

    def dead_letters(self, name: str | None = None) -> Sequence[DeadLetter]:
        query = "SELECT * FROM dead_letters WHERE ?1 IS NULL OR source = ?1 ORDER BY source, key"
        return [
            DeadLetter(source=row[0], key=row[1], reason=row[2], first=row[3], last=row[4], tries=row[5])
            for row in self._rows(query, name)
        ]

    def _rows(self, query: str, *values: str | None) -> list[tuple[Any, ...]]:
        with self._file.reading() as connection:
            return connection.execute(query, values).fetchall()


def _source(row: tuple[Any, ...]) -> RegisteredSource:
    return RegisteredSource(
        name=row[0],
        kind=row[1],
        location=row[2],
        base_url=row[3],
        options=json.loads(row[4]),
        cursor=row[5],
        added=row[6],
        last_run=row[7],
        last_error=row[8],
    )
