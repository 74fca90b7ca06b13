"""The store's folder (TRIVET_HOME): who holds it, and what it was made with."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from graph.errors import StoreBusyError, StoreCorruptError, StoreError, StoreFullError, StoreVersionError

FORMAT = 1
STATE_FILE = "state.db"
GRAPH_FILE = "graph.db"
VECTORS_FOLDER = "vectors"
SOURCES_FILE = "sources.db"
JOBS_FILE = "jobs.db"
TOKENS_FILE = "tokens.db"
FEEDBACK_FILE = "feedback.db"
RESEARCH_FILE = "research.db"
PIECES_FILE = "pieces.db"
LOCK_FILE = "lock"
STAMP_FILE = "store.json"
OLDER = {"id": "", "vectors": "edge", "graph": "sqlite"}
"""What stamps of the first version left out."""
PATIENCE_SECONDS = 0.3
"""`holder` takes the lock for a moment to see whether it is free; so long may an `acquire` be mistaken."""

_held: set[int] = set()
"""Descriptors of this process's locks, for `_forget_locks`."""


def _forget_locks() -> None:
    """In a forked child: a copy of the descriptor would keep the lock after its owner is gone."""
    for descriptor in _held:
        with contextlib.suppress(OSError):
            os.close(descriptor)
    _held.clear()


