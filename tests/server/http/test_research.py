"""Topics and facts over HTTP: from a title to what people decided, over working stores in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from litestar.testing import AsyncTestClient

from config.settings import Settings
from graph.research import FactState
from graph.sqlite_jobs import SqliteJobs
from graph.sqlite_registry import SqliteRegistry
from server import jobs as runner_module
from server.app import create_app
from server.http.backends_answerer import BackendsAnswerer
from server.librarian import JobLibrarian
from server.library import Library
from server.research.desk import Desk
from server.research.review import Review
from server.research.shelf import Shelf
from server.research_jobs import research
from tests.fake_research import FakeResearch
from tests.fakes import FakeVectors, HashEmbedder
from tests.server.answer.found import backends
from tests.server.http.conftest import Client
from tests.server.http.scripted import opening
from tests.server.research.scripted_stages import ScriptedStages

TITLE = "Gulls of Norvik"
SLUG = "gulls-of-norvik"
PROBLEM = "application/problem+json"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner_module, "BEAT_SECONDS", 0.05)


@pytest.fixture
def shelf() -> Shelf:
    return Shelf(FakeResearch(), FakeVectors(), HashEmbedder())


@pytest.fixture
def stages(shelf: Shelf) -> ScriptedStages:
    return ScriptedStages(shelf.store)


@pytest.fixture
def desk(shelf: Shelf, stages: ScriptedStages) -> Desk:
    return Desk(shelf, stages, Review(shelf), seconds=60.0)


@pytest.fixture
def library(tmp_path: Path, desk: Desk) -> Iterator[Library]:
    registry, jobs = SqliteRegistry(tmp_path / "sources.db"), SqliteJobs(tmp_path / "jobs.db")
    yield Library(backends=backends(), registry=registry, jobs=jobs, desk=desk)
    registry.close()
    jobs.close()


@pytest.fixture
async def client(library: Library) -> AsyncIterator[Client]:
    librarian = JobLibrarian(library)
    answerer = BackendsAnswerer(library.backends, librarian, desk=library.desk)
    async with AsyncTestClient(create_app(Settings(), open_answerer=opening(answerer))) as client:
        librarian.start()
        try:
            yield client
        finally:
            await librarian.close()


async def ended(client: Client, job: dict[str, Any]) -> dict[str, Any]:
    async with asyncio.timeout(30):
        while job["state"] in {"queued", "running"}:
            await asyncio.sleep(0.02)
            job = (await client.get(f"/api/jobs/{job['id']}")).json()
    return job


async def researched(client: Client) -> list[dict[str, Any]]:
    """A topic in review; its facts."""
    await client.post("/api/topics", json={"title": TITLE, "category": "sea birds"})
    await ended(client, (await client.post(f"/api/topics/{SLUG}/research", json={})).json())
    facts: list[dict[str, Any]] = (await client.get("/api/facts", params={"topic": SLUG})).json()["facts"]
    return facts


async def test_a_topic_from_its_title_to_what_was_kept(client: Client, shelf: Shelf) -> None:
    added = await client.post("/api/topics", json={"title": TITLE, "focus": "what they eat", "kind": "analysis"})
    assert added.status_code == 201
    assert (added.json()["slug"], added.json()["state"]) == (SLUG, "queued")
    response = await client.post(f"/api/topics/{SLUG}/research", json={})
    assert (response.status_code, response.json()["topics"]) == (202, [SLUG])
    job = await ended(client, response.json())
    (report,) = job["result"]["topics"]
    assert (job["state"], report["state"], report["pages"], report["facts"]) == ("done", "review", 3, 3)
    assert report["left_out"] == {"blocked domain": ["https://blocked.example/"]}

    shown = (await client.get(f"/api/topics/{SLUG}")).json()
    assert [change["after"] for change in shown["history"]][:3] == ["queued", "researching", "ok"]
    assert [page["url"] for page in shown["pages"]] == [
        "https://0.example/",
        "https://1.example/",
        "https://2.example/",
    ]
    assert shown["facts"] == {"proposed": 3, "approved": 0, "rejected": 0}

    first, second, third = (await client.get("/api/facts")).json()["facts"]
    kept = await client.post(f"/api/facts/{first['id']}/keep", json={"by": "Ada", "evergreen": True})
    assert (kept.json()["state"], kept.json()["changed_by"], kept.json()["evergreen"]) == ("approved", "Ada", True)
    assert (await client.post(f"/api/facts/{second['id']}/reject", json={})).json()["state"] == "rejected"
    waiting = await client.post(f"/api/topics/{SLUG}/finish", json={})
    assert (waiting.status_code, "decision" in waiting.json()["detail"]) == (409, True)
    assert (await client.delete(f"/api/facts/{third['id']}")).status_code == 204
    done = (await client.post(f"/api/topics/{SLUG}/finish", json={"by": "Ada"})).json()
    assert (done["topic"]["state"], done["wiped"], done["undecided"]) == ("done", 3, 0)
    assert list(shelf.store.collections()) == ["knowledge_evergreen"]

    assert (await client.delete(f"/api/topics/{SLUG}")).status_code == 204
    (survivor,) = (await client.get("/api/facts")).json()["facts"]
    assert survivor["id"] == first["id"]


async def test_topics_are_listed_by_state(client: Client) -> None:
    await researched(client)
    await client.post("/api/topics", json={"title": "Terns", "slug": "terns"})
    assert [topic["slug"] for topic in (await client.get("/api/topics")).json()] == [SLUG, "terns"]
    assert [topic["slug"] for topic in (await client.get("/api/topics?state=queued")).json()] == ["terns"]
    assert (await client.get("/api/topics?state=lost")).status_code == 400


async def test_a_topic_twice_is_a_conflict_that_names_it(client: Client) -> None:
    await client.post("/api/topics", json={"title": TITLE})
    again = await client.post("/api/topics", json={"title": f"  {TITLE.upper()}!"})
    assert (again.status_code, again.headers["content-type"]) == (409, PROBLEM)
    assert again.json()["type"] == "urn:trivet:problem:conflict"
    assert SLUG in again.json()["detail"]


async def test_the_queue_is_worked_through_once_per_key(client: Client, stages: ScriptedStages) -> None:
    for title in ("Gulls", "Terns"):
        await client.post("/api/topics", json={"title": title})
    key = {"Idempotency-Key": "tonight"}
    first = (await client.post("/api/research", json={}, headers=key)).json()
    second = (await client.post("/api/research", json={}, headers=key)).json()
    assert first["id"] == second["id"]
    job = await ended(client, first)
    assert [topic["slug"] for topic in job["result"]["topics"]] == ["gulls", "terns"]
    assert job["progress"]["topic"] == "terns"
    assert stages.done.count("research") == 2


async def test_deep_research_and_a_stop_where_it_is_thin(client: Client, stages: ScriptedStages) -> None:
    stages.first = 1
    await client.post("/api/topics", json={"title": TITLE})
    stop = {"when_thin": "stop"}
    await ended(client, (await client.post(f"/api/topics/{SLUG}/research", json=stop)).json())
    shown = (await client.get(f"/api/topics/{SLUG}")).json()["topic"]
    assert (shown["state"], shown["reasons"]) == ("thin", ["1 pages of 3"])
    await ended(client, (await client.post(f"/api/topics/{SLUG}/deep", json=stop)).json())
    shown = (await client.get(f"/api/topics/{SLUG}")).json()["topic"]
    assert (shown["state"], shown["deepened"], shown["reasons"]) == ("thin", 1, ["2 pages of 3"])


async def test_a_job_that_is_done_once_more_begins_nothing_anew(
    client: Client, library: Library, stages: ScriptedStages
) -> None:
    """As after a kill between the end of a topic and that of its job: the progress that was told is all there is."""
    await client.post("/api/topics", json={"title": TITLE})
    job = await ended(client, (await client.post(f"/api/topics/{SLUG}/research", json={})).json())
    stored = library.jobs.job(job["id"])
    assert stored is not None
    again = await research(library, stored, lambda progress: None)
    assert again["topics"][0]["state"] == "review"
    assert stages.done.count("research") == 1
    await ended(client, (await client.post(f"/api/topics/{SLUG}/research", json={})).json())
    assert stages.done.count("research") == 2


async def test_facts_come_page_by_page(client: Client) -> None:
    await researched(client)
    first = (await client.get("/api/facts?limit=2")).json()
    assert (len(first["facts"]), first["next"]) == (2, first["facts"][-1]["id"])
    last = (await client.get("/api/facts", params={"limit": 2, "cursor": first["next"]})).json()
    assert (len(last["facts"]), last["next"]) == (1, None)
    one = first["facts"][0]
    shown = await client.get(f"/api/facts/{one['id']}")
    assert (shown.json(), shown.headers["etag"]) == (one, '"1"')


async def test_two_people_at_once(client: Client) -> None:
    """Who comes second is told who was first, whether by the body's version or by `If-Match`."""
    fact, *_ = await researched(client)
    path = f"/api/facts/{fact['id']}"
    looked_at = {"version": fact["version"]}
    assert (await client.post(f"{path}/reject", json=looked_at | {"by": "Ada"})).status_code == 200
    late = await client.post(f"{path}/keep", json=looked_at | {"by": "Ben"})
    assert (late.status_code, late.headers["content-type"]) == (409, PROBLEM)
    assert "Ada changed fact" in late.json()["detail"]
    headers = {"If-Match": f'"{fact["version"]}"'}
    assert (await client.delete(path, headers=headers)).status_code == 409
    edit = await client.patch(path, json={"text": "It is not so.", "by": "Ben"}, headers=headers)
    assert edit.status_code == 409
    outcomes = await asyncio.gather(
        *(client.post(f"{path}/keep", json={"version": 2, "by": by, "evergreen": by == "Ada"}) for by in ("Ada", "Ben"))
    )
    assert sorted(each.status_code for each in outcomes) == [200, 409]


