"""`trivet sync` and `trivet sources`: the store follows its wikis, here and through the server that holds it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.server.cli_runner import Cli, InProcessCli


@pytest.fixture
def notes(cli: InProcessCli) -> Path:
    folder = cli.folder / "notes"
    folder.mkdir()
    for name, text in (("gull", "A gull steals chips."), ("tern", "A tern dives."), ("auk", "An auk stands.")):
        (folder / f"{name}.md").write_text(f"# {name.title()}\n\n{text}\n", encoding="utf-8")
    return folder


def test_sync_follows_what_was_ingested(cli: InProcessCli, notes: Path) -> None:
    assert cli("sync").out.startswith("no source is registered")
    assert cli("ingest", "notes", "--json").json["added"] == 3
    (notes / "gull.md").write_text("# Gull\n\nA gull steals fish.\n", encoding="utf-8")
    (notes / "tern.md").unlink()
    (notes / "owl.md").write_text("# Owl\n\nAn owl hoots.\n", encoding="utf-8")
    report = cli("sync", "--json").json["sources"]["notes"]
    assert (report["added"], report["changed"], report["deleted"]) == (1, 1, 1)
    again = cli("sync", "notes", "--json").json["sources"]["notes"]
    assert (again["added"], again["changed"], again["deleted"], again["embedded"]) == (0, 0, 0, 0)
    assert cli("verify").code == 0
    found = cli("search", "What does a tern do?", "--json").json
    assert "Tern" not in {entry["title"] for entry in found["evidence"]}


def test_a_page_that_cannot_be_read_is_kept_named_and_tried_again(cli: InProcessCli, notes: Path) -> None:
    cli("ingest", "notes")
    auk = notes / "auk.md"
    auk.write_bytes(b"# Auk\n\n" + b"x" * (9 * 2**20))
    ended = cli("sync")
    assert ended.code == 5
    shown = cli("status", "--failed")
    assert "1 pages" in shown.out
    assert "auk.md: " in shown.out
    assert "`trivet sync --retry`" in shown.out
    auk.write_text("# Auk\n\nAn auk swims.\n", encoding="utf-8")
    assert cli("sync", "--retry", "--json").json["sources"]["notes"]["changed"] == 1
    assert "no page has failed" in cli("status", "--failed").out
    assert cli("sync", "--retry").out == "notes: no page had failed\n"


def test_a_source_that_is_gone_deletes_nothing_and_is_named(cli: InProcessCli, notes: Path) -> None:
    cli("ingest", "notes")
    notes.rename(cli.folder / "elsewhere")
    ended = cli("sync", "--json")
    assert ended.code == 5
    assert "There is nothing at" in ended.json["sources"]["notes"]["error"]["message"]
    assert cli("status", "--json").json["sources"][0]["pages"] == 3
    assert "failed: There is nothing at" in cli("sources").out
    refused = cli("ingest", "elsewhere", "--name", "notes")
    assert refused.code == 2
    assert "--moved" in refused.err
    assert cli("ingest", "elsewhere", "--name", "notes", "--moved", "--json").json["unchanged"] == 3


def test_sources_are_listed_and_removed(cli: InProcessCli, notes: Path) -> None:
    cli("ingest", "notes")
    (listed,) = cli("sources", "--json").json["sources"]
    assert (listed["name"], listed["kind"], listed["location"]) == ("notes", "markdown", str(notes))
    assert "markdown" in cli("sources", "kinds").out
    twice = cli("ingest", "notes", "--name", "other")
    assert twice.code == 2
    assert "registered already as 'notes'" in twice.err
    assert cli("sources", "remove", "nobody").code == 2
    assert cli("sources", "remove", "notes", "--json").json == {"removed": 3}
    assert cli("sources", "--json").json == {"sources": []}
    assert cli("verify").code == 0


@pytest.mark.parametrize("given", ["", "soon", "0", "5x", "-3m"])
def test_times_that_are_none(cli: InProcessCli, given: str) -> None:
    ended = cli("sync", "--every", given)
    assert ended.code == 2
    assert "is not a time like 90s, 15m" in ended.err


@contextmanager
def serving(shell: Cli) -> Iterator[str]:
    with shell.start("serve", "--port", "0") as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert "http://" in line, line
            yield line.split()[-1]
        finally:
            process.terminate()
            process.communicate(timeout=60)


def test_pushed_pages_are_not_followed(shell: Cli, cli: InProcessCli) -> None:
    page = {"key": "owl", "title": "Owl", "text": "An owl hoots at night."}
    with serving(shell) as url:
        job = httpx.post(f"{url}/api/pages", json={"source": "mine", "pages": [page]}).json()
        while job["state"] in {"queued", "running"}:
            job = httpx.get(f"{url}/api/jobs/{job['id']}").json()
        assert job["result"]["added"] == 1
        assert cli("sync", "--json").json == {"sources": {"mine": None}}
        assert cli("sync", "--retry", "--json").json == {"sources": {"mine": None}}
    there = cli("sync")
    assert (there.code, there.out) == (0, "mine: its pages are pushed, so there is nothing to follow\n")
    assert cli("sync", "--retry").code == 0
    assert cli("status", "--json").json["sources"][0]["pages"] == 1


def test_while_a_server_holds_the_store_it_does_the_work(shell: Cli, cli: InProcessCli, notes: Path) -> None:
    with serving(shell):
        report = cli("ingest", "notes", "--json")
        assert (report.code, report.json["added"]) == (0, 3), report.err
        (notes / "owl.md").write_text("# Owl\n\nAn owl hoots at night.\n", encoding="utf-8")
        assert cli("sync", "--json").json["sources"]["notes"]["added"] == 1
        found = cli("search", "What hoots at night?", "--json").json
        assert found["evidence"][0]["title"] == "Owl"
        wrong = cli("ingest", "nowhere", "--json")
        assert wrong.code == 2
        assert "There is nothing at" in json.loads(wrong.out)["error"]["message"]
        assert "stop the server first" in cli("ingest", "notes", "--rebuild").err
        assert cli("sources", "remove", "notes", "--json").json == {"removed": 4}
    assert cli("verify").code == 0
