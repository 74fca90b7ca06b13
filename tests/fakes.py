"""Working stores in memory, and an embedder that needs no model: for tests of everything above the seams."""

from __future__ import annotations

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from graph.errors import StoreCorruptError, StoreVersionError
from graph.graph_model import Entity, GraphCounts, GraphPage, Mention, Neighbourhood, NeighbourhoodBounds
from graph.model import Scored, SearchFilter, VectorPoint, VectorRankings
from graph.names import words
from tests.fake_state import FakeState as FakeState


class HashEmbedder:
    """Each word is a direction found by hashing it, so texts that share words are close."""

    model = "hash"
    max_tokens = 512

    def __init__(self, dimension: int = 64) -> None:
        self.dimension = dimension
        self.embedded: list[str] = []
        """Every passage it was ever given, so that a test can say what was embedded again."""

    async def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.embedded.extend(texts)
        return np.stack([self._vector(text) for text in texts]) if texts else np.zeros((0, self.dimension), np.float32)

    async def embed_question(self, question: str) -> NDArray[np.float32]:
        return self._vector(question)

    def count_tokens(self, text: str) -> int:
        return len(words(text))

    async def close(self) -> None: ...

    def _vector(self, text: str) -> NDArray[np.float32]:
        vector = np.zeros(self.dimension, np.float32)
        vector[0] = 0.01  # a text without words has a direction too
        for word in words(text):
            digest = int.from_bytes(hashlib.sha1(word.encode()).digest()[:8], "big")
            vector[(digest >> 1) % self.dimension] += 1.0 if digest & 1 else -1.0
        return vector / np.float32(np.linalg.norm(vector))


class FakeVectors:
    """Cosine and BM25 by reading every point."""

    def __init__(self) -> None:
        self.collections: dict[str, dict[str, VectorPoint]] = defaultdict(dict)

    async def upsert(self, collection: str, points: Sequence[VectorPoint]) -> None:
        for stored in list(self.collections[collection].values())[:1]:
            if any(point.dense.shape != stored.dense.shape for point in points):
                raise StoreVersionError(f"Collection {collection} holds vectors of {stored.dense.shape[0]} numbers.")
        self.collections[collection].update({point.chunk_id: point for point in points})

    async def delete(self, collection: str, chunk_ids: Sequence[str]) -> None:
        for chunk_id in chunk_ids:
            self.collections[collection].pop(chunk_id, None)

    async def search(
        self,
        collection: str,
        *,
        dense: NDArray[np.float32] | None,
        text: str,
        limit: int,
        where: SearchFilter | None = None,
        sparse: dict[int, float] | None = None,
    ) -> VectorRankings:
        points = self.collections[collection].values()
        allowed = {point.chunk_id for point in points if _matches(point, where or SearchFilter())}
        by_cosine = {point.chunk_id: float(point.dense @ dense) for point in points} if dense is not None else {}
        rankings = [_ranked(scores, allowed) for scores in (by_cosine, _bm25(list(points), words(text)))]
        fused: dict[str, float] = defaultdict(float)
        for ranking in rankings:
            for rank, scored in enumerate(ranking, 1):
                fused[scored.key] += 1 / (60 + rank)
        return VectorRankings(
            fused=_ranked(fused, allowed)[:limit], dense=rankings[0][:limit], sparse=rankings[1][:limit]
        )

    async def vectors(self, collection: str, chunk_ids: Sequence[str]) -> Mapping[str, NDArray[np.float32]]:
        stored = self.collections[collection]
        return {chunk_id: stored[chunk_id].dense for chunk_id in chunk_ids if chunk_id in stored}

    async def weights(self, collection: str, chunk_ids: Sequence[str]) -> Mapping[str, dict[int, float]]:
        stored = self.collections[collection]
        return {
            chunk_id: stored[chunk_id].sparse or _word_weights(stored[chunk_id].text)
            for chunk_id in chunk_ids
            if chunk_id in stored
        }

    async def ids(self, collection: str) -> set[str]:
        return set(self.collections[collection])

    async def optimize(self) -> None: ...
    async def clear(self) -> None:
        self.collections.clear()

    async def close(self) -> None: ...


def _word_weights(text: str) -> dict[int, float]:
    counts = Counter(words(text))
    return {
        int(hashlib.sha1(word.encode()).hexdigest()[:8], 16): count * 2.2 / (count + 1.2)
        for word, count in counts.items()
    }


def _matches(point: VectorPoint, where: SearchFilter) -> bool:
    categories = point.payload.get("categories", [])
    return (
        (not where.sources or point.payload.get("source") in where.sources)
        and (not where.page_types or point.payload.get("page_type") in where.page_types)
        and (not where.languages or point.payload.get("language") in where.languages)
        and (
            not where.categories or (isinstance(categories, list) and not set(categories).isdisjoint(where.categories))
        )
    )


