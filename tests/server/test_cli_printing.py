"""What people see: wrapped on a terminal, plain in a pipe, and never what a page wants the terminal to do."""

from __future__ import annotations

import re

import pytest
from rich.cells import cell_len

from graph.model import SkippedPage
from ingestion.report import IngestReport, Progress
from server.commands.answers import print_answer
from server.commands.progress import ingestion_progress
from server.commands.reports import print_report
from server.commands.sentences import sentence
from server.commands.terminal import Printer
from server.http.views import CitationView, ClaimView, EvidenceView, ProvenanceView, QueryResponse, RankView, Usage


def evidence(
    number: int, title: str, *, path: tuple[str, ...] = (), heading_path: tuple[str, ...] = ()
) -> EvidenceView:
    ranks = (
        RankView(ranking="vector", rank=2, score=0.9, contribution=0.016),
        RankView(ranking="dense", rank=1, score=0.9, contribution=0.0),
    )
    return EvidenceView(
        number=number,
        title=title,
        heading_path=heading_path,
        url=f"https://wiki.example.org/{number}",
        text="Text.",
        origin="wiki",
        source="hollin",
        modified="",
        score=0.5,
        key=f"key-{number}",
        provenance=ProvenanceView(
            ranks=ranks, entities=path[:1], path=path, boost=1.0, rerank_score=3.25, duplicates=()
        ),
    )


def response(
    text: str, *found: EvidenceView, cited: int = 0, mode: str = "extractive", claims: tuple[ClaimView, ...] = ()
) -> QueryResponse:
    citation = CitationView(number=cited, start=0, end=3, title="", url="")
    return QueryResponse(
        answer=text,
        mode=mode,  # type: ignore[arg-type]
        zone="normal",
        persona="neutral",
        model="",
        language="en",
        keywords=(),
        citations=(citation,) if cited else (),
        claims=claims,
        evidence=found,
        legs={"vector": "ok", "graph": "timeout after 2 s", "web": "off"},
        notes=("history could not be condensed",),
        finish_reason="stop",
        usage=Usage(prompt_tokens=0, completion_tokens=0),
        milliseconds={"total": 12.4},
    )


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if stdout were a terminal of 80 columns; rich takes FORCE_COLOR for that."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("NO_COLOR", raising=False)


def test_cited_sources_come_in_full_and_the_others_in_short(capsys: pytest.CaptureFixture[str]) -> None:
    first = evidence(1, "Lighthouse", heading_path=("Lighthouse", "The tower"), path=("Keeper", "Lighthouse"))
    print_answer(response("It is tall. [1]", first, evidence(2, "Ferry"), cited=1), Printer(), explain=False)
    assert capsys.readouterr().out.splitlines() == [
        "It is tall. [1]",
        "",
        "Sources",
        "[1] Lighthouse › The tower",
        "    https://wiki.example.org/1",
        "    found by vector #2",
        "    path Keeper → Lighthouse",
        "",
        "Also found",
        "[2] Ferry",
        "",
        "legs  vector ok · graph timeout after 2 s · web off",
        "mode  extractive · confidence normal · persona neutral",
        "note  history could not be condensed",
    ]


def test_explained_shows_all_that_led_there(capsys: pytest.CaptureFixture[str]) -> None:
    print_answer(response("It is tall. [1]", evidence(1, "Lighthouse"), cited=1), Printer(), explain=True)
    out = capsys.readouterr().out
    for words in ("dense: rank 1", "adds 0.01600", "cross-encoder: +3.25", "key-1", "total 12 ms"):
        assert words in out


def test_pages_of_an_answer_that_says_no_are_not_called_sources(capsys: pytest.CaptureFixture[str]) -> None:
    answer = response("I don't know. [1]", evidence(1, "Lighthouse"), cited=1, mode="abstained")
    print_answer(answer, Printer(), explain=False)
    assert "Closest pages" in capsys.readouterr().out


