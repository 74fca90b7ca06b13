"""Whatever a Qdrant server can do wrong has a name, and none of it is shown as no results."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import subprocess
import sys

import pytest

from graph.errors import (
    DependencyBusyError,
    DependencyDownError,
    DependencyFaultError,
    SettingsError,
    StoreError,
    StoreFullError,
    TrivetError,
)
from graph.qdrant_server_collections import CollectionRecipe
from tests.graph.qdrant_server_cases import (
    CALLS,
    KEY,
    THEIRS,
    error_of,
    points,
    search,
    server,
    switched,
)
from tests.services.processes import free_port
from tests.services.qdrant_stand_in import QdrantProcess, running_qdrant

# --- without a server ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "",
        "127.0.0.1:6333",
        "ftp://x",
        "http://",
        "http://x:99999",
        "http://[::1",
        "http://x/?a=b",
        "http://x:y",
        "grpc://x",
    ],
)
def test_a_url_of_the_wrong_kind_is_refused_by_name(url: str) -> None:
    with pytest.raises(SettingsError, match=r"vectors\.qdrant_url must look like http://"):
        server(url)


def test_a_password_in_the_url_is_refused_and_not_shown() -> None:
    with pytest.raises(SettingsError, match=r"vectors\.qdrant_api_key") as caught:
        server(f"http://me:{KEY}@127.0.0.1:6333")
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("wrong", [f"{KEY}é", f"{KEY}\r\nx-evil: 1", f"{KEY}\n"])
def test_a_key_that_no_header_can_carry_is_refused_and_not_shown(wrong: str) -> None:
    with pytest.raises(SettingsError, match=r"vectors\.qdrant_api_key") as caught:
        server("http://127.0.0.1:6333", api_key=wrong)
    assert KEY not in str(caught.value)


def test_the_client_is_not_imported_for_nothing() -> None:
    """It takes seconds, and most have their vectors in the home folder."""
    code = "import graph.qdrant_server_store, sys; assert 'qdrant_client' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("call", CALLS)
async def test_a_closed_port_is_down_at_once_and_opening_does_not_ask(call: str) -> None:
    port = free_port()
    store = server(f"http://127.0.0.1:{port}", api_key=KEY)
    began = asyncio.get_running_loop().time()
    message = await error_of(CALLS[call](store), DependencyDownError)
    assert f"http://127.0.0.1:{port}" in message
    assert "vectors.qdrant_url" in message
    assert asyncio.get_running_loop().time() - began < 5
    await store.close()


async def test_an_unknown_host_is_named_with_the_port_that_is_used() -> None:
    store = server("https://no-such-host.invalid/")
    message = await error_of(search(store), DependencyDownError)
    assert "https://no-such-host.invalid:6333 cannot be found" in message
    await store.close()


async def test_encryption_that_is_not_there_is_named(shared: QdrantProcess) -> None:
    store = server(shared.url.replace("http:", "https:"))
    assert "https:// or http://" in await error_of(search(store), DependencyDownError)
    await store.close()


async def test_a_closed_store_says_so(shared: QdrantProcess) -> None:
    store = server(shared.url)
    await store.close()
    assert "is closed" in await error_of(search(store), StoreError)


def test_names_are_safe_and_apart() -> None:
    names = ["wiki", "a/b", "a_b", "a~2Fb", "a%2Fb", "..", ".", "Ü ü", "ü", "~", "", "x" * 300, "x" * 301, "é" * 99]
    recipe = CollectionRecipe(
        prefix="p" * 100, home="", model="", dimension=8, weights={}, idf=True, quantized=False, on_disk=False
    )
    made = [recipe.name_of(name) for name in names]
    assert len(set(made)) == len(names)
    assert all(re.fullmatch(r"[A-Za-z0-9_~-]{1,200}", name) for name in made)


# --- answers that are none -------------------------------------------------------------------------------------------

FAULTS: dict[str, tuple[int, bytes, type[TrivetError], str]] = {
    "HTML": (200, b"<html>what-the-server-said</html>", DependencyFaultError, "vectors.qdrant_url"),
    "empty": (200, b"", DependencyFaultError, "vectors.qdrant_url"),
    "garbage": (200, b"\0\xff\xfewhat-the-server-said", DependencyFaultError, "vectors.qdrant_url"),
    "no result": (200, b'{"status": "ok", "time": 0}', DependencyFaultError, "vectors.qdrant_url"),
    "null": (200, b'{"result": null, "status": "ok", "time": 0}', DependencyFaultError, "vectors.qdrant_url"),
    "another result": (200, b'{"result": {"what-the-server-said": 1}}', DependencyFaultError, "vectors.qdrant_url"),
    "no object": (200, b"[]", DependencyFaultError, "vectors.qdrant_url"),
    "deep": (200, b"[" * 100_000, DependencyFaultError, "vectors.qdrant_url"),
    "error": (500, b"what-the-server-said", DependencyFaultError, "status 500"),
    "bad request": (400, b'{"status": {"error": "what-the-server-said"}}', DependencyFaultError, "status 400"),
    "gateway": (502, b"<html>what-the-server-said</html>", DependencyFaultError, "status 502"),
    "not here": (404, b"<html>what-the-server-said</html>", DependencyFaultError, "vectors.qdrant_url"),
    "moved": (301, b"", DependencyFaultError, "redirects"),
    "too large": (413, b"what-the-server-said", DependencyFaultError, "max_request_size_mb"),
    "no key": (401, b"what-the-server-said", DependencyFaultError, "vectors.qdrant_api_key"),
    "wrong key": (403, b"what-the-server-said", DependencyFaultError, "vectors.qdrant_api_key"),
    "slow": (504, b"what-the-server-said", DependencyDownError, "too long"),
    "full": (507, b"what-the-server-said", StoreFullError, "no space left"),
    "full, older": (500, b"Service internal error: No space left on device", StoreFullError, "no space left"),
}


@pytest.mark.parametrize("known", [False, True], ids=["at first", "later"])
@pytest.mark.parametrize("fault", FAULTS)
async def test_an_answer_that_is_none_is_a_fault_and_never_no_results(
    shared: QdrantProcess, prefix: str, fault: str, known: bool
) -> None:
    status, body, kind, said = FAULTS[fault]
    async with switched(shared.port) as switch:
        store = server(switch.url, prefix=prefix, api_key=KEY)
        if known:
            await store.upsert("wiki", points(3))
        for call in CALLS.values():
            switch.say(status, body, Location=f"http://{THEIRS}")
            assert said in await error_of(call(store), kind)
            switch.answer = None
            if known:  # so that the next call asks what this test is about
                assert len((await search(store)).dense) == 3
        await store.close()


async def test_what_speaks_no_http_is_a_fault(shared: QdrantProcess) -> None:
    async with switched(shared.port) as switch:
        store = server(switch.url)
        switch.answer = b"\0\0\x18\4\0what-the-server-said\r\n\r\n"
        assert "6334 is for gRPC" in await error_of(search(store), DependencyFaultError)
        await store.close()


@pytest.mark.parametrize(
    ("status", "headers", "wait"),
    [
        (429, {"Retry_After": "7"}, 7.0),
        (429, {"Retry_After": "Wed, 21 Oct 2015 07:28:00 GMT"}, 1.0),
        (429, {}, 5.0),
        (503, {"Retry_After": "3"}, 3.0),
        (503, {}, 5.0),
    ],
)
async def test_a_busy_server_is_named_with_how_long_it_asks_for(
    shared: QdrantProcess, prefix: str, status: int, headers: dict[str, str], wait: float
) -> None:
    async with switched(shared.port) as switch:
        store = server(switch.url, prefix=prefix)
        await store.upsert("wiki", points(1))
        switch.say(status, THEIRS, **headers)
        before = len(switch.asked)
        with pytest.raises(DependencyBusyError) as caught:
            await search(store)
        assert caught.value.retry_after == wait
        assert len(switch.asked) == before + 1
        assert THEIRS not in str(caught.value)
        await store.close()


@pytest.mark.parametrize("half", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{"], ids=["at once", "halfway"])
@pytest.mark.parametrize("call", CALLS)
async def test_a_dropped_connection_is_tried_once_more(
    shared: QdrantProcess, prefix: str, call: str, half: bytes
) -> None:
    async with switched(shared.port) as switch:
        store = server(switch.url, prefix=prefix)
        await store.upsert("wiki", points(3))
        switch.answer, switch.times = half, 1
        await CALLS[call](store)
        assert switch.times == 0
        switch.times = 2
        assert "broke off" in await error_of(CALLS[call](store), DependencyDownError)
        assert switch.times == 0
        await store.close()


# --- keys and versions -----------------------------------------------------------------------------------------------


async def test_a_key_is_sent_and_never_shown(caplog: pytest.LogCaptureFixture, prefix: str) -> None:
    """Over http too, of which the client's own way to send it would warn."""
    caplog.set_level(logging.DEBUG)
    async with running_qdrant(api_key=KEY) as url:
        right, wrong, none = server(url, api_key=KEY), server(url, api_key=f"{KEY}-old"), server(url)
        await right.upsert("wiki", points(3))
        assert len((await search(right)).fused) == 3
        assert "refuses the key (401)" in await error_of(search(wrong), DependencyFaultError)
        assert "asks for a key (401); set vectors.qdrant_api_key" in await error_of(search(none), DependencyFaultError)
        for store in (right, wrong, none):
            assert KEY not in repr(store)
            await store.close()
    assert KEY not in caplog.text


@pytest.mark.parametrize("version", ["1.15.4", "1.9.0-dev", "v0.11.1"])
async def test_an_old_server_is_refused_with_both_versions(shared: QdrantProcess, version: str) -> None:
    async with switched(shared.port) as switch:
        switch.say(200, json.dumps({"title": "qdrant - vector search engine", "version": version}))
        store = server(switch.url)
        for call in CALLS.values():
            message = await error_of(call(store), DependencyFaultError)
            assert version[:4].rstrip(".") in message
            assert "1.16" in message
        await store.close()