def _ranked(scores: Mapping[str, float], allowed: set[str]) -> tuple[Scored, ...]:
    best_first = sorted(((-score, key) for key, score in scores.items() if key in allowed))
    return tuple(Scored(key=key, score=-score) for score, key in best_first)


def _bm25(points: Sequence[VectorPoint], query: Sequence[str]) -> dict[str, float]:
    texts = {point.chunk_id: Counter(words(point.text)) for point in points}
    scores: dict[str, float] = {}
    for word in set(query):
        found = {chunk_id: counts[word] for chunk_id, counts in texts.items() if word in counts}
        idf = math.log(1 + (len(texts) - len(found) + 0.5) / (len(found) + 0.5))
        for chunk_id, count in found.items():
            scores[chunk_id] = scores.get(chunk_id, 0.0) + idf * count * 2.2 / (count + 1.2)
    return scores


@dataclass
class FakeGraph:
    """Dictionaries, and a walk that reads like the rule it follows."""

    pages: dict[str, GraphPage] = field(default_factory=dict)
    page_of: dict[str, str] = field(default_factory=dict)
    entities: dict[str, Entity] = field(default_factory=dict)
    mentions: dict[str, dict[str, int]] = field(default_factory=dict)
    writes: int = 0

    async def put_pages(self, pages: Sequence[GraphPage]) -> None:
        self.writes += 1
        for page in pages:
            self.pages[page.page_id] = page
            self.page_of.update(dict.fromkeys(page.chunk_ids, page.page_id))

    async def remove_pages(self, page_ids: Sequence[str]) -> None:
        gone = {page_id for page_id in page_ids if self.pages.pop(page_id, None)}
        await self.remove_chunks([chunk_id for chunk_id, page_id in self.page_of.items() if page_id in gone])

    async def remove_chunks(self, chunk_ids: Sequence[str]) -> None:
        self.writes += 1
        for chunk_id in chunk_ids:
            self.page_of.pop(chunk_id, None)
            self.mentions.pop(chunk_id, None)

    async def set_entities(self, entities: Sequence[Entity]) -> None:
        self.writes += 1
        self.entities.update({entity.id: entity for entity in entities})

    async def titled_entities(self) -> Mapping[str, Entity]:
        return {entity.id: entity for entity in self.entities.values() if entity.titled}

    async def set_mentions(self, mentions: Mapping[str, Sequence[Mention]]) -> None:
        self.writes += 1
        for chunk_id, found in mentions.items():
            if chunk_id not in self.page_of or any(mention.entity_id not in self.entities for mention in found):
                raise StoreCorruptError(f"The graph lacks chunk {chunk_id} or an entity it mentions.")
            self.mentions[chunk_id] = {mention.entity_id: mention.count for mention in found}

    async def prune_entities(self) -> int:
        used = {entity_id for found in self.mentions.values() for entity_id in found}
        used |= {page.title_entity for page in self.pages.values()}
        unused = self.entities.keys() - used
        self.writes += 1
        for entity_id in unused:
            del self.entities[entity_id]
        return len(unused)

    async def find_entities(self, keys: Sequence[str]) -> Mapping[str, tuple[Entity, ...]]:
        ordered = sorted(self.entities.values(), key=lambda entity: entity.id)
        found = {key: tuple(entity for entity in ordered if key in entity.keys) for key in keys}
        return {key: entities for key, entities in found.items() if entities}

    async def neighbourhood(
        self, entity_ids: Sequence[str], chunk_ids: Sequence[str], bounds: NeighbourhoodBounds
    ) -> Neighbourhood:
        edges = list(self._edges())
        frequency = Counter(entity for kind, _, entity, _ in edges if kind == "mention")
        whole = len(self.entities) + len(self.page_of) <= bounds.max_nodes and len(edges) <= bounds.max_edges
        if whole:
            entities, chunks = set(self.entities), set(self.page_of)
        else:
            walk = _Walk(edges, frequency, bounds)
            walk.run(set(entity_ids) & self.entities.keys(), set(chunk_ids) & self.page_of.keys())
            entities, chunks = walk.entities, walk.chunks
        return self._arrays(sorted(entities), sorted(chunks), edges, frequency, str(self.writes) if whole else "")

    def _edges(self) -> Iterator[tuple[str, str, str, int]]:
        """(kind, chunk, entity, count)"""
        for chunk_id, page_id in self.page_of.items():
            page = self.pages[page_id]
            for entity_id, count in self.mentions.get(chunk_id, {}).items():
                yield "mention", chunk_id, entity_id, count
            if page.title_entity in self.entities:
                yield "title", chunk_id, page.title_entity, 1
            for entity_id in page.link_entities:
                if entity_id in self.entities:
                    yield "link", chunk_id, entity_id, 1

    def _arrays(
        self,
        entities: list[str],
        chunks: list[str],
        edges: list[tuple[str, str, str, int]],
        frequency: Mapping[str, int],
        version: str,
    ) -> Neighbourhood:
        entity_at = {entity_id: at for at, entity_id in enumerate(entities)}
        chunk_at = {chunk_id: at for at, chunk_id in enumerate(chunks)}
        kept: dict[str, list[tuple[int, int, int]]] = {"mention": [], "title": [], "link": []}
        for kind, chunk, entity, count in edges:
            if chunk in chunk_at and entity in entity_at:
                kept[kind].append((chunk_at[chunk], entity_at[entity], count))
        table = {kind: np.array(sorted(rows), np.int32).reshape(-1, 3) for kind, rows in kept.items()}
        return Neighbourhood(
            entity_ids=tuple(entities),
            entity_names=tuple(self.entities[entity_id].name for entity_id in entities),
            chunk_ids=tuple(chunks),
            mention_chunk=table["mention"][:, 0],
            mention_entity=table["mention"][:, 1],
            mention_count=table["mention"][:, 2].astype(np.float32),
            title_chunk=table["title"][:, 0],
            title_entity=table["title"][:, 1],
            link_chunk=table["link"][:, 0],
            link_entity=table["link"][:, 1],
            chunk_frequency=np.array([frequency.get(entity_id, 0) for entity_id in entities], np.int32),
            chunk_total=len(self.page_of),
            version=version,
        )

    async def linking_pages(self, entity_ids: Sequence[str]) -> set[str]:
        wanted = set(entity_ids)
        return {page.page_id for page in self.pages.values() if not wanted.isdisjoint(page.link_entities)}

    async def mentions_of(self, chunk_ids: Sequence[str]) -> Mapping[str, tuple[Mention, ...]]:
        return {
            chunk_id: tuple(
                Mention(entity_id=entity_id, count=count)
                for entity_id, count in sorted(self.mentions.get(chunk_id, {}).items())
            )
            for chunk_id in chunk_ids
            if chunk_id in self.page_of
        }

    async def ids(self) -> tuple[set[str], set[str]]:
        return set(self.pages), set(self.page_of)

    async def counts(self) -> GraphCounts:
        pages = self.pages.values()
        return GraphCounts(
            pages=len(pages),
            chunks=len(self.page_of),
            entities=len(self.entities),
            mentions=sum(map(len, self.mentions.values())),
            links=sum(entity_id in self.entities for page in pages for entity_id in set(page.link_entities)),
            categories=len({category for page in pages for category in page.categories}),
        )

    async def clear(self) -> None:
        self.writes += 1
        for held in (self.pages, self.page_of, self.entities, self.mentions):
            held.clear()

    async def close(self) -> None: ...


