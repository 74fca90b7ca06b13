"""A real MediaWiki, edited through its own API: after each edit the feed tells what is another, and nothing else."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing

import pytest

from graph.errors import SourceError
from graph.feed import Checkpoint, FeedItem, GonePage
from graph.model import FailedPage, Page, PageType, SkippedPage
from ingestion.sources.kinds import Place, SourceOptions
from ingestion.sources.mediawiki_api import KIND, MediaWikiApi
from tests.services.environment import service
from tests.services.mediawiki_server import PASSWORD, USER, Editor, OwnWiki, own_wiki

pytestmark = pytest.mark.services


class Follower:
    """Somebody who looks from time to time."""

    def __init__(self, url: str) -> None:
        self.source = source(url)
        self.cursor = ""
        self.read()

    def read(self) -> list[FeedItem]:
        return self._keep(self.source.read())

    def look(self) -> list[str]:
        """What is told, in short and sorted: "Norvik = text", "Norvik > Port Lyre", "Norvik gone"."""
        changes = self.source.changes(self.cursor)
        assert changes is not None
        return sorted(map(short, self._keep(changes)))

    def _keep(self, items: Iterator[FeedItem]) -> list[FeedItem]:
        *told, last = items
        assert isinstance(last, Checkpoint)
        self.cursor = last.cursor
        return [item for item in told if not isinstance(item, Checkpoint)]


def short(item: FeedItem) -> str:
    match item:
        case Page(redirect_to=""):
            return f"{item.key} = {item.text}"
        case Page():
            return f"{item.key} > {item.redirect_to}"
        case GonePage():
            return f"{item.key} gone"
        case SkippedPage() | FailedPage():
            return f"{item.key}: {item.reason}"
    raise AssertionError(item)


def source(url: str, **extra: str) -> MediaWikiApi:
    place = Place(shown=url, url=url)
    assert KIND.fits(place) > 90
    opened = KIND.open(place, SourceOptions(name="hollin", extra=extra))
    assert isinstance(opened, MediaWikiApi)
    return opened


@pytest.fixture(scope="module")
def wiki() -> Iterator[OwnWiki]:
    service("MEDIAWIKI_URL")
    with own_wiki("api") as started:
        yield started


@pytest.fixture(scope="module")
def editor(wiki: OwnWiki) -> Iterator[Editor]:
    with closing(Editor(wiki.url)) as somebody:
        yield somebody


@pytest.fixture
def follower(wiki: OwnWiki) -> Follower:
    return Follower(wiki.url)


def test_nothing_happens(follower: Follower) -> None:
    assert follower.look() == []
    assert follower.look() == []


def test_create_and_edit(follower: Follower, editor: Editor) -> None:
    editor.edit("Norvik", "A [[town]] by the '''sea'''.")
    assert follower.look() == ["Norvik = A town by the sea."]
    assert follower.look() == [], "it is told once"
    editor.edit("Norvik", "A city.")
    editor.edit("Norvik", "A great city.")
    assert follower.look() == ["Norvik = A great city."]


def test_what_a_page_is(wiki: OwnWiki, follower: Follower, editor: Editor) -> None:
    editor.edit("Port Lyre/The harbour & more?", "Eels.\n== Food ==\n[[Grey Bell|Bells]]. [[Category:Towns]]")
    changes = follower.source.changes(follower.cursor)
    assert changes is not None
    page = next(changes)
    assert isinstance(page, Page)
    assert page.id == "hollin:Port Lyre/The harbour & more?"
    assert page.url == f"{wiki.url}/wiki/Port_Lyre/The_harbour_%26_more%3F"
    assert page.page_type is PageType.STUB
    assert page.categories == ("Towns",)
    assert [link.target for link in page.links] == ["Grey Bell"]
    assert page.revision.isdigit()
    assert page.modified.endswith("Z")
    assert page.wiki_language == "en"


def test_move_with_a_redirect(follower: Follower, editor: Editor) -> None:
    editor.edit("Old Mill", "A mill.")
    follower.look()
    editor.move("Old Mill", "New Mill")
    assert follower.look() == ["New Mill = A mill.", "Old Mill > New Mill"]


def test_move_without_a_redirect(follower: Follower, editor: Editor) -> None:
    editor.edit("Old Quay", "A quay.")
    editor.move("Old Quay", "New Quay", redirect=False)
    assert follower.look() == ["New Quay = A quay.", "Old Quay gone"]


def test_move_to_and_fro(follower: Follower, editor: Editor) -> None:
    editor.edit("Tern", "A bird.")
    follower.look()
    editor.move("Tern", "Tern (bird)")
    editor.move("Tern (bird)", "Tern", redirect=False)
    assert follower.look() == ["Tern (bird) gone", "Tern = A bird."]


def test_move_into_the_wiki_and_out_of_it(follower: Follower, editor: Editor) -> None:
    editor.edit("User:Ansa/Draft", "A draft.")
    assert follower.look() == [], "users' pages are no content"
    editor.move("User:Ansa/Draft", "Ready", redirect=False)
    assert follower.look() == ["Ready = A draft."]
    editor.move("Ready", "User:Ansa/Not ready", redirect=False)
    assert follower.look() == ["Ready gone"]


def test_delete_and_undelete(follower: Follower, editor: Editor) -> None:
    editor.edit("Comet", "A comet.")
    follower.look()
    editor.delete("Comet")
    assert follower.look() == ["Comet gone"]
    editor.undelete("Comet")
    assert follower.look() == ["Comet = A comet."]
    editor.delete("Comet")
    editor.edit("Comet", "Another comet.")
    assert follower.look() == ["Comet = Another comet."]


def test_a_page_that_came_and_went_between_two_looks(follower: Follower, editor: Editor) -> None:
    editor.edit("Whim", "A whim.")
    editor.delete("Whim")
    assert follower.look() == ["Whim gone"]


def test_redirects(follower: Follower, editor: Editor) -> None:
    editor.edit("Lyre", "#REDIRECT [[port Lyre#Food|here]]")
    assert follower.look() == ["Lyre > Port Lyre"]
    editor.edit("Lyre", "An instrument.")
    assert follower.look() == ["Lyre = An instrument."]


def test_protection_changes_nothing(follower: Follower, editor: Editor) -> None:
    editor.edit("Fort", "A fort.")
    follower.look()
    editor.protect("Fort")
    assert follower.look() == []


def test_talk_and_templates_are_not_told(follower: Follower, editor: Editor) -> None:
    editor.edit("Talk:Norvik", "Who wrote this?")
    editor.edit("Template:Town", "A town.")
    editor.edit("Category:Towns", "Towns.")
    assert follower.look() == []


def test_an_emptied_page_is_skipped(follower: Follower, editor: Editor) -> None:
    editor.edit("Void", "Something.")
    follower.look()
    editor.edit("Void", "")
    assert follower.look() == ["Void: empty"]


def copy(editor: Editor, title: str, copies: list[str]) -> None:
    """By an import of the page's export under other names; not many at once, which would hold SQLite's lock."""
    dump = editor.export_xml(title).decode()
    head, page = dump[: dump.index("<page>")], dump[dump.index("<page>") : dump.index("</mediawiki>")]
    for start in range(0, len(copies), 30):
        pages = [page.replace(f"<title>{title}<", f"<title>{name}<") for name in copies[start : start + 30]]
        assert editor.import_xml(f"{head}{''.join(pages)}</mediawiki>".encode()) == len(pages)


def test_import(follower: Follower, editor: Editor) -> None:
    editor.edit("Bell", "A bell.")
    follower.look()
    copy(editor, "Bell", ["Bell 1", "Bell 2", "Bell 3"])
    assert follower.look() == ["Bell 1 = A bell.", "Bell 2 = A bell.", "Bell 3 = A bell."]


@pytest.mark.slow
def test_more_than_one_answer_holds(wiki: OwnWiki, follower: Follower, editor: Editor) -> None:
    """MediaWiki lists 500 at once and gives 50 texts: all are told once, with checkpoints on the way."""
    editor.edit("Isle", "An isle.")
    names = [f"Isle {number}" for number in range(510)]
    before = follower.cursor
    copy(editor, "Isle", names)
    changes = list(follower.source.changes(before) or ())
    told = [item.key for item in changes if isinstance(item, Page)]
    assert sorted(told) == sorted(["Isle", *names])
    points = [place for place, item in enumerate(changes) if isinstance(item, Checkpoint)]
    assert len(points) > 1
    first = changes[points[0]]
    assert isinstance(first, Checkpoint)
    rest = [item.key for item in follower.source.changes(first.cursor) or () if isinstance(item, Page)]
    assert sorted(rest) == sorted(item.key for item in changes[points[0] :] if isinstance(item, Page))
    everything = [item.key for item in follower.read() if isinstance(item, Page)]
    assert len(everything) == len(set(everything))
    assert set(told) < set(everything)


def test_single_pages(follower: Follower, editor: Editor) -> None:
    editor.edit("Eel", "An eel.")
    editor.edit("Gull", "A gull.")
    editor.delete("Gull")
    keys = ["Eel", "Gull", "Never was", "a|b", "<bad>", "Eel~0123abcd"]
    assert sorted(map(short, follower.source.pages(keys))) == [
        "<bad>: its title is none in this wiki",
        "Eel = An eel.",
        "Eel~0123abcd: its title has invisible characters: it is read with all others only",
        "Gull gone",
        "Never was gone",
        "a|b: its title is none in any wiki",
    ]


def test_from_any_of_its_urls(wiki: OwnWiki, editor: Editor) -> None:
    editor.edit("Norvik", "A city.")
    for path in ("", "/", "/wiki/Norvik", "/wiki/Nothing_here", "/index.php", "/index.php?title=Norvik&action=history"):
        assert source(wiki.url + path).url == f"{wiki.url}/api.php"
    assert source(f"{wiki.url}/api.php?action=help").url == f"{wiki.url}/api.php"


def test_a_base_url_of_the_owners(wiki: OwnWiki) -> None:
    opened = KIND.open(
        Place(shown="x", url=wiki.url), SourceOptions(name="hollin", base_url="https://wiki.hollin/w/Start")
    )
    assert isinstance(opened, MediaWikiApi)
    (page,) = opened.pages(["Main Page"])
    assert isinstance(page, Page)
    assert page.url == "https://wiki.hollin/w/Main_Page"


def test_chosen_namespaces(wiki: OwnWiki, editor: Editor) -> None:
    chosen = source(wiki.url, namespaces="0,14")
    editor.edit("Category:Birds", "Birds.")
    *told, last = chosen.read()
    assert "Category:Birds" in [item.key for item in told if isinstance(item, Page)]
    assert isinstance(last, Checkpoint)
    assert source(wiki.url).changes(last.cursor) is None, "a cursor of other namespaces"
    editor.edit("Category:Birds", "All birds.")
    assert [short(item) for item in list(chosen.changes(last.cursor) or ())[:-1]] == ["Category:Birds = All birds."]


@pytest.mark.parametrize(
    "cursor", ["", "garbage", "{}", "[" * 10_000, '{"since":"yesterday"}', '{"since":"2026-01-01"}']
)
def test_a_cursor_that_is_none(follower: Follower, cursor: str) -> None:
    assert follower.source.changes(cursor) is None


def test_a_feed_that_no_longer_reaches_back() -> None:
    """The wiki drops old recent changes. As long as its counters say that nothing was lost, nothing was."""
    service("MEDIAWIKI_URL")
    with own_wiki("rc") as wiki, closing(Editor(wiki.url)) as editor:
        follower = Follower(wiki.url)
        assert follower.look() == []
        _forget_changes(wiki)
        assert follower.look() == [], "no edit since, so no change was dropped"
        editor.edit("Norvik", "A town.")
        _forget_changes(wiki)
        assert follower.source.changes(follower.cursor) is None
        follower.read()
        time.sleep(1.1)  # the wiki's times are in whole seconds
        editor.edit("Eel", "An eel.")
        _forget_changes(wiki, but="Eel")
        assert follower.source.changes(follower.cursor) is None, "an older one may have been dropped"


def _forget_changes(wiki: OwnWiki, but: str = "") -> None:
    with closing(sqlite3.connect(wiki.folder / "wiki.sqlite")) as database:
        database.execute("DELETE FROM recentchanges WHERE rc_title != ?", (but,))
        database.commit()


def test_a_private_wiki() -> None:
    service("MEDIAWIKI_URL")
    with own_wiki("private", settings="$wgGroupPermissions['*']['read'] = false;") as wiki:
        with pytest.raises(SourceError, match=r"lets only its users read \(readapidenied\); give --option user="):
            source(wiki.url)
        with pytest.raises(SourceError, match=r"does not take this user and password \(Failed\)") as refused:
            source(wiki.url, user=USER, password="wrong-password")
        assert "wrong-password" not in str(refused.value)
        allowed = source(wiki.url, user=USER, password=PASSWORD)
        assert PASSWORD not in repr(allowed)
        *told, last = allowed.read()
        assert [item.key for item in told if isinstance(item, Page)] == ["Main Page"]
        assert isinstance(last, Checkpoint)
        assert len(list(allowed.changes(last.cursor) or ())) == 1


def test_a_wiki_that_goes_away_half_way() -> None:
    """Field issue 23: nothing is told as gone, and what came before is not lost."""
    service("MEDIAWIKI_URL")
    with own_wiki("dies") as wiki, closing(Editor(wiki.url)) as editor:
        editor.edit("Page", "word " * 4_500)
        copy(editor, "Page", [f"Page {number}" for number in range(60)])
        follower = MediaWikiApi(url=f"{wiki.url}/api.php", name="hollin", sleep=lambda _: None)
        items: list[FeedItem] = []
        with pytest.raises(SourceError, match="cannot be reached"):
            _read_until_it_breaks(follower.read(), items, wiki)
    assert 0 < len(items) < 61
    assert all(isinstance(item, Page) for item in items)


def _read_until_it_breaks(feed: Iterator[FeedItem], items: list[FeedItem], wiki: OwnWiki) -> None:
    for item in feed:
        if not items:
            wiki.stop()
        items.append(item)


def test_a_read_only_wiki_is_read(wiki: OwnWiki, follower: Follower, editor: Editor) -> None:
    editor.edit("Norvik", "Read me.")
    written = wiki.settings.read_text()
    wiki.settings.write_text(written + '\n$wgReadOnly = "maintenance";')
    try:
        assert follower.look() == ["Norvik = Read me."]
    finally:
        wiki.settings.write_text(written)
