"""What a Discourse forum says of its posts, as JSON, to pages: one for each post that anybody may read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from graph.errors import SourceError
from graph.model import Link, Page, PageType, Post, SkippedPage
from ingestion.page_types import STUB_CHARACTERS
from ingestion.posts import post_text
from ingestion.sanitize import clean_title

Json = dict[str, Any]
MIN_CHARACTERS = 35
EXCERPT = 300
"""Characters of the first or the parent post that some strategies embed with a post."""
REGULAR = 1
"""The type of posts that people write; others are small actions ("closed", "pinned") and whispers among staff."""
ROLES = ("admin", "moderator", "staff")
TOPIC_LINK = re.compile(r"/t/(?:[^/?#]{1,300}/)?(\d{1,12})(?:/\d{1,9})?(?:[/?#]|$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """What posts take from their topic. `hidden` is why nobody may read it, or ""."""

    id: int
    title: str = ""
    slug: str = ""
    categories: tuple[str, ...] = ()
    hidden: str = ""


@dataclass(slots=True)
class Forum:
    """What is known of a forum: its categories, and its topics' titles for links between them."""

    source: str
    base: str = ""
    """The forum's address, without a slash at its end; "" where it is not known: then addresses are relative."""
    categories: dict[int, Json] = field(default_factory=dict)
    titles: dict[int, str] = field(default_factory=dict)

    def learn_categories(self, listed: Json) -> None:
        waiting = list(dicts_of(dict_of(listed.get("category_list")).get("categories")))
        while waiting:
            category = waiting.pop()
            if (number := number_of(category.get("id"))) is not None:
                self.categories[number] = category
            waiting += dicts_of(category.get("subcategory_list"))

    def topic(self, shown: Json) -> Topic:
        """From `/t/….json`, or from a line of a list of topics."""
        number = number_of(shown.get("id")) or number_of(shown.get("topic_id")) or 0
        title = clean_title(str(shown.get("title") or shown.get("topic_title") or ""))
        if title:
            self.titles[number] = title
        category = number_of(shown.get("category_id"))
        names = [self._category_name(category), *_tags(shown.get("tags"))]
        return Topic(
            id=number,
            title=title or self.titles.get(number, ""),
            slug=str(shown.get("slug") or shown.get("topic_slug") or "")[:200],
            categories=tuple(dict.fromkeys(name for name in names if name)),
            hidden=self._why_hidden(shown, category),
        )

    def _category_name(self, number: int | None) -> str:
        return clean_title(str(self.categories.get(number or 0, {}).get("name") or ""))

    def _why_hidden(self, shown: Json, category: int | None) -> str:
        if shown.get("archetype") == "private_message":
            return "a private message"
        if shown.get("deleted_at") or shown.get("deleted_by"):
            return "a deleted topic"
        if shown.get("visible") is False:
            return "a topic that is not listed"
        while category is not None and (found := self.categories.get(category)):
            if found.get("read_restricted"):
                return "in a category that not everybody may read"
            category = number_of(found.get("parent_category_id"))
        return ""

    def item(self, post: Json, topic: Topic) -> Page | SkippedPage:
        """The page of a post, or why it has none; without the excerpts, which `in_thread` adds."""
        key = key_of(post)
        if reason := topic.hidden or why_left_out(post):
            return SkippedPage(key=key, reason=reason)
        cleaned = post_text(str(post.get("cooked") or post.get("raw") or ""))
        if len(cleaned.text) < MIN_CHARACTERS:
            return SkippedPage(key=key, reason=f"shorter than {MIN_CHARACTERS} characters")
        number = number_of(post.get("post_number")) or 1
        title = topic.title or f"Topic {topic.id}"
        place = f"{self.base}/t/{topic.slug or '-'}/{topic.id}"
        parent = number_of(post.get("reply_to_post_number"))
        return Page(
            source=self.source,
            key=key,
            title=title,
            text=cleaned.text,
            url=f"{place}/{number}",
            page_type=PageType.ARTICLE if len(cleaned.text) >= STUB_CHARACTERS else PageType.STUB,
            revision=str(number_of(post.get("version")) or ""),
            modified=_time(post.get("updated_at") or post.get("created_at")),
            links=tuple(dict.fromkeys(self._titled(cleaned.links, title))),
            categories=topic.categories,
            sections=cleaned.sections,
            post=Post(
                number=number,
                author=clean_title(str(post.get("username") or "")),
                author_role=next((role for role in ROLES if post.get(role) is True), ""),
                reply_to=f"{place}/{parent}" if parent else "",
            ),
        )

    def _titled(self, links: tuple[Link, ...], own: str) -> Iterator[Link]:
        """Links to other topics of this forum, as titles."""
        for link in links:
            path = link.target.removeprefix(self.base) if self.base else link.target
            match = TOPIC_LINK.match(path)
            target = self.titles.get(int(match[1]), "") or link.shown if match else ""
            if target and target != own and not target.startswith(("http://", "https://")):
                yield Link(target=target, shown=link.shown)