os.register_at_fork(after_in_child=_forget_locks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """The process that has the store."""

    pid: int
    command: str
    url: str = ""
    """Where it answers, if it is a server that has begun to listen."""
    started: str = ""

    def __str__(self) -> str:
        at = f" at {self.url}" if self.url else ""
        return f"`{self.command}`{at} (process {self.pid}, since {self.started})"


class HomeLock:
    """Only one process may open the stores: the vector engine takes no lock of its own.

    The kernel drops the lock with its process, however that ends; the file stays and says nothing then.
    """

    def __init__(self, home: Path, descriptor: int, holder: Holder) -> None:
        self.home = home
        self._descriptor = descriptor
        self._me = holder

    @classmethod
    def acquire(cls, home: Path, *, command: str) -> HomeLock:
        """Makes the folder if need be. Raises `StoreBusyError` naming who has it."""
        prepare_home(home)
        with _folder_errors(home):
            descriptor = os.open(home / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if not _lock(descriptor, home):
                raise StoreBusyError(f"The store in {home} is in use by {_read(descriptor)}; stop it or wait for it.")
            started = datetime.now(UTC).isoformat(timespec="seconds")
            lock = cls(home, descriptor, Holder(pid=os.getpid(), command=command, started=started))
            lock.publish("")
        except BaseException:
            os.close(descriptor)
            raise
        _held.add(descriptor)
        return lock

    @classmethod
    def holder(cls, home: Path) -> Holder | None:
        """Who has the store now; None if nobody does, or there is none."""
        try:
            descriptor = os.open(home / LOCK_FILE, os.O_RDONLY)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise StoreError(f"Cannot read {home / LOCK_FILE}: {error.strerror}.") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return _read(descriptor)
        finally:
            os.close(descriptor)
        return None

    def publish(self, url: str) -> None:
        """Say where this server answers, once it is bound."""
        self._me = Holder(pid=self._me.pid, command=self._me.command, started=self._me.started, url=url)
        said = json.dumps(asdict(self._me)).encode()
        with _folder_errors(self.home):
            os.pwrite(self._descriptor, said, 0)
            os.ftruncate(self._descriptor, len(said))

    def release(self) -> None:
        if self._descriptor in _held:
            _held.discard(self._descriptor)
            os.close(self._descriptor)
        self._descriptor = -1

    def __enter__(self) -> HomeLock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def _lock(descriptor: int, home: Path) -> bool:
    patient_until = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > patient_until:
                return False
            time.sleep(PATIENCE_SECONDS / 10)
        except OSError as error:
            raise StoreError(f"The file system of {home} has no locks ({error.strerror}); choose another.") from error
        else:
            return True


def _read(descriptor: int) -> Holder:
    """What the lock file says. Its holder may be writing at this moment, so what makes no sense is read again."""
    for _ in range(5):
        try:
            said = json.loads(os.pread(descriptor, 4096, 0))
            return Holder(pid=said["pid"], command=said["command"], url=said["url"], started=said["started"])
        except (ValueError, KeyError, TypeError):
            time.sleep(0.02)
    return Holder(pid=0, command="another program", started="?")


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeStamp:
    """What a store was made with. Vectors of another model, or BM25 of another language, cannot be compared."""

    embedding_model: str
    dimension: int
    bm25_language: str
    trivet_version: str
    """Of the last Trivet that opened it for writing."""
    format: int = FORMAT
    id: str = ""
    """Written beside what this store keeps on servers, so that two stores never share a database by accident."""
    vectors: str = "edge"
    """Where the vectors are: "edge" (in the folder) or "qdrant"."""
    graph: str = "sqlite"
    """Where the graph is: "sqlite" (in the folder) or "neo4j"."""

    @classmethod
    def read(cls, home: Path) -> HomeStamp | None:
        """None where no store is yet."""
        path = home / STAMP_FILE
        try:
            said = json.loads(path.read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise StoreError(f"Cannot read {path}: {error.strerror}.") from error
        except ValueError as error:
            raise _unreadable(path) from error
        # A newer format may have other fields: it is enough to know that it is newer.
        known: dict[str, Any] = (
            {field.name: said.get(field.name, OLDER.get(field.name)) for field in fields(cls)}
            if isinstance(said, dict)
            else {}
        )
        if not isinstance(known.get("format"), int) or not isinstance(known.get("trivet_version"), str):
            raise _unreadable(path)
        if known["format"] > FORMAT:
            raise StoreVersionError(
                f"The store in {home} was written by Trivet {known['trivet_version']} in format {known['format']}, "
                f"and this one knows format {FORMAT}; update Trivet, or choose another TRIVET_HOME."
            )
        if None in known.values():
            raise _unreadable(path)
        return cls(**known)

    def settle(self, home: Path) -> HomeStamp:
        """Stamp a new store, with an id of its own; refuse one that was made otherwise. The caller holds the lock."""
        found = self.read(home)
        if found is not None:
            self.check(home, found)
        stamp = replace(self, id=(found.id if found else self.id) or uuid.uuid4().hex[:16])
        if found != stamp:
            stamp.write(home)
        return stamp

    def check(self, home: Path, found: HomeStamp) -> None:
        """Raises `StoreVersionError` where a store made as `found` says cannot be used as `self` says."""
        again = "run `trivet ingest --rebuild` to make it anew, or change the setting back."
        if found.format < self.format:
            raise StoreVersionError(
                f"The store in {home} has format {found.format} (Trivet {found.trivet_version}) and this Trivet writes "
                f"format {self.format}; run `trivet ingest --rebuild` to make it anew."
            )
        if (found.embedding_model, found.dimension) != (self.embedding_model, self.dimension):
            raise StoreVersionError(
                f"The store in {home} was made with the embedding model {found.embedding_model} "
                f"({found.dimension} numbers) and the one set is {self.embedding_model} ({self.dimension}); {again}"
            )
        if found.bm25_language != self.bm25_language:
            raise StoreVersionError(
                f"The store in {home} was made with BM25 for {found.bm25_language} and the language set is "
                f"{self.bm25_language}; {again}"
            )
        for where, wanted in ((found.vectors, self.vectors), (found.graph, self.graph)):
            if where != wanted:
                raise StoreVersionError(MOVED[wanted].format(home=home))

    def write(self, home: Path) -> None:
        write_atomically(home / STAMP_FILE, json.dumps(asdict(self), indent=2) + "\n")


MOVED = {
    "edge": "The vectors of the store in {home} are in Qdrant and vectors.qdrant_url is not set; set it, and if they "
    "are to come back: `trivet migrate --to embedded`.",
    "qdrant": "The vectors of the store in {home} are in that folder and vectors.qdrant_url is set; unset it, or move "
    "them there: `trivet migrate --to servers`.",
    "sqlite": "The graph of the store in {home} is in Neo4j and graph.neo4j_url is not set; set it, and if it is to "
    "come back: `trivet migrate --to embedded`.",
    "neo4j": "The graph of the store in {home} is in that folder and graph.neo4j_url is set; unset it, or move it "
    "there: `trivet migrate --to servers`.",
}
"""By where the settings look, what to say where it is elsewhere."""


def _unreadable(path: Path) -> StoreCorruptError:
    return StoreCorruptError(f"{path} is not what Trivet wrote; restore it, or run `trivet ingest --rebuild`.")


def prepare_home(home: Path) -> None:
    """Make the folder, for its owner alone. Raises `StoreFullError` where nothing can be written."""
    with _folder_errors(home):
        home.parent.mkdir(parents=True, exist_ok=True)
        home.mkdir(mode=0o700, exist_ok=True)
        if not os.access(home, os.W_OK | os.X_OK):
            raise PermissionError(0, "not writable")


def erase_store(home: Path) -> None:
    """Remove what is stored of pages: the first half of a rebuild. The caller holds the lock. The stamp goes first."""
    with _folder_errors(home):
        for name in (STAMP_FILE, STATE_FILE, GRAPH_FILE, TOKENS_FILE):
            _unlink(home / name)
        if (home / VECTORS_FOLDER).exists():
            shutil.rmtree(home / VECTORS_FOLDER)


def erase_graph_file(home: Path) -> None:
    """For a graph that has moved elsewhere; nobody has it open."""
    with _folder_errors(home):
        _unlink(home / GRAPH_FILE)


def _unlink(path: Path) -> None:
    """A file, and what SQLite keeps beside it."""
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def write_atomically(path: Path, text: str) -> None:
    """Readers find the old text or the new one, also after a power cut."""
    with _folder_errors(path):
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


@contextmanager
def _folder_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreFullError(
            f"Cannot write to {path} ({error.strerror}); "
            "free some space, make it writable, or choose another TRIVET_HOME."
        ) from error
