"""Following a source: what its feed says, what is kept between runs, and what a failure leaves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from graph.errors import NotFoundError, SourceError
from graph.feed import Checkpoint, FeedItem, GonePage, UnchangedPage
from graph.knowledge import WIKI, Knowledge
from graph.model import FailedPage, Page, PageType, SkippedPage
from graph.registry import RegisteredSource
from graph.sqlite_registry import SqliteRegistry
from ingestion.ingest import ingest
from ingestion.report import IngestReport
from ingestion.sync import follow, forget, register, retry
from ingestion.verify import verify
from tests.ingestion.small_wiki import SETTINGS, ListSource, fake_knowledge, page


@dataclass
class Feed:
    """A wiki in memory with a change feed: `log` holds, for each change, the page's key."""

    pages: dict[str, Page] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    broken: set[str] = field(default_factory=set)
    expired: bool = False
    fails_after: int = 10**9
    name: str = "w"
    kind: str = "feed"
    reads: list[str] = field(default_factory=list)

    def edit(self, title: str, text: str) -> None:
        self.pages[title] = page(title, text)
        self.log.append(title)

    def delete(self, title: str) -> None:
        del self.pages[title]
        self.log.append(title)

    def _item(self, key: str) -> FeedItem:
        if key in self.broken:
            return FailedPage(key=key, reason="HTTP 500")
        return self.pages[key] if key in self.pages else GonePage(key=key)

    def read(self) -> Iterator[FeedItem]:
        self.reads.append("all")
        end = len(self.log)
        for n, key in enumerate(list(self.pages)):
            if n >= self.fails_after:
                raise SourceError("the wiki went away")
            yield self._item(key)
        yield Checkpoint(cursor=str(end))

    def changes(self, cursor: str) -> Iterator[FeedItem] | None:
        return None if self.expired else self._changes(int(cursor))

    def _changes(self, at: int) -> Iterator[FeedItem]:
        self.reads.append("changes")
        for n, key in enumerate(self.log[at:]):
            if n >= self.fails_after:
                raise SourceError("the wiki went away")
            yield self._item(key)
            yield Checkpoint(cursor=str(at + n + 1))
        yield Checkpoint(cursor=str(len(self.log)))

    def pages_again(self, keys: Sequence[str]) -> Iterator[FeedItem]:
        self.reads.append("pages")
        yield from map(self._item, keys)


class FeedSource:
    """The feed as a `ChangingSource`: `pages` is a method there."""

    def __init__(self, feed: Feed) -> None:
        self.feed, self.name, self.kind = feed, feed.name, feed.kind
        self.read, self.changes, self.pages = feed.read, feed.changes, feed.pages_again


@dataclass
class Followed:
    """A feed, the stores it fills, and the registry that follows it."""

    feed: Feed
    knowledge: Knowledge
    registry: SqliteRegistry

    async def run(self, *, whole: bool = False) -> IngestReport:
        registered = self.registry.source("w")
        assert registered is not None
        return await follow(
            registered, lambda _: FeedSource(self.feed), self.knowledge, self.registry, SETTINGS, whole=whole
        )

    def titles(self) -> set[str]:
        return {m.title for m in self.knowledge.state.all_manifests("w")}

    def cursor(self) -> str:
        registered = self.registry.source("w")
        assert registered is not None
        return registered.cursor


@pytest.fixture
def followed(tmp_path: Path) -> Iterator[Followed]:
    registry = SqliteRegistry(tmp_path / "sources.db")
    register(registry, RegisteredSource(name="w", kind="feed", location="memory"))
    feed = Feed()
    for n in range(10):
        feed.edit(f"Page {n}", f"Text of page {n}, which names Page {(n + 1) % 10}.")
    yield Followed(feed, fake_knowledge(), registry)
    registry.close()


