"""A Qdrant that is silent, dies, comes back, or is used by many at once."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from graph.errors import (
    DependencyDownError,
    DependencyFaultError,
    StoreVersionError,
)
from graph.qdrant_server_store import QdrantServer
from tests.graph.qdrant_server_cases import (
    CALLS,
    DIMENSION,
    NOTHING,
    error_of,
    key,
    points,
    search,
    server,
    switched,
)
from tests.places import quick_folder
from tests.services.processes import free_port
from tests.services.proxy import proxy_to
from tests.services.qdrant_stand_in import QdrantProcess

WAITS = 4.0  # seconds: on two busy cores a task sleeps long; without the deadline it would never end


@pytest.mark.parametrize("known", [False, True], ids=["at first", "later"])
@pytest.mark.parametrize("call", CALLS)
async def test_a_silent_server_is_left_at_the_deadline(
    shared: QdrantProcess, prefix: str, call: str, known: bool
) -> None:
    async with proxy_to(shared.port) as proxy:
        store = server(f"http://127.0.0.1:{proxy.port}", prefix=prefix, seconds=0.6)
        if known:
            await store.upsert("wiki", points(2))
        proxy.stall()
        began = asyncio.get_running_loop().time()
        assert "0.6 s" in await error_of(CALLS[call](store), DependencyDownError)
        assert asyncio.get_running_loop().time() - began < 0.6 + WAITS
        proxy.restore()
        await CALLS[call](store)
        await store.close()


async def test_a_cancelled_search_ends_at_once(shared: QdrantProcess, prefix: str) -> None:
    async with proxy_to(shared.port) as proxy:
        store = server(f"http://127.0.0.1:{proxy.port}", prefix=prefix)
        await store.upsert("wiki", points(2))
        proxy.stall()
        asking = asyncio.create_task(search(store))
        await asyncio.sleep(0.1)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(asking, 1)
        await store.close()


async def test_a_store_outlives_its_server() -> None:
    """Not there yet, killed, stopped, and back with its data: the same object goes on."""
    with quick_folder() as folder:
        process = QdrantProcess(["--folder", str(folder)], port=free_port())
        store = server(process.url, seconds=5)
        await error_of(search(store), DependencyDownError)
        try:
            process.start()
            assert await search(store) == NOTHING
            await store.upsert("wiki", points(5))
            before = await search(store)
            process.kill()
            for call in CALLS.values():
                await error_of(call(store), DependencyDownError)
            process.start()
            # The local engine reads back what it had made unit vectors, so that their last bits differ.
            assert [scored.key for scored in (await search(store)).fused] == [scored.key for scored in before.fused]
            process.pause()
            impatient = server(process.url, seconds=0.5)
            await error_of(search(impatient), DependencyDownError)
            process.resume()
            assert await search(impatient) == await search(store)
            await impatient.close()
        finally:
            process.kill()
            await store.close()


async def test_what_was_removed_meanwhile_is_empty_and_made_again(shared: QdrantProcess, prefix: str) -> None:
    first, second = server(shared.url, prefix=prefix), server(shared.url, prefix=prefix)
    for call in CALLS.values():
        await first.upsert("wiki", points(2))
        await second.clear()
        await call(first)
    await first.upsert("wiki", points(2))
    await second.clear()
    assert await search(first) == NOTHING
    await first.upsert("wiki", points(2))
    assert len(await second.ids("wiki")) == 2
    for store in (first, second):
        await store.close()


async def test_many_write_and_ask_at_once(shared: QdrantProcess, prefix: str) -> None:
    """Two stores, as of two processes, that also make the collection at the same moment."""
    stores = [server(shared.url, prefix=prefix) for _ in range(2)]

    async def write(store: QdrantServer, first: int) -> None:
        await store.upsert("wiki", points(30, first=first))
        assert {key(number) for number in range(first, first + 30)} <= await store.ids("wiki")

    async def ask(store: QdrantServer) -> None:
        for _ in range(5):
            found = await search(store)
            assert len(found.fused) <= 5

    await asyncio.gather(*(write(stores[part % 2], part * 30) for part in range(6)), *map(ask, stores * 2))
    assert len(await stores[0].ids("wiki")) == 180
    for store in stores:
        await store.close()


async def test_many_points_are_written_in_parts(shared: QdrantProcess, prefix: str) -> None:
    async with switched(shared.port) as switch:
        store = server(switch.url, prefix=prefix)
        await store.upsert("wiki", points(2000))
        assert sum(asked.startswith(f"PUT /collections/{prefix}_wiki/points") for asked in switch.asked) == 16
        assert all("wait=true" in asked for asked in switch.asked if "/points?" in asked and asked.startswith("PUT"))
        assert len(await store.ids("wiki")) == 2000
        await store.delete("wiki", [key(number) for number in range(1500)])
        assert len(await store.vectors("wiki", [key(number) for number in range(2000)])) == 500
        await store.close()


async def test_a_vector_that_cannot_be_stored_is_refused_before_anything_is_written(
    shared: QdrantProcess, prefix: str
) -> None:
    store = server(shared.url, prefix=prefix)
    wrong = [*points(3), *points(1, dimension=3, first=9)]
    with pytest.raises(StoreVersionError, match="have 8 numbers and the embedder gave 3"):
        await store.upsert("wiki", wrong)
    with pytest.raises(DependencyFaultError, match="not of numbers"):
        await store.search("wiki", dense=np.full(DIMENSION, np.nan, np.float32), text="", limit=5)
    assert await store.ids("wiki") == set()
    await store.close()
