"""The manifest in SQLite: pages, their live chunks, and what work is not finished."""
# ruff: noqa: S608 — queries are put together from the constants below; every value is a parameter

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from graph.model import EMBEDDED_TYPES, TITLE, Chunk, Link, Manifest, PageType, StoredChunk
from graph.names import words
from graph.redirects import RedirectTarget, follow, title_form
from graph.sqlite_file import SqliteFile
from graph.storable import storable

FORMAT = 1
PAGE_ROWS = 500
"""Rows read at a time by what streams; between two reads no snapshot is held, so the journal can be cut."""
KEYS_PER_CHUNK = 8
"""Linking a chunk again costs about as much as looking up this many keys in the full-text index."""

SCHEMA = """
CREATE TABLE pages (
    id INTEGER PRIMARY KEY, page_id TEXT NOT NULL UNIQUE, source TEXT NOT NULL, key TEXT NOT NULL,
    title TEXT NOT NULL, title_form TEXT NOT NULL, url TEXT NOT NULL, page_type TEXT NOT NULL, language TEXT NOT NULL,
    revision TEXT NOT NULL, modified TEXT NOT NULL, page_hash TEXT NOT NULL, redirect_to TEXT NOT NULL,
    aliases TEXT NOT NULL, links TEXT NOT NULL, categories TEXT NOT NULL, chunk_ids TEXT NOT NULL);
CREATE INDEX pages_by_title ON pages (source, title_form);
CREATE INDEX redirects ON pages (page_id) WHERE redirect_to != '';
CREATE TABLE chunks (
    id INTEGER PRIMARY KEY, chunk_id TEXT NOT NULL UNIQUE, page INTEGER NOT NULL, ordinal INTEGER NOT NULL,
    "start" INTEGER NOT NULL, "end" INTEGER NOT NULL, text TEXT NOT NULL, heading_path TEXT NOT NULL,
    anchor TEXT NOT NULL, source_hash TEXT NOT NULL, names TEXT NOT NULL, linked INTEGER NOT NULL);
CREATE INDEX chunks_by_page ON chunks (page, ordinal);
CREATE INDEX chunks_unlinked ON chunks (id) WHERE linked = 0;
CREATE VIRTUAL TABLE chunk_words USING fts5 (words, tokenize = 'ascii', columnsize = 0);
CREATE TABLE pending (chunk_id TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE changed_keys (key TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID"""
CONTEXTS = """CREATE TABLE IF NOT EXISTS contexts (
    chunk_id TEXT PRIMARY KEY, strategy TEXT NOT NULL, context TEXT NOT NULL) WITHOUT ROWID"""
"""Of chunks that are not embedded by the default strategy; older stores are given it."""
# `chunk_words` holds the tokens of `names.words`, a space between them. The `ascii` tokenizer cuts only at
# ASCII characters that are no letters or digits, so it gives back exactly these tokens in every script.

MANIFEST_COLUMNS = (
    "page_id, source, key, title, url, page_type, language, revision, modified, page_hash, redirect_to, "
    "aliases, links, categories, chunk_ids"
)
PUT_PAGE = f"""
INSERT INTO pages ({MANIFEST_COLUMNS}, title_form) VALUES ({", ".join("?" * 16)})
ON CONFLICT (page_id) DO UPDATE SET {", ".join(f"{name} = excluded.{name}" for name in MANIFEST_COLUMNS.split(", "))},
title_form = excluded.title_form RETURNING id"""
PUT_CHUNK = """
INSERT INTO chunks (chunk_id, page, ordinal, "start", "end", text, heading_path, anchor, source_hash, names, linked)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, coalesce(?, '[]'), 0)
ON CONFLICT (chunk_id) DO UPDATE SET page = excluded.page, ordinal = excluded.ordinal, "start" = excluded."start",
"end" = excluded."end", text = excluded.text, heading_path = excluded.heading_path, anchor = excluded.anchor,
source_hash = excluded.source_hash, names = coalesce(?, names), linked = 0 RETURNING id"""
CHUNK_COLUMNS = """c.chunk_id, p.page_id, c.ordinal, c."start", c."end", c.text, c.heading_path, c.anchor, c.source_hash
, (SELECT json_array(strategy, context) FROM contexts WHERE contexts.chunk_id = c.chunk_id)"""
AMONG = "IN (SELECT value FROM json_each(?))"
"""One parameter for any number of values: the list as JSON."""