async def test_approving_what_was_deleted_meanwhile(client: Client) -> None:
    fact, *_ = await researched(client)
    await client.post("/api/facts/bulk", json={"by": "Ada", "changes": [{"id": fact["id"], "action": "delete"}]})
    gone = await client.post(f"/api/facts/{fact['id']}/keep", json={"version": 1})
    assert (gone.status_code, "Ada deleted it" in gone.json()["detail"]) == (404, True)


async def test_many_changes_at_once_each_by_itself(client: Client) -> None:
    first, second, _ = await researched(client)
    changes = [
        {"id": first["id"], "action": "keep", "expires": "2999-01-31"},
        {"id": "nothing", "action": "keep"},
        {"id": second["id"], "action": "reject", "version": 7},
        {"id": first["id"], "action": "undo"},
        {"id": second["id"], "action": "reject", "evergreen": True},
    ]
    outcomes = (await client.post("/api/facts/bulk", json={"by": "Ada", "changes": changes})).json()["outcomes"]
    assert [each["error"] and each["error"]["kind"] for each in outcomes] == [
        None,
        "not-found",
        "conflict",
        None,
        "bad-input",
    ]
    assert (outcomes[0]["fact"]["state"], outcomes[0]["fact"]["expires"]) == ("approved", "2999-01-31T23:59:59Z")
    assert (outcomes[3]["fact"]["state"], outcomes[3]["fact"]["expires"]) == ("proposed", "")


