"""The entity graph in SQLite: pages, chunks, entities and the edges between them."""
# ruff: noqa: S608 — queries are put together from the constants below; every value is a parameter

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from graph.errors import StoreCorruptError
from graph.graph_model import Entity, GraphCounts, GraphPage, Mention, Neighbourhood, NeighbourhoodBounds
from graph.neighbourhood import GraphArrays, Numbers, Rows
from graph.refreshed import Refreshed
from graph.sqlite_file import SqliteFile
from graph.storable import storable

FORMAT = 1
SCHEMA = """
CREATE TABLE entities (
    id INTEGER PRIMARY KEY, entity_id TEXT NOT NULL UNIQUE, name TEXT NOT NULL DEFAULT '',
    keys TEXT NOT NULL DEFAULT '[]', titled INTEGER NOT NULL DEFAULT 0, known INTEGER NOT NULL DEFAULT 0);
CREATE TABLE entity_keys (key TEXT NOT NULL, entity INTEGER NOT NULL, PRIMARY KEY (key, entity)) WITHOUT ROWID;
CREATE INDEX keys_by_entity ON entity_keys (entity);
CREATE TABLE pages (id INTEGER PRIMARY KEY, page_id TEXT NOT NULL UNIQUE, title_entity INTEGER);
CREATE TABLE chunks (id INTEGER PRIMARY KEY, chunk_id TEXT NOT NULL UNIQUE, page INTEGER NOT NULL);
CREATE INDEX chunks_by_page ON chunks (page);
CREATE TABLE mentions (
    chunk INTEGER NOT NULL, entity INTEGER NOT NULL, count INTEGER NOT NULL, PRIMARY KEY (chunk, entity)) WITHOUT ROWID;
CREATE TABLE links (page INTEGER NOT NULL, entity INTEGER NOT NULL, PRIMARY KEY (page, entity)) WITHOUT ROWID;
CREATE INDEX links_by_entity ON links (entity);
CREATE TABLE categories (page INTEGER NOT NULL, name TEXT NOT NULL, PRIMARY KEY (page, name)) WITHOUT ROWID;
CREATE TABLE version (store TEXT NOT NULL, number INTEGER NOT NULL);
INSERT INTO version VALUES (hex(randomblob(8)), 0)"""
# An entity that is not `known` only holds the place of one that pages link to, or are about, and that has not
# come yet: so the edge can be stored by number, and is there as soon as the entity is.

AMONG = "IN (SELECT value FROM json_each(?))"
"""One parameter for any number of values: the list as JSON."""
PUT_ENTITY = """
INSERT INTO entities (entity_id, name, keys, titled, known) VALUES (?, ?, ?, ?, 1)
ON CONFLICT (entity_id) DO UPDATE SET name = excluded.name, keys = excluded.keys, titled = excluded.titled, known = 1"""
UNUSED = """
id NOT IN (SELECT entity FROM mentions)
AND id NOT IN (SELECT title_entity FROM pages WHERE title_entity IS NOT NULL)"""
COUNTS = """
SELECT (SELECT count(*) FROM pages), (SELECT count(*) FROM chunks), (SELECT count(*) FROM entities WHERE known),
(SELECT count(*) FROM mentions), (SELECT count(*) FROM links JOIN entities ON id = entity WHERE known),
(SELECT count(DISTINCT name) FROM categories)"""


