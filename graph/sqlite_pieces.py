"""Long pieces in SQLite, in a file of their own: a rebuild of the store keeps them."""
# ruff: noqa: S608 — queries are put together from constants; every value is a parameter

from __future__ import annotations

from pathlib import Path

from graph.pieces import KeptPiece
from graph.sqlite_file import SqliteFile
from graph.storable import storable
from graph.timestamps import now

FORMAT = 1
KEPT = 1_000
"""The oldest beyond so many are forgotten."""
SCHEMA = """
CREATE TABLE IF NOT EXISTS pieces (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, request TEXT NOT NULL, piece TEXT NOT NULL,
    job TEXT NOT NULL, created TEXT NOT NULL, changed TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS sections (
    piece TEXT NOT NULL REFERENCES pieces (id), number INTEGER NOT NULL, section TEXT NOT NULL,
    PRIMARY KEY (piece, number)) WITHOUT ROWID"""
OLD = "SELECT number FROM pieces ORDER BY number DESC LIMIT 1 OFFSET ?"


class SqlitePieces:
    """`PieceStore` on one file; every call is one transaction."""

    def __init__(self, path: Path, *, kept: int = KEPT) -> None:
        self._file = SqliteFile(path, schema=SCHEMA, version=FORMAT)
        self._kept = kept

    def close(self) -> None:
        self._file.close()

    def begin(self, piece_id: str, request: str, *, job: str = "") -> KeptPiece:
        at = now()
        with self._file.writing() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO pieces (id, request, piece, job, created, changed) VALUES (?, ?, '', ?, ?, ?)",
                (storable(piece_id), storable(request), storable(job), at, at),
            )
            old = f"SELECT id FROM pieces WHERE number <= ({OLD})"
            connection.execute(f"DELETE FROM sections WHERE piece IN ({old})", (self._kept,))
            connection.execute(f"DELETE FROM pieces WHERE number <= ({OLD})", (self._kept,))
        found = self.piece(piece_id)
        assert found is not None, "it was just put there"
        return found

    def reopen(self, piece_id: str, *, job: str = "") -> None:
        with self._file.writing() as connection:
            connection.execute(
                "UPDATE pieces SET piece = '', job = ?1, changed = ?2 WHERE id = ?3 AND job != ?1",
                (storable(job), now(), storable(piece_id)),
            )

    def put_section(self, piece_id: str, number: int, section: str) -> None:
        with self._file.writing() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO sections (piece, number, section) VALUES (?, ?, ?)",
                (storable(piece_id), number, storable(section)),
            )
            connection.execute("UPDATE pieces SET piece = '', changed = ? WHERE id = ?", (now(), storable(piece_id)))

    def end(self, piece_id: str, piece: str) -> None:
        with self._file.writing() as connection:
            connection.execute(
                "UPDATE pieces SET piece = ?, changed = ? WHERE id = ?", (storable(piece), now(), storable(piece_id))
            )

    def piece(self, piece_id: str) -> KeptPiece | None:
        with self._file.reading() as connection:
            row = connection.execute(
                "SELECT id, request, piece, job, created, changed FROM pieces WHERE id = ?", (storable(piece_id),)
            ).fetchone()
            if row is None:
                return None
            sections = connection.execute("SELECT section FROM sections WHERE piece = ? ORDER BY number", (row[0],))
            return KeptPiece(
                id=row[0],
                request=row[1],
                piece=row[2],
                job=row[3],
                created=row[4],
                changed=row[5],
                sections=tuple(one for (one,) in sections),
            )
