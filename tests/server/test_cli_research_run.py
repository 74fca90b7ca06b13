"""`trivet research run` over a small web of its own: unattended, asking, killed, and through the server."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import httpx
import pytest

from graph.home import RESEARCH_FILE
from graph.sqlite_research import SqliteResearch
from tests.server.cli_runner import Cli, InProcessCli
from tests.server.research.small_web import SmallWeb, small_web
from tests.server.test_cli_research import typed
from tests.server.test_cli_sync import serving

pytestmark = pytest.mark.slow
SLUG = "gulls-of-norvik"


@pytest.fixture
def web() -> Iterator[SmallWeb]:
    with small_web() as web:
        yield web


@pytest.fixture
def here(shell: Cli, web: SmallWeb) -> Cli:
    """With the settings of the small web."""
    (shell.folder / "trivet.toml").write_text(
        f'[web]\nsearxng_url = "http://127.0.0.1:{web.port}"\nallow_private = true\n'
        "[research]\nhost_seconds = 0\nmin_chunks = 3\n",
        encoding="utf-8",
    )
    return shell


@pytest.fixture
def queued(here: Cli, cli: InProcessCli) -> InProcessCli:
    found = replace(cli, cli=here)
    assert found("research", "add", "Gulls of Norvik", "--focus", "what they eat").code == 0
    return found


def urls(cli: InProcessCli) -> list[str]:
    return sorted(page["url"] for page in cli("research", "show", SLUG, "--json").json["pages"])


def test_unattended_it_ends_with_one_report(queued: InProcessCli, web: SmallWeb) -> None:
    ended = queued("research", "run", "--json")
    assert ended.code == 0, ended.err
    (topic,) = ended.json["topics"]
    assert (topic["slug"], topic["state"], topic["pages"], topic["error"]) == (SLUG, "review", 6, "")
    assert topic["facts"] >= 6
    assert f"{SLUG}: researching" in ended.err
    assert urls(queued) == sorted(web.found)
    assert queued("research", "run").out == "no topic waits; `trivet research add TITLE` adds one\n"
    assert "6 pages" in queued("research", "run", SLUG).out
    assert queued("verify").code == 0
    found = queued("search", "What does the ivory gull of Norvik eat?", "--json").json["evidence"]
    assert "research" in {entry["origin"] for entry in found}


def test_what_the_search_engine_is_down_for_waits(queued: InProcessCli, web: SmallWeb) -> None:
    ended = queued("research", "run", "--json", "--set", "web.searxng_url=http://127.0.0.1:9")
    assert ended.code == 5
    (topic,) = ended.json["topics"]
    assert topic["state"] == "queued"
    assert "127.0.0.1:9" in topic["error"] or "SearXNG" in topic["error"]
    assert topic["reasons"] == [topic["error"]]
    shown = queued("research", "list")
    assert topic["error"].split(";")[0] in shown.out
    assert queued("research", "run", "--json").json["topics"][0]["state"] == "review"


def test_unattended_what_stays_thin_is_given_up(queued: InProcessCli, web: SmallWeb) -> None:
    web.found = [web.page(0)]
    ended = queued("research", "run", "--json")
    (topic,) = ended.json["topics"]
    assert (topic["state"], topic["rounds"], topic["facts"]) == ("insufficient_research", 2, 0)
    assert any("domain" in reason for reason in topic["reasons"])
    assert ended.code == 0
    web.found = [web.page(n, f"127.0.0.{1 + n % 2}") for n in range(6)]
    assert queued("research", "deep", SLUG, "--json").json["topics"][0]["state"] == "review"


def test_a_person_is_asked_where_it_is_thin(queued: InProcessCli, web: SmallWeb) -> None:
    web.found = [web.page(n) for n in range(3)]
    code, shown = typed(queued, ["?", "q"], "research", "run", "--interactive")
    assert code == 0, shown
    assert "continue with what there is" in shown
    assert queued("research", "show", SLUG, "--json").json["topic"]["state"] == "thin"
    code, shown = typed(queued, ["d", "c"], "research", "run", SLUG, "--interactive")
    assert code == 0, shown
    file = queued("research", "show", SLUG, "--json").json
    assert (file["topic"]["state"], file["topic"]["deepened"]) == ("review", 1)
    assert "accepted although it is thin" in {change["note"] for change in file["history"]}
    queued("research", "add", "Terns")
    code, shown = typed(queued, ["r", "x"], "research", "run", "terns", "--interactive")
    assert code == 0, shown
    assert queued("research", "show", "terns").code == 2


@pytest.mark.parametrize("after", [1, 4])
def test_killed_it_goes_on_without_doubles(queued: InProcessCli, web: SmallWeb, after: int) -> None:
    """kill −9 of a real process, once a page is stored, or more."""
    web.stall = 0.3
    with queued.cli.start("research", "run") as process:
        deadline = time.monotonic() + 120
        while stored_pages(queued) < after and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert process.returncode == -signal.SIGKILL
    web.stall = 0.0
    (topic,) = queued("research", "run", "--json").json["topics"]
    assert (topic["state"], topic["pages"]) == ("review", 6)
    assert urls(queued) == sorted(web.found)
    facts = queued("knowledge", "list", "--json").json["facts"]
    assert len({fact["text"] for fact in facts}) == len(facts) == topic["facts"]
    assert queued("verify").code == 0


def stored_pages(cli: InProcessCli) -> int:
    with closing(SqliteResearch(cli.home / RESEARCH_FILE)) as store:
        return len(store.pages(SLUG))


def test_a_server_does_the_research(queued: InProcessCli, web: SmallWeb) -> None:
    with serving(queued.cli):
        ended = queued("research", "run", SLUG, "--json")
        assert ended.code == 0, ended.err
        (topic,) = ended.json["topics"]
        assert (topic["state"], topic["pages"]) == ("review", 6)
        assert queued("research", "run", "--json").json["topics"] == []
        assert queued("research", "delete", SLUG).code == 0
    assert queued("verify").code == 0


def test_a_worker_does_the_research_that_a_server_left_to_it(queued: InProcessCli, web: SmallWeb) -> None:
    with (queued.folder / "trivet.toml").open("a", encoding="utf-8") as file:
        file.write("[server]\nrun_jobs = false\n")
    with serving(queued.cli) as url:
        job = httpx.post(f"{url}/api/research", json={"topics": [SLUG]}).json()
        assert (job["state"], job["topics"]) == ("queued", [SLUG])
    assert queued("worker", "--once", "--json").json["done"] == 1
    assert queued("research", "show", SLUG, "--json").json["topic"]["state"] == "review"
    assert queued("verify").code == 0