async def test_the_first_run_reads_all_and_the_next_only_what_has_changed(followed: Followed) -> None:
    first = await followed.run()
    assert (first.added, first.whole, followed.cursor()) == (10, True, "10")
    nothing = await followed.run()
    assert (nothing.whole, nothing.added, nothing.changed, nothing.unchanged) == (False, 0, 0, 0)
    followed.feed.edit("Page 3", "Text of page 3 is another one now.")
    followed.feed.edit("Page 10", "A new page.")
    followed.feed.delete("Page 5")
    then = await followed.run()
    assert (then.added, then.changed, then.deleted, then.whole) == (1, 1, 1, False)
    assert followed.titles() == {f"Page {n}" for n in range(11)} - {"Page 5"}
    assert followed.feed.reads == ["all", "changes", "changes"]
    assert (await verify(followed.knowledge)).clean
    assert "Page 5" not in str(await followed.knowledge.vectors.ids(WIKI))


async def test_the_same_page_many_times_in_one_feed_ends_as_it_is_now(followed: Followed) -> None:
    await followed.run()
    for n in range(40):
        followed.feed.edit("Page 1", f"Version {n} of page 1. " * (n % 7 + 1))
        followed.feed.edit(f"Other {n}", f"Another page, number {n}.")
    followed.feed.delete("Page 1")
    followed.feed.edit("Page 1", "The last version.")
    await followed.run()
    assert (await verify(followed.knowledge)).clean
    (manifest,) = followed.knowledge.state.manifests(["w:Page 1"]).values()
    (chunk,) = followed.knowledge.state.chunks(manifest.chunk_ids).values()
    assert chunk.chunk.text == "The last version."


async def test_a_feed_that_has_expired_is_replaced_by_reading_all(followed: Followed) -> None:
    await followed.run()
    followed.feed.delete("Page 2")
    followed.feed.expired = True
    report = await followed.run()
    assert (report.whole, report.deleted, report.unchanged) == (True, 1, 9)
    assert followed.cursor() == "11"


async def test_a_failure_half_way_keeps_what_came_before_and_deletes_nothing(followed: Followed) -> None:
    await followed.run()
    followed.feed.expired, followed.feed.fails_after = True, 4
    broken = await followed.run()
    assert broken.deleted == 0
    assert broken.partial
    assert len(followed.titles()) == 10
    followed.feed.expired = False
    for n in range(6):
        followed.feed.edit(f"New {n}", f"New page {n}.")
    half = await followed.run()
    assert half.added == 4
    assert followed.cursor() == "14"
    followed.feed.fails_after = 10**9
    rest = await followed.run()
    assert rest.added == 2
    assert followed.cursor() == "16"


async def test_a_source_that_cannot_be_read_is_noted_and_said(followed: Followed) -> None:
    await followed.run()
    followed.feed.edit("Page 11", "New.")
    followed.feed.fails_after = 0
    with pytest.raises(SourceError, match="the wiki went away"):
        await followed.run()
    registered = followed.registry.source("w")
    assert registered is not None
    assert (registered.last_error, registered.cursor) == ("the wiki went away", "10")


async def test_a_page_that_failed_is_a_dead_letter_until_it_is_read(followed: Followed) -> None:
    await followed.run()
    followed.feed.edit("Page 4", "Text of page 4 as it should be.")
    followed.feed.broken = {"Page 4"}
    report = await followed.run()
    assert [failed.key for failed in report.failed] == ["Page 4"]
    assert "Page 4" in followed.titles()
    (letter,) = followed.registry.dead_letters("w")
    assert (letter.key, letter.reason, letter.tries) == ("Page 4", "HTTP 500", 1)
    assert followed.cursor() == "11"
    registered = followed.registry.source("w")
    assert registered is not None
    again = (registered, lambda _: FeedSource(followed.feed), followed.knowledge, followed.registry, SETTINGS)
    await retry(*again)
    assert followed.registry.dead_letters("w")[0].tries == 2
    followed.feed.broken = set()
    done = await retry(*again)
    assert done is not None
    assert (done.changed, done.whole) == (1, False)
    assert followed.registry.dead_letters() == []
    assert await retry(*again) is None


