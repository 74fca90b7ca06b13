"""Folders of plain text; and what all folders of files have in common: what changed is told, and nothing else is."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from graph.errors import SourceError
from graph.feed import Checkpoint, FeedItem, GonePage, UnchangedPage
from graph.model import FailedPage, Page, SkippedPage
from graph.protocols import ChangingSource
from ingestion.sources import file_folder, folder_titles
from ingestion.sources.kinds import Place, SourceOptions
from ingestion.sources.markdown_folder import MarkdownFolder
from ingestion.sources.text_folder import KIND, TextFolder, clean_plain, plain_title

LONG_AGO = 1_600_000_000


def write(root: Path, moment: int = LONG_AGO, /, **files: str | bytes) -> None:
    """Files as if written long ago: what is fresh is read twice."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        os.utime(path, (moment, moment))


def cursor_of(items: Sequence[FeedItem]) -> str:
    assert isinstance(items[-1], Checkpoint)
    assert sum(isinstance(item, Checkpoint) for item in items) == 1
    return items[-1].cursor


def told(items: Sequence[FeedItem]) -> dict[str, str]:
    """Key → what is said of it ("" for a page); of one that is left out and gone, both."""
    said: dict[str, str] = {}
    for item in items:
        if not isinstance(item, Checkpoint):
            said[item.key] = (said.get(item.key, "") + " " + type(item).__name__.removesuffix("Page")).strip()
    return said


class Follower:
    """Reads a folder once, then says what changed from look to look."""

    def __init__(self, source: ChangingSource) -> None:
        self.source = source
        self.cursor = cursor_of(list(source.read()))

    def look(self) -> dict[str, str]:
        feed = self.source.changes(self.cursor)
        assert feed is not None
        items = list(feed)
        self.cursor = cursor_of(items)
        return told(items)


@pytest.fixture
def wiki(tmp_path: Path) -> Path:
    root = tmp_path / "wiki"
    write(root, **{"a.md": "# Ada\n\n[[Bob]]", "b.md": "# Bob\n\ntext", "sub/c.md": "# Cy\n\ntext"})
    return root


@pytest.fixture
def follower(wiki: Path) -> Follower:
    return Follower(MarkdownFolder(root=wiki, name="w"))


ALL_UNCHANGED = {"a.md": "Unchanged", "b.md": "Unchanged", "sub/c.md": "Unchanged"}


def test_nothing_changed(follower: Follower) -> None:
    assert isinstance(follower.source, ChangingSource)
    assert follower.look() == ALL_UNCHANGED
    assert follower.look() == ALL_UNCHANGED


def test_an_edit_is_one_page(follower: Follower, wiki: Path) -> None:
    write(wiki, LONG_AGO + 1, **{"b.md": "# Bob\n\nanother text"})
    assert follower.look() == {**ALL_UNCHANGED, "b.md": ""}
    assert follower.look() == ALL_UNCHANGED


@pytest.mark.parametrize(("moment", "text"), [(LONG_AGO - 9, "# Bob\n\ntext"), (LONG_AGO, "# Bob\n\nlonger text")])
def test_a_time_that_went_back_and_another_size_are_changes(
    follower: Follower, wiki: Path, moment: int, text: str
) -> None:
    write(wiki, moment, **{"b.md": text})
    assert follower.look()["b.md"] == ""


