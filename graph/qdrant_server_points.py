"""Points and filters as a request to Qdrant has them, and the fusion of what it found."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from graph.model import Scored, SearchFilter
from graph.qdrant_edge_store import RRF_K
from graph.storable import storable

T = TypeVar("T")


def fuse(rankings: Iterable[Sequence[Scored]]) -> tuple[Scored, ...]:
    """Reciprocal rank fusion (Cormack et al. 2009), ranks counted from 1; equal scores ordered by key."""
    scores: defaultdict[str, float] = defaultdict(float)
    for ranking in rankings:
        for rank, scored in enumerate(ranking, 1):
            scores[scored.key] += 1 / (RRF_K + rank)
    # 1/63 + 1/140 and 1/84 + 1/90 are equal, but not to the last bit of a float.
    best_first = sorted((-round(score, 15), key) for key, score in scores.items())
    return tuple(Scored(key=key, score=-score) for score, key in best_first)


def filter_json(where: SearchFilter) -> dict[str, Any] | None:
    wanted = {
        "source": where.sources,
        "page_type": tuple(map(str, where.page_types)),
        "language": where.languages,
        "categories": where.categories,
    }
    must = [{"key": key, "match": {"any": [*map(storable, values)]}} for key, values in wanted.items() if values]
    return {"must": must} if must else None


def payload_json(value: str | int | list[str]) -> str | int | list[str]:
    if isinstance(value, list):
        return [storable(item) for item in value]
    return storable(value) if isinstance(value, str) else value


def uuids(chunk_ids: Iterable[str]) -> list[str]:
    """Of those that are UUIDs: nothing else can be there."""
    found = []
    for chunk_id in chunk_ids:
        try:
            found.append(str(uuid.UUID(chunk_id)))
        except ValueError:
            continue
    return found


def parts(items: Sequence[T], size: int) -> Iterable[Sequence[T]]:
    return (items[start : start + size] for start in range(0, len(items), size))
