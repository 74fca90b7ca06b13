"""What is kept of sources beside their pages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from graph.model import FailedPage
from graph.registry import RegisteredSource
from graph.sqlite_registry import SqliteRegistry

WIKI = RegisteredSource(name="wiki", kind="markdown", location="/w", options={"strategy": "title"}, added="2026-01-01")


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[SqliteRegistry]:
    opened = SqliteRegistry(tmp_path / "sources.db")
    yield opened
    opened.close()


def test_a_source_is_kept_as_it_was_given(registry: SqliteRegistry, tmp_path: Path) -> None:
    assert registry.source("wiki") is None
    registry.put_source(WIKI)
    registry.set_cursor("wiki", '{"at": 7}')
    registry.set_cursor("nobody", "x")
    found = registry.source("wiki")
    assert found is not None
    assert found.cursor == '{"at": 7}'
    assert (found.location, dict(found.options)) == ("/w", {"strategy": "title"})
    again = SqliteRegistry(tmp_path / "sources.db")
    assert again.sources() == [found]
    again.close()
    registry.forget_cursors()
    assert [source.cursor for source in registry.sources()] == [""]


def test_dead_letters_count_their_tries_and_go_when_the_page_was_read(registry: SqliteRegistry) -> None:
    registry.put_source(WIKI)
    failed = [FailedPage(key="a", reason="timeout"), FailedPage(key="b\udc9a\0", reason="too large")]
    registry.note_failures("wiki", failed, [], "monday")
    registry.note_failures("wiki", [FailedPage(key="a", reason="404")], ["c"], "tuesday")
    first, second = registry.dead_letters("wiki")
    assert (first.key, first.reason, first.first, first.last, first.tries) == ("a", "404", "monday", "tuesday", 2)
    assert (second.key, second.tries) == ("b\ufffd\ufffd", 1)
    registry.note_failures("wiki", [], ["a"], "friday")
    assert [letter.key for letter in registry.dead_letters()] == [second.key]
    assert registry.dead_letters("other") == []
    assert registry.remove_source("wiki")
    assert not registry.remove_source("wiki")
    assert registry.dead_letters() == []
