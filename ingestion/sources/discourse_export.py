"""A Discourse forum from files: answers of its API, or an export of the same form, as JSON or one JSON per line."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from graph.errors import SourceError
from graph.model import FailedPage, Page, SkippedPage, SourceItem
from graph.protocols import Source
from ingestion.sanitize import printable_name
from ingestion.sources.discourse_posts import Excerpts, Forum, Json, Topic, dict_of, dicts_of, number_of, why_left_out
from ingestion.sources.folder_titles import file_start
from ingestion.sources.kinds import Place, SourceOptions

logger = logging.getLogger(__name__)

SUFFIXES = (".json", ".jsonl", ".ndjson")
MAX_FILE_BYTES = 256 * 2**20
MAX_FILES = 200_000
LOOKED_AT = 8
"""Files that are opened to tell whether a folder is an export."""
MARKS = (b'"post_stream"', b'"latest_posts"', b'"topic_list"', b'"category_list"')
POST_MARKS = (b'"cooked"', b'"post_number"', b'"topic_id"')


class Version(NamedTuple):
    """Of a post. The latest counts; of one moment the one that may not be shown, then one that stands in its topic."""

    edited: str
    left_out: bool
    in_topic: bool
    place: str


@dataclass(frozen=True, slots=True)
class DiscourseExport:
    """`root` is a file or a folder of them. A post that is in several files counts once, as it was edited last."""

    root: Path
    name: str
    base_url: str = ""
    kind: str = "discourse"

    def read(self) -> Iterator[SourceItem]:
        forum = Forum(self.name, self.base_url.rstrip("/"))
        topics: dict[int, Topic] = {}
        newest: dict[int, Version] = {}
        files = list(_files(self.root))
        for path in files:
            for document in _documents(path) or ():
                forum.learn_categories(document)
        for path in files:
            for place, document in enumerate(_documents(path) or ()):
                self._learn(document, forum, topics, newest, f"{path}:{place}")
        for path in files:
            yield from self._told(path, forum, topics, newest)

    def _learn(
        self, document: Json, forum: Forum, topics: dict[int, Topic], newest: dict[int, Version], place: str
    ) -> None:
        listed = dicts_of(dict_of(document.get("topic_list")).get("topics"))
        for shown in (*listed, *([document] if "post_stream" in document else [])):
            topic = forum.topic(shown)
            if topic.id not in topics or "post_stream" in shown or topic.hidden:
                topics[topic.id] = topic
        for post in _posts(document):
            number, found = number_of(post.get("id")) or 0, _version(post, document, place)
            if number not in newest or found[:3] > newest[number][:3]:
                newest[number] = found

    def _told(
        self, path: Path, forum: Forum, topics: dict[int, Topic], newest: dict[int, Version]
    ) -> Iterator[SourceItem]:
        documents = _documents(path)
        if documents is None:
            yield FailedPage(key=_key(self.root, path), reason="not JSON, or larger than 256 MB")
            return
        known = False
        for place, document in enumerate(documents):
            posts = list(_posts(document))
            known = known or bool(posts) or "topic_list" in document or "category_list" in document
            current = [
                post
                for post in posts
                if newest[number_of(post.get("id")) or 0] == _version(post, document, f"{path}:{place}")
            ]
            yield from _items(current, forum, topics)
        if not known:
            yield SkippedPage(key=_key(self.root, path), reason="no answer of Discourse's API")


def _version(post: Json, document: Json, place: str) -> Version:
    return Version(str(post.get("updated_at") or ""), bool(why_left_out(post)), "post_stream" in document, place)


def _items(posts: Sequence[Json], forum: Forum, topics: Mapping[int, Topic]) -> Iterator[SourceItem]:
    """The pages of one document's posts, each once; those of one topic may quote one another."""
    threads: dict[int, Excerpts] = {}
    items: dict[int, tuple[Json, Page | SkippedPage]] = {}
    for post in posts:
        number = number_of(post.get("topic_id")) or 0
        topic = topics.get(number) or forum.topic({**post, "id": post.get("topic_id")})
        item = forum.item(post, topic)
        if items.setdefault(number_of(post.get("id")) or 0, (post, item))[1] is item:
            threads.setdefault(number, Excerpts()).note(item)
    for post, item in items.values():
        excerpts = threads[number_of(post.get("topic_id")) or 0]
        yield excerpts.in_thread(item, post) if isinstance(item, Page) else item


def exported(place: Place, options: SourceOptions) -> Source:
    assert place.path is not None
    if not is_export(place):
        raise SourceError(f"{place.shown} holds no answer of Discourse's API; give its JSON files, or the forum's URL.")
    return DiscourseExport(place.path, options.name, options.base_url)


def is_export(place: Place) -> bool:
    """Whether a file, or one of the first files of a folder, is an answer of Discourse's API."""
    if place.path is None:
        return False
    if place.head:
        return place.path.name.lower().endswith(SUFFIXES) and _looks_right(place.path)
    named = sorted(name for name in place.names if name.lower().endswith(SUFFIXES))
    return any(_looks_right(place.path / name) for name in named[:LOOKED_AT])


def _looks_right(path: Path) -> bool:
    try:
        start = file_start(path, 65_536)[0]
    except (OSError, ValueError):
        return False
    return start.lstrip()[:1] in (b"{", b"[") and (
        any(m in start for m in MARKS) or all(m in start for m in POST_MARKS)
    )


def _files(root: Path) -> Iterator[Path]:
    """The file itself, or the folder's, in order. Symbolic links are not followed."""
    if not root.is_dir():
        yield root
        return
    count = 0
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(folder) / name
            if name.lower().endswith(SUFFIXES) and not path.is_symlink() and count < MAX_FILES:
                count += 1
                yield path


def _documents(path: Path) -> list[Json] | None:
    """A file's JSON objects: one, a list of them, or one per line. None where it cannot be read as such."""
    try:
        data, size = file_start(path, MAX_FILE_BYTES)
        if size > MAX_FILE_BYTES:
            return None
        if path.name.lower().endswith(".json"):
            found = json.loads(data)
        else:
            found = [json.loads(line) for line in data.splitlines() if line.strip()]
    except (OSError, ValueError, RecursionError):
        return None
    return dicts_of(found) if isinstance(found, list) else dicts_of([found])


def _posts(document: Json) -> Iterator[Json]:
    stream = dict_of(document.get("post_stream"))
    for post in (
        *dicts_of(stream.get("posts")),
        *dicts_of(document.get("latest_posts")),
        *dicts_of(document.get("posts")),
    ):
        if number_of(post.get("id")) is not None:
            yield post if "topic_id" in post else {**post, "topic_id": document.get("id")}
    if "cooked" in document and number_of(document.get("id")) is not None:
        yield document


def _key(root: Path, path: Path) -> str:
    return printable_name(str(path.relative_to(root)) if path != root else path.name)