async def test_an_edit_says_what_the_page_does_not_bear_out(client: Client) -> None:
    fact, *_ = await researched(client)
    bad = await client.patch(f"/api/facts/{fact['id']}", json={"quote": "Words that are nowhere in it."})
    assert (bad.status_code, "The quote is not in" in bad.json()["detail"]) == (400, True)
    change = {"id": fact["id"], "action": "edit", "text": "It has 4 wings."}
    (outcome,) = (await client.post("/api/facts/bulk", json={"changes": [change]})).json()["outcomes"]
    assert (outcome["fact"]["text"], bool(outcome["note"])) == ("It has 4 wings.", True)
    assert outcome["fact"]["changed_by"] == "somebody over HTTP"


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "says"),
    [
        ("POST", "/api/topics", {"title": ""}, 400, "The topic has no title"),
        ("POST", "/api/topics", {"title": "​ \n"}, 400, "The topic has no title"),
        ("POST", "/api/topics", {"title": "x" * 301}, 400, "The title has 301 characters and may have 300"),
        ("POST", "/api/topics", {"title": "Gulls", "focus": "x" * 10_000}, 400, "The focus has 10,000 characters"),
        ("POST", "/api/topics", {"title": "Gulls", "category": "x" * 300}, 400, "The category has 300 characters"),
        ("POST", "/api/topics", {"title": "Gulls", "category": "  "}, 400, "The category is empty"),
        ("POST", "/api/topics", {"title": "Gulls", "slug": "../x"}, 400, "cannot be a topic's name"),
        ("POST", "/api/topics", {"title": "Gulls", "kind": "poem"}, 400, "kind"),
        ("POST", "/api/topics", {"title": "Gulls", "colour": "red"}, 400, "colour"),
        ("GET", "/api/topics/none", None, 404, "There is no topic 'none'"),
        ("DELETE", "/api/topics/none", None, 404, "There is no topic 'none'"),
        ("POST", "/api/topics/none/research", {}, 404, "There is no topic 'none'"),
        ("POST", "/api/topics/none/deep", {}, 404, "There is no topic 'none'"),
        ("POST", "/api/topics/none/finish", {}, 404, "There is no topic 'none'"),
        ("POST", "/api/research", {"topics": ["none"]}, 404, "There is no topic 'none'"),
        ("POST", "/api/research", {"minutes": -1}, 400, "minutes"),
        ("POST", "/api/research", {"when_thin": "shrug"}, 400, "when_thin"),
        ("GET", "/api/facts/none", None, 404, "There is no fact 'none'"),
        ("GET", "/api/facts?limit=1000000000", None, 400, "limit"),
        ("GET", "/api/facts?state=lost", None, 400, "state"),
        ("POST", "/api/facts/none/keep", {}, 404, "There is no fact 'none'"),
        ("POST", "/api/facts/none/keep", {"version": 0}, 400, "version"),
        ("POST", "/api/facts/bulk", {"changes": []}, 400, "changes"),
        ("POST", "/api/facts/bulk", {"changes": [{"id": "x", "action": "keep"}] * 1001}, 400, "changes"),
        ("POST", "/api/facts/bulk", {"changes": [{"id": "x", "action": "eat"}]}, 400, "action"),
    ],
)
async def test_bad_requests(client: Client, method: str, path: str, body: object, status: int, says: str) -> None:
    response = await client.request(method, path, json=body) if body is not None else await client.request(method, path)
    assert response.status_code == status, response.text
    assert says in response.json()["detail"]
    assert response.headers["content-type"].startswith(PROBLEM)


