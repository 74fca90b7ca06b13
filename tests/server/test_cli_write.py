"""`trivet write`: from a small wiki, without a model; what cannot be written is refused before anything is opened."""

from __future__ import annotations

from pathlib import Path

import pytest

from server.commands.demo import SAMPLE
from tests.server.cli_runner import InProcessCli


@pytest.fixture
def filled(cli: InProcessCli) -> InProcessCli:
    assert cli("ingest", SAMPLE, "--name", "hollin").code == 0
    return cli


def test_a_piece_is_written_to_stdout_and_to_files(filled: InProcessCli) -> None:
    shown = filled("write", "The lighthouse", "--kind", "analysis")
    assert shown.code == 0, shown.err
    assert shown.out.startswith("# The lighthouse\n\n## Overview\n")
    assert "## References" in shown.out
    assert "5 sections; writing" in shown.err

    piece = shown.err.split()[1]
    page = filled.folder / "piece.html"
    again = filled("write", "--resume", piece, "--format", "html", "-o", "piece.html", "--json")
    assert (again.code, again.json["state"], again.json["id"]) == (0, "done", piece)
    assert again.json["output"] == "piece.html"
    assert page.read_text().startswith("<!doctype html>")
    refused = filled("write", "--resume", piece, "-o", "piece.html")
    assert (refused.code, refused.out) == (2, "")
    assert "--force" in refused.err
    assert filled("write", "--resume", piece, "-o", "piece.html", "--force").code == 0
    assert page.read_text() == shown.out
    assert sorted(path.name for path in filled.folder.iterdir() if path.name.startswith(".piece")) == []
    assert filled("write", "--resume", "nothing").code == 2


def test_an_outline_of_ones_own(filled: InProcessCli) -> None:
    (filled.folder / "outline.txt").write_text("# The keeper\n")
    ended = filled("write", "The lighthouse", "--outline", "outline.txt", "--json")
    assert [section["heading"] for section in ended.json["sections"]] == ["The keeper"]
    nobody = filled("write", "Lamps", "--persona", "nobody")
    assert nobody.code == 2
    assert "There is no persona 'nobody'" in nobody.err


@pytest.mark.parametrize(
    ("outline", "says"),
    [
        ("", "no heading"),
        ("A\n#\n", "line 2 is an empty heading"),
        ("A\n\n- a\n", "line 3 repeats line 1"),
        ("\n".join(f"Part {n}" for n in range(51)), "51 headings"),
        ("x" * 1_000_001, "larger than 1,000,000 bytes"),
        ("\udcff", "not UTF-8"),
    ],
)
def test_outlines_that_are_none(cli: InProcessCli, outline: str, says: str) -> None:
    (cli.folder / "outline.txt").write_bytes(outline.encode("utf-8", "surrogateescape"))
    ended = cli("write", "Lamps", "--outline", "outline.txt")
    assert (ended.code, ended.out) == (2, "")
    assert says in ended.err
    assert len(ended.err.splitlines()) == 1
    assert not cli.home.exists()


@pytest.mark.parametrize(
    ("output", "says"),
    [
        (".", "is a folder"),
        ("there.md", "--force"),
        ("nowhere/piece.md", "is not there"),
        ("there.md/piece.md", "is not there"),
        ("x" * 300, "cannot be written"),
        ("/proc/piece.md", "cannot be written"),
        ("/dev/null", "is not a file"),
    ],
)
def test_where_nothing_can_be_written(cli: InProcessCli, output: str, says: str) -> None:
    (cli.folder / "there.md").write_text("mine")
    ended = cli("write", "Lamps", "-o", output)
    assert (ended.code, ended.out) == (2, "")
    assert says in ended.err
    assert len(ended.err.splitlines()) == 1
    assert (cli.folder / "there.md").read_text() == "mine"
    assert not cli.home.exists()


@pytest.mark.parametrize("given", [[], ["Lamps", "--kind", "poem"], ["Lamps", "--resume", "x"], ["Lamps", "-o", ""]])
def test_command_lines_that_are_wrong(cli: InProcessCli, given: list[str]) -> None:
    assert cli("write", *given).code == 2
    assert not Path(cli.home).exists()
