"""`/metrics`: what is counted, and that no client makes labels."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
from litestar.testing import AsyncTestClient
from prometheus_client.parser import text_string_to_metric_families

from config.settings import Settings
from graph.breaker import Breaker
from graph.errors import DependencyBusyError, DependencyFaultError, StoreError
from graph.jobs import JobState
from server.app import create_app
from server.http.metrics import short_status
from server.http.options import HttpOptions
from tests.server.http.conftest import Client
from tests.server.http.scripted import ScriptedAnswerer, ScriptedChat, opening

ASKED = {"question": "Who wrote Animal Farm?"}
CHAT = {"messages": [{"role": "user", "content": "Who wrote Animal Farm?"}]}
TITLE = {"messages": [{"role": "user", "content": "### Task:\nA title.\n<chat_history>\nUSER: Hi\n</chat_history>"}]}
Key = tuple[str, frozenset[tuple[str, str]]]


@dataclass
class CountingJobs:
    """As much of a librarian as is asked for its counts."""

    fails: bool = False

    async def job_counts(self) -> dict[JobState, int]:
        if self.fails:
            raise StoreError("jobs.db is away")
        return {JobState.QUEUED: 3, JobState.FAILED: 1}


@pytest.fixture
async def fresh(answerer: ScriptedAnswerer) -> AsyncIterator[Client]:
    """An application of its own, which has counted nothing."""
    app = create_app(Settings(), open_answerer=opening(answerer))
    async with AsyncTestClient(app) as client:
        yield client


async def read(client: Client, **headers: str) -> dict[Key, float]:
    response = await client.get("/metrics", headers=headers)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    families = text_string_to_metric_families(response.text)
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }


def of(counts: dict[Key, float], name: str, **labels: str) -> float:
    return counts.get((f"trivet_{name}", frozenset(labels.items())), 0.0)


async def test_requests_are_counted_by_route_method_and_status(fresh: Client) -> None:
    await fresh.post("/api/search", json=ASKED)
    await fresh.post("/api/search", json={"question": ""})
    await fresh.get("/v1/models/trivet/neutral")
    await fresh.get("/v1/models/pirate")
    counts = await read(fresh)
    requests = "http_requests_total"
    assert of(counts, requests, route="/api/search", method="POST", status="200") == 1
    assert of(counts, requests, route="/api/search", method="POST", status="400") == 1
    model = "/v1/models/{model_id}"
    assert of(counts, requests, route=model, method="GET", status="200") == 1
    assert of(counts, requests, route=model, method="GET", status="404") == 1
    assert of(counts, "http_request_seconds_count", route="/api/search", method="POST") == 2
    assert of(counts, "http_requests_active") == 1


async def test_a_thousand_urls_do_not_make_a_thousand_labels(fresh: Client) -> None:
    for number in range(334):
        await fresh.get(f"/v1/models/model-{number}")
        await fresh.get(f"/no/such/path-{number}?n={number}")
        await fresh.request(f"ODD{number}", f"/api/jobs/job-{number}")
    counts = await read(fresh)
    labelled = [dict(labels) for name, labels in counts if name == "trivet_http_requests_total"]
    assert {(labels["route"], labels["method"]) for labels in labelled} <= {
        ("/v1/models/{model_id}", "GET"),
        ("none", "GET"),
        ("none", "other"),
        ("/api/jobs/{job_id}", "other"),
    }
    assert len(labelled) <= 5
    assert len(counts) < 150


async def test_answers_legs_stages_and_tokens(fresh: Client, answerer: ScriptedAnswerer) -> None:
    answerer.chat = ScriptedChat()
    await fresh.post("/api/query", json=ASKED)
    await fresh.post("/api/query/stream", json=ASKED)
    await fresh.post("/v1/chat/completions", json=CHAT)
    await fresh.post("/v1/chat/completions", json=CHAT | {"stream": True})
    await fresh.post("/api/search", json=ASKED)
    counts = await read(fresh)
    assert of(counts, "answers_total", mode="generated", zone="normal") == 4
    assert of(counts, "legs_total", leg="vector", status="ok") == 5
    assert of(counts, "legs_total", leg="web", status="off") == 5
    assert of(counts, "legs_total", leg="llm", status="ok") == 4
    assert of(counts, "stage_seconds_count", stage="legs") == 4
    assert of(counts, "stage_seconds_sum", stage="legs") == pytest.approx(4 * 0.0105)
    assert of(counts, "llm_tokens_total", direction="prompt") == 4 * 50
    assert of(counts, "llm_tokens_total", direction="completion") == 4 * 9


@pytest.mark.parametrize("stream", [True, False])
async def test_what_a_client_asks_on_its_own_is_no_answer_but_costs(
    fresh: Client, answerer: ScriptedAnswerer, stream: bool
) -> None:
    answerer.chat = ScriptedChat()
    await fresh.post("/v1/chat/completions", json=TITLE | {"stream": stream})
    counts = await read(fresh)
    assert of(counts, "llm_tokens_total", direction="prompt") == 11
    assert not [name for name, _ in counts if name == "trivet_answers_total"]


async def test_a_stream_that_breaks_is_counted(fresh: Client, answerer: ScriptedAnswerer) -> None:
    answerer.breaks = DependencyFaultError("ollama broke off", dependency="ollama")
    await fresh.post("/api/query/stream", json=ASKED)
    counts = await read(fresh)
    assert of(counts, "streams_broken_total", kind="dependency-fault") == 1
    assert not [name for name, _ in counts if name == "trivet_answers_total"]


async def test_breakers_and_jobs_as_they_are_now(fresh: Client, answerer: ScriptedAnswerer) -> None:
    llm = Breaker("ollama")
    answerer.breakers = {"llm": llm}
    answerer.librarian = CountingJobs()  # type: ignore[assignment]
    counts = await read(fresh)
    assert of(counts, "breaker", leg="llm", state="closed") == 1
    assert of(counts, "breaker", leg="llm", state="open") == 0
    assert of(counts, "jobs", state="queued") == 3
    assert of(counts, "jobs", state="failed") == 1
    llm.failed(DependencyBusyError("wait", dependency="ollama", retry_after=60))
    answerer.librarian = CountingJobs(fails=True)  # type: ignore[assignment]
    counts = await read(fresh)
    assert of(counts, "breaker", leg="llm", state="closed") == 0
    assert of(counts, "breaker", leg="llm", state="open") == 1
    assert not [name for name, _ in counts if name == "trivet_jobs"]


async def test_it_asks_for_the_key_and_counts_who_has_none(answerer: ScriptedAnswerer) -> None:
    options = HttpOptions(api_key="sk-1")
    async with AsyncTestClient(create_app(Settings(), open_answerer=opening(answerer), options=options)) as client:
        assert (await client.get("/metrics")).status_code == 401
        counts = await read(client, authorization="Bearer sk-1")
        assert of(counts, "http_requests_total", route="/metrics", method="GET", status="401") == 1


async def test_it_is_answered_however_busy_the_server_is(answerer: ScriptedAnswerer) -> None:
    options = HttpOptions(max_active=0)
    async with AsyncTestClient(create_app(Settings(), open_answerer=opening(answerer), options=options)) as client:
        assert (await client.post("/api/search", json=ASKED)).status_code == 503
        counts = await read(client)
        assert of(counts, "http_requests_total", route="/api/search", method="POST", status="503") == 1


@pytest.mark.parametrize(
    ("said", "word"),
    [
        ("ok", "ok"),
        ("ok (by words alone: no embedder)", "partial"),
        ("off", "off"),
        ("off: a filter is set, which only pages of the wiki can pass", "off"),
        ("timeout after 2 s", "timeout"),
        ("unavailable: 127.0.0.1:7 refused", "unavailable"),
        ("refused: injection", "refused"),
        ("failed: KeyError", "failed"),
        ("smollm2 answered nothing", "failed"),
        ("", "failed"),
    ],
)
def test_a_status_is_one_of_a_few_words(said: str, word: str) -> None:
    assert short_status(said) == word