class SqliteState:
    """`StateStore` on one file. Text that no store can hold (NUL, lone surrogates) comes back with U+FFFD instead."""

    def __init__(self, path: Path) -> None:
        self._file = SqliteFile(path, schema=SCHEMA, version=FORMAT)
        with self._file.writing() as connection:
            connection.execute(CONTEXTS)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Of the calling thread: what other threads write meanwhile waits."""
        with self._file.writing():
            yield

    def close(self) -> None:
        self._file.close()

    # --- manifests ------------------------------------------------------------------------------------------------

    def manifests(self, page_ids: Sequence[str]) -> Mapping[str, Manifest]:
        with self._file.reading() as connection:
            query = f"SELECT {MANIFEST_COLUMNS} FROM pages WHERE page_id {AMONG}"
            rows = connection.execute(query, (_json(page_ids),))
            return {row[0]: _manifest(row) for row in rows}

    def all_manifests(self, source: str | None = None) -> Iterator[Manifest]:
        """Ordered by page id. What is written while it runs may or may not be seen."""
        where = "TRUE" if source is None else "source = ?2"
        arguments = () if source is None else (storable(source),)
        for row in self._stream(f"SELECT {MANIFEST_COLUMNS} FROM pages WHERE page_id > ?1 AND {where}", arguments):
            yield _manifest(row)

    def _stream(self, query: str, arguments: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
        """Rows of a query whose first column is `page_id`, a few hundred at a time."""
        last = ""
        while True:
            with self._file.reading() as connection:
                rows = connection.execute(f"{query} ORDER BY page_id LIMIT {PAGE_ROWS}", (last, *arguments)).fetchall()
            yield from rows
            if len(rows) < PAGE_ROWS:
                return
            last = rows[-1][0]

    # --- a batch of work ------------------------------------------------------------------------------------------

    def begin_batch(self, adding: Sequence[str], removing: Sequence[str]) -> None:
        with self._file.writing() as connection:
            ids = ((storable(chunk_id),) for chunk_id in (*adding, *removing))
            connection.executemany("INSERT OR IGNORE INTO pending VALUES (?)", ids)

    def end_batch(self) -> None:
        with self._file.writing() as connection:
            connection.execute("DELETE FROM pending")

    def unfinished(self) -> set[str]:
        return self._ids("SELECT chunk_id FROM pending")

    def live_ids(self) -> set[str]:
        return self._ids("SELECT chunk_id FROM chunks")

    def _ids(self, query: str) -> set[str]:
        with self._file.reading() as connection:
            return {chunk_id for (chunk_id,) in connection.execute(query)}

    def commit_pages(self, pages: Sequence[tuple[Manifest, Sequence[Chunk], Mapping[str, Sequence[str]]]]) -> None:
        """A chunk that was there and is given without names keeps those it had."""
        with self._file.writing() as connection:
            for manifest, chunks, names in pages:
                _put_page(connection, manifest, chunks, names)

    def commit_removal(self, page_ids: Sequence[str]) -> None:
        with self._file.writing() as connection:
            for page_id in page_ids:
                found = connection.execute("SELECT id FROM pages WHERE page_id = ?", (storable(page_id),)).fetchone()
                if found:
                    _drop_chunks(connection, found[0], keep=())
                    connection.execute("DELETE FROM pages WHERE id = ?", found)

    # --- reading chunks -------------------------------------------------------------------------------------------

    def chunks(self, chunk_ids: Sequence[str]) -> Mapping[str, StoredChunk]:
        with self._file.reading() as connection:
            rows = connection.execute(
                f"SELECT {CHUNK_COLUMNS}, p.title, p.url, p.page_type, p.source, p.language, p.modified, p.categories "
                f"FROM chunks c JOIN pages p ON p.id = c.page WHERE c.chunk_id {AMONG}",
                (_json(chunk_ids),),
            )
            return {row[0]: _stored_chunk(row) for row in rows}

    def neighbours(self, chunk_id: str, distance: int) -> Sequence[Chunk]:
        with self._file.reading() as connection:
            rows = connection.execute(
                f"SELECT {CHUNK_COLUMNS} FROM chunks middle JOIN chunks c ON c.page = middle.page "
                "AND c.ordinal BETWEEN middle.ordinal - ? AND middle.ordinal + ? JOIN pages p ON p.id = c.page "
                "WHERE middle.chunk_id = ? ORDER BY c.ordinal",
                (distance, distance, storable(chunk_id)),
            )
            return [_chunk(row) for row in rows]

    def chunk_names(self, chunk_ids: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
        with self._file.reading() as connection:
            rows = connection.execute(f"SELECT chunk_id, names FROM chunks WHERE chunk_id {AMONG}", (_json(chunk_ids),))
            return {chunk_id: tuple(json.loads(names)) for chunk_id, names in rows}

    # --- titles ---------------------------------------------------------------------------------------------------

    def titles(self) -> Iterator[tuple[str, str, str]]:
        """Of pages that stand for a thing (articles, lists, stubs); each title of a page once."""
        things = ", ".join(f"'{page_type}'" for page_type in sorted(EMBEDDED_TYPES))
        query = (
            "SELECT page_id, title, aliases FROM pages "
            f"WHERE page_id > ?1 AND redirect_to = '' AND page_type IN ({things})"
        )
        for page_id, title, aliases in self._stream(query):
            for name in dict.fromkeys((title, *json.loads(aliases))):
                yield page_id, name, title
        for title, _, _, target in self._redirects():
            if target and target.page_type in EMBEDDED_TYPES:
                yield target.page_id, title, target.title

    def dangling_redirects(self, source: str) -> Sequence[tuple[str, str]]:
        """Ordered by page id."""
        wanted = storable(source)
        return [(title, goal) for title, goal, of, target in self._redirects() if of == wanted and target is None]

    def _redirects(self) -> Iterator[tuple[str, str, str, RedirectTarget | None]]:
        """(title, where it should lead, source, where it does lead)"""
        query = "SELECT page_id, source, title, redirect_to FROM pages WHERE page_id > ?1 AND redirect_to != ''"
        for _, source, title, redirect_to in self._stream(query):
            yield title, redirect_to, source, self._target(source, redirect_to)

    def _target(self, source: str, redirect_to: str) -> RedirectTarget | None:
        with self._file.reading() as connection:

            def find(form: str) -> RedirectTarget | None:
                row = connection.execute(
                    "SELECT page_id, title, page_type, redirect_to FROM pages WHERE source = ? AND title_form = ? "
                    "ORDER BY redirect_to != '', page_id LIMIT 1",
                    (source, form),
                ).fetchone()
                return RedirectTarget(row[0], row[1], PageType(row[2]), row[3]) if row else None

            return follow(redirect_to, find)

    # --- linking --------------------------------------------------------------------------------------------------

    def add_changed_keys(self, keys: Sequence[str]) -> None:
        with self._file.writing() as connection:
            normal = {" ".join(words(storable(key))) for key in keys}
            connection.executemany("INSERT OR IGNORE INTO changed_keys VALUES (?)", ((key,) for key in normal if key))

    def spread_changed_keys(self) -> int:
        with self._file.writing() as connection:
            keys = connection.execute("SELECT count(*) FROM changed_keys").fetchone()[0]
            linked = connection.execute("SELECT count(*) FROM chunks WHERE linked").fetchone()[0]
            which = "TRUE"
            if keys < linked * KEYS_PER_CHUNK:
                # A key is data: quoted it is one phrase to FTS5, whatever it is made of.
                which = (
                    "id IN (SELECT w.rowid FROM changed_keys k JOIN chunk_words w "
                    """ON w.words MATCH '"' || replace(k.key, '"', '""') || '"')"""
                )
            marked = 0
            if keys and linked:
                marked = connection.execute(f"UPDATE chunks SET linked = 0 WHERE linked AND {which}").rowcount
            connection.execute("DELETE FROM changed_keys")
            return marked

    def unlink_pages(self, page_ids: Sequence[str]) -> None:
        with self._file.writing() as connection:
            connection.execute(
                f"UPDATE chunks SET linked = 0 WHERE linked AND page IN (SELECT id FROM pages WHERE page_id {AMONG})",
                (_json(page_ids),),
            )

    def unlinked(self, limit: int) -> Sequence[str]:
        with self._file.reading() as connection:
            rows = connection.execute("SELECT chunk_id FROM chunks WHERE linked = 0 ORDER BY id LIMIT ?", (limit,))
            return [chunk_id for (chunk_id,) in rows]

    def mark_linked(self, chunk_ids: Sequence[str]) -> None:
        with self._file.writing() as connection:
            connection.execute(f"UPDATE chunks SET linked = 1 WHERE chunk_id {AMONG}", (_json(chunk_ids),))

    # --- anything else --------------------------------------------------------------------------------------------

    def meta(self, key: str) -> str | None:
        with self._file.reading() as connection:
            found = connection.execute("SELECT value FROM meta WHERE key = ?", (storable(key),)).fetchone()
            return found[0] if found else None

    def set_meta(self, key: str, value: str) -> None:
        with self._file.writing() as connection:
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (storable(key), storable(value)))


def _put_page(
    connection: sqlite3.Connection, manifest: Manifest, chunks: Iterable[Chunk], names: Mapping[str, Sequence[str]]
) -> None:
    title = storable(manifest.title)
    values = (
        manifest.page_id,
        manifest.source,
        manifest.key,
        manifest.title,
        manifest.url,
        manifest.page_type,
        manifest.language,
        manifest.revision,
        manifest.modified,
        manifest.page_hash,
        manifest.redirect_to,
    )
    links = json.dumps([(storable(link.target), storable(link.shown)) for link in manifest.links], ensure_ascii=False)
    lists = (_json(manifest.aliases), links, _json(manifest.categories), _json(manifest.chunk_ids))
    row = (*map(storable, values), *lists, title_form(title))
    (page,) = connection.execute(PUT_PAGE, row).fetchone()
    hashes = _drop_chunks(connection, page, keep=manifest.chunk_ids)
    live = set(manifest.chunk_ids)
    for chunk in chunks:
        if chunk.id in live:
            _put_chunk(connection, page, title, chunk, names.get(chunk.id), hashes.get(storable(chunk.id)))
            live.discard(chunk.id)
    if unknown := [chunk_id for chunk_id in live if storable(chunk_id) not in hashes]:
        raise ValueError(f"page {manifest.page_id} lists chunks it does not bring: {sorted(unknown)}")
    connection.execute("UPDATE chunks SET linked = 0 WHERE page = ? AND linked", (page,))


def _drop_chunks(connection: sqlite3.Connection, page: int, keep: Sequence[str]) -> dict[str, str]:
    """Delete the page's chunks but those to keep; ids and hashes of the kept."""
    kept = set(map(storable, keep))
    hashes = {}
    for rowid, chunk_id, hashed in connection.execute(
        "SELECT id, chunk_id, source_hash FROM chunks WHERE page = ?", (page,)
    ).fetchall():
        if chunk_id in kept:
            hashes[chunk_id] = hashed
        else:
            connection.execute("DELETE FROM chunk_words WHERE rowid = ?", (rowid,))
            connection.execute("DELETE FROM chunks WHERE id = ?", (rowid,))
            connection.execute("DELETE FROM contexts WHERE chunk_id = ?", (chunk_id,))
    return hashes


