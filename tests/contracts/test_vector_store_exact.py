"""Few points among many are all found, as if every vector had been compared (mission.md §3.4)."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from graph.model import SearchFilter, VectorPoint, VectorRankings
from tests.contracts.test_vector_store import BACKENDS, DIMENSION, WORDS, opened, random_points
from tests.contracts.test_vector_store import pytestmark as pytestmark
from tests.contracts.test_vector_store import stand_in_url as stand_in_url
from tests.fakes import FakeVectors

RARE = "evergreen"


def many_points() -> list[VectorPoint]:
    """500, of which each hundredth is of a category of its own: five, wherever they lie."""
    return [
        replace(point, text=f"common {point.text}", payload={**point.payload, "categories": [RARE]})
        if number % 100 == 50
        else point
        for number, point in enumerate(random_points(500))
    ]


def keys(found: VectorRankings) -> list[list[str]]:
    return [[scored.key for scored in ranking] for ranking in (found.dense, found.sparse)]


@pytest.mark.parametrize("collection", ["wiki", "knowledge_evergreen", "research_physics", "persona_neutral"])
@pytest.mark.parametrize("name", BACKENDS)
async def test_five_of_five_hundred_are_all_found(name: str, collection: str, request: pytest.FixtureRequest) -> None:
    """The collection is too large for exact search by its size; what the filter leaves of it is not."""
    points, where = many_points(), SearchFilter(categories=(RARE,))
    rare = {point.chunk_id: point for point in points if RARE in point.payload["categories"]}  # type: ignore[operator]
    assert len(rare) == 5
    async with opened(name, request, exact_up_to=5) as store:
        await store.upsert(collection, points)
        await store.optimize()
        for dense in np.random.default_rng(3).standard_normal((10, DIMENSION)).astype(np.float32):
            found = await store.search(collection, dense=dense, text="common", limit=5, where=where)
            if name != "fake":  # which takes vectors as they are
                cosines = {key: float(point.dense @ dense / np.linalg.norm(point.dense)) for key, point in rare.items()}
                assert keys(found)[0] == sorted(cosines, key=lambda key: -cosines[key])
            assert set(keys(found)[0]) == set(keys(found)[1]) == rare.keys()


@pytest.mark.parametrize("name", [name for name in BACKENDS if name != "fake"])
@pytest.mark.parametrize("where", [SearchFilter(), SearchFilter(sources=("a",)), SearchFilter(categories=("crown",))])
async def test_a_niche_collection_is_ranked_as_by_comparing_everything(
    name: str, where: SearchFilter, request: pytest.FixtureRequest
) -> None:
    """Dense by brute force; BM25 of all that share a word, as a store that reads every text finds them."""
    points, chance = many_points(), random.Random(5)
    everything = FakeVectors()
    await everything.upsert("knowledge_physics", [replace(point, dense=_unit(point.dense)) for point in points])
    async with opened(name, request, exact_up_to=0) as store:
        await store.upsert("knowledge_physics", points)
        await store.optimize()
        for dense in np.random.default_rng(4).standard_normal((5, DIMENSION)).astype(np.float32):
            text = " ".join(chance.sample(WORDS, 2))
            asked = {"dense": _unit(dense), "text": text, "limit": 100, "where": where}
            found = keys(await store.search("knowledge_physics", **asked))  # type: ignore[arg-type]
            wanted = keys(await everything.search("knowledge_physics", **{**asked, "limit": 500}))  # type: ignore[arg-type]
            assert found[0] == wanted[0][:100]
            assert set(found[1]) <= set(wanted[1])
            assert len(found[1]) == min(100, len(wanted[1]))


def _unit(vector: np.ndarray) -> np.ndarray:
    return vector / np.linalg.norm(vector)
