"""The command line's main job, on the sample wiki: from `ingest` to `demo`, and who holds the store."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path

import pytest

from graph.home import HomeLock
from server.commands.demo import QUESTIONS
from tests.places import note_place
from tests.server.cli_runner import TIMEOUT, InProcessCli

PAGES = 18
"""Published pages of the sample wiki."""


@pytest.fixture
def wiki(sample_home: Path, cli: InProcessCli) -> InProcessCli:
    """A copy of the filled home."""
    shutil.copytree(sample_home / "home", cli.home)
    shutil.copytree(sample_home / "wiki", cli.folder / "wiki")
    note_place(cli.home, "hollin", cli.folder / "wiki")
    return cli


@pytest.fixture
def two_pages(wiki: InProcessCli) -> InProcessCli:
    """The filled store, and a second wiki that is quick to embed, in `small`."""
    small = wiki.folder / "small"
    small.mkdir()
    (small / "gull.md").write_text("# Gull\n\nA gull steals chips from [[Terns|a tern]].\n", encoding="utf-8")
    (small / "tern.md").write_text("# Tern\n\nA tern dives for sand eels off Norvik.\n", encoding="utf-8")
    return wiki


# --- ingest ---------------------------------------------------------------------------------------------------------


def test_ingest_twice_writes_nothing_the_second_time(wiki: InProcessCli) -> None:
    report = wiki("ingest", "wiki", "--name", "hollin", "--json").json
    assert (report["added"], report["changed"], report["unchanged"], report["embedded"]) == (0, 0, PAGES, 0)
    assert report["skipped"] == [{"key": "about.md", "reason": "its front matter says that it is not published"}]


def test_ingest_embeds_only_what_changed_and_prunes_what_is_gone(wiki: InProcessCli) -> None:
    page = wiki.folder / "wiki" / "places" / "norvik.md"
    page.write_text(
        page.read_text(encoding="utf-8").replace("eleven smokehouses", "nine smokehouses"), encoding="utf-8"
    )
    (wiki.folder / "wiki" / "comet.md").unlink()
    report = wiki("ingest", "wiki", "--name", "hollin", "--prune", "--json").json
    assert (report["changed"], report["deleted"]) == (1, 1)
    assert 1 <= report["embedded"] <= report["chunks"]
    assert wiki("verify").code == 0
    found = wiki("search", "Comet Zhou-Iversen", "--json").json
    assert "Comet Zhou-Iversen" not in {entry["title"] for entry in found["evidence"]}


def test_progress_goes_to_stderr_and_data_to_stdout(two_pages: InProcessCli) -> None:
    ended = two_pages("ingest", "small", "--json")
    assert ended.json["source"] == "small"
    assert "small: reading: 2 pages" in ended.err
    plain = two_pages("ingest", "small")
    assert "2 unchanged" in plain.out
    assert "\x1b" not in ended.err + plain.out


@pytest.mark.parametrize(
    ("path", "words"),
    [("nowhere", "nothing at nowhere"), ("empty", "empty"), ("file.txt", "no known type"), ("zero.xml", "empty file")],
)
def test_what_is_no_wiki_is_refused_and_nothing_is_written(cli: InProcessCli, path: str, words: str) -> None:
    (cli.folder / "empty").mkdir()
    (cli.folder / "file.txt").write_text("hello", encoding="utf-8")
    (cli.folder / "zero.xml").touch()
    ended = cli("ingest", path, "--json")
    assert ended.code == 2
    assert ended.json["error"]["kind"] == "bad-source"
    assert words in ended.err
    assert not cli.home.exists()


def test_a_page_that_cannot_be_read_is_named_and_the_run_goes_on(two_pages: InProcessCli) -> None:
    with (two_pages.folder / "small" / "huge.md").open("wb") as file:
        file.truncate(10_000_000)
    ended = two_pages("ingest", "small")
    assert ended.code == 5
    assert "huge.md" in ended.out
    assert "2 added" in ended.out


def test_rebuild_empties_the_store_first(two_pages: InProcessCli) -> None:
    report = two_pages("ingest", "small", "--rebuild", "--json").json
    assert report["added"] == 2
    assert [source["name"] for source in two_pages("status", "--json").json["sources"]] == ["small"]


def test_another_embedding_model_is_refused_with_the_command_that_rebuilds(wiki: InProcessCli) -> None:
    ended = wiki("ask", "Who?", "--set", "embedder.name=other")
    assert ended.code == 3
    assert "trivet ingest --rebuild" in ended.err


# --- ask and search -------------------------------------------------------------------------------------------------


def test_ask_answers_with_sources_and_the_legs_that_found_them(wiki: InProcessCli) -> None:
    ended = wiki("ask", QUESTIONS[0])
    assert ended.code == 0
    assert "212 steps" in ended.out
    assert "[1] Carrow Light" in ended.out
    assert "places/carrow-light.md" in ended.out
    assert "found by " in ended.out
    assert "web off" in ended.out


def test_ask_as_json_is_the_body_of_the_api(wiki: InProcessCli) -> None:
    answer = wiki("ask", QUESTIONS[0], "--json").json
    assert answer["mode"] == "extractive"
    assert "212 steps" in answer["answer"]
    cited = answer["citations"][0]
    assert answer["answer"][cited["start"] : cited["end"]] == f"[{cited['number']}]"
    assert "provenance" not in answer["evidence"][0]
    assert "provenance" in wiki("ask", QUESTIONS[0], "--json", "--explain").json["evidence"][0]


def test_ask_explained_shows_ranks_and_scores(wiki: InProcessCli) -> None:
    out = wiki("ask", QUESTIONS[0], "--explain").out
    assert "cross-encoder: +" in out
    assert "dense: rank 1" in out


@pytest.mark.parametrize("question", ["", "   ", "?!", "x" * 100_000])
def test_a_question_that_is_none_is_refused(wiki: InProcessCli, question: str) -> None:
    ended = wiki("ask", question, "--json")
    assert ended.code == 2
    assert ended.json["error"]["kind"] == "bad-question"


@pytest.mark.parametrize("command", ["ask", "search"])
def test_an_unknown_persona_is_refused(wiki: InProcessCli, command: str) -> None:
    ended = wiki(command, "Who?", "--persona", "nobody")
    assert ended.code == 2
    assert "neutral" in ended.err


def test_search_shows_passages(wiki: InProcessCli) -> None:
    ended = wiki("search", "What is smoked eel pie?", "--limit", "2")
    assert "[1] Smoked eel pie" in ended.out
    assert "[3]" not in ended.out
    assert "keywords" in ended.out


def test_search_of_an_empty_store_finds_nothing(cli: InProcessCli) -> None:
    ended = cli("search", "What is smoked eel pie?")
    assert ended.code == 0
    assert "Nothing was found." in ended.out


# --- status and verify ----------------------------------------------------------------------------------------------


def test_status_of_nothing(cli: InProcessCli) -> None:
    ended = cli("status")
    assert ended.code == 0
    assert "trivet ingest PATH" in ended.out
    assert not cli.home.exists()


def test_status_counts_what_is_there(wiki: InProcessCli) -> None:
    status = wiki("status", "--json").json
    assert status["sources"][0]["name"] == "hollin"
    assert status["sources"][0]["pages"] == PAGES
    assert status["counts"]["entities"] > PAGES
    assert status["holder"] is None
    assert f"{PAGES} pages" in wiki("status").out


def test_verify_finds_and_mends(wiki: InProcessCli) -> None:
    report = wiki("verify", "--json").json
    assert report["clean"] is True
    assert report["pages"] == PAGES
    (wiki.home / "graph.db").unlink()
    for leftover in wiki.home.glob("graph.db-*"):
        leftover.unlink()
    broken = wiki("verify", "--json")
    assert broken.code == 1
    assert broken.json["disagreements"]
    assert wiki("verify", "--repair").code == 0
    assert wiki("verify").code == 0


# --- eval ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def benchmark(cli: InProcessCli) -> Path:
    """A BEIR-style folder of three documents and two questions."""
    folder = cli.folder / "birds"
    folder.mkdir()
    documents = {"d1": "The gull steals chips.", "d2": "The tern dives for eels.", "d3": "The owl sleeps by day."}
    lines = [json.dumps({"_id": key, "title": text.split()[1], "text": text}) for key, text in documents.items()]
    (folder / "corpus.jsonl").write_text("\n".join(lines), encoding="utf-8")
    questions = {"q1": "Who steals chips?", "q2": "Who dives for eels?"}
    lines = [json.dumps({"_id": key, "text": text}) for key, text in questions.items()]
    (folder / "queries.jsonl").write_text("\n".join(lines), encoding="utf-8")
    judged = "query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td2\t1\n"
    (folder / "qrels.tsv").write_text(judged, encoding="utf-8")
    return folder


def test_eval_measures_each_leg_and_stage(cli: InProcessCli, benchmark: Path) -> None:
    measured = cli("eval", benchmark, "--index-dir", "index", "--json").json
    assert measured["dataset"] == "birds"
    assert [run["name"] for run in measured["runs"]] == ["dense", "sparse", "vector", "graph", "wiki", "reranked"]
    fields = "name questions hit@5 recall@2 recall@5 recall@10 mrr ndcg@10 all@5 p50_ms p95_ms".split()
    assert set(fields) <= measured["runs"][-1].keys()
    assert {run["questions"] for run in measured["runs"]} == {2}
    assert measured["runs"][-1]["hit@5"] == 1.0
    limited = cli("eval", benchmark, "--index-dir", "index", "--limit", "1")
    assert limited.code == 0
    assert "ndcg@10" in limited.out
    assert not cli.home.exists()


def test_eval_of_no_benchmark_is_refused(cli: InProcessCli) -> None:
    (cli.folder / "nothing").mkdir()
    assert cli("eval", "nothing", "--index-dir", "index").code == 2
    assert cli("eval", "missing", "--index-dir", "index").code == 2


# --- demo -----------------------------------------------------------------------------------------------------------


def test_demo_answers_its_questions_with_citations(wiki: InProcessCli) -> None:
    ended = wiki("demo", "--json", "--home", wiki.home)
    assert ended.code == 0, ended.err
    assert ended.json["home"] == str(wiki.home)
    assert ended.json["report"]["embedded"] == 0
    responses = [item["response"] for item in ended.json["answers"]]
    assert "212" in responses[0]["answer"]
    assert responses[0]["citations"]
    assert "smoked eel pie" in responses[1]["answer"]
    paths = [entry["provenance"]["path"] for entry in responses[1]["evidence"] if entry["title"] == "Norvik"]
    assert ["Carrow Light", "Ansa Brekke", "Norvik"] in paths
    assert responses[2]["mode"] == "abstained"


# --- who holds the store --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [("ingest", "wiki"), ("verify", "--repair"), ("ask", "Who?"), ("search", "Who?")])
def test_a_held_store_is_refused_and_the_holder_named(wiki: InProcessCli, command: tuple[str, ...]) -> None:
    with HomeLock.acquire(wiki.home, command="ingest"):
        ended = wiki(*command, "--json")
    assert ended.code == 4
    assert ended.json["error"]["kind"] == "store-busy"
    assert "`ingest`" in ended.err


def test_status_and_doctor_work_while_the_store_is_held(wiki: InProcessCli) -> None:
    with HomeLock.acquire(wiki.home, command="ingest"):
        assert "`ingest`" in wiki("status").out
        assert wiki("status", "--json").json["holder"]["command"] == "ingest"


def test_a_running_server_is_asked(wiki: InProcessCli) -> None:
    shell = wiki.cli
    key = {"TRIVET_SERVER__API_KEY": "harbour"}
    with shell.start("serve", "--port", "0", environment=key) as server:
        try:
            assert server.stdout is not None
            assert "http://127.0.0.1" in server.stdout.readline()
            assert "212 steps" in wiki("ask", QUESTIONS[0], environment=key).out
            assert "[1] Smoked eel pie" in wiki("search", "What is smoked eel pie?", environment=key).out
            assert wiki("status", "--json", environment=key).json["server"]["status"] == "ready"
            assert wiki("ask", "", environment=key).code == 2
            refused = wiki("ask", "Who?")
            assert refused.code == 3
            assert "server.api_key" in refused.err
            done = wiki("ingest", "wiki", "--name", "hollin", "--json", environment=key)
            assert (done.code, done.json["unchanged"]) == (0, PAGES)
            busy = wiki("verify", environment=key)
            assert busy.code == 4
            assert "http://127.0.0.1" in busy.err
        finally:
            server.send_signal(signal.SIGTERM)
            server.communicate(timeout=TIMEOUT)
    assert server.returncode == 0


def test_ctrl_c_ends_tidily_and_the_next_run_goes_on(cli: InProcessCli) -> None:
    (cli.folder / "wiki").mkdir()
    for number in range(400):
        text = f"# Page {number}\n\nThe number {number} is written on a stone in Norvik.\n"
        (cli.folder / "wiki" / f"page-{number}.md").write_text(text, encoding="utf-8")
    with cli.cli.start("ingest", "wiki", "--set", "ingestion.batch_chunks=4") as running:
        assert running.stderr is not None
        running.stderr.readline()  # it has begun
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=TIMEOUT)
    assert running.returncode == 130, f"it went on to its end: {err}"
    assert "Traceback" not in err
    report = cli("ingest", "wiki", "--json").json
    assert report["added"] + report["unchanged"] == 400
    assert cli("verify").code == 0
