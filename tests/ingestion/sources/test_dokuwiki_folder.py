"""A DokuWiki's folder: ids, links, what is left out, and its log of changes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from graph.errors import SourceError
from graph.feed import Checkpoint, FeedItem, GonePage
from graph.model import FailedPage, Page, PageType, SkippedPage
from graph.protocols import ChangingSource
from ingestion.sources.dokuwiki_folder import KIND, DokuWikiFolder, IdLinks, clean_id
from ingestion.sources.folder_titles import FolderTitles
from ingestion.sources.kinds import Place, SourceOptions

LONG_AGO = 1_600_000_000


def write(root: Path, **files: str | bytes) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        os.utime(path, (LONG_AGO, LONG_AGO))


def place_of(root: Path) -> Place:
    names = {f"{path.relative_to(root)}{'/' if path.is_dir() else ''}" for path in root.rglob("*")}
    return Place(shown=str(root), path=root, names=frozenset(name for name in names if name.count("/") <= 2))


class Wiki:
    """What DokuWiki itself does to its files."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.log = root / "data/meta/_dokuwiki.changes"
        self.log.parent.mkdir(parents=True)
        self.log.touch()
        self.moment = LONG_AGO

    def save(self, key: str, text: str, *, kind: str = "E", later: int = 1) -> None:
        self.moment += later
        path = f"data/pages/{key.replace(':', '/')}.txt"
        if kind == "D":
            (self.root / path).unlink()
        else:
            write(self.root, **{path: text})
        with self.log.open("a") as log:
            log.write(f"{self.moment}\t127.0.0.1\t{kind}\t{key}\tada\ta summary\t\t9\n")


@pytest.fixture
def wiki(tmp_path: Path) -> Wiki:
    made = Wiki(tmp_path / "wiki")
    made.save("start", "====== Home ======\n[[places:norvik]]", kind="C")
    made.save("places:norvik", "====== Norvik ======\nA village.", kind="C")
    return made


def source_of(wiki: Wiki) -> ChangingSource:
    source = KIND.open(place_of(wiki.root), SourceOptions(name="w"))
    assert isinstance(source, ChangingSource)
    return source


def told(items: Iterator[FeedItem]) -> tuple[list[str], str]:
    """Keys with what is said of them, and the cursor at the end."""
    said = list(items)
    assert isinstance(said[-1], Checkpoint)
    return [
        f"{type(item).__name__.removesuffix('Page')} {item.key}".strip()
        for item in said
        if not isinstance(item, Checkpoint)
    ], said[-1].cursor


def test_changes_are_read_from_the_log(wiki: Wiki) -> None:
    source = source_of(wiki)
    said, cursor = told(source.read())
    assert said == ["places:norvik", "start"]

    def look() -> list[str]:
        nonlocal cursor
        feed = source.changes(cursor)
        assert feed is not None
        said, cursor = told(feed)
        return said

    assert look() == []
    wiki.save("places:norvik", "====== Norvik ======\nA large village.")
    wiki.save("start", "====== Home ======\nx [[places:norvik]]", later=0)
    assert look() == ["places:norvik", "start"]
    wiki.save("start", "====== Home ======\ny [[places:norvik]]", later=0)  # within the second of the last look
    assert look() == ["start"]
    wiki.save("places:norvik", "", kind="D")
    assert set(look()) == {"start", "Gone places:norvik"}  # its link leads nowhere now
    wiki.save("new", "====== New ======\nx", kind="C")
    assert set(look()) == {"start", "new"}
    assert look() == []


def test_a_log_that_does_not_reach_back_leads_to_a_full_read(wiki: Wiki) -> None:
    source = source_of(wiki)
    _, cursor = told(source.read())
    whole = wiki.log.read_text()
    wiki.log.write_text("")
    assert source.changes(cursor) is None
    wiki.log.write_text(f"{LONG_AGO + 9_999}\t1\tE\tstart\t\t\n")
    assert source.changes(cursor) is None
    wiki.log.unlink()
    assert source.changes(cursor) is None
    wiki.log.write_text(whole + "160000")  # a line half written
    assert told(source.changes(cursor) or iter(()))[0] == []


def test_without_a_log_times_tell(wiki: Wiki) -> None:
    shutil.rmtree(wiki.log.parent)
    source = source_of(wiki)
    _, cursor = told(source.read())
    assert told(source.changes(cursor) or iter(()))[0] == ["Unchanged places:norvik", "Unchanged start"]
    (wiki.root / "data/pages/start.txt").write_text("====== Home ======\nanother")
    assert told(source.changes(cursor) or iter(()))[0] == ["Unchanged places:norvik", "start"]


def test_a_disk_that_is_not_mounted_deletes_nothing(wiki: Wiki) -> None:
    source = source_of(wiki)
    _, cursor = told(source.read())
    wiki.save("start", "", kind="D")
    shutil.rmtree(wiki.root / "data/pages")
    with pytest.raises(SourceError):
        list(source.changes(cursor) or ())
    (wiki.root / "data/pages").mkdir()
    with pytest.raises(SourceError, match="held 1 pages and now holds none"):
        list(source.changes(cursor) or ())