def _put_chunk(
    connection: sqlite3.Connection, page: int, title: str, chunk: Chunk, names: Sequence[str] | None, hashed: str | None
) -> None:
    found = None if names is None else _json(names)
    path = tuple(map(storable, chunk.heading_path))
    text = storable(chunk.text)
    (rowid,) = connection.execute(
        PUT_CHUNK,
        (
            storable(chunk.id),
            page,
            chunk.ordinal,
            chunk.start,
            chunk.end,
            text,
            _json(path),
            storable(chunk.anchor),
            storable(chunk.source_hash),
            found,
            found,
        ),
    ).fetchone()
    connection.execute("DELETE FROM contexts WHERE chunk_id = ?", (storable(chunk.id),))
    if chunk.strategy != TITLE:
        values = map(storable, (chunk.id, chunk.strategy, chunk.context))
        connection.execute("INSERT INTO contexts VALUES (?, ?, ?)", tuple(values))
    if hashed is None or hashed != chunk.source_hash:  # else the words are the same
        connection.execute("DELETE FROM chunk_words WHERE rowid = ?", (rowid,))
        indexed = " ".join(words("\n".join((title, *path, text))))
        connection.execute("INSERT INTO chunk_words (rowid, words) VALUES (?, ?)", (rowid, indexed))


