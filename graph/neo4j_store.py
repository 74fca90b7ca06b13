"""The entity graph in Neo4j: our labels only, writers one after the other, neighbourhoods from arrays in memory."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from hashlib import sha256
from typing import Any, TypeVar

import numpy as np

from graph import neo4j_queries as cypher
from graph.errors import StoreCorruptError
from graph.graph_model import Entity, GraphCounts, GraphPage, Mention, Neighbourhood, NeighbourhoodBounds
from graph.neighbourhood import GraphArrays, Numbers, Rows
from graph.neo4j_connection import Neo4jConnection, Row, Transaction
from graph.parts import parts
from graph.storable import storable

ROWS_AT_ONCE = 5000
"""In one transaction: Neo4j keeps a transaction's changes in memory."""
LONGEST_ID = 2000
"""Characters; an index entry takes 8 kB, and a character up to 4 bytes."""
READS_BEFORE_LOCKING = 2
FRESH_SECONDS = 0.2
"""For so long other processes' writes may go unseen: one question asks for neighbourhoods several times."""

T = TypeVar("T")


class Neo4jGraph:
    """`GraphStore` on a Neo4j server. Neighbourhoods come from arrays of the whole graph, read again after a write."""

    def __init__(self, connection: Neo4jConnection) -> None:
        self._connection = connection
        self._arrays: GraphArrays | None = None
        self._fresh_until = 0.0
        self._writes = 0
        self._loading: asyncio.Task[GraphArrays] | None = None

    async def close(self) -> None:
        if self._loading is not None:
            self._loading.cancel()
            await asyncio.wait([self._loading])
        await self._connection.close()

    # --- writing --------------------------------------------------------------------------------------------------

    async def put_pages(self, pages: Sequence[GraphPage]) -> None:
        last = {page.page_id: page for page in pages}
        rows = _PageRows(last.values(), chunk_pages={chunk: page.page_id for page in pages for chunk in page.chunk_ids})
        await self._write(rows.put, rows=rows.count)

    async def remove_pages(self, page_ids: Sequence[str]) -> None:
        for part in parts(page_ids, ROWS_AT_ONCE):
            await self._write(partial(_with_ids, query=cypher.REMOVE_PAGES, ids=part))

    async def remove_chunks(self, chunk_ids: Sequence[str]) -> None:
        for part in parts(chunk_ids, ROWS_AT_ONCE):
            await self._write(partial(_with_ids, query=cypher.REMOVE_CHUNKS, ids=part))

    async def set_entities(self, entities: Sequence[Entity]) -> None:
        last = {storable(entity.id): entity for entity in entities}
        for part in parts(list(last.values()), ROWS_AT_ONCE):
            await self._write(partial(_put_entities, entities=part), rows=len(part))

    async def set_mentions(self, mentions: Mapping[str, Sequence[Mention]]) -> None:
        for part in parts(list(mentions.items()), ROWS_AT_ONCE // 5):
            await self._write(partial(_put_mentions, mentions=part, where=self._connection.shown))

    async def prune_entities(self) -> int:
        return await self._write(_prune)

    async def clear(self) -> None:
        """In parts, as one transaction over a large graph would not fit into the server's memory."""
        for query in cypher.CLEAR_PART:
            while await self._write(partial(_count, query=query)):
                pass

    async def _write(self, work: Callable[[Transaction, int], Awaitable[T]], *, rows: int = 0) -> T:
        """`work` gets the first of `rows` numbers that no node has."""

        async def counted(tx: Transaction) -> T:
            ((first,),) = await tx.rows(cypher.BEGIN_WRITE, rows=rows)
            return await work(tx, first)

        try:
            return await self._connection.write(counted)
        finally:
            self._writes += 1
            self._fresh_until = 0.0

    # --- reading --------------------------------------------------------------------------------------------------

    async def titled_entities(self) -> Mapping[str, Entity]:
        columns = _columns(await self._rows(cypher.TITLED_ENTITIES), 4)
        return {row[0]: _entity(row) for row in zip(*columns, strict=True)}

    async def find_entities(self, keys: Sequence[str]) -> Mapping[str, tuple[Entity, ...]]:
        asked = {lookup(key): storable(key) for key in keys}
        found: dict[str, list[Entity]] = {}
        writes = self._writes
        ((*marker, rows),) = await self._rows(cypher.FIND_ENTITIES, ids=list(asked))
        if self._arrays is not None and self._arrays.version == _version_of([marker]):
            self._stays_fresh(writes)
        for key, *row in rows:
            found.setdefault(asked[key], []).append(_entity(row))
        return {key: tuple(sorted(entities, key=lambda entity: entity.id)) for key, entities in found.items()}

    async def mentions_of(self, chunk_ids: Sequence[str]) -> Mapping[str, tuple[Mention, ...]]:
        found: dict[str, list[Mention]] = {}
        for chunk_id, entity_id, count in await self._rows(cypher.MENTIONS_OF, ids=_ids(chunk_ids)):
            mentions = found.setdefault(chunk_id, [])
            if entity_id is not None:
                mentions.append(Mention(entity_id=entity_id, count=count))
        return {chunk_id: tuple(sorted(found[chunk_id], key=lambda m: m.entity_id)) for chunk_id in found}

    async def linking_pages(self, entity_ids: Sequence[str]) -> set[str]:
        return {page_id for (page_id,) in await self._rows(cypher.LINKING_PAGES, ids=_ids(entity_ids))}

    async def ids(self) -> tuple[set[str], set[str]]:
        (pages,) = _columns(await self._rows(cypher.PAGE_IDS), 1)
        (chunks,) = _columns(await self._rows(cypher.CHUNK_IDS), 1)
        return set(pages), set(chunks)

    async def counts(self) -> GraphCounts:
        ((pages, chunks, entities, mentions, links, categories),) = await self._rows(cypher.COUNTS)
        return GraphCounts(
            pages=pages, chunks=chunks, entities=entities, mentions=mentions, links=links, categories=categories
        )

    async def _rows(self, query: str, **values: object) -> list[Row]:
        return await self._connection.rows(query, **values)

    # --- neighbourhoods -------------------------------------------------------------------------------------------

    async def neighbourhood(
        self, entity_ids: Sequence[str], chunk_ids: Sequence[str], bounds: NeighbourhoodBounds
    ) -> Neighbourhood:
        arrays = await self._current_arrays()
        return await asyncio.to_thread(
            arrays.neighbourhood, list(map(storable, entity_ids)), list(map(storable, chunk_ids)), bounds
        )

    async def _current_arrays(self) -> GraphArrays:
        """A question that runs out of time lets the reading go on, for the next one to find it done."""
        if self._arrays is not None and time.monotonic() < self._fresh_until:
            return self._arrays
        writes = self._writes
        version = _version_of(await self._rows(cypher.MARKER))
        if self._arrays is None or self._arrays.version != version:
            joined = self._loading is not None
            arrays = await self._loaded()
            if joined and arrays.version != version:  # that reading began before what made this version
                arrays = await self._loaded()
            self._arrays = arrays
        self._stays_fresh(writes)
        return self._arrays

    def _stays_fresh(self, writes: int) -> None:
        """The arrays were seen to be the server's, unless we wrote meanwhile."""
        if writes == self._writes:
            self._fresh_until = time.monotonic() + FRESH_SECONDS

    async def _loaded(self) -> GraphArrays:
        if self._loading is None:
            self._loading = asyncio.create_task(self._load())
            self._loading.add_done_callback(_seen)
        return await asyncio.shield(self._loading)

    async def _load(self) -> GraphArrays:
        """Queries of one transaction see each other's commits in between, hence the second look at the version."""
        try:
            for _ in range(READS_BEFORE_LOCKING):
                arrays = await self._connection.read(_read_arrays)
                if _version_of(await self._rows(cypher.MARKER)) == arrays.version:
                    return arrays
            return await self._connection.write(_read_locked)
        finally:
            self._loading = None


# --- what is written in a transaction; `first` is the first of the numbers that its new nodes may take --------------


async def _with_ids(tx: Transaction, _first: int, *, query: str, ids: Iterable[str]) -> None:
    await tx.write(query, ids=_ids(ids))


async def _count(tx: Transaction, _first: int, *, query: str) -> int:
    ((count,),) = await tx.rows(query)
    return int(count)


async def _put_entities(tx: Transaction, first: int, *, entities: Sequence[Entity]) -> None:
    rows = [
        {
            **_named(entity.id, n),
            "name": storable(entity.name),
            "keys": [storable(key) for key in entity.keys],
            "aliases": _ids(entity.keys),
            "titled": entity.titled,
        }
        for n, entity in enumerate(entities)
    ]
    await tx.write(cypher.PUT_ENTITIES, rows=rows, first=first)
    await tx.write(cypher.CLEAR_KEYS, ids=[row["id"] for row in rows])
    await tx.write(cypher.PUT_KEYS, rows=rows)


async def _put_mentions(
    tx: Transaction, _first: int, *, mentions: Sequence[tuple[str, Sequence[Mention]]], where: str
) -> None:
    found = {lookup(chunk_id): {lookup(m.entity_id): m.count for m in named} for chunk_id, named in mentions}
    await tx.write(cypher.CLEAR_MENTIONS, ids=list(found))
    rows = [{"chunk": chunk, "found": list(counts.items())} for chunk, counts in found.items()]
    made = await tx.write(cypher.PUT_MENTIONS, rows=rows)
    if made < sum(map(len, found.values())):
        entities = sorted({entity for counts in found.values() for entity in counts})
        for query, ids in ((cypher.MISSING_CHUNKS, list(found)), (cypher.MISSING_ENTITIES, entities)):
            for (missing,) in await tx.rows(query, ids=ids):
                raise StoreCorruptError(
                    f"{where} lacks {missing!r}, which the manifest has; run `trivet verify --repair`."
                )


async def _prune(tx: Transaction, _first: int) -> int:
    ((gone,),) = await tx.rows(cypher.FORGET_UNUSED)
    await tx.write(cypher.REMOVE_KEYS_OF_UNKNOWN)
    await tx.write(cypher.REMOVE_PLACEHOLDERS)
    await tx.write(cypher.REMOVE_LONE_ALIASES)
    await tx.write(cypher.REMOVE_LONE_CATEGORIES)
    return int(gone)


class _PageRows:
    """Pages as the rows that the statements take."""

    def __init__(self, pages: Iterable[GraphPage], chunk_pages: Mapping[str, str]) -> None:
        pages = list(pages)
        page_ids = dict.fromkeys(page.page_id for page in pages)
        named = dict.fromkeys(
            entity for page in pages for entity in (*page.link_entities, *filter(None, [page.title_entity]))
        )
        self._pages = _numbered(page_ids, 0)
        self._entities = _numbered(named, len(self._pages))
        self._chunks = [
            {**row, "page": lookup(page_id)}
            for row, page_id in zip(
                _numbered(chunk_pages, len(self._pages) + len(self._entities)), chunk_pages.values(), strict=True
            )
        ]
        self._titles = [
            {"page": lookup(page.page_id), "entity": lookup(page.title_entity)} for page in pages if page.title_entity
        ]
        self._links = [{"page": lookup(page.page_id), "entities": _ids(page.link_entities)} for page in pages]
        self._categories = [
            {**_named(name, 0), "page": lookup(page.page_id)}
            for page in pages
            for name in dict.fromkeys(map(storable, page.categories))
        ]
        self.count = len(self._pages) + len(self._entities) + len(self._chunks)

    async def put(self, tx: Transaction, first: int) -> None:
        await tx.write(cypher.PUT_PLACEHOLDERS, rows=self._entities, first=first)
        await tx.write(cypher.PUT_PAGES, rows=self._pages, first=first)
        await tx.write(cypher.CLEAR_PAGES, ids=[row["id"] for row in self._pages])
        await tx.write(cypher.PUT_TITLES, rows=self._titles)
        await tx.write(cypher.PUT_LINKS, rows=self._links)
        await tx.write(cypher.PUT_CATEGORIES, rows=self._categories)
        await tx.write(cypher.PUT_CHUNKS, rows=self._chunks, first=first)


def lookup(name: str) -> str:
    """What a name is indexed by: itself, or its hash where it is too long for an index."""
    name = storable(name)
    return name if len(name) <= LONGEST_ID else f"sha256:{sha256(name.encode()).hexdigest()}"


def _named(name: str, n: int) -> dict[str, object]:
    name, indexed = storable(name), lookup(name)
    return {"id": indexed, "full": None if indexed == name else name, "n": n}


def _numbered(names: Iterable[str], first: int) -> list[dict[str, object]]:
    return [_named(name, n) for n, name in enumerate(names, first)]


def _ids(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(map(lookup, names)))


def _entity(row: Sequence[Any]) -> Entity:
    return Entity(id=row[0], name=row[1], keys=tuple(row[2]), titled=row[3])


# --- the whole graph ----------------------------------------------------------------------------------------------


def _seen(task: asyncio.Task[GraphArrays]) -> None:
    """Its error is raised in whoever still waits; where nobody does, the next question meets it itself."""
    if not task.cancelled():
        task.exception()


def _version_of(marker: Sequence[Row]) -> str:
    ((_, store, number, _),) = marker
    return f"{store}-{number}"


async def _read_locked(tx: Transaction) -> GraphArrays:
    """For a graph that is being written to all the time."""
    await tx.write(cypher.LOCK)
    return await _read_arrays(tx)


async def _read_arrays(tx: Transaction) -> GraphArrays:
    version = _version_of(await tx.rows(cypher.MARKER))
    entities = _columns(await tx.rows(cypher.ALL_ENTITIES), 3)
    pages = _columns(await tx.rows(cypher.ALL_PAGES), 2)
    chunks = _columns(await tx.rows(cypher.ALL_CHUNKS), 3)
    links = _columns(await tx.rows(cypher.ALL_LINKS), 2)
    mentions = _columns(await tx.rows(cypher.ALL_MENTIONS), 3)
    return await asyncio.to_thread(_arrays, version, entities, pages, chunks, links, mentions)


def _arrays(version: str, entities: Row, pages: Row, chunks: Row, links: Row, mentions: Row) -> GraphArrays:
    """From columns: of entities number, id, name; of pages number, title; of chunks number, id, page; of links page,
    entity; of mentions chunk, entity, count."""
    entity_order, chunk_order = _order(entities[1]), _order(chunks[1])
    entity_at, page_at = _Places(_numbers(entities[0])[entity_order]), _Places(_numbers(pages[0]))
    chunk_at = _Places(_numbers(chunks[0])[chunk_order])
    naming, named = chunk_at.of(_numbers(mentions[0])), entity_at.of(_numbers(mentions[1]))
    order = np.lexsort((named, naming))
    linking, linked = page_at.of(_numbers(links[0])), entity_at.of(_numbers(links[1]))
    return GraphArrays(
        version=version,
        entity_ids=tuple(entities[1][i] for i in entity_order),
        entity_names=tuple(entities[2][i] for i in entity_order),
        chunk_ids=tuple(chunks[1][i] for i in chunk_order),
        mentions=Rows.of_sorted(naming, named[order], len(chunk_order)),
        mention_counts=_numbers(mentions[2])[order].astype(np.float32),
        chunk_page=page_at.of(_numbers(chunks[2])[chunk_order]),
        page_title=entity_at.of(_numbers(pages[1])),
        page_links=Rows.grouped(linking[linked >= 0], linked[linked >= 0], len(pages[0])),
    )


class _Places:
    """From the numbers that nodes have in Neo4j to their places in a list of them."""

    def __init__(self, numbers: Numbers) -> None:
        self._order = np.argsort(numbers)
        self._numbers = numbers[self._order]

    def of(self, numbers: Numbers) -> Numbers:
        """-1 for a number that is not in the list."""
        if not len(self._numbers):
            return np.full(len(numbers), -1, dtype=np.int64)
        at = np.minimum(np.searchsorted(self._numbers, numbers), len(self._numbers) - 1)
        return np.where(self._numbers[at] == numbers, self._order[at], -1)


def _columns(parts: Iterable[Row], count: int) -> Row:
    """The columns of a query that returns its rows as lists, part by part."""
    columns: Row = [[] for _ in range(count)]
    for _, *lists in parts:
        for column, values in zip(columns, lists, strict=True):
            column += values
    return columns


def _numbers(values: Sequence[int]) -> Numbers:
    return np.array(values, dtype=np.int64)


def _order(ids: Sequence[str]) -> Numbers:
    """By code points, as Python and SQLite compare; Java compares by UTF-16."""
    return _numbers(sorted(range(len(ids)), key=ids.__getitem__))