@pytest.mark.parametrize("category", ["sea birds", "a/b\\c", "../../etc", "鳥", "x" * 200])
async def test_any_category_gives_a_collection(client: Client, shelf: Shelf, category: str) -> None:
    added = await client.post("/api/topics", json={"title": TITLE, "category": category})
    assert added.json()["category"] == category
    await ended(client, (await client.post(f"/api/topics/{SLUG}/research", json={})).json())
    (fact, *_) = (await client.get("/api/facts", params={"category": category})).json()["facts"]
    await client.post(f"/api/facts/{fact['id']}/keep", json={})
    (kept,) = [name for name, origin in shelf.store.collections().items() if origin == "knowledge"]
    assert kept.startswith("knowledge_")
    assert len(kept) <= 100
    assert not set(kept) & set("/\\. ")


@pytest.mark.parametrize("match", ["three", '"x"', '"' + "9" * 40 + '"'])
async def test_a_version_that_is_none(client: Client, match: str) -> None:
    response = await client.post("/api/facts/any/keep", json={}, headers={"If-Match": match})
    assert response.status_code == 400
    assert "If-Match" in response.json()["detail"]


async def test_without_a_search_engine_it_says_what_to_set(client: Client, desk: Desk) -> None:
    desk._stages = None
    await client.post("/api/topics", json={"title": TITLE})
    response = await client.post(f"/api/topics/{SLUG}/research", json={})
    assert (response.status_code, response.json()["type"]) == (409, "urn:trivet:problem:settings")
    assert "web.searxng_url" in response.json()["detail"]


async def test_nothing_is_decided_by_a_state_alone(client: Client, shelf: Shelf) -> None:
    """An acknowledged approval is stored; approving twice has one effect."""
    fact, *_ = await researched(client)
    body = {"version": fact["version"], "by": "Ada"}
    first = (await client.post(f"/api/facts/{fact['id']}/keep", json=body)).json()
    again = await client.post(f"/api/facts/{fact['id']}/keep", json=body)
    assert (again.status_code, again.json()) == (200, first)
    stored = shelf.store.fact(fact["id"])
    assert stored is not None
    assert stored.state is FactState.APPROVED
