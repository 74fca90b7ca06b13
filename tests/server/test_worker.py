"""`trivet worker`: what a server leaves to it, beside that server; killed, stopped, paused, and more than one.

Real processes, the vectors in a stand-in for Qdrant, an embedding service that only counts words. Leases are short, so
that nobody waits for one to run out.
"""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, fields
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from config.settings import IngestionSettings, LLMSettings, RerankSettings, Settings
from graph.home import HomeLock
from graph.sqlite_jobs import SqliteJobs
from ingestion.reading import GROUP
from server.library import TURN_FOLDER, Library, open_filling_models, open_for_job, open_library, take_turn
from tests.fakes import HashEmbedder
from tests.faults.processes import own_neo4j, trivet_serve
from tests.server.cli_runner import Cli, InProcessCli
from tests.services import neo4j_server
from tests.services.qdrant_stand_in import qdrant_process

WITHIN = 100.0
PAGES = 2 * GROUP
FLOW = threading.Event()
"""While it is not set, the embedding service keeps those waiting who send it a text with the word "dammed"."""
QUICK = """
import server.cli, server.jobs
server.jobs.LEASE_SECONDS, server.jobs.BEAT_SECONDS, server.jobs.IDLE_SECONDS = 3, 0.2, 0.2
server.cli.main()
"""


class EmbeddingService(BaseHTTPRequestHandler):
    """`POST /v1/embeddings`."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        texts = json.loads(self.rfile.read(int(self.headers["content-length"])))["input"]
        if any("dammed" in text for text in texts):
            FLOW.wait(WITHIN)
        vectors = asyncio.run(HashEmbedder().embed_passages(texts)).tolist()
        said = json.dumps({"data": [{"index": n, "embedding": vector} for n, vector in enumerate(vectors)]}).encode()
        with suppress(OSError):  # who asked may have been killed meanwhile
            self.send_response(200)
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@dataclass(slots=True)
class Worker:
    """A worker as a process."""

    process: subprocess.Popen[str]
    said: str = field(default="", init=False)

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def ended(self) -> int:
        """Its exit code; what it logged is in `said`."""
        _, self.said = self.process.communicate(timeout=WITHIN)
        return self.process.returncode

    def stop(self) -> None:
        self.signal(signal.SIGTERM)
        assert self.ended() == 0

    def begun(self) -> list[str]:
        """The ids of the jobs it began, in order."""
        return [line["job"] for line in self.lines() if line["event"] == "job begun"]

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.said.splitlines()]


@dataclass(frozen=True, slots=True)
class Site:
    """A home whose jobs are left to workers, and the server before it."""

    cli: Cli
    settings: dict[str, str]
    client: httpx.Client

    def post(self, path: str, body: object) -> Any:
        response = self.client.post(path, json=body)
        response.raise_for_status()
        return response.json()

    def add(self, folder: Path) -> str:
        """The id of the job that reads it."""
        return str(self.post("/api/sources", {"location": str(folder)})["job"]["id"])

    def job(self, job_id: str) -> dict[str, Any]:
        found: dict[str, Any] = self.client.get(f"/api/jobs/{job_id}").json()
        return found

    def done(self, job_id: str) -> bool:
        job = self.job(job_id)
        assert job["state"] in {"queued", "running", "done"}, job
        return bool(job["state"] == "done")

    def in_the_midst(self, job_id: str) -> bool:
        """Whether some of it is stored, and some is not."""
        job = self.job(job_id)
        assert job["state"] in {"queued", "running"}, job
        return bool(job["state"] == "running" and job["progress"].get("chunks", 0) >= 4)

    def titles(self, question: str) -> tuple[list[str], dict[str, str]]:
        """What is found, and how the legs fared."""
        found = self.post("/api/search", {"question": question, "web": False})
        return [entry["title"] for entry in found["evidence"]], found["legs"]

    @contextmanager
    def worker(self, *arguments: str) -> Iterator[Worker]:
        process = subprocess.Popen(
            [sys.executable, "-c", QUICK, "worker", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            cwd=Path(__file__).parents[2],
            env=self.cli.environment(self.settings),
        )
        try:
            yield Worker(process)
        finally:
            process.kill()
            with suppress(ValueError):
                process.communicate()


@contextmanager
def served(home: Path, settings: dict[str, str]) -> Iterator[Site]:
    home.mkdir(exist_ok=True)
    with trivet_serve(home, settings) as server, httpx.Client(base_url=server.url, timeout=60) as client:
        yield Site(Cli(home=home, folder=home.parent), settings, client)


@pytest.fixture(scope="module")
def embedder() -> Iterator[dict[str, str]]:
    """Settings with little to load and compute."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), EmbeddingService)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield {
        "TRIVET_EMBEDDER__PROVIDER": "openai",
        "TRIVET_EMBEDDER__NAME": "words",
        "TRIVET_EMBEDDER__URL": f"http://127.0.0.1:{server.server_port}/v1",
        "TRIVET_EMBEDDER__DIMENSION": "64",
        "TRIVET_EMBEDDER__SECONDS": str(WITHIN),
        "TRIVET_SEARCH__VECTOR_THRESHOLD": "0.2",
        "TRIVET_INGESTION__NER_LANGUAGES": "",
        "TRIVET_INGESTION__BATCH_CHUNKS": "2",
        "TRIVET_RERANK__ENABLED": "false",
    }
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def qdrant(embedder: dict[str, str]) -> Iterator[dict[str, str]]:
    """The same, with the vectors in Qdrant and the jobs left to workers."""
    with qdrant_process() as process:
        yield {**embedder, "TRIVET_SERVER__RUN_JOBS": "false", "TRIVET_VECTORS__QDRANT_URL": process.url}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, qdrant: dict[str, str]) -> Iterator[Site]:
    with served(tmp_path_factory.mktemp("shared") / "home", qdrant) as site:
        yield site