class SqliteGraph:
    """`GraphStore` on one file. Neighbourhoods come from arrays of the whole graph, read again after a write."""

    def __init__(self, path: Path, *, patience: float | None = None) -> None:
        """`patience`: seconds that a question after a write waits for the graph to be read again, before it gets the
        graph from before the write; None: it gets what is stored, however long that takes."""
        self._file = SqliteFile(path, schema=SCHEMA, version=FORMAT)
        self._arrays = Refreshed[GraphArrays](patience=patience)

    async def close(self) -> None:
        await asyncio.to_thread(self._arrays.close)
        await asyncio.to_thread(self._file.close)

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._file.writing() as connection:
            connection.execute("UPDATE version SET number = number + 1")
            yield connection

    # --- writing --------------------------------------------------------------------------------------------------

    async def put_pages(self, pages: Sequence[GraphPage]) -> None:
        await asyncio.to_thread(self._put_pages, pages)

    def _put_pages(self, pages: Sequence[GraphPage]) -> None:
        with self._writing() as connection:
            for page in pages:
                _put_page(connection, page)

    async def remove_pages(self, page_ids: Sequence[str]) -> None:
        await asyncio.to_thread(self._remove_pages, page_ids)

    def _remove_pages(self, page_ids: Sequence[str]) -> None:
        with self._writing() as connection:
            pages = _json(_numbers_of(connection, "pages", "page_id", page_ids).values())
            _remove_chunks(connection, f"page {AMONG}", pages)
            for table in ("links", "categories"):
                connection.execute(f"DELETE FROM {table} WHERE page {AMONG}", (pages,))
            connection.execute(f"DELETE FROM pages WHERE id {AMONG}", (pages,))

    async def remove_chunks(self, chunk_ids: Sequence[str]) -> None:
        await asyncio.to_thread(self._remove_chunks, chunk_ids)

    def _remove_chunks(self, chunk_ids: Sequence[str]) -> None:
        with self._writing() as connection:
            _remove_chunks(connection, f"chunk_id {AMONG}", _texts(chunk_ids))

    async def set_entities(self, entities: Sequence[Entity]) -> None:
        await asyncio.to_thread(self._set_entities, entities)

    def _set_entities(self, entities: Sequence[Entity]) -> None:
        last = {storable(entity.id): entity for entity in entities}
        with self._writing() as connection:
            connection.executemany(
                PUT_ENTITY, ((key, storable(e.name), _texts(e.keys), e.titled) for key, e in last.items())
            )
            numbers = _numbers_of(connection, "entities", "entity_id", last)
            connection.execute(f"DELETE FROM entity_keys WHERE entity {AMONG}", (_json(numbers.values()),))
            connection.executemany(
                "INSERT OR IGNORE INTO entity_keys VALUES (?, ?)",
                ((storable(key), numbers[entity_id]) for entity_id, entity in last.items() for key in entity.keys),
            )

    async def set_mentions(self, mentions: Mapping[str, Sequence[Mention]]) -> None:
        await asyncio.to_thread(self._set_mentions, mentions)

    def _set_mentions(self, mentions: Mapping[str, Sequence[Mention]]) -> None:
        with self._writing() as connection:
            named = {mention.entity_id for found in mentions.values() for mention in found}
            chunks = _numbers_of(connection, "chunks", "chunk_id", mentions)
            entities = _numbers_of(connection, "entities", "known AND entity_id", named)
            connection.execute(f"DELETE FROM mentions WHERE chunk {AMONG}", (_json(chunks.values()),))
            try:
                rows = [
                    (chunks[storable(chunk_id)], entities[storable(mention.entity_id)], mention.count)
                    for chunk_id, found in mentions.items()
                    for mention in found
                ]
            except KeyError as error:
                raise StoreCorruptError(
                    f"The graph in {self._file.path} lacks {error.args[0]!r}, which the manifest has; "
                    "run `trivet verify --repair`."
                ) from error
            connection.executemany("INSERT OR REPLACE INTO mentions VALUES (?, ?, ?)", rows)

    async def prune_entities(self) -> int:
        return await asyncio.to_thread(self._prune_entities)

    def _prune_entities(self) -> int:
        with self._writing() as connection:
            gone = connection.execute(
                f"UPDATE entities SET known = 0, titled = 0, keys = '[]' WHERE known AND {UNUSED}"
            ).rowcount
            connection.execute("DELETE FROM entity_keys WHERE entity IN (SELECT id FROM entities WHERE NOT known)")
            connection.execute(
                f"DELETE FROM entities WHERE NOT known AND id NOT IN (SELECT entity FROM links) AND {UNUSED}"
            )
            return gone

    # --- reading --------------------------------------------------------------------------------------------------

    async def titled_entities(self) -> Mapping[str, Entity]:
        rows = await asyncio.to_thread(
            self._rows, "SELECT entity_id, name, keys, titled FROM entities WHERE known AND titled"
        )
        return {row[0]: _entity(row) for row in rows}

    async def find_entities(self, keys: Sequence[str]) -> Mapping[str, tuple[Entity, ...]]:
        rows = await asyncio.to_thread(
            self._rows,
            "SELECT e.entity_id, e.name, e.keys, e.titled, k.key FROM entity_keys k JOIN entities e ON e.id = k.entity "
            f"WHERE k.key {AMONG} ORDER BY e.entity_id",
            _texts(keys),
        )
        found: dict[str, list[Entity]] = {}
        for row in rows:
            found.setdefault(row[4], []).append(_entity(row))
        return {key: tuple(entities) for key, entities in found.items()}

    async def mentions_of(self, chunk_ids: Sequence[str]) -> Mapping[str, tuple[Mention, ...]]:
        rows = await asyncio.to_thread(
            self._rows,
            "SELECT c.chunk_id, e.entity_id, m.count FROM chunks c LEFT JOIN mentions m ON m.chunk = c.id "
            f"LEFT JOIN entities e ON e.id = m.entity WHERE c.chunk_id {AMONG} ORDER BY e.entity_id",
            _texts(chunk_ids),
        )
        found: dict[str, list[Mention]] = {}
        for chunk_id, entity_id, count in rows:
            mentions = found.setdefault(chunk_id, [])
            if entity_id is not None:
                mentions.append(Mention(entity_id=entity_id, count=count))
        return {chunk_id: tuple(mentions) for chunk_id, mentions in found.items()}

    async def linking_pages(self, entity_ids: Sequence[str]) -> set[str]:
        rows = await asyncio.to_thread(
            self._rows,
            "SELECT DISTINCT p.page_id FROM entities e JOIN links l ON l.entity = e.id JOIN pages p ON p.id = l.page "
            f"WHERE e.entity_id {AMONG}",
            _texts(entity_ids),
        )
        return {page_id for (page_id,) in rows}

    async def ids(self) -> tuple[set[str], set[str]]:
        return await asyncio.to_thread(self._ids)

    def _ids(self) -> tuple[set[str], set[str]]:
        with self._file.reading() as connection:
            pages = {page_id for (page_id,) in connection.execute("SELECT page_id FROM pages")}
            return pages, {chunk_id for (chunk_id,) in connection.execute("SELECT chunk_id FROM chunks")}

    async def counts(self) -> GraphCounts:
        (row,) = await asyncio.to_thread(self._rows, COUNTS)
        pages, chunks, entities, mentions, links, categories = row
        return GraphCounts(
            pages=pages, chunks=chunks, entities=entities, mentions=mentions, links=links, categories=categories
        )

    async def clear(self) -> None:
        await asyncio.to_thread(self._clear)

    def _clear(self) -> None:
        with self._writing() as connection:
            for table in ("mentions", "links", "categories", "chunks", "pages", "entity_keys", "entities"):
                connection.execute(f"DELETE FROM {table}")

    def _rows(self, query: str, *values: str) -> list[tuple[Any, ...]]:
        with self._file.reading() as connection:
            return connection.execute(query, values).fetchall()

    # --- neighbourhoods -------------------------------------------------------------------------------------------

    async def neighbourhood(
        self, entity_ids: Sequence[str], chunk_ids: Sequence[str], bounds: NeighbourhoodBounds
    ) -> Neighbourhood:
        return await asyncio.to_thread(self._neighbourhood, entity_ids, chunk_ids, bounds)

    def _neighbourhood(
        self, entity_ids: Sequence[str], chunk_ids: Sequence[str], bounds: NeighbourhoodBounds
    ) -> Neighbourhood:
        with self._file.reading() as connection:
            version = _version(connection)
        arrays = self._arrays.get(lambda arrays: arrays.version == version, self._read)
        return arrays.neighbourhood(list(map(storable, entity_ids)), list(map(storable, chunk_ids)), bounds)

    def _read(self) -> GraphArrays:
        with self._file.reading() as connection:
            return _read_arrays(connection, _version(connection))


