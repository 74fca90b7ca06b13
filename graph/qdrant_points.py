"""What the embedded and the server store have in common: how much is asked for, how it is ranked, what is storable."""

from __future__ import annotations

import math
import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from graph.errors import DependencyFaultError, StoreVersionError
from graph.model import WIKI, Scored, SearchFilter, VectorRankings
from graph.storable import storable

RRF_K = 60
"""Cormack et al. 2009."""
PREFETCH = 4
"""Hits of each list that enter fusion, as a multiple of those asked for."""
EXACT_UP_TO = 20_000
"""Points up to which every vector is compared, be it the collection or what a filter leaves of it: approximate search
over few, filtered points misses most of them (mission.md §3.4), and comparing 6,000 takes 3 ms. BM25 has no approximate
search in either engine: it always ranks every point that shares a word."""
SEARCH_WIDTH = 256
"""HNSW's ef above that size: twice the engine's default, for a millisecond."""
FILTERED_FIELDS = ("source", "page_type", "language", "categories")


class Found(Protocol):
    """A point as either engine gives it."""

    @property
    def id(self) -> object: ...
    @property
    def score(self) -> float: ...


def is_small(collection: str, points: int, exact_up_to: int) -> bool:
    """Whether it is searched exactly whatever the filter: all but the wiki are, as they are small by their nature."""
    return collection != WIKI or points <= exact_up_to


def ranked(points: Iterable[Found]) -> tuple[Scored, ...]:
    """Best first, equal scores by key; what has no finite score is left out."""
    best_first = sorted((-point.score, str(point.id)) for point in points if math.isfinite(point.score))
    return tuple(Scored(key=key, score=-score) for score, key in best_first)


def rankings_of(found: Mapping[str, Sequence[Scored]], limit: int) -> VectorRankings:
    """The best `limit` of the lists "dense" and "sparse", which may be missing, and of both fused."""
    return VectorRankings(
        fused=fuse(found.values())[:limit],
        dense=tuple(found.get("dense", ())[:limit]),
        sparse=tuple(found.get("sparse", ())[:limit]),
    )


def check_vector(vector: NDArray[np.float32], dimension: int, where: str) -> None:
    """`where`: the store in words. Raises `StoreVersionError` and `DependencyFaultError`."""
    if vector.shape != (dimension,):
        raise StoreVersionError(
            f"The vectors in {where} have {dimension} numbers and the embedder gave {vector.size}; "
            "run `trivet ingest --rebuild`, or change the embedder back."
        )
    # The embedded engine takes them, and then nothing compares with them; JSON has no such numbers.
    if not np.isfinite(vector).all():
        raise DependencyFaultError("The embedder gave a vector that is not of numbers.", dependency="embedder")


def fuse(rankings: Iterable[Sequence[Scored]]) -> tuple[Scored, ...]:
    """Reciprocal rank fusion, ranks counted from 1; equal scores ordered by key.

    Not left to the engine: it would search a second time for it, and it counts the ranks of equal scores in the
    order in which the points happen to lie, so that a moved or rebuilt store would answer otherwise.
    """
    scores: defaultdict[str, float] = defaultdict(float)
    for ranking in rankings:
        for rank, scored in enumerate(ranking, 1):
            scores[scored.key] += 1 / (RRF_K + rank)
    # 1/63 + 1/140 and 1/84 + 1/90 are equal, but not to the last bit of a float.
    best_first = sorted((-round(score, 15), key) for key, score in scores.items())
    return tuple(Scored(key=key, score=-score) for score, key in best_first)


def wanted(where: SearchFilter) -> Mapping[str, list[str]]:
    """Payload field → the values of which a point must have one."""
    fields = (where.sources, tuple(map(str, where.page_types)), where.languages, where.categories)
    found = zip(FILTERED_FIELDS, fields, strict=True)
    return {field: [*map(storable, values)] for field, values in found if values}


def storable_payload(payload: Mapping[str, str | int | list[str]]) -> dict[str, str | int | list[str]]:
    return {key: _storable(value) for key, value in payload.items()}


def _storable(value: str | int | list[str]) -> str | int | list[str]:
    if isinstance(value, list):
        return [storable(item) for item in value]
    return storable(value) if isinstance(value, str) else value


def uuids(chunk_ids: Iterable[str]) -> list[uuid.UUID]:
    """Of those that are UUIDs: nothing else can be there."""
    found = []
    for chunk_id in chunk_ids:
        try:
            found.append(uuid.UUID(chunk_id))
        except ValueError:
            continue
    return found