def test_a_file_just_written_is_read_again(wiki: Path) -> None:
    (wiki / "b.md").write_text("# Bob\n\none")
    follower = Follower(MarkdownFolder(root=wiki, name="w"))
    status = (wiki / "b.md").stat()
    (wiki / "b.md").write_text("# Bob\n\ntwo")  # within a tick of the file system's clock
    os.utime(wiki / "b.md", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert follower.look()["b.md"] == ""


@pytest.mark.parametrize(
    "change",
    [
        {"b.md": "# Bobby\n\ntext"},
        {"b.md": "---\naliases: [Robert]\n---\n# Bob\n\ntext"},
        {"sub/d.md": "# Dee"},
    ],
)
def test_a_new_title_or_alias_reads_all_again(follower: Follower, wiki: Path, change: dict[str, str]) -> None:
    write(wiki, LONG_AGO + 1, **change)
    assert set(follower.look().values()) == {""}
    assert set(follower.look().values()) == {"Unchanged"}


def test_a_deleted_file_is_gone_and_links_to_it_are_read_again(follower: Follower, wiki: Path) -> None:
    (wiki / "b.md").unlink()
    assert follower.look() == {"a.md": "", "b.md": "Gone", "sub/c.md": ""}
    assert follower.look() == {"a.md": "Unchanged", "sub/c.md": "Unchanged"}


def test_a_moved_file_is_gone_and_new(follower: Follower, wiki: Path) -> None:
    (wiki / "b.md").rename(wiki / "sub/b.md")
    assert follower.look() == {"a.md": "", "b.md": "Gone", "sub/b.md": "", "sub/c.md": ""}


@pytest.mark.parametrize("text", ["---\npublished: false\n---\n# Bob", ""])
def test_a_page_that_is_hidden_now_is_gone(follower: Follower, wiki: Path, text: str) -> None:
    write(wiki, LONG_AGO + 1, **{"b.md": text})
    assert follower.look()["b.md"] == "Skipped Gone"
    (wiki / "sub/c.md").unlink()
    (wiki / "sub/c.md").symlink_to("../a.md")
    assert follower.look()["sub/c.md"] == "Skipped Gone"


def test_a_page_that_cannot_be_read_is_not_gone_and_is_read_again(follower: Follower, wiki: Path) -> None:
    write(wiki, LONG_AGO + 1, **{"b.md": b"\xff\xfe\x00\xd8 not text \xc3"})
    assert follower.look()["b.md"] == "Failed"
    assert follower.look()["b.md"] == "Failed"


def test_a_folder_that_cannot_be_listed_is_not_gone(
    follower: Follower, wiki: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(folder_titles, "MAX_DEPTH", 0)
        assert follower.look() == {"a.md": "", "b.md": "", "sub/c.md": "Failed", "sub/": "Failed"}
        assert told(list(follower.source.pages(["sub/c.md"]))) == {"sub/c.md": "Failed"}
    assert follower.look()["sub/c.md"] == ""
    assert follower.look() == ALL_UNCHANGED


@pytest.mark.skipif(os.geteuid() == 0, reason="root may list every folder")
def test_a_folder_without_permission(follower: Follower, wiki: Path) -> None:
    (wiki / "sub").chmod(0)
    try:
        assert follower.look()["sub/c.md"] == "Failed"
        assert [type(item) for item in follower.source.pages(["sub/c.md"])] == [FailedPage]
    finally:
        (wiki / "sub").chmod(0o755)
    assert follower.look()["sub/c.md"] == ""


def test_a_disk_that_is_not_mounted_deletes_nothing(follower: Follower, wiki: Path) -> None:
    shutil.rmtree(wiki)
    for empty in (False, True):
        if empty:
            wiki.mkdir()
        with pytest.raises(SourceError, match=r"^The folder .*\.$"):
            follower.look()
        with pytest.raises(SourceError):
            list(follower.source.pages(["a.md"]))
        with pytest.raises(SourceError):
            list(follower.source.read())


def test_single_pages(follower: Follower, wiki: Path) -> None:
    (wiki / "b.md").unlink()
    items = list(follower.source.pages(["a.md", "b.md", "../../etc/passwd"]))
    assert told(items) == {"a.md": "", "b.md": "Gone", "../../etc/passwd": "Gone"}
    assert not list(follower.source.pages([]))


@pytest.mark.parametrize(
    "cursor", ["", "x", "[]", "{}", '{"as":1}', "[" * 5000, '{"as":["markdown","","1"],"titles":"","files":{"a":[1]}}']
)
def test_a_cursor_that_says_nothing_leads_to_a_full_read(wiki: Path, cursor: str) -> None:
    assert MarkdownFolder(root=wiki, name="w").changes(cursor) is None


def test_a_cursor_of_other_settings_leads_to_a_full_read(follower: Follower, wiki: Path) -> None:
    assert MarkdownFolder(root=wiki, name="w", base_url="https://w/").changes(follower.cursor) is None
    assert MarkdownFolder(root=wiki, name="w", kind="obsidian").changes(follower.cursor) is None


def test_a_cursor_that_would_be_too_large_is_none(wiki: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_folder, "MAX_CURSOR", 100)
    source = MarkdownFolder(root=wiki, name="w")
    cursor = cursor_of(list(source.read()))
    assert cursor == ""
    assert source.changes(cursor) is None


def test_the_cursor_is_json(follower: Follower) -> None:
    files = json.loads(follower.cursor)["files"]
    assert files["a.md"] == [LONG_AGO * 10**9, 14]


# Plain text.


@pytest.mark.parametrize(
    ("text", "suffix", "title"),
    [
        ("Port Lyre\n\nA harbour.", ".txt", "Port Lyre"),
        ("Port Lyre\n=========\nA harbour.", ".txt", "Port Lyre"),
        ("=========\nPort Lyre\n=========\n\nA harbour.", ".rst", "Port Lyre"),
        ("= Port Lyre\n:toc:\n\nA harbour.", ".adoc", "Port Lyre"),
        ("#+TITLE: Port Lyre\n* A harbour", ".org", "Port Lyre"),
        ("* A harbour\ntext", ".org", ""),
        ("A harbour lies here.\n\nMore.", ".txt", ""),
        ("A harbour\nlies here", ".txt", ""),
        ("Only a line", ".txt", ""),
        ("name   age\n----------\nAda    36", ".txt", ""),
        ("", ".txt", ""),
    ],
)
def test_titles(text: str, suffix: str, title: str) -> None:
    assert plain_title(text, suffix) == title


@pytest.mark.parametrize(
    ("text", "suffix", "cleaned"),
    [
        ("T\n\none\ntwo\n\nFood\n----\neel", ".txt", "one\ntwo\n\n# Food\n\neel"),
        ("T\n\nFood\n====\na\n\nEel\n---\nb\n\nCod\n---\nc", ".txt", "# Food\n\na\n\n## Eel\n\nb\n\n## Cod\n\nc"),
        ("name  age\n---------\nAda  36", ".txt", "name age\n---------\nAda 36"),
        ("a line\n-----------------\nb", ".txt", "a line\n-----------------\nb"),
        ("====\nFood\n====\n\n.. _x:\n\n.. note:: Mind\n\neel", ".rst", "# Food\n\neel"),
        ("= T\n\n// hidden\n== Food\n[source,py]\n----\neel\n----", ".adoc", "## Food\n\neel"),
        (
            "* Food\n:PROPERTIES:\n:ID: x\n:END:\n** Eel\n[[https://a.b][there]] [[Cod]]",
            ".org",
            "# Food\n\n## Eel\n\nthere Cod",
        ),
    ],
)
def test_cleaning(text: str, suffix: str, cleaned: str) -> None:
    assert clean_plain(text, suffix, title="T").text == cleaned


def test_a_folder_of_text(tmp_path: Path) -> None:
    write(
        tmp_path,
        **{"port-lyre.txt": "Port Lyre\n\nA harbour.\n\nFood\n----\neel", "notes/x_y.rst": "text", "p.png": "x"},
    )
    write(tmp_path, **{"empty.txt": b"", "latin.txt": "Le café où nous étions".encode("latin-1")})
    items = list(TextFolder(root=tmp_path, name="w", base_url="https://w/").read())
    found = {item.key: item for item in items if isinstance(item, Page)}
    port = found["port-lyre.txt"]
    assert (port.title, port.aliases, port.url) == ("Port Lyre", (), "https://w/port-lyre")
    assert (port.text, port.sections[0].title) == ("A harbour.\n\n# Food\n\neel", "Food")
    assert (found["notes/x_y.rst"].title, found["latin.txt"].text) == ("x y", "Le café où nous étions")
    assert [item.key for item in items if isinstance(item, SkippedPage)] == ["empty.txt"]
    assert set(Follower(TextFolder(root=tmp_path, name="w")).look().values()) == {"Unchanged"}


def test_the_kind(tmp_path: Path) -> None:
    write(tmp_path, **{"a.txt": "x"})
    assert KIND.fits(Place(shown="x", path=tmp_path, names=frozenset({"a.txt", "b/c.rst"}))) == 17
    assert KIND.fits(Place(shown="x", path=tmp_path, names=frozenset({"a.md"}))) == 0
    assert KIND.open(Place(shown="x", path=tmp_path), SourceOptions(name="w")).kind == "text"
    with pytest.raises(SourceError, match=r"^x is no folder; text files are read from a folder"):
        KIND.open(Place(shown="x", path=tmp_path / "a.txt"), SourceOptions(name="w"))


def test_unchanged_pages_are_told_by_key(wiki: Path) -> None:
    source = MarkdownFolder(root=wiki, name="w")
    items = list(source.changes(cursor_of(list(source.read()))) or ())
    assert items[0] == UnchangedPage(key="a.md")
    assert GonePage(key="a.md") not in items