def _version(connection: sqlite3.Connection) -> str:
    store, number = connection.execute("SELECT store, number FROM version").fetchone()
    return f"{store}-{number}"


def _put_page(connection: sqlite3.Connection, page: GraphPage) -> None:
    named = _texts((*page.link_entities, *filter(None, [page.title_entity])))
    connection.execute("INSERT OR IGNORE INTO entities (entity_id) SELECT value FROM json_each(?)", (named,))
    (number,) = connection.execute(
        "INSERT INTO pages (page_id, title_entity) VALUES (?, (SELECT id FROM entities WHERE entity_id = ?)) "
        "ON CONFLICT (page_id) DO UPDATE SET title_entity = excluded.title_entity RETURNING id",
        (storable(page.page_id), storable(page.title_entity)),
    ).fetchone()
    connection.executemany(
        "INSERT INTO chunks (chunk_id, page) VALUES (?, ?) ON CONFLICT (chunk_id) DO UPDATE SET page = excluded.page",
        ((storable(chunk_id), number) for chunk_id in page.chunk_ids),
    )
    connection.execute("DELETE FROM links WHERE page = ?", (number,))
    connection.execute(
        f"INSERT INTO links SELECT ?, id FROM entities WHERE entity_id {AMONG}", (number, _texts(page.link_entities))
    )
    connection.execute("DELETE FROM categories WHERE page = ?", (number,))
    connection.executemany(
        "INSERT OR IGNORE INTO categories VALUES (?, ?)", ((number, storable(name)) for name in page.categories)
    )