@pytest.mark.parametrize("whole", [True, False])
async def test_a_page_that_is_left_out_from_now_on_is_not_answered_from(followed: Followed, whole: bool) -> None:
    class Withdrawn(FeedSource):
        def __init__(self, feed: Feed) -> None:
            super().__init__(feed)
            self.read = self.told
            self.changes = lambda cursor: self.told()

        def told(self) -> Iterator[FeedItem]:
            yield SkippedPage(key="Page 3", reason="it is not published")
            yield Checkpoint(cursor="11")

    await followed.run()
    await ingest(Withdrawn(followed.feed), followed.knowledge, SETTINGS, since=None if whole else "10")
    assert followed.titles() == {f"Page {n}" for n in range(10)} - {"Page 3"}
    assert (await verify(followed.knowledge)).clean


async def test_pages_below_a_folder_that_cannot_be_listed_are_kept(tmp_path: Path) -> None:
    knowledge = fake_knowledge()
    named = [page(f"{folder}/{n}.md", f"Text {n}.") for folder in ("open", "locked") for n in range(3)]
    await ingest(ListSource(named), knowledge, SETTINGS)
    half = ListSource([named[0], FailedPage(key="locked/", reason="permission denied")])
    report = await ingest(half, knowledge, SETTINGS, prune=True)
    assert report.deleted == 2
    kept = {manifest.key for manifest in knowledge.state.all_manifests("w")}
    assert kept == {"open/0.md", "locked/0.md", "locked/1.md", "locked/2.md"}


async def test_unchanged_pages_are_not_pruned(followed: Followed) -> None:
    class Validated(FeedSource):
        def __init__(self, feed: Feed) -> None:
            super().__init__(feed)
            self.read = lambda: iter(
                [UnchangedPage(key="Page 0"), page("Page 1", "New text."), Checkpoint(cursor="99")]
            )

    await followed.run()
    report = await ingest(Validated(followed.feed), followed.knowledge, SETTINGS, prune=True)
    assert (report.unchanged, report.changed, report.deleted) == (1, 1, 8)


async def test_a_page_that_becomes_a_redirect_and_back(followed: Followed) -> None:
    await followed.run()
    followed.feed.pages["Page 6"] = page("Page 6", page_type=PageType.REDIRECT, redirect_to="Page 7")
    followed.feed.log.append("Page 6")
    report = await followed.run()
    assert report.redirects == 1
    assert (await verify(followed.knowledge)).clean
    followed.feed.edit("Page 6", "An article again.")
    assert (await followed.run()).changed == 1
    assert (await verify(followed.knowledge)).clean


async def test_a_source_is_forgotten_with_its_pages(followed: Followed) -> None:
    await followed.run()
    assert await forget("w", followed.knowledge, followed.registry) == 10
    assert followed.titles() == set()
    assert await followed.knowledge.vectors.ids(WIKI) == set()
    with pytest.raises(NotFoundError, match="There is no source 'w'; there are: none"):
        await forget("w", followed.knowledge, followed.registry)


def test_names_and_places_stay_apart(followed: Followed) -> None:
    registry = followed.registry
    with pytest.raises(SourceError, match="memory is registered already as 'w'"):
        register(registry, RegisteredSource(name="other", kind="feed", location="memory"))
    with pytest.raises(SourceError, match=r"There is a source named 'w' already, at memory; .*--name.*--moved"):
        register(registry, RegisteredSource(name="w", kind="feed", location="elsewhere"))
    registry.set_cursor("w", "7")
    assert register(registry, RegisteredSource(name="w", kind="feed", location="memory")).cursor == "7"
    moved = register(registry, RegisteredSource(name="w", kind="feed", location="elsewhere"), moved=True)
    assert (moved.cursor, moved.location) == ("", "elsewhere")
    register(registry, RegisteredSource(name="en", kind="mediawiki-xml", location="/dumps/january.xml"))
    register(registry, RegisteredSource(name="en", kind="mediawiki-xml", location="/dumps/february.xml"))
    assert register(registry, RegisteredSource(name="en", kind="mediawiki-api", location="https://w/")).cursor == ""