def test_an_answer_that_cites_nothing_lists_all_it_had(capsys: pytest.CaptureFixture[str]) -> None:
    print_answer(response("Tall.", evidence(1, "Lighthouse"), evidence(2, "Ferry")), Printer(), explain=False)
    assert capsys.readouterr().out.count("found by") == 2


@pytest.mark.usefixtures("terminal")
def test_a_terminal_gets_lines_that_fit(capsys: pytest.CaptureFixture[str]) -> None:
    print_answer(response("word " * 60, evidence(1, "灯塔" * 30)), Printer(), explain=False)
    out = capsys.readouterr().out
    assert "\x1b[1m" in out
    assert max(cell_len(re.sub(r"\x1b\[[\d;]*m", "", line)) for line in out.splitlines()) <= 80


@pytest.mark.usefixtures("terminal")
def test_no_color_means_no_escapes_at_all(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    print_answer(response("Tall. [1]", evidence(1, "Lighthouse"), cited=1), Printer(), explain=True)
    assert "\x1b" not in capsys.readouterr().out


@pytest.mark.parametrize(
    "hostile", ["\x1b[2J", "\x1b]0;title\x07", "\x9b31m", "\u202egnp.exe", "\ud800", "a\rb", "\x00"]
)
def test_pages_cannot_command_the_terminal(capsys: pytest.CaptureFixture[str], hostile: str) -> None:
    answer = response(f"x{hostile}y", evidence(1, f"[red]{hostile}[/red]"))
    print_answer(answer, Printer(), explain=True)
    out = capsys.readouterr().out
    assert not set(out) & set("\x1b\x07\x9b\u202e\ud800\r\x00")
    assert "[red]" in out


def test_a_sentence_is_one_line() -> None:
    assert sentence("a\n b\x1b[31m\tc ") == "a b[31m c"


def test_reports_name_some_pages_of_each_reason(capsys: pytest.CaptureFixture[str]) -> None:
    skipped = tuple(SkippedPage(key=f"p{number:02}", reason="empty") for number in range(12))
    report = IngestReport(
        source="hollin", added=1200, changed=0, unchanged=3, deleted=0, redirects=0, skipped=skipped, failed=(),
        dangling_redirects=("Old",), chunks=5, embedded=4, linked=5, entities=2, links=1, seconds=2.0,
        warnings=("no entity was found",), whole=True,
    )  # fmt: skip
    print_report(report, Printer())
    out = capsys.readouterr().out
    assert "1,200 added, 3 unchanged, 12 skipped" in out
    assert "skipped, empty: p00, p01" in out
    assert "and 2 more" in out
    assert "redirects that lead nowhere: Old" in out
    assert "warning: no entity was found" in out
    assert "2 chunks/s" in out


def test_progress_off_a_terminal_is_a_line_a_second_and_one_for_each_stage(capsys: pytest.CaptureFixture[str]) -> None:
    with ingestion_progress("hollin") as show:
        for number in range(100):
            show(Progress(stage="reading", pages=number, chunks=number, title="a\nb", seconds=1.0))
        show(Progress(stage="linking", pages=100, chunks=100))
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [
        "hollin: reading: 0 pages, 0 chunks, 0 chunks/s, at “a b”",
        "hollin: linking: 100 pages, 100 chunks, 0 chunks/s",
    ]


def test_sentences_that_are_not_supported_are_named_under_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    text = "It is old [1]. It cost 42 crowns [1]."
    claims = (
        ClaimView(start=0, end=14, numbers=(1,), verdict="supported", reason=""),
        ClaimView(start=15, end=37, numbers=(1,), verdict="unsupported", reason="the number 42 is not in [1]"),
    )
    print_answer(response(text, evidence(1, "Bridge"), cited=1, claims=claims), Printer(), explain=False)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:5] == [
        text,
        "",
        "Not supported by what they cite",
        "[1] not supported: the number 42 is not in [1]",
        "    It cost 42 crowns [1].",
    ]
    print_answer(response(text, evidence(1, "Bridge"), cited=1, claims=claims[:1]), Printer(), explain=False)
    assert "supported" not in capsys.readouterr().out
