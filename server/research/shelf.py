"""What is kept, in both stores: passages of research pages and approved facts, so that vectors and store agree."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from graph.errors import InputError
from graph.model import VectorPoint
from graph.parts import parts
from graph.protocols import Embedder, SparseEmbedder, VectorStore
from graph.research import Fact, FactState, KeptPassage, ResearchPage, ResearchStore, Topic
from graph.research_rules import no_topic
from server.research.passages import embedded, passage_of_fact, passages_of_page, point_of
from server.research.passages import knowledge_collection as knowledge_collection
from server.research.passages import research_collection as research_collection

T = TypeVar("T")
AT_ONCE = 128
"""Passages embedded and written together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptFaults:
    """Passage ids by collection, where the vectors do not say what the store says."""

    missing: Mapping[str, frozenset[str]]
    """Passages without a vector."""
    orphaned: Mapping[str, frozenset[str]]
    """Vectors of passages that there are none of."""
    unfinished: Mapping[str, frozenset[str]]
    """Noted by a write that was cut short."""


class Shelf:
    """Writes passages so that the vectors and the research store agree, also after a crash.

    Every write: note the ids → upsert what is new → commit → delete what is old → strike the note. Readers go by the
    store, so they see a page's old passages or its new ones. What stopped in between is mended by the next write to
    that collection, or when the store is opened (`recover`).
    """

    def __init__(self, store: ResearchStore, vectors: VectorStore, embedder: Embedder) -> None:
        self._store = store
        self._vectors = vectors
        self._embedder = embedder
        self._turn = asyncio.Lock()
        """Two writes at once would take each other's vectors for left over."""

    @property
    def store(self) -> ResearchStore:
        return self._store

    async def put_page(self, topic: Topic, page: ResearchPage) -> int:
        """In place of what was kept of that page for that topic; how many passages. Raises `NotFoundError`."""
        stored = await asyncio.to_thread(self._store.topic, topic.slug)
        if stored is None:
            raise no_topic(topic.slug)
        passages = passages_of_page(stored, page)
        points = await self._points(passages)
        before = partial(self._store.passages_of, topic.slug, url=page.url)
        await _finished(
            self._write(passages, points, before, partial(self._store.put_page, topic.slug, page, passages))
        )
        return len(passages)

    async def wipe(self, slug: str) -> int:
        """Take away a topic's research pages and passages; how many passages there were."""
        before, commit = partial(self._store.passages_of, slug), partial(self._store.wipe_research, slug)
        return (await _finished(self._write([], [], before, commit)))[0]

    async def remove_topic(self, slug: str) -> None:
        """With its passages and unapproved facts. Raises `NotFoundError`."""
        before, commit = partial(self._store.passages_of, slug), partial(self._store.remove_topic, slug)
        await _finished(self._write([], [], before, commit))

    async def put_fact(self, fact: Fact, *, version: int) -> Fact:
        """Store it as given: approved, it answers questions from now on; else it does so no more.

        Raises `NotFoundError` and `ConflictError`, as `ResearchStore.change_fact`.
        """
        passage = passage_of_fact(fact) if fact.state is FactState.APPROVED else None
        made = [] if passage is None else [passage]
        points = await self._points(made)
        commit = partial(self._store.change_fact, fact, version=version, passage=passage)
        return (await _finished(self._write(made, points, partial(self._of_fact, fact.id), commit)))[1]

    async def delete_fact(self, fact_id: str, *, version: int) -> None:
        commit = partial(self._store.delete_fact, fact_id, version=version)
        await _finished(self._write([], [], partial(self._of_fact, fact_id), commit))

    async def recover(self) -> int:
        """Mend what a crash, or a rebuild of the vectors, has left; how many passages were looked at."""
        return await _finished(self._recover())

    async def faults(self) -> KeptFaults:
        """Compare both stores; read-only."""
        return await _finished(self._compare())

    async def _compare(self) -> KeptFaults:
        missing, orphaned = {}, {}
        async with self._in_turn():
            for collection in await asyncio.to_thread(self._store.every_collection):
                kept = await asyncio.to_thread(self._store.ids, collection)
                there = await self._vectors.ids(collection)
                missing[collection], orphaned[collection] = frozenset(kept - there), frozenset(there - kept)
            noted = await asyncio.to_thread(self._store.unfinished)
        return KeptFaults(
            missing={name: ids for name, ids in missing.items() if ids},
            orphaned={name: ids for name, ids in orphaned.items() if ids},
            unfinished={name: frozenset(ids) for name, ids in noted.items()},
        )

    async def repair(self) -> None:
        """Bring the vectors in line with the store, which is the truth."""
        faults = await self.faults()
        for wrong in (faults.missing, faults.orphaned):
            for collection, ids in wrong.items():
                await asyncio.to_thread(self._store.begin, collection, adding=sorted(ids))
        await self.recover()

    async def copy_to(self, target: VectorStore) -> int:
        """Put the vectors of all passages into another store, without embedding; how many."""
        return await _finished(self._copy_to(target))

    async def _copy_to(self, target: VectorStore) -> int:
        copied = 0
        async with self._in_turn():
            for collection in await asyncio.to_thread(self._store.every_collection):
                ids = await asyncio.to_thread(self._store.ids, collection)
                for part in parts(sorted(ids), AT_ONCE):
                    points = await self._stored_points(collection, part)
                    await target.upsert(collection, points)
                    copied += len(points)
        return copied

    @asynccontextmanager
    async def _in_turn(self) -> AsyncIterator[None]:
        """Among the tasks of this process, and among processes: a worker writes beside the server."""
        async with self._turn:
            turn = self._store.turn()
            await asyncio.to_thread(turn.__enter__)
            try:
                yield
            finally:
                turn.__exit__(None, None, None)

    # --- writing, in turn -----------------------------------------------------------------------------------------

    async def _write(
        self,
        passages: Sequence[KeptPassage],
        points: Sequence[VectorPoint],
        before: Callable[[], Sequence[KeptPassage]],
        commit: Callable[[], T],
    ) -> tuple[int, T]:
        """How many passages `before` told of, and what `commit` gave."""
        async with self._in_turn():
            replaced = await asyncio.to_thread(before)
            removing = _by_collection(each for each in replaced if each.id not in {made.id for made in passages})
            adding = _by_collection(passages)
            touched = sorted({*adding, *removing})
            await self._mend([name for name in await asyncio.to_thread(self._store.unfinished) if name in touched])
            for name in touched:
                ids = {"adding": adding.get(name, ()), "removing": removing.get(name, ())}
                await asyncio.to_thread(partial(self._store.begin, name, **ids))
            by_id = {point.chunk_id: point for point in points}
            for name, added in adding.items():
                await self._vectors.upsert(name, [by_id[key] for key in added])
            try:
                done = await asyncio.to_thread(commit)
            except InputError:  # gone or changed meanwhile: what was added is none of the store's
                await self._mend(touched)
                raise
            for name, gone in removing.items():
                await self._vectors.delete(name, gone)
            for name in touched:
                await asyncio.to_thread(self._store.end, name)
            return len(replaced), done

    async def _recover(self) -> int:
        async with self._in_turn():
            noted = await asyncio.to_thread(self._store.unfinished)
            await self._mend(sorted(noted))
            return sum(map(len, noted.values()))

    async def _mend(self, collections: Iterable[str]) -> None:
        """Of what is noted: vectors of passages that are not kept go, kept ones without a vector are embedded again."""
        for name in collections:
            noted = (await asyncio.to_thread(self._store.unfinished)).get(name, set())
            kept = await asyncio.to_thread(self._store.ids, name)
            there = await self._vectors.ids(name)
            await self._vectors.delete(name, sorted((noted & there) - kept))
            for part in parts(sorted((noted & kept) - there), AT_ONCE):
                found = await asyncio.to_thread(partial(self._store.passages, part, expired=True))
                await self._vectors.upsert(name, await self._points([*found.values()]))
            await asyncio.to_thread(self._store.end, name)

    # --- points ---------------------------------------------------------------------------------------------------

    def _of_fact(self, fact_id: str) -> Sequence[KeptPassage]:
        found = self._store.fact_passage(fact_id)
        return [] if found is None else [found]

    async def _points(self, passages: Sequence[KeptPassage]) -> list[VectorPoint]:
        return [point for part in parts(passages, AT_ONCE) for point in await embedded(part, self._embedder)]

    async def _stored_points(self, collection: str, ids: Sequence[str]) -> list[VectorPoint]:
        found = await asyncio.to_thread(partial(self._store.passages, ids, expired=True))
        dense = await self._vectors.vectors(collection, ids)
        # BM25 is made again from the text; what the embedder weighed is not known from it.
        learned = isinstance(self._embedder, SparseEmbedder)
        weights = await self._vectors.weights(collection, ids) if learned else {}
        return [point_of(found[key], dense[key], weights.get(key)) for key in found if key in dense]


def note_all(store: ResearchStore) -> None:
    """Before the vectors of all passages are removed: `recover` embeds them again, whatever happens in between."""
    for collection in store.every_collection():
        store.begin(collection, adding=sorted(store.ids(collection)))


def _by_collection(passages: Iterable[KeptPassage]) -> dict[str, list[str]]:
    found: defaultdict[str, list[str]] = defaultdict(list)
    for passage in passages:
        found[passage.collection].append(passage.id)
    return dict(found)


async def _finished(write: Coroutine[Any, Any, T]) -> T:
    """Who is cancelled waits for it all the same: a store may still be writing in its thread, behind the back of the
    next one whose turn it is."""
    task = asyncio.create_task(write)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # seen: nobody else will ask for it
        raise
