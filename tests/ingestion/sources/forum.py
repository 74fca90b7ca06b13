"""A forum that answers as Discourse's API does, in the shape of its recorded answers, and can be edited."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.server.web.site import JSON, Reply, Request

Json = dict[str, Any]
LINES_PER_PAGE = 30
POSTS_AT_FIRST = 20
FEED = 50


def long(text: str) -> str:
    return f"<p>{text} It is said at some length, so that it counts as a post.</p>"


@dataclass(slots=True)
class FakeForum:
    """`visitors` of it see what anonymous ones do: no deleted post. `faults` are answers instead, by path."""

    topics: dict[int, Json] = field(default_factory=dict)
    posts: dict[int, Json] = field(default_factory=dict)
    categories: list[Json] = field(default_factory=lambda: [{"id": 1, "name": "Fishing", "read_restricted": False}])
    faults: dict[str, Reply] = field(default_factory=dict)
    clock: int = 0

    def add_topic(self, title: str, **more: Any) -> int:
        number = len(self.topics) + 1
        topic = {
            "id": number,
            "title": title,
            "slug": title.lower().replace(" ", "-"),
            "category_id": 1,
            "tags": ["eels"],
            "archetype": "regular",
            "visible": True,
            "created_at": self.now(),
        }
        self.topics[number] = {**topic, **more}
        return number

    def add_post(self, topic: int, cooked: str, **more: Any) -> int:
        number = len(self.posts) + 1
        place = sum(post["topic_id"] == topic for post in self.posts.values()) + 1
        moment = self.now()
        self.posts[number] = {
            "id": number,
            "username": "ann",
            "created_at": moment,
            "updated_at": moment,
            "cooked": cooked,
            "post_number": place,
            "post_type": 1,
            "reply_to_post_number": None,
            "topic_id": topic,
            "topic_slug": self.topics[topic]["slug"],
            "version": 1,
            "staff": False,
            "hidden": False,
            "deleted_at": None,
            "user_deleted": False,
            **more,
        }
        self.topics[topic]["bumped_at"] = moment
        return number

    def edit(self, post: int, cooked: str) -> None:
        self.posts[post] |= {"cooked": cooked, "version": self.posts[post]["version"] + 1, "updated_at": self.now()}

    def now(self) -> str:
        self.clock += 1
        return f"2024-05-01T{self.clock // 3600:02}:{self.clock // 60 % 60:02}:{self.clock % 60:02}.000Z"

    def __call__(self, request: Request) -> Reply:
        parts = urlsplit(request.target)
        if fault := self.faults.get(parts.path):
            return fault
        answer = self._answer(parts.path, parse_qs(parts.query))
        if answer is None:
            return Reply(status=404, headers=JSON, body=b'{"error_type":"not_found"}')
        return Reply(headers=JSON, body=json.dumps(answer).encode())

    def _answer(self, path: str, query: dict[str, list[str]]) -> Json | None:
        if path == "/categories.json":
            return {"category_list": {"categories": self.categories}}
        if path == "/latest.json" or re.fullmatch(r"/c/.+/\d+\.json", path):
            return self._listed(query, 0 if path == "/latest.json" else int(path.rpartition("/")[2][:-5]))
        if path == "/posts.json":
            before = int(query.get("before", ["999999"])[0])
            ids = sorted((n for n in self._shown() if before - FEED < n <= before or before == 999999), reverse=True)
            return {"latest_posts": [self.posts[n] for n in ids[:FEED]]}
        if match := re.fullmatch(r"/posts/(\d+)\.json", path):
            return self.posts.get(int(match[1])) if int(match[1]) in self._shown() else None
        if match := re.fullmatch(r"/t/(\d+)\.json", path):
            return self._topic(int(match[1]))
        if match := re.fullmatch(r"/t/(\d+)/posts\.json", path):
            wanted = [int(number) for number in query["post_ids[]"]]
            return {"post_stream": {"posts": [self.posts[n] for n in wanted if n in self._shown()]}}
        return None

    def _shown(self) -> list[int]:
        return [number for number, post in self.posts.items() if not post["deleted_at"]]

    def _topic(self, number: int) -> Json | None:
        if number not in self.topics:
            return None
        ids = [n for n in self._shown() if self.posts[n]["topic_id"] == number]
        stream = {"posts": [self.posts[n] for n in ids[:POSTS_AT_FIRST]], "stream": ids}
        return {**self.topics[number], "post_stream": stream}

    def _listed(self, query: dict[str, list[str]], category: int) -> Json:
        lines = [self._line(topic) for topic in self.topics.values() if topic["archetype"] == "regular"]
        lines = [line for line in lines if not category or line["category_id"] == category]
        oldest_first = query.get("order") == ["created"]
        lines.sort(key=lambda line: line["created_at" if oldest_first else "bumped_at"], reverse=not oldest_first)
        start = int(query.get("page", ["0"])[0]) * LINES_PER_PAGE
        more = {"more_topics_url": "/latest?page=1"} if start + LINES_PER_PAGE < len(lines) else {}
        return {"topic_list": {"topics": lines[start : start + LINES_PER_PAGE], **more}}

    def _line(self, topic: Json) -> Json:
        posts = [post for post in self.posts.values() if post["topic_id"] == topic["id"]]
        return {**topic, "posts_count": len(posts), "highest_post_number": len(posts), "pinned": False}
