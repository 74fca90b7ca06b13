"""Long pieces as they are kept: what a store of them must do, tried on SQLite's."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from graph.pieces import PieceStore
from graph.sqlite_pieces import SqlitePieces


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "pieces.db"


@pytest.fixture
def pieces(file: Path) -> Iterator[PieceStore]:
    with closing(SqlitePieces(file, kept=3)) as store:
        yield store


def test_a_piece_has_its_sections_in_order_and_each_as_it_was_last_written(pieces: PieceStore) -> None:
    begun = pieces.begin("one", "request", job="job")
    assert (begun.id, begun.request, begun.sections, begun.piece, begun.job) == ("one", "request", (), "", "job")
    for number, text in ((10, "tenth"), (2, "failed"), (1, "first"), (2, "second")):
        pieces.put_section("one", number, text)
    pieces.begin("two", "other")
    pieces.put_section("two", 1, "of another piece")
    found = pieces.piece("one")
    assert found is not None
    assert found.sections == ("first", "second", "tenth")
    assert found.created == begun.created <= found.changed
    assert pieces.piece("nothing") is None


def test_beginning_once_more_changes_nothing(pieces: PieceStore) -> None:
    pieces.begin("one", "request", job="job")
    pieces.put_section("one", 1, "first")
    pieces.end("one", "whole")
    before = pieces.piece("one")
    assert pieces.begin("one", "another request", job="another") == before


def test_the_whole_holds_until_a_section_is_written_again(pieces: PieceStore) -> None:
    pieces.begin("one", "request")
    pieces.end("one", "whole")
    found = pieces.piece("one")
    assert found is not None
    assert found.piece == "whole"
    pieces.put_section("one", 1, "anew")
    found = pieces.piece("one")
    assert found is not None
    assert (found.piece, found.sections) == ("", ("anew",))


def test_a_piece_is_reopened_once_for_each_job(pieces: PieceStore) -> None:
    pieces.begin("one", "request", job="first")
    pieces.end("one", "partial")
    pieces.reopen("one", job="second")
    found = pieces.piece("one")
    assert found is not None
    assert (found.piece, found.job) == ("", "second")
    pieces.end("one", "whole")
    # Who asked for the job says so too, and may be later than a job that is quick.
    pieces.reopen("one", job="second")
    found = pieces.piece("one")
    assert found is not None
    assert found.piece == "whole"
    pieces.reopen("nothing", job="job")
    assert pieces.piece("nothing") is None


def test_the_oldest_are_forgotten_with_their_sections(file: Path, pieces: PieceStore) -> None:
    for number in range(5):
        pieces.begin(f"piece {number}", "request")
        pieces.put_section(f"piece {number}", 1, "text")
    assert [pieces.piece(f"piece {number}") is not None for number in range(5)] == [False, False, True, True, True]
    pieces.begin("piece 0", "anew")
    found = pieces.piece("piece 0")
    assert found is not None
    assert (found.request, found.sections) == ("anew", ())


def test_what_is_written_is_there_after_it_is_closed_and_for_others(file: Path, pieces: PieceStore) -> None:
    pieces.begin("one", "request")
    pieces.put_section("one", 1, "text")
    with closing(SqlitePieces(file)) as other:
        found = other.piece("one")
        assert found is not None
        assert found.sections == ("text",)
        other.put_section("one", 2, "of another process")
    found = pieces.piece("one")
    assert found is not None
    assert found.sections == ("text", "of another process")


@pytest.mark.parametrize("text", ["", "a\x00b", "\ud800", "'; DROP TABLE pieces; --", "x" * 2_000_000, "\u202e🜁"])
def test_any_text_can_be_kept_and_asked_for(pieces: PieceStore, text: str) -> None:
    kept = pieces.begin(text, text, job=text)
    pieces.put_section(text, 1, text)
    pieces.end(text, text)
    found = pieces.piece(text)
    assert found is not None
    assert found.id == kept.id
    assert found.sections == (kept.request,)


def test_sections_that_are_saved_at_once_are_all_there(pieces: PieceStore) -> None:
    pieces.begin("one", "request")
    threads = [threading.Thread(target=pieces.put_section, args=("one", n, f"{n:02}")) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = pieces.piece("one")
    assert found is not None
    assert found.sections == tuple(f"{n:02}" for n in range(20))
