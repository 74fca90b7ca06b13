"""Filling a store over HTTP: sources, pages and jobs, over working stores in memory."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from litestar.testing import AsyncTestClient

from config.settings import Settings
from graph.sqlite_jobs import SqliteJobs
from graph.sqlite_registry import SqliteRegistry
from ingestion.verify import verify
from server import jobs as runner_module
from server import librarian as librarian_module
from server.app import create_app
from server.backends import Backends
from server.http.backends_answerer import BackendsAnswerer
from server.librarian import JobLibrarian
from server.library import Library
from tests.server.answer.found import backends
from tests.server.http.conftest import Client
from tests.server.http.scripted import opening


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner_module, "BEAT_SECONDS", 0.05)
    monkeypatch.setattr(librarian_module, "WATCH_SECONDS", 0.05)


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    registry, jobs = SqliteRegistry(tmp_path / "sources.db"), SqliteJobs(tmp_path / "jobs.db")
    yield Library(backends=backends(), registry=registry, jobs=jobs)
    registry.close()
    jobs.close()


@pytest.fixture
async def client(library: Library) -> AsyncIterator[Client]:
    librarian = JobLibrarian(library)
    app = create_app(Settings(), open_answerer=opening(BackendsAnswerer(library.backends, librarian)))
    async with AsyncTestClient(app) as client:
        librarian.start()
        try:
            yield client
        finally:
            await librarian.close()


@pytest.fixture
def wiki(tmp_path: Path) -> Path:
    folder = tmp_path / "handbook"
    folder.mkdir()
    for n in range(4):
        (folder / f"page{n}.md").write_text(f"# Page {n}\n\nText of page {n}.")
    return folder


async def ended(client: Client, job: dict[str, Any]) -> dict[str, Any]:
    async with asyncio.timeout(30):
        while job["state"] in {"queued", "running"}:
            await asyncio.sleep(0.02)
            job = (await client.get(f"/api/jobs/{job['id']}")).json()
    return job


def titles(opened: Backends) -> set[str]:
    return {manifest.title for manifest in opened.state.all_manifests()}


async def test_a_source_is_added_followed_and_forgotten(client: Client, library: Library, wiki: Path) -> None:
    response = await client.post("/api/sources", json={"location": str(wiki)})
    assert response.status_code == 202
    body = response.json()
    assert (body["source"]["name"], body["source"]["kind"]) == ("handbook", "markdown")
    done = await ended(client, body["job"])
    assert (done["state"], done["result"]["added"], done["source"]) == ("done", 4, "handbook")
    (listed,) = (await client.get("/api/sources")).json()
    assert (listed["location"], listed["last_error"]) == (str(wiki), "")

    (wiki / "page0.md").write_text("# Page 0\n\nAnother text.")
    (wiki / "page1.md").unlink()
    again = await ended(client, (await client.post("/api/sources/handbook/sync", json={})).json())
    assert (again["result"]["changed"], again["result"]["deleted"]) == (1, 1)
    assert titles(library.backends) == {"Page 0", "Page 2", "Page 3"}

    gone = await ended(client, (await client.delete("/api/sources/handbook")).json())
    assert gone["result"] == {"removed": 3}
    assert titles(library.backends) == set()
    assert (await client.get("/api/sources")).json() == []
    assert (await verify(library.backends.knowledge)).clean


async def test_pages_are_given_replaced_and_removed(client: Client, library: Library) -> None:
    pages = [
        {"key": "a/b", "title": "Gull Rock", "text": "A **rock** near [[Port Vale]].", "categories": ["Rocks"]},
        {"key": "c", "title": "Port Vale", "text": "A harbour.", "format": "text", "aliases": ["The Vale"]},
    ]
    given = await ended(client, (await client.post("/api/pages", json={"source": "mine", "pages": pages})).json())
    assert given["result"]["added"] == 2
    state = library.backends.state
    stored = state.manifests(["mine:a/b"])["mine:a/b"]
    assert [link.target for link in stored.links] == ["Port Vale"]
    assert state.chunks(stored.chunk_ids)[stored.chunk_ids[0]].chunk.text == "A rock near Port Vale."
    change = {"source": "mine", "pages": [pages[0] | {"text": "A rock no more."}]}
    assert (await ended(client, (await client.post("/api/pages", json=change)).json()))["result"]["changed"] == 1
    assert titles(library.backends) == {"Gull Rock", "Port Vale"}
    await ended(client, (await client.delete("/api/pages/mine/a/b")).json())
    assert titles(library.backends) == {"Port Vale"}
    assert (await verify(library.backends.knowledge)).clean


async def test_the_same_request_twice_is_one_job(client: Client, wiki: Path) -> None:
    key = {"Idempotency-Key": "once"}
    first = (await client.post("/api/sources", json={"location": str(wiki)}, headers=key)).json()
    second = (await client.post("/api/sources", json={"location": str(wiki)}, headers=key)).json()
    assert first["job"]["id"] == second["job"]["id"]
    await ended(client, first["job"])
    assert len((await client.get("/api/jobs")).json()) == 1


async def test_a_job_that_has_ended_is_the_last_event(client: Client, wiki: Path) -> None:
    """While it runs, its events are those of `JobLibrarian.watch`; this client would hold up the runner."""
    job = (await client.post("/api/sources", json={"location": str(wiki)})).json()["job"]
    await ended(client, job)
    response = await client.get(f"/api/jobs/{job['id']}/events")
    (block,) = [block for block in response.text.strip().split("\n\n") if block.startswith("event: job")]
    assert json.loads(block.partition("data: ")[2])["state"] == "done"


async def test_a_job_is_watched_until_its_end(client: Client, library: Library, wiki: Path) -> None:
    librarian = JobLibrarian(library)
    job = (await client.post("/api/sources", json={"location": str(wiki)})).json()["job"]
    async with asyncio.timeout(30):
        states = [seen.state.value async for seen in librarian.watch(job["id"])]
    assert states[-1] == "done"
    assert states == sorted(states, key=["queued", "running", "done"].index)


async def test_a_failed_job_says_why(client: Client, library: Library, wiki: Path) -> None:
    job = (await client.post("/api/sources", json={"location": str(wiki)})).json()["job"]
    await ended(client, job)
    await asyncio.to_thread(shutil.rmtree, wiki)
    failed = await ended(client, (await client.post("/api/sources/handbook/sync", json={})).json())
    assert failed["state"] == "failed"
    assert "There is nothing at" in failed["error"]
    assert len(titles(library.backends)) == 4
    (listed,) = (await client.get("/api/sources")).json()
    assert "There is nothing at" in listed["last_error"]


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "says"),
    [
        ("POST", "/api/sources", {"location": "/no/such/wiki"}, 400, "There is nothing at /no/such/wiki"),
        ("POST", "/api/sources", {"location": ""}, 400, "location"),
        ("POST", "/api/sources", {"location": "/", "colour": "red"}, 400, "colour"),
        ("POST", "/api/sources", {"location": "ftp://wiki"}, 400, "must begin with http"),
        ("POST", "/api/sources/nobody/sync", {}, 404, "There is no source 'nobody'; there are: none."),
        ("DELETE", "/api/sources/nobody", None, 404, "There is no source 'nobody'"),
        ("GET", "/api/jobs/nothing", None, 404, "There is no job 'nothing'"),
        ("DELETE", "/api/jobs/nothing", None, 404, "There is no job 'nothing'"),
        ("GET", "/api/jobs/nothing/events", None, 404, "There is no job 'nothing'"),
        ("GET", "/api/jobs?limit=1000000000", None, 400, "limit"),
        ("POST", "/api/pages", {"source": "a b", "pages": []}, 400, "source"),
        ("POST", "/api/pages", {"source": "a", "pages": [{"key": "k", "title": "t"}]}, 400, "text"),
    ],
)
async def test_bad_requests(client: Client, method: str, path: str, body: object, status: int, says: str) -> None:
    response = await client.request(method, path, json=body) if body is not None else await client.request(method, path)
    assert response.status_code == status, response.text
    assert says in response.json()["detail"]
    assert response.headers["content-type"].startswith("application/problem+json")