def wiki(folder: Path, **pages: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in pages.items():
        (folder / f"{name}.md").write_text(f"# {name.title()}\n\n{text}\n", encoding="utf-8")
    return folder


def dammed_wiki(folder: Path) -> Path:
    """The first batch of it is stored at once, the next when `FLOW` is set."""
    return wiki(
        folder,
        **{f"lamp{n:02}": f"Lamp {n} is {'lit' if n < GROUP else 'dammed'} beside Lamp{n:02}." for n in range(PAGES)},
    )


@pytest.fixture
def flow() -> Iterator[threading.Event]:
    """Not set yet."""
    FLOW.clear()
    yield FLOW
    FLOW.set()


def until(reached: Callable[[str], bool], job_id: str) -> None:
    begun = time.monotonic()
    while not reached(job_id):
        assert time.monotonic() - begun < WITHIN
        time.sleep(0.1)


def test_a_server_accepts_jobs_and_leaves_them_to_a_worker(shared: Site, tmp_path: Path) -> None:
    job = shared.add(
        wiki(tmp_path / "birds", gull="A gull steals chips from Tern.", tern="A tern dives for sand eels.")
    )
    time.sleep(1.5)  # a server that does the jobs looks at its queue each second
    assert shared.job(job)["state"] == "queued"
    with shared.worker("--once", "--json") as worker:
        out, worker.said = worker.process.communicate(timeout=WITHIN)
    assert (worker.process.returncode, json.loads(out)) == (0, {"cancelled": 0, "done": 1, "failed": 0}), worker.said
    assert shared.job(job)["result"]["added"] == 2
    begun, ended = worker.lines()
    assert (begun["event"], begun["job"], begun["kind"], begun["source"]) == ("job begun", job, "sync", "birds")
    assert (ended["event"], ended["job"], ended["state"], ended["error"]) == ("job ended", job, "done", "")


def test_the_server_sees_what_a_worker_changed(shared: Site, tmp_path: Path) -> None:
    folder = wiki(tmp_path / "isles", vray="Vray is an island. Its light is kept by Calder.", moss="Moss is grey.")
    with shared.worker() as worker:
        until(shared.done, shared.add(folder))
        titles, legs = shared.titles("Who keeps the light of Vray?")
        assert titles[0] == "Vray"
        assert (legs["vector"], legs["graph"]) == ("ok", "ok")
        assert "Moss" in shared.titles("What is moss?")[0]

        wiki(folder, calder="She was born in Osterley and plays the tuba.")
        (folder / "moss.md").unlink()
        job = shared.post("/api/sources/isles/sync", {})["id"]
        until(shared.done, job)
        worker.stop()
    result = shared.job(job)["result"]
    assert (result["added"], result["deleted"]) == (1, 1)
    titles, _ = shared.titles("Where was the keeper of Vray born?")
    assert set(titles[:2]) == {"Vray", "Calder"}  # over the graph: Vray's page names Calder, who has a page by now
    assert "Moss" not in shared.titles("What is moss?")[0]
    sources = {source["name"]: source for source in shared.client.get("/api/sources").json()}
    assert sources["isles"]["last_run"]
    assert sources["isles"]["last_error"] == ""


@pytest.mark.slow
@pytest.mark.usefixtures("flow")
def test_a_stopped_worker_gives_its_job_back_and_another_is_cancelled(shared: Site, tmp_path: Path) -> None:
    job = shared.add(dammed_wiki(tmp_path / "stopped"))
    with shared.worker() as first:
        until(shared.in_the_midst, job)
        first.stop()
    assert [line["event"] for line in first.lines()] == ["job begun", "job given back"]
    assert shared.job(job)["state"] == "queued"
    with shared.worker() as second:
        until(lambda job_id: shared.job(job_id)["state"] == "running", job)
        shared.client.delete(f"/api/jobs/{job}")
        until(lambda job_id: shared.job(job_id)["state"] == "cancelled", job)
        after = shared.post("/api/pages", {"source": "one", "pages": [{"key": "a", "title": "A", "text": "An a."}]})
        until(shared.done, after["id"])
        second.signal(signal.SIGINT)
        assert second.ended() == 0
    assert second.begun() == [job, after["id"]]


@pytest.mark.slow
def test_two_workers_never_do_the_same_job(shared: Site, tmp_path: Path, flow: threading.Event) -> None:
    owls = [{"key": f"owl {n}", "title": f"Owl {n}", "text": "An owl hoots."} for n in range(12)]
    short = [shared.post("/api/pages", {"source": "mine", "pages": [owl]})["id"] for owl in owls]
    long = shared.add(dammed_wiki(tmp_path / "asleep"))
    with shared.worker() as one, shared.worker() as other:
        until(shared.in_the_midst, long)
        holder = HomeLock.holder(shared.cli.home / TURN_FOLDER)
        assert holder is not None
        asleep, awake = (one, other) if holder.pid == one.process.pid else (other, one)
        asleep.signal(signal.SIGSTOP)
        time.sleep(5)  # the lease has run out, and still nobody writes beside one that may wake up
        asleep.signal(signal.SIGCONT)
        flow.set()
        until(shared.done, long)
        asleep.stop()
        awake.stop()
    assert sorted(one.begun() + other.begun()) == sorted([*short, long])
    assert {shared.job(job_id)["state"] for job_id in short} == {"done"}


@pytest.mark.slow
def test_the_job_of_a_killed_worker_is_done_by_the_next(
    tmp_path: Path, cli: InProcessCli, qdrant: dict[str, str], flow: threading.Event
) -> None:
    settings = {**qdrant, "TRIVET_VECTORS__QDRANT_PREFIX": "killed"}
    with served(cli.home, settings) as site:
        kill_one_and_let_another_finish(site, dammed_wiki(tmp_path / "lamps"), flow)
    verified = cli("verify", "--json", environment=settings)
    assert (verified.code, verified.json["clean"], verified.json["pages"]) == (0, True, PAGES), verified.out


def kill_one_and_let_another_finish(site: Site, folder: Path, flow: threading.Event) -> None:
    job = site.add(folder)
    with site.worker() as first:
        until(site.in_the_midst, job)
        first.signal(signal.SIGKILL)
        assert first.ended() == -signal.SIGKILL
    flow.set()
    with site.worker() as second:
        until(site.done, job)
        second.stop()
    assert second.begun() == [job]
    assert second.lines()[0]["tries"] == 2


def test_vectors_in_the_folder_are_opened_by_one_process(cli: InProcessCli) -> None:
    with HomeLock.acquire(cli.home, command="serve") as lock:
        lock.publish("http://127.0.0.1:8642")
        refused = cli("worker", "--once")
    assert refused.code == 4
    assert "which only one process can open, and `serve` at http://127.0.0.1:8642" in refused.err
    assert "set vectors.qdrant_url" in refused.err


def test_vectors_in_the_folder_are_a_worker_s_while_no_server_runs(cli: InProcessCli, embedder: dict[str, str]) -> None:
    assert cli("worker", "--once", environment=embedder).out == "no job was waiting\n"
    page = {"key": "a", "title": "A", "text": "An a."}
    with closing(SqliteJobs(cli.home / "jobs.db")) as jobs:
        for kind in ("pages", "dance"):
            jobs.submit(kind, {"source": "mine", "pages": [page]})
    did = cli("worker", "--once", "--json", environment=embedder)
    assert (did.code, did.json) == (0, {"done": 1, "failed": 1, "cancelled": 0})
    verified = cli("verify", "--json", environment=embedder).json
    assert (verified["clean"], verified["pages"]) == (True, 1)
    assert cli("worker", "--once", environment={**embedder, "TRIVET_EMBEDDER__NAME": "another"}).code == 3


async def test_a_worker_opens_all_that_a_server_fills_the_store_with(tmp_path: Path) -> None:
    settings = Settings(
        home=tmp_path,
        rerank=RerankSettings(late_interaction=True),
        llm=LLMSettings(provider="ollama", model="any"),
        ingestion=IngestionSettings(ner_languages=()),
    )
    async with open_library(settings, command="serve") as library:
        expected = parts_of(library)
        assert None not in expected.values()
        jobs = library.jobs
    async with open_filling_models(settings) as models, open_for_job(settings, models, jobs) as library:
        assert parts_of(library) == expected


def parts_of(library: Library) -> dict[str, type | None]:
    knowledge = library.backends.knowledge
    parts = {field.name: getattr(knowledge, field.name) for field in fields(knowledge)}
    return {name: None if part is None else type(part) for name, part in parts.items()}


def test_nobody_fills_the_store_beside_a_worker_in_the_midst_of_a_job(
    cli: InProcessCli, qdrant: dict[str, str]
) -> None:
    """Where no server runs, it holds the store's lock no more than beside one."""
    wiki(cli.folder / "birds", gull="A gull.")
    settings = {**qdrant, "TRIVET_VECTORS__QDRANT_PREFIX": "alone"}
    with take_turn(cli.home, command="worker"):
        refused = cli("ingest", "birds", environment=settings)
    assert refused.code == 4
    assert "in use by `worker` (process" in refused.err
    assert cli("ingest", "birds", environment=settings).code == 0
    with take_turn(cli.home, command="worker"):
        for words in (["verify"], ["verify", "--repair"], ["migrate", "--to", "embedded"]):
            refused = cli(*words, environment=settings)
            assert (words, refused.code) == (words, 4)
            assert "in use by `worker` (process" in refused.err
    assert cli("verify", environment=settings).code == 0


@pytest.mark.services
@pytest.mark.slow
def test_a_worker_beside_a_server_on_neo4j(tmp_path: Path, qdrant: dict[str, str], flow: threading.Event) -> None:
    with own_neo4j(tmp_path) as neo4j:
        settings = {
            **qdrant,
            "TRIVET_VECTORS__QDRANT_PREFIX": "neo4j",
            "TRIVET_GRAPH__NEO4J_URL": neo4j.url,
            "TRIVET_GRAPH__NEO4J_USER": neo4j_server.USER,
            "TRIVET_GRAPH__NEO4J_PASSWORD": neo4j_server.PASSWORD,
        }
        with served(tmp_path / "home", settings) as site:
            test_the_server_sees_what_a_worker_changed(site, tmp_path)
            kill_one_and_let_another_finish(site, dammed_wiki(tmp_path / "lamps"), flow)
        assert site.cli.process("verify", "--json", environment=settings).json["clean"]