def test_a_page_that_cannot_be_read_is_not_gone(wiki: Wiki) -> None:
    source = source_of(wiki)
    _, cursor = told(source.read())
    wiki.save("places:norvik", "x")
    (wiki.root / "data/pages/places/norvik.txt").write_bytes(b"\x89PNG\0\xff\xfe\xc3(")
    items = list(source.changes(cursor) or ())
    assert [item.key for item in items if isinstance(item, FailedPage)] == ["places:norvik"]
    assert not any(isinstance(item, GonePage) for item in items)
    assert isinstance(next(iter(source.pages(["start"]))), Page)
    assert list(source.pages(["no:where"])) == [GonePage(key="no:where")]


def test_pages(tmp_path: Path) -> None:
    pages = {
        "start": "====== Home ======\n[[Places:Norvik|the village]] [[places:]] [[.:places:old]]",
        "places/start": "no heading {{tag>west coast}}",
        "places/norvik": "===== Norvik =====\n[[start]] [[..:start]] [[old]] [[missing page]] [[:start]]",
        "places/old": "~~REDIRECT>places:norvik~~",
        "caf%C3%A9": "====== Café ======\nx",
        "norvik_ä": "x",
        "sidebar": "[[start]]",
        "places/sidebar": "[[start]]",
        "places/_template": "x",
        "private/diary": "x",
        "empty": "~~NOTOC~~",
    }
    write(tmp_path, **{f"data/pages/{name}.txt": text for name, text in pages.items()})
    write(tmp_path, **{"data/attic/start.1600.txt.gz": b"x", "data/pages/start.txt.gz": b"x"})
    write(tmp_path, **{"conf/local.php": "<?php\n$conf['hidepages'] = '^:private:';\n$conf['start'] = 'start';\n"})
    source = KIND.open(place_of(tmp_path), SourceOptions(name="w", base_url="https://w/doku.php"))
    items = list(source.read())
    found = {item.key: item for item in items if isinstance(item, Page)}
    assert set(found) == {"start", "places:start", "places:norvik", "places:old", "café", "norvik_ä"}
    assert {item.key: item.reason for item in items if isinstance(item, SkippedPage)} == {
        "sidebar": "navigation, not a page",
        "places:sidebar": "navigation, not a page",
        "places:_template": "a template for new pages",
        "private:diary": "hidden by the wiki's settings (hidepages)",
        "empty": "empty",
    }
    assert [link.target for link in found["start"].links] == ["Norvik", "places", "old"]
    assert (found["places:start"].title, found["places:start"].categories) == ("places", ("west", "coast"))
    assert [link.target for link in found["places:norvik"].links] == ["places", "Home", "old", "missing page"]
    old = found["places:old"]
    assert (old.page_type, old.redirect_to, old.title) == (PageType.REDIRECT, "Norvik", "old")
    assert (found["café"].title, found["norvik_ä"].title) == ("Café", "norvik ä")
    assert found["places:norvik"].url == "https://w/doku.php?id=places:norvik"


@pytest.mark.parametrize(
    ("target", "title"),
    [
        ("page", "a:b:page"),
        (":page", "page"),
        ("x:page", "x:page"),
        (".page", "a:b:page"),
        (".:page", "a:b:page"),
        (".:sub:page", "a:b:sub:page"),
        ("..page", "a:page"),
        ("..:page", "a:page"),
        ("..:..:page", "page"),
        ("..:..:..:..:page", "page"),
        ("~page", "a:b:here:page"),
        ("A Page!#sec", "a:b:a_page"),
        ("x/page", "x:page"),
        ("ns:", "ns:start"),
        ("other:", "other:other"),
        ("single", "single_missing"),
        ("#sec", ""),
    ],
)
def test_ids_are_resolved_as_dokuwiki_does(target: str, title: str) -> None:
    titles = FolderTitles()
    for key in ("page", "x:page", "a:page", "a:b:page", "a:b:sub:page", "a:b:here:page", "a:b:a_page", "ns:start"):
        titles.put(key, key)
    titles.put("other:other", "other:other")
    titles.put("a:b:single", "single_missing")
    assert IdLinks(titles, "a:b:here").page_link(target) == title


def test_an_id_is_cleaned() -> None:
    assert clean_id(" Über den  Wolken! ") == "über_den_wolken"


@pytest.mark.parametrize("below", ["", "data", "data/pages"])
def test_the_kind_knows_a_dokuwiki(wiki: Wiki, below: str) -> None:
    place = place_of(wiki.root / below)
    assert KIND.fits(place) >= 60
    source = KIND.open(place, SourceOptions(name="w"))
    assert (source.name, source.kind) == ("w", "dokuwiki")
    assert isinstance(source, DokuWikiFolder)
    assert source.root == wiki.root / "data/pages"
    assert isinstance(next(iter(source.read())), Page)


def test_other_folders_are_none(tmp_path: Path) -> None:
    write(tmp_path, **{"a.txt": "plain text", "b.md": "x"})
    assert KIND.fits(place_of(tmp_path)) == 0
    assert KIND.fits(Place(shown="x", url="https://w/")) == 0
    with pytest.raises(SourceError, match="hidden=PATTERN"):
        KIND.open(place_of(tmp_path), SourceOptions(name="w", extra={"hidden": "("}))
