"""Discourse's API as far as a reader needs it: lists of topics, topics with all their posts, and the newest posts."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from graph.errors import SourceError
from ingestion.sources.discourse_posts import Json, dict_of, dicts_of, number_of
from ingestion.sources.polite_http import BusyFault, PageFault, PoliteClient

POSTS_AT_ONCE = 20
MAX_LIST_PAGES = 20_000
MAX_FEED_PAGES = 200
FEED_STEP = 50
"""`/posts.json?before=` looks no further back than so many ids, and may find none of them to be shown."""
RATE_LIMIT_PAUSE = 10.0
RATE_LIMIT_TRIES = 6
NOT_FOR_US = frozenset({403, 404, 410})
FINGERPRINT = ("bumped_at", "last_posted_at", "posts_count", "highest_post_number", "title", "category_id", "visible")


@dataclass(slots=True)
class DiscourseApi:
    """One forum. Raises `PageFault` for what cannot be had, `SourceError` where the forum itself cannot be read."""

    base: str
    client: PoliteClient
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False)

    def get(self, path: str) -> Json:
        for attempt in range(1, RATE_LIMIT_TRIES + 1):
            try:
                reply = self.client.get(f"{self.base}{path}", types=("application/json",))
                break
            except BusyFault as fault:
                raise SourceError(f"The forum is busy: {fault.reason}; try again after that.") from fault
            except PageFault as fault:
                # Discourse says in its JSON how long to wait, and in a header too, which the client obeys; proxies
                # before it may say neither.
                if fault.status != 429 or attempt == RATE_LIMIT_TRIES:
                    raise
                self.sleep(RATE_LIMIT_PAUSE * attempt)
        try:
            return dict_of(json.loads(reply.body))
        except (ValueError, RecursionError) as error:
            raise PageFault("the forum's answer is no JSON") from error

    def first(self, path: str) -> Json:
        """As `get`, for what every forum has."""
        try:
            return self.get(path)
        except PageFault as fault:
            hint = "give --option api_key=… and api_user=…" if fault.status in {401, 403} else "check the URL"
            raise SourceError(f"The forum cannot be read: {fault.reason}; {hint}.") from fault

    def topics(self, category: str, *, stable: bool) -> Iterator[list[Json]]:
        """Topics, page by page: the oldest first if `stable` (new ones then shift nobody), else the latest first."""
        order = "order=created&ascending=true&" if stable else ""
        seen: set[int] = set()
        for page in range(MAX_LIST_PAGES):
            path = f"/c/{category}.json" if category else "/latest.json"
            listed = dict_of(self.first(f"{path}?{order}page={page}").get("topic_list"))
            topics = [topic for topic in dicts_of(listed.get("topics")) if number_of(topic.get("id")) not in seen]
            seen.update(number for topic in topics if (number := number_of(topic.get("id"))) is not None)
            if topics:
                yield topics
            if not topics or not listed.get("more_topics_url"):
                return

    def categories(self) -> Json:
        return self.first("/categories.json?include_subcategories=true")

    def category(self, number: int) -> Json:
        """One that the list does not name. One that may not be seen is not for everybody."""
        try:
            return dict_of(self.get(f"/c/{number}/show.json").get("category"))
        except PageFault as fault:
            if fault.status in NOT_FOR_US:
                return {"id": number, "read_restricted": True}
            raise

    def topic(self, number: int) -> Json:
        return self.get(f"/t/{number}.json")

    def rest(self, topic: int, post_ids: Sequence[int]) -> Iterator[tuple[Sequence[int], list[Json] | PageFault]]:
        """A topic's further posts, some at once; with the ids that were asked for."""
        for start in range(0, len(post_ids), POSTS_AT_ONCE):
            wanted = post_ids[start : start + POSTS_AT_ONCE]
            query = "&".join(f"post_ids%5B%5D={number}" for number in wanted)
            try:
                shown = self.get(f"/t/{topic}/posts.json?{query}")
                yield wanted, dicts_of(dict_of(shown.get("post_stream")).get("posts"))
            except PageFault as fault:
                yield wanted, fault

    def post(self, number: int) -> Json:
        return self.get(f"/posts/{number}.json")

    def newest(self) -> int:
        return max((number_of(post.get("id")) or 0 for post in self._feed("")), default=0)

    def new_posts(self, after: int) -> tuple[list[Json], bool]:
        """Posts with an id above `after`, newest first; and whether these are all of them."""
        found: list[Json] = []
        before = 0
        for _ in range(MAX_FEED_PAGES):
            posts = self._feed(f"?before={before}" if before else "")
            ids = [number for post in posts if (number := number_of(post.get("id"))) is not None]
            if not before and not ids:
                return found, True
            found += [post for post in posts if (number_of(post.get("id")) or 0) > after]
            before = min(ids) - 1 if ids else before - FEED_STEP
            if before <= after:
                return found, True
        return found, False

    def _feed(self, query: str) -> list[Json]:
        return dicts_of(self.first(f"/posts.json{query}").get("latest_posts"))


def fingerprint(topic: Json) -> str:
    """Differs when something about a topic has, as far as a list of topics tells."""
    shown: Mapping[str, object] = {name: topic.get(name) for name in (*FINGERPRINT, "tags")}
    return hashlib.sha1(json.dumps(shown, sort_keys=True).encode(), usedforsecurity=False).hexdigest()[:12]