@dataclass(slots=True)
class Excerpts:
    """How the posts of one topic begin, by their numbers. Only what is itself a page is quoted: so what is hidden,
    deleted, among staff or too short never gets into another post's vector."""

    beginnings: dict[int, str] = field(default_factory=dict)

    def note(self, item: Page | SkippedPage) -> None:
        if isinstance(item, Page) and item.post is not None:
            words = " ".join(item.text.split())
            cut = f"{words[:EXCERPT].rstrip()}…" if len(words) > EXCERPT else words
            self.beginnings.setdefault(item.post.number, cut)

    def in_thread(self, page: Page, post: Json) -> Page:
        """The page with what it may quote of its topic; a parent that is the opening post is quoted once."""
        if page.post is None or page.post.number == 1:
            return page
        parent = number_of(post.get("reply_to_post_number")) or 1
        quoted = self.beginnings.get(parent, "") if parent not in (1, page.post.number) else ""
        return replace(page, post=replace(page.post, opening=self.beginnings.get(1, ""), parent=quoted))


def key_of(post: Json) -> str:
    """A post keeps its id when it is edited, and when it is moved to another topic."""
    return f"p/{number_of(post.get('id')) or 0}"


def why_left_out(post: Json) -> str:
    if post.get("deleted_at") or post.get("user_deleted"):
        return "a deleted post"
    if post.get("hidden") or post.get("cooked_hidden"):
        return "a hidden post"
    kind = number_of(post.get("post_type"))
    return "" if kind in (None, REGULAR) else "not a post but a small action or a whisper"


def refuse_strategy(options: Mapping[str, str]) -> None:
    """It was an option of forums before it was a setting; one that did nothing would not be noticed."""
    if options.get("strategy", "title") != "title":
        raise SourceError(
            "The option strategy of a forum is now the setting ingestion.embedding_strategy; set that, and ingest the "
            "forum again without the option."
        )


def number_of(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 15:
        return int(value)
    return value if isinstance(value, int) and 0 <= value < 10**15 else None


def dict_of(value: object) -> Json:
    return value if isinstance(value, dict) else {}


def dicts_of(value: object) -> list[Json]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _tags(value: object) -> list[str]:
    """Names; newer forums give objects."""
    if not isinstance(value, list):
        return []
    names = (tag.get("name") if isinstance(tag, dict) else tag for tag in value[:50])
    return [clean_title(name) for name in names if isinstance(name, str)]


def _time(value: object) -> str:
    try:
        when = datetime.fromisoformat(str(value)[:40])
    except ValueError:
        return ""
    utc = (when if when.tzinfo else when.replace(tzinfo=UTC)).astimezone(UTC)
    return utc.strftime("%Y-%m-%dT%H:%M:%SZ")