def _remove_chunks(connection: sqlite3.Connection, where: str, value: str) -> None:
    connection.execute(f"DELETE FROM mentions WHERE chunk IN (SELECT id FROM chunks WHERE {where})", (value,))
    connection.execute(f"DELETE FROM chunks WHERE {where}", (value,))


def _numbers_of(connection: sqlite3.Connection, table: str, column: str, ids: Iterable[str]) -> dict[str, int]:
    """Id → row number of those that exist."""
    name = column.split()[-1]
    return dict(connection.execute(f"SELECT {name}, id FROM {table} WHERE {column} {AMONG}", (_texts(ids),)))


def _entity(row: tuple[Any, ...]) -> Entity:
    return Entity(id=row[0], name=row[1], keys=tuple(json.loads(row[2])), titled=bool(row[3]))


def _texts(values: Iterable[str]) -> str:
    return json.dumps([storable(value) for value in values], ensure_ascii=False)


def _json(values: Iterable[int]) -> str:
    return json.dumps(list(values))


def _read_arrays(connection: sqlite3.Connection, version: str) -> GraphArrays:
    entities = connection.execute("SELECT id, entity_id, name FROM entities WHERE known ORDER BY entity_id").fetchall()
    chunks = connection.execute("SELECT id, chunk_id, page FROM chunks ORDER BY chunk_id").fetchall()
    pages, titles = _columns(connection, "SELECT id, coalesce(title_entity, 0) FROM pages", 2)
    chunk, entity, count = _columns(connection, "SELECT chunk, entity, count FROM mentions", 3)
    linking, linked = _columns(connection, "SELECT page, entity FROM links", 2)
    entity_at = _places(connection, "entities", [row[0] for row in entities])
    chunk_at = _places(connection, "chunks", [row[0] for row in chunks])
    page_at = _places(connection, "pages", pages)
    order = np.lexsort((entity_at[entity], chunk_at[chunk]))
    exists = entity_at[linked] >= 0
    return GraphArrays(
        version=version,
        entity_ids=tuple(row[1] for row in entities),
        entity_names=tuple(row[2] for row in entities),
        chunk_ids=tuple(row[1] for row in chunks),
        mentions=Rows.of_sorted(chunk_at[chunk], entity_at[entity[order]], len(chunks)),
        mention_counts=count[order].astype(np.float32),
        chunk_page=page_at[[row[2] for row in chunks]] if chunks else page_at[:0],
        page_title=entity_at[titles],
        page_links=Rows.grouped(page_at[linking[exists]], entity_at[linked[exists]], len(pages)),
    )


def _columns(connection: sqlite3.Connection, query: str, count: int) -> tuple[Numbers, ...]:
    """The columns of a query for whole numbers, without a Python object for each to stay."""
    table = np.fromiter(connection.execute(query), dtype=[(str(column), np.int64) for column in range(count)])
    return tuple(table[str(column)] for column in range(count))


def _places(connection: sqlite3.Connection, table: str, ids: Sequence[int] | Numbers) -> Numbers:
    """Row number → place in `ids`, or -1."""
    (highest,) = connection.execute(f"SELECT coalesce(max(id), 0) FROM {table}").fetchone()
    places = np.full(highest + 1, -1, dtype=np.int64)
    places[ids] = np.arange(len(ids))
    return places
