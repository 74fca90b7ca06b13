"""A forum by its API and from files: every post that anybody may read, no other, and what changes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest

from graph.errors import SourceError
from graph.feed import Checkpoint, FeedItem, GonePage, UnchangedPage
from graph.model import FailedPage, Link, Page, PageType, Post, SkippedPage
from ingestion.sources.discourse import KIND, Discourse
from ingestion.sources.discourse_export import DiscourseExport
from ingestion.sources.kinds import Place, SourceOptions
from tests.ingestion.sources.forum import FakeForum, Json, long
from tests.server.web.site import HTML, JSON, Reply, Request, Site, serving

Item = TypeVar("Item")


def forum_of(posts: int = 45) -> FakeForum:
    """One topic of that many posts, and one of two."""
    forum = FakeForum()
    topic = forum.add_topic("Eels of the fen")
    for number in range(1, posts + 1):
        forum.add_post(topic, long(f"Remark {number} on eels."), reply_to_post_number=number // 2 or None)
    other = forum.add_topic("Nets")
    forum.add_post(other, long('Knots, as <a href="/t/eels-of-the-fen/1/3">told here</a>.'))
    forum.add_post(other, long("Mesh."))
    return forum


def source(site: Site, **more: Any) -> Discourse:
    return Discourse(site.url, "isle", sleep=lambda _: None, **more)


async def read(found: Discourse | DiscourseExport) -> list[FeedItem]:
    return await asyncio.to_thread(lambda: list(found.read()))


async def look_again(found: Discourse, items: Sequence[FeedItem]) -> list[FeedItem]:
    cursor = only(items, Checkpoint)[-1].cursor

    def changes() -> list[FeedItem]:
        told = found.changes(cursor)
        assert told is not None
        return list(told)

    return await asyncio.to_thread(changes)


def only(items: Iterable[FeedItem], kind: type[Item]) -> list[Item]:
    return [item for item in items if isinstance(item, kind)]


def keys(items: Iterable[FeedItem], kind: type[Page | FailedPage | SkippedPage | GonePage | UnchangedPage]) -> set[str]:
    return {item.key for item in items if isinstance(item, kind)}


def ids(*numbers: int) -> set[str]:
    return {f"p/{number}" for number in numbers}


async def test_all_posts_of_a_long_topic() -> None:
    async with serving(forum_of(45)) as site:
        items = await read(source(site))
    pages = {page.key: page for page in only(items, Page)}
    assert set(pages) == ids(*range(1, 48))
    post = pages["p/31"]
    assert (post.title, post.url) == ("Eels of the fen", f"{site.url}/t/eels-of-the-fen/1/31")
    assert post.text == "Remark 31 on eels. It is said at some length, so that it counts as a post."
    assert (post.categories, post.modified, post.revision) == (("Fishing", "eels"), "2024-05-01T00:00:32Z", "1")
    assert post.page_type is PageType.STUB
    assert pages["p/46"].links == (Link(target="Eels of the fen", shown="told here"),)
    assert not only(items, FailedPage)
    assert isinstance(items[-1], Checkpoint)
    assert sum("/posts.json?post_ids" in request.target for request in site.requests) == 2


async def test_many_topics_are_all_listed() -> None:
    forum = FakeForum()
    for number in range(70):
        forum.add_post(forum.add_topic(f"Topic {number}"), long("A remark."))
    async with serving(forum) as site:
        assert len(only(await read(source(site)), Page)) == 70


async def test_what_not_everybody_may_read_is_never_a_page() -> None:
    forum = forum_of(1)
    forum.categories += [
        {"id": 2, "name": "Staff", "read_restricted": True, "subcategory_list": [{"id": 3, "parent_category_id": 2}]}
    ]
    hidden: dict[str, Json] = {
        "Letter": {"archetype": "private_message"},
        "Staff": {"category_id": 2},
        "Below staff": {"category_id": 3},
        "Unknown category": {"category_id": 99},
        "Unlisted": {"visible": False},
    }
    for title, more in hidden.items():
        forum.add_post(forum.add_topic(title, **more), long(title))
    for marks in ({"hidden": True}, {"user_deleted": True}, {"post_type": 2}, {"post_type": 3}, {"post_type": 4}):
        forum.add_post(2, long(f"Not for all: {marks}"), **marks)
    forum.add_post(2, long("Deleted"), deleted_at="2024-05-01T00:00:00Z")
    forum.add_post(2, "<p>Too short to help anybody.</p>")
    forum.add_post(2, '<div class="poll"><ul><li>This way or that way, or any other way at all</li></ul></div>')
    async with serving(forum) as site:
        items = await read(source(site))
    assert keys(items, Page) == ids(1, 2, 3)
    assert {item.reason for item in only(items, SkippedPage)} >= {
        "in a category that not everybody may read",
        "a topic that is not listed",
        "a hidden post",
        "a deleted post",
        "shorter than 35 characters",
    }


TAIL = "It is said at some length, so that it counts as a post."


async def test_what_a_post_says_of_its_topic() -> None:
    forum = forum_of(0)
    topic = forum.add_topic("Boats")
    first = forum.add_post(topic, long("First."), username="eve", admin=True, moderator=True)
    second = forum.add_post(topic, long("Second."), reply_to_post_number=1, moderator=True, staff=True)
    third = forum.add_post(topic, long("Third."), reply_to_post_number=2)
    fourth = forum.add_post(topic, f"<p>{'Fourth word. ' * 40}</p>")
    fifth = forum.add_post(topic, long("Fifth."), reply_to_post_number=4)
    async with serving(forum) as site:
        pages = {page.key: page for page in only(await read(source(site)), Page)}
    posts = {number: pages[f"p/{number}"].post for number in (first, second, third, fifth)}
    place = f"{site.url}/t/boats/{topic}"
    opening = f"First. {TAIL}"
    assert posts == {
        first: Post(number=1, author="eve", author_role="admin"),
        second: Post(number=2, author="ann", author_role="moderator", reply_to=f"{place}/1", opening=opening),
        third: Post(number=3, author="ann", reply_to=f"{place}/2", opening=opening, parent=f"Second. {TAIL}"),
        fifth: Post(number=5, author="ann", reply_to=f"{place}/4", opening=opening, parent=posts[fifth].parent),
    }
    parent = posts[fifth].parent
    assert parent.endswith("…")
    assert len(parent) <= 301
    assert pages[f"p/{fourth}"].text.startswith(parent[:-1])
    assert pages[f"p/{third}"].text == f"Third. {TAIL}"


SECRETS: dict[str, Json] = {
    "hidden": {"hidden": True},
    "hidden text": {"cooked_hidden": True},
    "deleted": {"deleted_at": "2024-05-01T00:00:00Z"},
    "deleted by its author": {"user_deleted": True},
    "a whisper among staff": {"post_type": 4},
    "a moderator's action": {"post_type": 2},
    "short": {"cooked": "<p>Secret.</p>"},
}


def quoting_forum(marks: Json, *, hide: int) -> FakeForum:
    """A topic of thirty posts, of which one must not be quoted by the post that answers it, nor by those after it."""
    forum = FakeForum()
    topic = forum.add_topic("Boats")
    for number in range(1, 31):
        post = {"cooked": long(f"Remark {number}."), "reply_to_post_number": number - 1 or None}
        forum.add_post(topic, **(post | {"cooked": long("Secret.")} | marks if number == hide else post))
    return forum


@pytest.mark.parametrize("hide", [1, 2, 25])
@pytest.mark.parametrize("why", list(SECRETS))
async def test_what_not_everybody_may_read_is_never_quoted(why: str, hide: int, tmp_path: Path) -> None:
    forum = quoting_forum(SECRETS[why], hide=hide)
    async with serving(forum) as site:
        found = [
            *await read(source(site)),
            *await asyncio.to_thread(lambda: list(source(site).pages([f"p/{hide + 1}"]))),
        ]
    recorded = {**forum.topics[1], "post_stream": {"posts": list(forum.posts.values())}}
    (tmp_path / "topic.json").write_text(json.dumps(recorded))
    for items in (found, await read(DiscourseExport(tmp_path, "x"))):
        pages = only(items, Page)
        assert len({page.key for page in pages}) == 29
        assert not any("Secret" in repr(page) for page in pages)
        assert all(page.post.parent for page in pages if page.post and page.post.number > max(hide + 1, 2))


async def test_a_post_that_was_hidden_since_is_not_quoted_any_more() -> None:
    forum = quoting_forum({}, hide=1)
    async with serving(forum) as site:
        items = await read(source(site))
        assert sum("Secret" in repr(page) for page in only(items, Page)) == 30
        forum.posts[1]["hidden"] = True
        found = await look_again(source(site), items)
    assert keys(found, Page) == ids(*range(2, 31))
    assert keys(found, GonePage) == ids(1)
    assert not any("Secret" in repr(page) for page in only(found, Page))


@pytest.mark.parametrize("names", [("a.json", "b.json"), ("b.json", "a.json")])
@pytest.mark.parametrize("later", [False, True])
async def test_a_post_that_another_file_says_is_hidden_is_not_quoted(
    tmp_path: Path, names: tuple[str, str], later: bool
) -> None:
    forum = quoting_forum({}, hide=1)
    recorded = {**forum.topics[1], "post_stream": {"posts": list(forum.posts.values())}}
    (tmp_path / names[0]).write_text(json.dumps(recorded))
    hidden = {**forum.posts[1], "hidden": True} | ({"updated_at": forum.now()} if later else {})
    (tmp_path / names[1]).write_text(json.dumps({"latest_posts": [hidden]}))
    pages = only(await read(DiscourseExport(tmp_path, "x")), Page)
    assert len(pages) == 29
    assert not any("Secret" in repr(page) for page in pages)


async def test_one_topic_or_one_category() -> None:
    forum = forum_of(25)
    forum.categories.append({"id": 2, "name": "Ships", "read_restricted": False})
    ship = forum.add_post(forum.add_topic("Ships", category_id=2), long("A ship."))
    async with serving(forum) as site:
        assert keys(await read(source(site, topic=2)), Page) == ids(26, 27)
        assert keys(await read(source(site, category="ships/2")), Page) == ids(ship)
        items = await read(source(site, topic=2))
        new = forum.add_post(2, long("New here."))
        assert keys(await look_again(source(site, topic=2), items), Page) == ids(new)


async def test_new_posts_edits_and_deletions() -> None:
    forum = forum_of(45)
    async with serving(forum) as site:
        items = await read(source(site))
        assert not only(await look_again(source(site), items), Page)
        new = forum.add_post(1, long("A new remark."))
        topic = forum.add_topic("Boats")
        started = forum.add_post(topic, long("On boats."))
        forum.edit(3, long("Edited long after."))
        forum.posts[30]["deleted_at"] = "2024-06-01T00:00:00Z"
        forum.posts[31]["hidden"] = True
        forum.edit(32, "<p>Withdrawn.</p>")
        found = await look_again(source(site), items)
        assert keys(found, Page) == ids(new, started, 3, 6, 7)  # the last two answer the third
        assert keys(found, GonePage) == ids(30, 31, 32)
        assert not only(found, FailedPage)
        again = await look_again(source(site), found)
        assert not keys(again, Page) | keys(again, GonePage)


async def test_a_quiet_edit_is_found_when_its_topic_has_its_turn() -> None:
    forum = forum_of(2)
    async with serving(forum) as site:
        items = await read(source(site))
        forum.edit(4, long("Edited, and nobody was told."))
        assert keys(await look_again(source(site), items), Page) == ids(4)


async def test_topics_that_are_merged_move_their_posts() -> None:
    forum = forum_of(3)
    async with serving(forum) as site:
        items = await read(source(site))
        for number, post in ((4, 4), (5, 5)):
            forum.posts[number] |= {"topic_id": 1, "post_number": post}
        forum.topics[1]["bumped_at"] = forum.now()
        found = await look_again(source(site), items)
        moved = {page.key: page for page in only(found, Page)}
        assert set(moved) == ids(4, 5)
        assert moved["p/5"].url.endswith("/t/eels-of-the-fen/1/5")
        assert not only(found, GonePage)


@pytest.mark.parametrize("status", [403, 404, 410])
async def test_a_topic_that_is_gone_or_locked_away(status: int) -> None:
    forum = forum_of(30)
    async with serving(forum) as site:
        items = await read(source(site))
        forum.faults["/t/1.json"] = Reply(status=status, headers=JSON)
        for number in range(1, 31):
            forum.posts[number]["deleted_at"] = "2024-06-01T00:00:00Z"
        found = await look_again(source(site), items)
        assert keys(found, GonePage) == ids(*range(1, 31))


async def test_what_cannot_be_fetched_is_not_gone() -> None:
    forum = forum_of(45)
    async with serving(forum) as site:
        items = await read(source(site))
        forum.faults["/t/1.json"] = Reply(status=500)
        found = await look_again(source(site), items)
        assert keys(found, FailedPage) == {"t/1", *ids(*range(1, 46))}
        assert not only(found, GonePage)
        del forum.faults["/t/1.json"]
        forum.faults["/t/1/posts.json"] = Reply(status=502)
        found = await look_again(source(site), found)
        assert keys(found, FailedPage) == ids(*range(21, 46))
        assert not only(found, GonePage)
        forum.faults.clear()
        found = await look_again(source(site), found)
        assert keys(found, Page) | keys(found, UnchangedPage) >= ids(*range(1, 46))


async def test_a_topic_that_fails_in_the_first_reading_ends_it_with_an_error() -> None:
    forum = forum_of(3)
    forum.faults["/t/1.json"] = Reply(status=500)
    items: list[FeedItem] = []
    async with serving(forum) as site:
        with pytest.raises(SourceError, match="1 topics"):
            await asyncio.to_thread(lambda: items.extend(source(site).read()))


async def test_rate_limits() -> None:
    forum = forum_of(3)
    refused = Reply(status=429, headers=JSON, body=b'{"extras":{"wait_seconds":1},"error_type":"rate_limit"}')
    left = [refused] * 5
    naps: list[float] = []

    def limited(request: Request) -> Reply:
        return left.pop() if left and request.target.startswith("/t/") else forum(request)

    async with serving(limited) as site:
        found = Discourse(site.url, "isle", sleep=naps.append)
        assert len(only(await read(found), Page)) == 5
        forum.faults["/t/1.json"] = Reply(status=429, headers={**JSON, "Retry-After": "9999"})
        with pytest.raises(SourceError, match="busy"):
            await read(found)
    assert naps


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (Reply(status=403, headers=JSON, body=b'{"errors":["not logged in"]}'), "api_key"),
        (Reply(headers=HTML, body=b"<html>login</html>"), "text/html"),
        (Reply(headers=JSON, body=b"{"), "no JSON"),
        (Reply(status=404, headers=JSON), "404"),
    ],
)
async def test_what_is_no_open_forum(fault: Reply, words: str) -> None:
    forum = forum_of(1)
    forum.faults["/categories.json"] = fault
    async with serving(forum) as site:
        with pytest.raises(SourceError, match=words):
            await read(source(site))


async def test_keys_are_sent() -> None:
    async with serving(forum_of(1)) as site:
        opened = KIND.open(
            Place(shown="x", url=f"{site.url}/latest"),
            SourceOptions(name="x", extra={"api_key": "k", "api_user": "ann"}),
        )
        assert isinstance(opened, Discourse)
        await read(opened)
        assert {request.headers["api-key"] for request in site.requests} == {"k"}
        assert {request.headers["api-username"] for request in site.requests} == {"ann"}


async def test_single_posts_again() -> None:
    forum = forum_of(3)
    forum.posts[2]["deleted_at"] = "2024-06-01T00:00:00Z"
    async with serving(forum) as site:
        items = await asyncio.to_thread(lambda: list(source(site).pages(["p/1", "p/2", "p/99", "t/2"])))
    assert keys(items, Page) == ids(1, 4, 5)
    assert keys(items, GonePage) == {"p/2", "p/99", "t/2"}


async def test_garbage_in_json_costs_posts_not_the_run() -> None:
    forum = forum_of(3)
    forum.posts[1]["cooked"] = "<div>" * 5_000 + "words " * 20
    forum.posts[2] |= {"updated_at": "yesterday", "version": "x", "reply_to_post_number": "?", "cooked": None}
    forum.posts[3]["cooked"] = "caf\udc9a\x00 " + "words " * 20
    forum.topics[1] |= {"tags": [{"name": "x"}, 7, None], "category_id": "one", "slug": None}
    async with serving(forum) as site:
        items = await read(source(site))
    assert keys(items, Page) >= ids(1, 3, 4, 5)


def test_cursors_of_others_are_refused() -> None:
    for cursor in ("", "{}", "[]", '{"as":["x"]}', "\x00"):
        assert Discourse("http://127.0.0.1:1", "isle").changes(cursor) is None


@pytest.mark.parametrize(
    ("url", "base", "topic", "category"),
    [
        ("https://f.org", "https://f.org", 0, ""),
        ("https://f.org/forum/latest", "https://f.org/forum", 0, ""),
        ("https://f.org/t/some-words/57/3", "https://f.org", 57, ""),
        ("https://f.org/t/57", "https://f.org", 57, ""),
        ("https://f.org/forum/c/a/b/12/l/latest?x=1", "https://f.org/forum", 0, "a/b/12"),
    ],
)
def test_addresses(url: str, base: str, topic: int, category: str) -> None:
    opened = KIND.open(Place(shown=url, url=url), SourceOptions(name="x"))
    assert isinstance(opened, Discourse)
    assert (opened.base, opened.topic, opened.category) == (base, topic, category)


async def test_how_sure_it_is() -> None:
    async with serving(forum_of(1)) as site:
        assert await asyncio.to_thread(KIND.fits, Place(shown="x", url=site.url)) == 90
    async with serving(lambda _: Reply(body=b"<html>")) as site:
        assert await asyncio.to_thread(KIND.fits, Place(shown="x", url=site.url)) == 0
    assert await asyncio.to_thread(KIND.fits, Place(shown="x", url="http://127.0.0.1:1/")) == 0
    KIND.open(Place(shown="x", url=site.url), SourceOptions(name="x", extra={"strategy": "title"}))
    with pytest.raises(SourceError, match=r"setting ingestion\.embedding_strategy"):
        KIND.open(Place(shown="x", url=site.url), SourceOptions(name="x", extra={"strategy": "title+op"}))


def place_of(root: Path) -> Place:
    return Place(shown=str(root), path=root, names=frozenset(path.name for path in root.iterdir()))


async def test_files(tmp_path: Path) -> None:
    forum = forum_of(5)
    old = {**forum.posts[1], "cooked": long("An older text."), "updated_at": "2020-01-01T00:00:00Z"}
    topic: Json | None = forum._topic(1)
    (tmp_path / "topic.json").write_text(json.dumps(topic))
    (tmp_path / "posts_latest.json").write_text(json.dumps({"latest_posts": [old, forum.posts[6]]}))
    (tmp_path / "categories.json").write_text(json.dumps({"category_list": {"categories": forum.categories}}))
    (tmp_path / "lines.jsonl").write_text(json.dumps(forum.posts[7]) + "\n\n")
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "other.json").write_text("[1, 2]")
    assert KIND.fits(place_of(tmp_path)) > 80
    opened = KIND.open(place_of(tmp_path), SourceOptions(name="x", base_url="https://f.org/"))
    assert isinstance(opened, DiscourseExport)
    items = await read(opened)
    pages = {page.key: page for page in only(items, Page)}
    assert set(pages) == ids(*range(1, 8))
    assert pages["p/1"].text.startswith("Remark 1")
    assert pages["p/1"].url == "https://f.org/t/eels-of-the-fen/1/1"
    assert keys(items, FailedPage) == {"broken.json"}
    assert keys(items, SkippedPage) == {"other.json"}


def test_files_of_others(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text('{"name": "x"}')
    assert KIND.fits(place_of(tmp_path)) == 0
    with pytest.raises(SourceError, match="no answer"):
        KIND.open(place_of(tmp_path), SourceOptions(name="x"))


@pytest.mark.data
async def test_recorded_answers(data_dir: Path, tmp_path: Path) -> None:
    folder = data_dir / "wikis/discourse_json"
    items = await read(DiscourseExport(folder, "x", "https://f.org"))
    pages = only(items, Page)
    assert len(pages) >= 5
    assert all(len(page.text) >= 35 and page.title and page.url.startswith("https://f.org/t/") for page in pages)
    recorded = json.loads((folder / "topic.json").read_text())
    posts = recorded["post_stream"]["posts"]
    model = next(post for post in posts if post["post_type"] == 1)
    longer = [{**model, "id": 1000 + n, "post_number": n, "cooked": long(f"Remark {n}.")} for n in range(1, 46)]
    recorded["post_stream"]["posts"] = longer
    (tmp_path / "topic.json").write_text(json.dumps(recorded))
    assert len(only(await read(DiscourseExport(tmp_path, "x")), Page)) == 45
