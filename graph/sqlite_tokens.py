"""Token vectors of chunks in a file of the home folder, one byte for each number."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graph.sqlite_file import SqliteFile
from graph.storable import storable

FORMAT = 1
LARGEST = 127
"""Of a byte with a sign; each token's largest number becomes it."""

SCHEMA = """
CREATE TABLE tokens (chunk_id TEXT PRIMARY KEY, vectors BLOB NOT NULL);
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID"""


class SqliteTokens:
    """`TokenStore` on one file, whichever store has the other vectors.

    Not in the vector engines, which can do it too (tried with qdrant-edge 0.9: 3 ms to score 50 chunks of 150 tokens):
    a shard that exists cannot be given a second vector, its log keeps four bytes for each number, and writing holds
    Python's lock for 2 ms a chunk; a server would get them as JSON, 400 kB a chunk.

    A chunk's id names its text, so what is written here is right or superfluous, and needs no transaction with other
    stores. What another model made is removed on opening: it can be made again.
    """

    def __init__(self, path: Path, *, model: str, dimension: int) -> None:
        self._dimension = dimension
        self._file = SqliteFile(path, schema=SCHEMA, version=FORMAT)
        recipe = json.dumps([model, dimension])
        with self._file.reading() as connection:
            found = connection.execute("SELECT value FROM meta WHERE key = 'recipe'").fetchone()
        if found is None or found[0] != recipe:
            with self._file.writing() as connection:
                connection.execute("DELETE FROM tokens")
                connection.execute("INSERT OR REPLACE INTO meta VALUES ('recipe', ?)", (recipe,))

    def put(self, vectors: Mapping[str, NDArray[np.float32]]) -> None:
        rows = [(storable(chunk_id), quantised(rows).tobytes()) for chunk_id, rows in vectors.items()]
        with self._file.writing() as connection:
            connection.executemany("INSERT OR REPLACE INTO tokens (chunk_id, vectors) VALUES (?, ?)", rows)

    def get(self, chunk_ids: Sequence[str]) -> Mapping[str, NDArray[np.int8]]:
        wanted = json.dumps([storable(chunk_id) for chunk_id in chunk_ids])
        with self._file.reading() as connection:
            rows = connection.execute(
                "SELECT chunk_id, vectors FROM tokens WHERE chunk_id IN (SELECT value FROM json_each(?))", (wanted,)
            )
            return {key: np.frombuffer(blob, np.int8).reshape(-1, self._dimension) for key, blob in rows}

    def delete(self, chunk_ids: Sequence[str]) -> None:
        with self._file.writing() as connection:
            connection.executemany(
                "DELETE FROM tokens WHERE chunk_id = ?", ((storable(chunk_id),) for chunk_id in chunk_ids)
            )

    def ids(self) -> set[str]:
        with self._file.reading() as connection:
            return {chunk_id for (chunk_id,) in connection.execute("SELECT chunk_id FROM tokens")}

    def size(self) -> tuple[int, int]:
        with self._file.reading() as connection:
            chunks, total = connection.execute(
                "SELECT count(*), coalesce(sum(length(vectors)), 0) FROM tokens"
            ).fetchone()
            return int(chunks), int(total)

    def clear(self) -> None:
        with self._file.writing() as connection:
            connection.execute("DELETE FROM tokens")

    def close(self) -> None:
        self._file.close()


def quantised(vectors: NDArray[np.float32]) -> NDArray[np.int8]:
    """Rows scaled so that the largest number of each is `LARGEST`. The scale is not kept: rows are of length 1, so
    that who reads them divides by the length of what is there."""
    largest = np.maximum(np.abs(vectors).max(axis=1, keepdims=True), 1e-12)
    return np.asarray(np.rint(vectors * (LARGEST / largest)), dtype=np.int8)
