"""One SQLite file: a writer behind a lock, readers with snapshots of their own, and SQLite's errors as ours."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from graph.errors import StoreBusyError, StoreCorruptError, StoreError, StoreFullError, StoreVersionError

BUSY_SECONDS = 30.0
"""Only another process can make us wait in SQLite itself, and the home lock keeps those out."""
PRIMARY_CODE = 0xFF
"""SQLite's extended result codes carry the primary one in their low byte."""
FULL = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM})
BROKEN = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
NO_ROOM_TO_WRITE = frozenset(
    {sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_SHMOPEN}
)
"""What a full disk looks like while the journal's index is made longer: an input/output error."""


class SqliteFile:
    """Opens, or creates from `schema`, a database of format `version`. Safe to call from any thread.

    WAL: readers see the last commit and neither wait for the writer nor hold it up. kill -9 loses no commit
    with any `synchronous`, since the journal is in the kernel's hands; FULL also waits for the disk, so that
    a power cut cannot undo a commit that another store already relies on. Commits are few (several for a
    batch of chunks) and each takes about 4 ms, so this costs next to nothing.
    """

    def __init__(self, path: Path, *, schema: str, version: int) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._depth = 0
        self._owner = 0
        self._idle: list[sqlite3.Connection] = []
        self._idle_lock = threading.Lock()
        self._closed = False
        with self._errors():
            self._writer = self._connect()
        try:
            self._prepare(schema, version)
        except BaseException:
            self._writer.close()
            raise

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)

    def _prepare(self, schema: str, version: int) -> None:
        with self._errors():
            found = self._writer.execute("PRAGMA user_version").fetchone()[0]
            tables = self._writer.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if found > version:
            raise StoreVersionError(
                f"{self.path} was written by a newer Trivet (its format is {found}, this one knows {version}); "
                "update Trivet, or choose another TRIVET_HOME."
            )
        if found == 0 and tables:
            raise StoreCorruptError(f"{self.path} is a database, but not one of Trivet's; move it out of the way.")
        with self._errors():
            self._writer.execute("PRAGMA journal_mode = WAL")
            self._writer.execute("PRAGMA synchronous = FULL")
        if found == 0:
            with self.writing() as connection:
                for statement in schema.split(";\n"):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {version:d}")

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction: all of it or nothing. Within another of the same thread it is a part of that one."""
        with self._errors(), self._lock:
            begin, commit, undo = "BEGIN IMMEDIATE", "COMMIT", ["ROLLBACK"]
            if self._depth:
                name = f"inner_{self._depth}"
                begin, commit, undo = f"SAVEPOINT {name}", f"RELEASE {name}", [f"ROLLBACK TO {name}", f"RELEASE {name}"]
            self._writer.execute(begin)
            self._depth += 1
            self._owner = threading.get_ident()
            try:
                yield self._writer
                self._writer.execute(commit)
            except BaseException:
                for statement in undo:
                    if self._writer.in_transaction:  # a full disk has already rolled back
                        self._writer.execute(statement)
                raise
            finally:
                self._depth -= 1
                self._owner = self._owner if self._depth else 0

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A snapshot: everything read within is of one commit. Within this thread's transaction it sees its writes."""
        if self._owner == threading.get_ident():
            yield self._writer
            return
        with self._errors():
            connection = self._borrow()
            try:
                connection.execute("BEGIN")
                yield connection
            finally:
                self._give_back(connection)

    def _borrow(self) -> sqlite3.Connection:
        with self._idle_lock:
            if self._closed:
                raise StoreError(f"{self.path} is closed.")
            if self._idle:
                return self._idle.pop()
        connection = self._connect()
        connection.execute("PRAGMA query_only = ON")
        return connection

    def _give_back(self, connection: sqlite3.Connection) -> None:
        if connection.in_transaction:
            connection.rollback()
        with self._idle_lock:
            if not self._closed:
                self._idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        """Readers still at work end by themselves. Closing twice is fine."""
        with self._lock, self._idle_lock:
            self._closed = True
            for connection in (*self._idle, self._writer):
                connection.close()
            self._idle.clear()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise self._translated(error) from error

    def _translated(self, error: sqlite3.Error) -> StoreError:
        extended = getattr(error, "sqlite_errorcode", 0)
        code = extended & PRIMARY_CODE
        if code in FULL or extended in NO_ROOM_TO_WRITE:
            return StoreFullError(f"Cannot write to {self.path} ({error}); free some space or make it writable.")
        if code in BROKEN:
            return StoreCorruptError(
                f"{self.path} cannot be read ({error}); restore a copy, or run `trivet ingest --rebuild`."
            )
        if code in BUSY:
            return StoreBusyError(f"{self.path} is in use by another program ({error}); stop it and try again.")
        return StoreError(f"{self.path} failed: {error}.")
