"""A Discourse forum by its API: a page for each post, followed by the newest posts and by what topics say of change."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import httpx

from graph.errors import SourceError
from graph.feed import Checkpoint, FeedItem, GonePage, UnchangedPage
from graph.model import FailedPage, Page, SkippedPage
from graph.protocols import Source
from ingestion.sources.discourse_api import NOT_FOR_US, DiscourseApi, fingerprint
from ingestion.sources.discourse_export import exported, is_export
from ingestion.sources.discourse_posts import (
    Excerpts,
    Forum,
    Json,
    Topic,
    dict_of,
    dicts_of,
    number_of,
    refuse_strategy,
)
from ingestion.sources.kinds import Place, SourceOptions
from ingestion.sources.polite_http import PageFault, PoliteClient

POLITE_DELAY = 0.5
"""Seconds; by default a forum answers 200 requests of one address in a minute."""
RECHECKED = 50
"""Topics of which nothing new is heard that are read again in each look: edits of old posts are announced nowhere."""
MAX_CURSOR = 16 * 2**20
FORM = 2
TOPIC_PATH = re.compile(r"(.*)/t/(?:[^/]{1,300}/)?(\d{1,12})(?:/\d{1,9})?/?")
CATEGORY_PATH = re.compile(r"(.*)/c/((?:[^/]{1,200}/){0,3}\d{1,9})(?:/l/\w{1,20})?/?")
OTHER_PATH = re.compile(r"(.*?)(?:/(?:latest|top|new|hot|categories|posts)(?:\.json)?)?/?")


@dataclass(slots=True)
class Seen:
    """What was read of a topic: how a list of topics showed it, when it was read last, and a digest of each post."""

    fingerprint: str = ""
    look: int = 0
    posts: dict[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Discourse:
    """All of a forum, one category of it, or one topic."""

    base: str
    name: str
    topic: int = 0
    category: str = ""
    """As in its address: "slug/5"."""
    delay: float = 0.0
    headers: tuple[tuple[str, str], ...] = ()
    kind: str = "discourse"
    sleep: Callable[[float], None] = field(default=time.sleep, compare=False, repr=False)

    def read(self) -> Iterator[FeedItem]:
        with self._reading() as look:
            look.last = look.api.newest()
            yield from look.everything()
            yield self._checkpoint(look)
            if look.failed_topics:
                raise SourceError(
                    f"{look.failed_topics:,} topics of {self.base} could not be read, so what is gone from it is not "
                    "known; read it again later."
                )

    def changes(self, cursor: str) -> Iterator[FeedItem] | None:
        found = self._known(cursor)
        return None if found is None else self._changes(*found)

    def _changes(self, last: int, number: int, seen: dict[int, Seen]) -> Iterator[FeedItem]:
        with self._reading() as look:
            look.seen, look.number, look.last = seen, number + 1, last
            yield from look.changed(RECHECKED)
            yield self._checkpoint(look)

    def pages(self, keys: Sequence[str]) -> Iterator[FeedItem]:
        with self._reading() as look:
            yield from look.single(keys)

    @contextmanager
    def _reading(self) -> Iterator[ForumLook]:
        host = httpx.URL(self.base).host
        local = host == "localhost" or host == "::1" or host.startswith("127.")
        delay = self.delay or (0.0 if local else POLITE_DELAY)
        client = PoliteClient(delay=delay, headers=dict(self.headers), sleep=self.sleep)
        try:
            api = DiscourseApi(self.base, client, self.sleep)
            forum = Forum(self.name, self.base)
            forum.learn_categories(api.categories())
            yield ForumLook(api, forum, self.topic, self.category)
        finally:
            client.close()

    def _settings(self) -> list[str]:
        return [self.base, str(self.topic), self.category, str(FORM)]

    def _checkpoint(self, look: ForumLook) -> Checkpoint:
        topics = {number: [seen.fingerprint, seen.look, seen.posts] for number, seen in look.seen.items()}
        state = {"as": self._settings(), "last": look.last, "look": look.number, "topics": topics}
        cursor = json.dumps(state, separators=(",", ":"))
        return Checkpoint(cursor=cursor if len(cursor) <= MAX_CURSOR else "")  # without one, all is read each time

    def _known(self, cursor: str) -> tuple[int, int, dict[int, Seen]] | None:
        try:
            found = json.loads(cursor)
            if found["as"] != self._settings():
                return None
            seen = {
                int(number): Seen(str(mark), int(look), {int(post): str(digest) for post, digest in posts.items()})
                for number, (mark, look, posts) in found["topics"].items()
            }
            return int(found["last"]), int(found["look"]), seen
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return None


@dataclass(slots=True)
class ForumLook:
    """One look at a forum."""

    api: DiscourseApi
    forum: Forum
    only_topic: int = 0
    category: str = ""
    seen: dict[int, Seen] = field(default_factory=dict)
    last: int = 0
    number: int = 0
    failed_topics: int = 0
    _told: set[int] = field(default_factory=set)
    """Ids of the posts that this look found to be there."""
    _topics_read: set[int] = field(default_factory=set)
    _missing: dict[int, list[int]] = field(default_factory=dict)
    """Ids of posts that are not in their topic any more, by topic."""

    def everything(self) -> Iterator[FeedItem]:
        """All topics are listed before the first is read, so that links between them find their titles."""
        listed: dict[int, str] = {self.only_topic: ""} if self.only_topic else {}
        for topics in () if self.only_topic else self.api.topics(self.category, stable=True):
            listed |= self._noted(topics)
        for number, mark in listed.items():
            yield from self._topic(number, mark)

    def changed(self, rechecked: int) -> Iterator[FeedItem]:
        for number, mark in self._to_read_again(rechecked).items():
            yield from self._topic(number, mark)
        yield from self._gone()

    def single(self, keys: Iterable[str]) -> Iterator[FeedItem]:
        """`p/…` are posts; `t/…` are topics that could not be read at all."""
        topics: dict[int, tuple[Topic, Excerpts]] = {}
        for key in keys:
            kind, _, digits = key.partition("/")
            number = number_of(digits)
            if number is None:
                yield GonePage(key=key)
            elif kind == "t":
                yield GonePage(key=key)
                yield from self._topic(number, "")
            else:
                yield from self._single(key, number, topics)

    def _single(self, key: str, number: int, topics: dict[int, tuple[Topic, Excerpts]]) -> Iterator[FeedItem]:
        try:
            post = self.api.post(number)
            topic_number = number_of(post.get("topic_id")) or 0
            if topic_number not in topics:
                shown = self.api.topic(topic_number)
                topic, excerpts = topics[topic_number] = self._learned(shown), Excerpts()
                for other in dicts_of(dict_of(shown.get("post_stream")).get("posts")):
                    excerpts.note(self.forum.item(other, topic))
            (item,) = self._in_thread([post], *topics[topic_number])
        except PageFault as fault:
            yield GonePage(key=key) if fault.status in NOT_FOR_US else FailedPage(key=key, reason=fault.reason)
            return
        yield item
        if isinstance(item, SkippedPage):
            yield GonePage(key=key)

    def _noted(self, topics: Iterable[Json]) -> dict[int, str]:
        """Ids and fingerprints of topics in a list; their titles are remembered."""
        noted: dict[int, str] = {}
        for topic in topics:
            if (number := number_of(topic.get("id"))) is not None:
                self.forum.topic(topic)
                noted[number] = fingerprint(topic)
        return noted

    def _to_read_again(self, rechecked: int) -> dict[int, str]:
        """Topics with new posts, topics that look different in the list, and some that were not read for long."""
        if self.only_topic:
            return {self.only_topic: ""}
        posts, complete = self.api.new_posts(self.last)
        self.last = max([self.last, *(number_of(post.get("id")) or 0 for post in posts)])
        marks: dict[int, str] = {}
        changed: dict[int, str] = {}
        for topics in self.api.topics(self.category, stable=False):
            noted = self._noted(topics)
            marks |= noted
            different = {n: mark for n, mark in noted.items() if n not in self.seen or self.seen[n].fingerprint != mark}
            changed |= different
            pinned_only = all(topic.get("pinned") for topic in topics)
            if complete and not different and not pinned_only:
                break  # the list is ordered by what happened last: below is nothing new
        for post in posts:
            number = number_of(post.get("topic_id"))
            if number is not None and (not self.category or number in self.seen or number in marks):
                changed.setdefault(number, marks.get(number, ""))
        longest_ago = sorted((number for number in self.seen if number not in changed), key=lambda n: self.seen[n].look)
        return changed | {number: marks.get(number, "") for number in longest_ago[:rechecked]}

    def _topic(self, number: int, mark: str) -> Iterator[FeedItem]:
        before = self.seen.get(number, Seen())
        self._topics_read.add(number)
        try:
            shown = self.api.topic(number)
            topic = self._learned(shown)
        except PageFault as fault:
            yield from self._unread(number, before, fault)
            return
        now = Seen(mark or before.fingerprint, self.number)
        self.seen[number] = now
        for item in self._posts(shown, topic):
            yield from self._told_of(item, before, now)
        missing = [post for post in before.posts if post not in now.posts]
        if missing:
            self._missing[number] = missing

    def _unread(self, number: int, before: Seen, fault: PageFault) -> Iterator[FeedItem]:
        """A topic that is not there for us any more, or that cannot be had just now."""
        if fault.status in NOT_FOR_US:
            self.seen.pop(number, None)
            self._missing[number] = list(before.posts)
            yield SkippedPage(key=f"t/{number}", reason=f"a topic that may not be read (status {fault.status})")
            return
        self.failed_topics += 1
        before.fingerprint = ""  # so that it is read again in the next look
        yield FailedPage(key=f"t/{number}", reason=fault.reason)
        for post in before.posts:
            yield FailedPage(key=f"p/{post}", reason=fault.reason)

    def _learned(self, shown: Json) -> Topic:
        """The topic, once all is known of its category."""
        category = number_of(shown.get("category_id"))
        if category is not None and category not in self.forum.categories:
            self.forum.categories[category] = self.api.category(category)
        return self.forum.topic(shown)

    def _posts(self, shown: Json, topic: Topic) -> Iterator[Page | SkippedPage | FailedPage]:
        """All posts of a topic; its first answer holds twenty."""
        stream = dict_of(shown.get("post_stream"))
        posts = dicts_of(stream.get("posts"))
        here = {number_of(post.get("id")) for post in posts}
        ids = [number for value in stream.get("stream") or [] if (number := number_of(value)) is not None]
        excerpts = Excerpts()
        yield from self._in_thread(posts, topic, excerpts)
        for wanted, found in self.api.rest(topic.id, [number for number in ids if number not in here]):
            if isinstance(found, PageFault):
                yield from (FailedPage(key=f"p/{number}", reason=found.reason) for number in wanted)
            else:
                yield from self._in_thread(found, topic, excerpts)

    def _in_thread(self, posts: Sequence[Json], topic: Topic, excerpts: Excerpts) -> Iterator[Page | SkippedPage]:
        """Posts that came together; each may quote those and the ones before."""
        items = [self.forum.item(post, topic) for post in posts]
        for item in items:
            excerpts.note(item)
        for post, item in zip(posts, items, strict=True):
            yield excerpts.in_thread(item, post) if isinstance(item, Page) else item

    def _told_of(self, item: Page | SkippedPage | FailedPage, before: Seen, now: Seen) -> Iterator[FeedItem]:
        number = int(item.key.partition("/")[2])
        if isinstance(item, FailedPage):
            if number in before.posts:
                now.posts[number] = ""
            now.fingerprint = ""
            yield item
        elif isinstance(item, SkippedPage):
            yield item
        elif number not in self._told:
            self._told.add(number)
            digest = hashlib.sha1(repr(item).encode("utf-8", "replace"), usedforsecurity=False).hexdigest()[:10]
            now.posts[number] = digest
            yield UnchangedPage(key=item.key) if before.posts.get(number) == digest else item

    def _gone(self) -> Iterator[FeedItem]:
        """Of the posts that are missing, those that were not only moved to another topic."""
        for missing in list(self._missing.values()):
            left = [number for number in missing if number not in self._told]
            asked = left if len(left) <= 20 else [left[0], left[-1]]
            states = {number: self._where(number) for number in asked}
            for where in dict.fromkeys(where for where in states.values() if where > 0):
                if where not in self._topics_read:
                    yield from self._topic(where, "")
            for number in left:
                where = states.get(number, states[asked[-1]])
                if where == 0:
                    yield FailedPage(key=f"p/{number}", reason="whether it was deleted cannot be known just now")
                elif number not in self._told:
                    yield GonePage(key=f"p/{number}")

    def _where(self, number: int) -> int:
        """The topic that a post is in now; -1 if it is in none that everybody may read, 0 if that cannot be known."""
        try:
            post = self.api.post(number)
        except PageFault as fault:
            return -1 if fault.status in NOT_FOR_US else 0
        hidden = isinstance(self.forum.item(post, Topic(id=0)), SkippedPage)
        return -1 if hidden else number_of(post.get("topic_id")) or -1


@dataclass(frozen=True, slots=True)
class DiscourseKind:
    """Options: `api_key` with `api_user` for a forum that is not public."""

    name: str = "discourse"
    about: str = "a Discourse forum, a category or topic of it, or its API's answers in files"

    def fits(self, place: Place) -> int:
        if place.path is not None:
            return 85 if is_export(place) else 0
        parts = _parts(place.url)
        if parts is None:
            return 0
        client = PoliteClient(seconds=10.0, tries=1, max_bytes=2_000_000)
        try:
            listed = DiscourseApi(parts[0], client).get("/latest.json")
        except (PageFault, SourceError):
            return 0
        finally:
            client.close()
        return 90 if "topic_list" in listed else 0

    def open(self, place: Place, options: SourceOptions) -> Source:
        refuse_strategy(options.extra)
        if place.path is not None:
            return exported(place, options)
        if (parts := _parts(place.url)) is None:
            raise SourceError(f"{place.shown} is no web address; a forum's begins with http:// or https://.")
        base, topic, category = parts
        key, user = options.extra.get("api_key", ""), options.extra.get("api_user", "")
        if not (key + user).isprintable() or not (key + user).isascii():
            raise SourceError("The forum's key or user holds characters that no header may; check --option api_key.")
        headers = (("Api-Key", key), ("Api-Username", user or "system")) if key else ()
        return Discourse(base, options.name, topic, category, options.delay, headers)


def _parts(url: str) -> tuple[str, int, str] | None:
    """A forum's own address, and the topic and category that a URL names; None for what is no web address."""
    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, UnicodeError, ValueError):
        return None
    if parsed.scheme not in {"http", "https"} or not parsed.host:
        return None
    path = parsed.path
    root = str(parsed.copy_with(raw_path=b"/", fragment=None)).rstrip("/")
    if match := TOPIC_PATH.fullmatch(path):
        return f"{root}{match[1]}", int(match[2]), ""
    if match := CATEGORY_PATH.fullmatch(path):
        return f"{root}{match[1]}", 0, match[2]
    match = OTHER_PATH.fullmatch(path)
    return f"{root}{match[1] if match else ''}", 0, ""


KIND = DiscourseKind()
