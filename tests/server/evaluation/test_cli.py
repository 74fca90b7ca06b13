"""`trivet eval` and `trivet calibrate` as they are called, with the bundled models on a few passages."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from tests.server.cli_runner import InProcessCli
from tests.server.evaluation.tiny_set import QUESTIONS, write_set


@pytest.fixture
def birds(cli: InProcessCli) -> Path:
    return write_set(cli.folder / "birds")


def test_a_measurement_is_kept_compared_and_reported(cli: InProcessCli, birds: Path) -> None:
    arguments = ("eval", birds, "--index-dir", "index")
    first = cli(*arguments, "--ablations", "--answers", "--save", "before.json", "--report", "report.html")
    assert first.code == 0, first.err
    for said in ("no-graph", "against reranked", "abstaining, over 4 answerable and 2", "extractive answers to 4"):
        assert said in first.out
    assert (cli.folder / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    again = cli(*arguments, "--compare", "before.json", "--json")
    assert again.code == 0, again.err
    assert again.json["comparison"]["worse"] == []
    assert again.json["comparison"]["runs"]["reranked"]["recall@5"]["mean"] == 0
    assert again.json["abstention"]["unanswerable"] == 2
    assert {group["key"] for group in again.json["groups"]} == {"type", "hops"}
    assert set(again.json["runs"][0]["intervals"]["mrr"]) == {"mean", "low", "high"}

    other = cli(*arguments, "--limit", "2", "--compare", "before.json")
    assert other.code == 2
    assert "asked other questions (4, now 2)" in other.err
    mine = ("--ablate", "search.rrf_k=5")
    low = cli(*arguments, *mine, *mine, "--fail-below", "graph:recall@5=1.01", "--fail-below", "mrr=0.1")
    assert low.code == 1
    assert "search.rrf_k=5" in low.out
    assert "graph has recall@5" in low.err


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--compare", "missing.json"), 2, "missing.json cannot be read"),
        (("--fail-below", "recall=1"), 2, "is not MEASURE=VALUE"),
        (("--fail-below", "web:mrr=1"), 2, "There is no run “web”"),
        (("--ablate", "search.rrf=1"), 3, "“search.rrf” is not a setting"),
        (("--report", "nowhere/report.html"), 2, "there is no folder"),
    ],
)
def test_what_is_wrong_is_said_before_measuring(
    cli: InProcessCli, birds: Path, arguments: tuple[str, ...], code: int, said: str
) -> None:
    ended = cli("eval", birds, "--index-dir", "index", *arguments)
    assert ended.code == code
    assert said in ended.err
    assert not (cli.folder / "index").exists()


def test_calibration_prints_settings(cli: InProcessCli) -> None:
    few = cli("calibrate", write_set(cli.folder / "few"), "--index-dir", "index")
    assert few.code == 2
    assert "few has 4 questions with a relevant document; at least 50 are needed" in few.err
    assert not (cli.folder / "index").exists()
    many = {f"{key}-{n}": judged for n in range(13) for key, judged in QUESTIONS.items()}
    birds = write_set(cli.folder / "birds", questions=many)
    found = cli("calibrate", birds, "--index-dir", "index")
    assert found.code == 0, found.err
    values = tomllib.loads(found.out)
    assert 0 < values["search"]["vector_threshold"] < 1
    assert set(values["answer"]) == {"abstain_below", "caution_below"}
    (cli.folder / "trivet.toml").write_text(found.out, encoding="utf-8")
    shown = json.loads(cli("config", "show", "--json").out)["settings"]
    assert shown["search.vector_threshold"]["value"] == values["search"]["vector_threshold"]