class _Walk:
    """Breadth first; each node brings its edges to nodes already taken, and the first that does not fit ends it."""

    def __init__(
        self, edges: list[tuple[str, str, str, int]], frequency: Mapping[str, int], bounds: NeighbourhoodBounds
    ) -> None:
        self.edges, self.bounds = edges, bounds
        self.rarity = lambda entity: (frequency.get(entity, 0), entity)
        self.entities: set[str] = set()
        self.chunks: set[str] = set()
        self.taken_edges = 0
        self.full = False

    def run(self, entities: set[str], chunks: set[str]) -> None:
        front_entities = self._take(sorted(entities, key=self.rarity), self.entities)
        front_chunks = self._take(sorted(chunks), self.chunks)
        for _ in range(4):
            rank = {entity: at for at, entity in enumerate(sorted(front_entities, key=self.rarity))}
            reached: dict[str, int] = {}
            for kind, chunk, entity, _count in self.edges:
                if kind != "link" and entity in rank and chunk not in self.chunks:
                    reached[chunk] = min(rank[entity], reached.get(chunk, len(rank)))
            met = {entity for _, chunk, entity, _ in self.edges if chunk in set(front_chunks)} - self.entities
            front_chunks = self._take(sorted(reached, key=lambda chunk: (reached[chunk], chunk)), self.chunks)
            front_entities = self._take(sorted(met, key=self.rarity), self.entities)

    def _take(self, candidates: list[str], into: set[str]) -> list[str]:
        taken: list[str] = []
        for node in candidates:
            cost = sum(
                (chunk == node and entity in self.entities) or (entity == node and chunk in self.chunks)
                for _, chunk, entity, _ in self.edges
            )
            nodes = len(self.entities) + len(self.chunks) + 1
            self.full = self.full or nodes > self.bounds.max_nodes or self.taken_edges + cost > self.bounds.max_edges
            if self.full:
                break
            into.add(node)
            self.taken_edges += cost
            taken.append(node)
        return taken