def _json(values: Sequence[str]) -> str:
    return json.dumps([storable(value) for value in values], ensure_ascii=False)


def _manifest(row: tuple[str, ...]) -> Manifest:
    return Manifest(
        page_id=row[0],
        source=row[1],
        key=row[2],
        title=row[3],
        url=row[4],
        page_type=PageType(row[5]),
        language=row[6],
        revision=row[7],
        modified=row[8],
        page_hash=row[9],
        redirect_to=row[10],
        aliases=tuple(json.loads(row[11])),
        links=tuple(Link(target=target, shown=shown) for target, shown in json.loads(row[12])),
        categories=tuple(json.loads(row[13])),
        chunk_ids=tuple(json.loads(row[14])),
    )


def _chunk(row: tuple[Any, ...]) -> Chunk:
    strategy, context = json.loads(row[9]) if row[9] else (TITLE, "")
    return Chunk(
        id=row[0],
        page_id=row[1],
        ordinal=row[2],
        start=row[3],
        end=row[4],
        text=row[5],
        heading_path=tuple(json.loads(row[6])),
        anchor=row[7],
        source_hash=row[8],
        strategy=strategy,
        context=context,
    )


def _stored_chunk(row: tuple[Any, ...]) -> StoredChunk:
    title, url, page_type, source, language, modified, categories = row[10:]
    return StoredChunk(
        chunk=_chunk(row[:10]),
        title=title,
        url=url,
        page_type=PageType(page_type),
        source=source,
        language=language,
        modified=modified,
        categories=tuple(json.loads(categories)),
    )
