"""`trivet research` and `trivet knowledge`: the queue and the review, here and through the server."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from graph.home import RESEARCH_FILE, HomeLock, prepare_home
from graph.research import Fact, ResearchPage, Topic, TopicState
from graph.sqlite_research import SqliteResearch
from server.research.facts import proposed
from server.research.passages import passages_of_page
from tests.server.cli_runner import TIMEOUT, Cli, InProcessCli
from tests.server.test_cli_sync import serving

SLUG = "gulls"
SENTENCES = (
    "Gulls of Norvik nest on the roofs of the smokehouses.",
    "A grown gull eats 400 grams of herring a day.",
    "The oldest ringed gull of Norvik lived for 31 years.",
)
URL = "https://gulls.example/norvik"


def put_up_for_review(home: Path, slug: str = SLUG) -> list[Fact]:
    """A topic as research leaves it; its passages are embedded when the store is next opened."""
    prepare_home(home)
    page = ResearchPage(url=URL, title="Gulls of Norvik", passages=SENTENCES)
    with closing(SqliteResearch(home / RESEARCH_FILE)) as store:
        topic = store.add_topic(Topic(slug=slug, title="Gulls", category="sea birds"))
        passages = passages_of_page(topic, page)
        store.begin(passages[0].collection, adding=[passage.id for passage in passages])
        for state in (TopicState.RESEARCHING, TopicState.OK, TopicState.EXTRACTING):
            store.move_topic(slug, state)
        store.put_page(slug, page, passages)
        made = [proposed(topic, page, text, text, support=1.0, extractive=True) for text in SENTENCES]
        store.add_facts([replace(fact, created=f"2026-12-01T00:00:0{n}Z") for n, fact in enumerate(made)])
        store.move_topic(slug, TopicState.REVIEW, note="3 facts of 1 pages")
        return list(store.facts(topic=slug))


# --- the queue ------------------------------------------------------------------------------------------------------


def test_a_topic_is_added_shown_and_deleted(cli: InProcessCli) -> None:
    assert cli("research", "list").out == "no topics; `trivet research add TITLE` adds one\n"
    assert "`trivet research run gulls-of-norvik`" in cli("research", "add", "Gulls of Norvik").out
    added = cli("research", "add", "Terns", "--category", "sea birds", "--focus", "their food", "--json").json
    assert (added["slug"], added["state"], added["category"], added["focus"]) == (
        "terns",
        "queued",
        "sea birds",
        "their food",
    )
    assert [topic["slug"] for topic in cli("research", "list", "--json").json["topics"]] == ["gulls-of-norvik", "terns"]
    assert cli("research", "list", "--state", "done", "--json").json == {"topics": []}
    shown = cli("research", "show", "terns")
    assert "their food" in shown.out
    assert "queued" in shown.out
    assert cli("research", "delete", "terns").code == 0
    assert cli("research", "show", "terns").code == 2
    half = cli("research", "delete", "gulls-of-norvik", "terns", "--json")
    assert (half.code, half.json["deleted"]) == (5, ["gulls-of-norvik"])
    assert cli("research", "delete", "terns").code == 2


def test_a_topic_twice_names_the_one_that_is_there(cli: InProcessCli) -> None:
    cli("research", "add", "Gulls of Norvik")
    again = cli("research", "add", "gulls of NORVIK", "--json")
    assert again.code == 2
    assert again.json["error"]["kind"] == "conflict"
    assert "gulls-of-norvik" in again.err
    assert cli("research", "add", "Gulls of Norvik", "--slug", "other").code == 0


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ([""], "The topic has no title"),
        (["x" * 301], "The title has 301 characters"),
        (["Gulls", "--focus", "x" * 10_000], "The focus has 10,000 characters and may have 2,000"),
        (["Gulls", "--category", "x" * 300], "The category has 300 characters and may have 200"),
        (["Gulls", "--category", " "], "The category is empty"),
        (["Gulls", "--slug", "a/b"], "cannot be a topic's name"),
        (["Gulls", "--kind", "poem"], "poem"),
    ],
)
def test_what_cannot_be_a_topic(cli: InProcessCli, given: list[str], says: str) -> None:
    ended = cli("research", "add", *given)
    assert ended.code == 2
    assert says in ended.err
    assert cli("research", "list", "--json").json == {"topics": []}


def test_the_queue_can_be_filled_while_a_run_holds_the_store(cli: InProcessCli) -> None:
    with HomeLock.acquire(cli.home, command="research run"):
        assert cli("research", "add", "Gulls").code == 0
        assert cli("research", "show", "gulls").code == 0
        held = cli("research", "delete", "gulls")
        assert held.code == 4
        assert "`research run`" in held.err


def test_without_a_search_engine_it_says_what_to_set(cli: InProcessCli) -> None:
    cli("research", "add", "Gulls")
    ended = cli("research", "run", "--json")
    assert ended.code == 3
    assert "web.searxng_url" in ended.json["error"]["message"]


def test_a_question_needs_a_terminal(cli: InProcessCli) -> None:
    for command in (("research", "run", "--interactive"), ("knowledge", "review", "gulls")):
        ended = cli(*command)
        assert ended.code == 2
        assert "needs a terminal" in ended.err


# --- the review -----------------------------------------------------------------------------------------------------


def check_decisions(cli: InProcessCli, facts: list[Fact]) -> None:
    """What a person decides, by the command line: the same wherever the store is."""
    first, second, third = (fact.id for fact in facts)
    listed = cli("knowledge", "list", "--topic", SLUG, "--json").json["facts"]
    assert [fact["text"] for fact in listed] == list(SENTENCES)
    kept = cli("knowledge", "keep", first, "nobody", "--expires", "2999-01-31", "--json")
    assert kept.code == 5
    assert [bool(each["error"]) for each in kept.json["outcomes"]] == [False, True]
    assert kept.json["outcomes"][0]["fact"]["expires"] == "2999-01-31T23:59:59Z"
    assert "There is no fact 'nobody'" in kept.err
    assert cli("knowledge", "keep", second, "--evergreen").out == f"{second}  approved\n"
    assert cli("knowledge", "keep", third, "--expires", "yesterday").code == 2
    unborne = cli("knowledge", "edit", third, "--text", "The oldest ringed gull of Norvik lived for 44 years.")
    assert unborne.code == 0
    assert "44" in unborne.err
    assert cli("knowledge", "edit", third, "--quote", "It is nowhere on that page.").code == 2
    assert cli("knowledge", "undo", third, "--json").json["outcomes"][0]["fact"]["text"] == SENTENCES[2]
    waiting = cli("knowledge", "finish", SLUG)
    assert waiting.code == 2
    assert "decision" in waiting.err
    assert cli("knowledge", "reject", third).code == 0
    done = cli("knowledge", "finish", SLUG, "--json").json
    assert (done["topic"]["state"], done["wiped"]) == ("done", 3)
    states = {fact["id"]: fact["state"] for fact in cli("knowledge", "list", "--json").json["facts"]}
    assert states == {first: "approved", second: "approved", third: "rejected"}
    shown = cli("knowledge", "show", first)
    assert SENTENCES[0] in shown.out
    assert URL in shown.out
    assert cli("knowledge", "delete", third).out == f"{third}  deleted\n"
    assert cli("knowledge", "show", third).code == 2
    assert cli("knowledge", "list", "--state", "rejected").out.startswith("no facts")


def check_kept(cli: InProcessCli) -> None:
    status = cli("status")
    assert "1 done" in status.out
    assert "1 in knowledge_evergreen" in status.out
    counted = cli("status", "--json").json
    assert counted["topics"] == {"done": 1}
    assert sorted(counted["kept"].values()) == [1, 1]
    found = cli("search", "How much herring does a gull eat?", "--json").json["evidence"]
    assert SENTENCES[1] in {entry["text"] for entry in found}
    assert SENTENCES[2] not in {entry["text"] for entry in found}
    assert cli("research", "delete", SLUG).code == 0
    assert len(cli("knowledge", "list", "--json").json["facts"]) == 2
    assert cli("verify").code == 0


def test_facts_are_decided_about_and_answer(cli: InProcessCli) -> None:
    facts = put_up_for_review(cli.home)
    check_decisions(cli, facts)
    check_kept(cli)


def test_while_a_server_holds_the_store_it_does_the_work(shell: Cli, cli: InProcessCli) -> None:
    facts = put_up_for_review(cli.home)
    with serving(shell):
        added = cli("research", "add", "Terns", "--json")
        assert added.json["slug"] == "terns"
        twice = cli("research", "add", "Terns", "--json")
        assert (twice.code, twice.json["error"]["kind"]) == (2, "conflict")
        assert cli("research", "show", "nobody").code == 2
        unset = cli("research", "run", "terns", "--json")
        assert (unset.code, unset.json["error"]["kind"]) == (3, "settings")
        assert cli("research", "delete", "terns").code == 0
        check_decisions(cli, facts)
    check_kept(cli)


def typed(cli: InProcessCli, keys: list[str], *arguments: str) -> tuple[int, str]:
    """A command on a terminal, with these lines typed; its exit code, and what stood there in the end."""
    master, slave = pty.openpty()
    try:
        command = [sys.executable, "-m", "server.cli", *arguments]
        environment = cli.cli.environment({"TERM": "dumb", "NO_COLOR": "1", "COLUMNS": "200"})
        with subprocess.Popen(
            command, stdin=slave, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=cli.folder, env=environment
        ) as process:
            os.write(master, "".join(f"{key}\n" for key in keys).encode())
            out, _ = process.communicate(timeout=TIMEOUT)
        return process.returncode, out.decode()
    finally:
        os.close(master)
        os.close(slave)


def test_a_review_goes_through_the_facts(cli: InProcessCli) -> None:
    first, second, third = put_up_for_review(cli.home)
    keys = ["?", "k", "u", "v", "e", "", "", "e", "A gull eats herring.", "", "k", "s"]
    code, shown = typed(cli, keys, "knowledge", "review", SLUG, "--json")
    assert code == 0, shown
    assert "3 of 3" in shown
    assert URL in shown
    assert "`trivet knowledge finish gulls`" in shown
    assert json.loads(shown[shown.rindex("{") :]) == {"decided": 2}
    facts = {fact["id"]: fact for fact in cli("knowledge", "list", "--json").json["facts"]}
    assert (facts[first.id]["state"], facts[first.id]["evergreen"]) == ("approved", True)
    assert (facts[second.id]["state"], facts[second.id]["text"]) == ("approved", "A gull eats herring.")
    assert facts[third.id]["state"] == "proposed"
    code, shown = typed(cli, ["r"], "knowledge", "review", SLUG)
    assert code == 0, shown
    assert cli("knowledge", "show", third.id, "--json").json["state"] == "rejected"
