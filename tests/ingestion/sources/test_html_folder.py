"""HTML folders: titles, links, what is left out, and what a second look finds."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from graph.errors import SourceError
from graph.feed import Checkpoint, FeedItem, GonePage, UnchangedPage
from graph.model import FailedPage, Link, Page, PageType, SkippedPage
from ingestion.main_content import HtmlReader
from ingestion.sources.file_folder import MAX_FILE_BYTES
from ingestion.sources.html_folder import KIND, HtmlFolder, head_title
from ingestion.sources.kinds import Place, SourceOptions

PROSE = "Port Lyre lies on the western coast, and its harbour has been in use for more than four hundred years. "


class SharedReader(HtmlReader):
    """One child process for all tests: it takes a second to start."""

    def close(self) -> None:
        pass


@pytest.fixture(scope="module")
def reader() -> Iterator[HtmlReader]:
    made = SharedReader()
    yield made
    HtmlReader.close(made)


def write(root: Path, **files: str | bytes) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def read(root: Path, reader: HtmlReader, base_url: str = "") -> dict[str, FeedItem]:
    items = list(HtmlFolder(root=root, name="w", base_url=base_url, reader=reader).read())
    assert isinstance(items[-1], Checkpoint)
    return {item.key: item for item in items if not isinstance(item, Checkpoint)}


def page(item: FeedItem) -> Page:
    assert isinstance(item, Page), item
    return item


def test_links_are_titles(tmp_path: Path, reader: HtmlReader) -> None:
    write(
        tmp_path,
        **{
            "index.html": f"<title>Isle</title><p>{PROSE}<a href='places/lyre.html#food'>the port</a> "
            "<a href='places/'>all</a> <a href='https://elsewhere.org/x.html'>x</a> <a href='missing.html'>m</a></p>",
            "places/index.html": f"<title>Places - Isle</title><h1>Places</h1><p>{PROSE}</p>",
            "places/lyre.html": f"<title>Port Lyre | Isle</title><p>{PROSE}<a href='../index.html'>up</a></p>",
        },
    )
    items = read(tmp_path, reader, "https://isle.org/w/")
    home = page(items["index.html"])
    assert [link.target for link in home.links] == ["Port Lyre", "Places", "missing"]
    lyre = page(items["places/lyre.html"])
    assert (lyre.title, lyre.aliases, lyre.url) == ("Port Lyre", ("lyre",), "https://isle.org/w/places/lyre.html")
    assert lyre.links == (Link(target="Isle", shown="up"),)
    assert lyre.id == "w:places/lyre.html"


def test_absolute_links_below_the_base(tmp_path: Path, reader: HtmlReader) -> None:
    write(
        tmp_path,
        **{"a.html": f"<p>{PROSE}<a href='https://isle.org/w/b.html'>b</a>", "b.html": f"<h1>Fen</h1><p>{PROSE}"},
    )
    assert page(read(tmp_path, reader, "https://isle.org/w")["a.html"]).links == (Link(target="Fen", shown="b"),)


def test_a_page_that_sends_on_is_a_redirect(tmp_path: Path, reader: HtmlReader) -> None:
    write(
        tmp_path,
        **{
            "old.html": '<title>Old</title><meta http-equiv="refresh" content="0; url=new.html">',
            "new.html": f"<title>New</title><p>{PROSE}",
        },
    )
    old = page(read(tmp_path, reader)["old.html"])
    assert (old.page_type, old.title, old.redirect_to) == (PageType.REDIRECT, "Old", "New")


@pytest.mark.parametrize(
    ("head", "title"),
    [
        ("<title>Norvik | Isle</title><h1>Isle</h1>", "Norvik"),
        ("<TITLE>\n A &amp; B \n</TITLE>", "A & B"),
        ("<title>A - b - Isle</title><body><h1 class=x>A - <i>b</i></h1>", "A - b"),
        ('<meta content="Norvik" property="og:title"><title>x</title>', "Norvik"),
        ("<h1>Only <b>this</b>¶</h1>", "Only this"),
        ("<title></title>", ""),
        ("no markup", ""),
    ],
)
def test_titles_of_heads(head: str, title: str) -> None:
    assert head_title(head) == title


def test_charsets(tmp_path: Path, reader: HtmlReader) -> None:
    text = f"<title>Żółw</title><p>Zażółć gęślą jaźń. {PROSE}"
    meta = '<meta charset="iso-8859-2">'
    files: dict[str, str | bytes] = {
        "latin2.html": (meta + text).encode("iso-8859-2"),
        "utf16.html": ("\ufeff" + text).encode("utf-16-le"),
        "wrong.html": (meta.replace("8859-2", "8859-99") + text).encode(),
    }
    write(tmp_path, **files)
    items = read(tmp_path, reader)
    for key, item in items.items():
        assert "Zażółć gęślą jaźń." in page(item).text, key
    assert page(items["latin2.html"]).title == "Żółw"


def test_what_is_in_the_way(tmp_path: Path, reader: HtmlReader) -> None:
    outside = tmp_path / "outside.html"
    outside.write_text("secret")
    root = tmp_path / "root"
    files: dict[str, str | bytes] = {
        "good.html": f"<p>{PROSE}",
        "empty.html": "",
        "comment.html": "<!-- nothing -->",
        "binary.html": b"\x89PNG\x00\x01",
        "large.html": b"x" * (MAX_FILE_BYTES + 1),
        "notes.txt": "no page",
        ".git/x.html": "no page",
        "deep.html": "<div>" * 3000 + "words",
    }
    write(root, **files)
    (root / "link.html").symlink_to(outside)
    (root / "loop").symlink_to(root)
    os.mkfifo(root / "pipe.html")
    items = read(root, reader)
    found = {key: type(item) for key, item in items.items()}
    assert found == {
        "good.html": Page,
        "empty.html": SkippedPage,
        "comment.html": SkippedPage,
        "binary.html": FailedPage,
        "large.html": FailedPage,
        "deep.html": Page,
        "link.html": SkippedPage,
        "loop": SkippedPage,
        "pipe.html": SkippedPage,
    }


def test_changes(tmp_path: Path, reader: HtmlReader) -> None:
    write(tmp_path, **{f"{name}.html": f"<title>{name}</title><p>{PROSE}" for name in "abc"})
    for path in tmp_path.iterdir():
        os.utime(path, (1_700_000_000, 1_700_000_000))
    source = HtmlFolder(root=tmp_path, name="w", reader=reader)
    cursor = list(source.read())[-1]
    assert isinstance(cursor, Checkpoint)
    write(tmp_path, **{"a.html": f"<title>a</title><p>{PROSE}Edited."})
    (tmp_path / "b.html").unlink()
    items = source.changes(cursor.cursor)
    assert items is not None
    found = {item.key: item for item in items if not isinstance(item, Checkpoint)}
    assert page(found["a.html"]).text.endswith("Edited.")
    assert isinstance(found["b.html"], GonePage)
    assert isinstance(found["c.html"], Page | UnchangedPage)


def test_the_kind(tmp_path: Path) -> None:
    write(tmp_path, **{"a.html": "x"})
    place = Place(shown="x", path=tmp_path, names=frozenset({"a.html", "b/", "b/c.htm"}))
    assert KIND.fits(place) >= 50
    assert KIND.fits(Place(shown="x", path=tmp_path, names=frozenset({"a.md", "b.md", "c.html"}))) < 50
    assert KIND.fits(Place(shown="x", path=tmp_path, names=frozenset({"a.md"}))) == 0
    assert KIND.fits(Place(shown="x", url="https://x.org/")) == 0
    assert isinstance(KIND.open(place, SourceOptions(name="w")), HtmlFolder)
    with pytest.raises(SourceError, match="is a file"):
        KIND.open(Place(shown="x", path=tmp_path / "a.html", head=b"x"), SourceOptions(name="w"))
