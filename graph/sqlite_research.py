"""Research and knowledge in SQLite, in a file of its own: a rebuild of the wiki's store keeps it."""
# ruff: noqa: S608 — queries are put together from constants; every value is a parameter

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import astuple, replace
from datetime import UTC, datetime
from pathlib import Path

from graph.file_turn import file_turn
from graph.parts import parts
from graph.research import (
    Fact,
    FactState,
    KeptOrigin,
    KeptPassage,
    ResearchPage,
    Topic,
    TopicChange,
    TopicState,
)
from graph.research_rows import (
    FACT,
    FORMAT,
    PAGE,
    PASSAGE,
    SCHEMA,
    TOPIC,
    columns,
    fact_of,
    insert,
    page_of,
    passage_of,
    topic_of,
    values,
)
from graph.research_rules import check_step, check_version, moment, no_fact, no_topic, topic_is_there
from graph.sqlite_file import SqliteFile
from graph.storable import storable

LIVE = "(until IS NULL OR until > ?)"
IDS_AT_ONCE = 500


def _now() -> datetime:
    return datetime.now(UTC)


class SqliteResearch:
    """`ResearchStore` on one file."""

    def __init__(self, path: Path, *, clock: Callable[[], datetime] = _now) -> None:
        self._file = SqliteFile(path, schema=SCHEMA, version=FORMAT)
        self._clock = clock

    def close(self) -> None:
        self._file.close()

    def _stamp(self) -> str:
        return self._clock().isoformat(timespec="milliseconds")

    # --- topics ---------------------------------------------------------------------------------------------------

    def add_topic(self, topic: Topic) -> Topic:
        now = self._stamp()
        topic = replace(topic, created=topic.created or now, changed=topic.changed or now)
        with self._file.writing() as connection:
            if self.topic(topic.slug):
                raise topic_is_there(topic.slug)
            connection.execute(insert("topics", TOPIC), values(topic))
            _remember(connection, TopicChange(slug=topic.slug, before="", after=topic.state, at=topic.changed))
        return topic

    def topic(self, slug: str) -> Topic | None:
        with self._file.reading() as connection:
            row = connection.execute(
                f"SELECT {columns(TOPIC)} FROM topics WHERE slug = ?", (storable(slug),)
            ).fetchone()
        return topic_of(row) if row else None

    def topics(self, state: TopicState | None = None) -> Sequence[Topic]:
        query = f"SELECT {columns(TOPIC)} FROM topics WHERE ?1 IS NULL OR state = ?1 ORDER BY number"
        with self._file.reading() as connection:
            return [topic_of(row) for row in connection.execute(query, (state,))]

    def move_topic(
        self,
        slug: str,
        state: TopicState,
        *,
        note: str = "",
        reasons: Sequence[str] | None = None,
        deepened: int | None = None,
    ) -> Topic:
        with self._file.writing() as connection:
            before = self.topic(slug)
            if before is None:
                raise no_topic(slug)
            check_step(before, state)
            topic = replace(
                before,
                state=state,
                reasons=before.reasons if reasons is None else tuple(reasons),
                deepened=before.deepened if deepened is None else deepened,
                changed=self._stamp(),
            )
            connection.execute(
                "UPDATE topics SET state = ?, reasons = ?, deepened = ?, changed = ? WHERE slug = ?",
                (state, storable(json.dumps(topic.reasons, ensure_ascii=False)), topic.deepened, topic.changed, slug),
            )
            _remember(connection, TopicChange(slug=slug, before=before.state, after=state, note=note, at=topic.changed))
        return topic

    def history(self, slug: str) -> Sequence[TopicChange]:
        query = "SELECT slug, before, after, note, at FROM history WHERE slug = ? ORDER BY number"
        with self._file.reading() as connection:
            rows = connection.execute(query, (storable(slug),)).fetchall()
        return [
            TopicChange(slug=slug, before=before, after=after, note=note, at=at)
            for slug, before, after, note, at in rows
        ]

    # --- pages and passages ---------------------------------------------------------------------------------------

    def put_page(self, slug: str, page: ResearchPage, passages: Sequence[KeptPassage]) -> None:
        with self._file.writing() as connection:
            if self.topic(slug) is None:
                raise no_topic(slug)
            connection.execute(
                "DELETE FROM passages WHERE page = (SELECT number FROM pages WHERE slug = ? AND url = ?)",
                (slug, storable(page.url)),
            )
            connection.execute("DELETE FROM pages WHERE slug = ? AND url = ?", (slug, storable(page.url)))
            number = connection.execute(insert("pages", ("slug", *PAGE)), (slug, *values(page))).lastrowid
            for passage in passages:
                _put_passage(connection, passage, page=number)

    def pages(self, slug: str) -> Sequence[ResearchPage]:
        query = f"SELECT {columns(PAGE)} FROM pages WHERE slug = ? ORDER BY number"
        with self._file.reading() as connection:
            return [page_of(row) for row in connection.execute(query, (storable(slug),))]

    def passages(self, ids: Sequence[str], *, expired: bool = False) -> Mapping[str, KeptPassage]:
        found = {}
        now = float("-inf") if expired else self._clock().timestamp()
        with self._file.reading() as connection:
            for part in parts(list(dict.fromkeys(map(storable, ids))), IDS_AT_ONCE):
                query = f"SELECT {columns(PASSAGE)} FROM passages WHERE {LIVE} AND id IN ({', '.join('?' * len(part))})"
                found.update({row[0]: passage_of(row) for row in connection.execute(query, (now, *part))})
        return {key: found[key] for key in ids if key in found}

    def passages_of(self, slug: str, *, url: str | None = None) -> Sequence[KeptPassage]:
        query = (
            f"SELECT {columns(PASSAGE)} FROM passages WHERE page IN "
            "(SELECT number FROM pages WHERE slug = ?1 AND (?2 IS NULL OR url = ?2)) ORDER BY page, ordinal, id"
        )
        with self._file.reading() as connection:
            found = connection.execute(query, (storable(slug), None if url is None else storable(url)))
            return [passage_of(row) for row in found]

    def collections(self) -> Mapping[str, KeptOrigin]:
        query = f"SELECT DISTINCT collection, origin FROM passages WHERE {LIVE} ORDER BY collection"
        with self._file.reading() as connection:
            return dict(connection.execute(query, (self._clock().timestamp(),)).fetchall())

    def ids(self, collection: str) -> set[str]:
        with self._file.reading() as connection:
            found = connection.execute("SELECT id FROM passages WHERE collection = ?", (storable(collection),))
            return {row[0] for row in found}

    def every_collection(self) -> Sequence[str]:
        query = "SELECT name FROM collections UNION SELECT collection FROM passages ORDER BY 1"
        with self._file.reading() as connection:
            return [row[0] for row in connection.execute(query)]

    def wipe_research(self, slug: str) -> None:
        with self._file.writing() as connection:
            _wipe(connection, storable(slug))

    def remove_topic(self, slug: str) -> None:
        slug = storable(slug)
        with self._file.writing() as connection:
            if self.topic(slug) is None:
                raise no_topic(slug)
            _wipe(connection, slug)
            connection.execute("DELETE FROM facts WHERE topic = ? AND state != ?", (slug, FactState.APPROVED))
            connection.execute("DELETE FROM history WHERE slug = ?", (slug,))
            connection.execute("DELETE FROM topics WHERE slug = ?", (slug,))

    # --- facts ----------------------------------------------------------------------------------------------------

    def add_facts(self, facts: Sequence[Fact]) -> None:
        now = self._stamp()
        with self._file.writing() as connection:
            for fact in facts:
                if self.topic(fact.topic) is None:
                    raise no_topic(fact.topic)
                moment(fact.expires)
                fact = replace(fact, created=fact.created or now, changed=fact.changed or now)
                connection.execute(insert("facts", FACT, known="IGNORE"), values(fact))

    def fact(self, fact_id: str) -> Fact | None:
        with self._file.reading() as connection:
            row = connection.execute(f"SELECT {columns(FACT)} FROM facts WHERE id = ?", (storable(fact_id),)).fetchone()
        return fact_of(row) if row else None

    def facts(
        self,
        *,
        topic: str = "",
        category: str = "",
        state: FactState | None = None,
        limit: int = 100,
        after: str = "",
    ) -> Sequence[Fact]:
        wanted = {"topic = ?": topic, "category = ?": category, "state = ?": state}
        wanted["(created, id) > (SELECT created, id FROM facts WHERE id = ?)"] = after
        given = {clause: storable(value) for clause, value in wanted.items() if value}
        query = f"SELECT {columns(FACT)} FROM facts WHERE {' AND '.join(['1', *given])} ORDER BY created, id LIMIT ?"
        with self._file.reading() as connection:
            if after and not connection.execute("SELECT 1 FROM facts WHERE id = ?", (storable(after),)).fetchone():
                raise no_fact(after)
            return [fact_of(row) for row in connection.execute(query, (*given.values(), max(0, limit)))]

    def change_fact(self, fact: Fact, *, version: int, passage: KeptPassage | None) -> Fact:
        moment(fact.expires)
        with self._file.writing() as connection:
            check_version(fact.id, self.fact(fact.id), version)
            changed = replace(fact, version=version + 1, changed=self._stamp())
            connection.execute(insert("facts", FACT, known="REPLACE"), values(changed))
            connection.execute("DELETE FROM passages WHERE fact = ?", (storable(fact.id),))
            if passage is not None:
                _put_passage(connection, passage, fact=fact.id)
        return changed

    def fact_passage(self, fact_id: str) -> KeptPassage | None:
        with self._file.reading() as connection:
            row = connection.execute(
                f"SELECT {columns(PASSAGE)} FROM passages WHERE fact = ?", (storable(fact_id),)
            ).fetchone()
        return passage_of(row) if row else None

    def delete_fact(self, fact_id: str, *, version: int) -> None:
        with self._file.writing() as connection:
            check_version(fact_id, self.fact(fact_id), version)
            connection.execute("DELETE FROM passages WHERE fact = ?", (storable(fact_id),))
            connection.execute("DELETE FROM facts WHERE id = ?", (storable(fact_id),))

    # --- what a crash leaves --------------------------------------------------------------------------------------

    def turn(self) -> AbstractContextManager[None]:
        return file_turn(self._file.path.with_suffix(".lock"))

    def begin(self, collection: str, *, adding: Sequence[str] = (), removing: Sequence[str] = ()) -> None:
        name = storable(collection)
        with self._file.writing() as connection:
            connection.execute("INSERT OR IGNORE INTO collections (name) VALUES (?)", (name,))
            connection.executemany(
                "INSERT OR IGNORE INTO unfinished (collection, id) VALUES (?, ?)",
                [(name, storable(key)) for key in (*adding, *removing)],
            )

    def end(self, collection: str) -> None:
        with self._file.writing() as connection:
            connection.execute("DELETE FROM unfinished WHERE collection = ?", (storable(collection),))

    def unfinished(self) -> Mapping[str, set[str]]:
        noted: defaultdict[str, set[str]] = defaultdict(set)
        with self._file.reading() as connection:
            for collection, key in connection.execute("SELECT collection, id FROM unfinished"):
                noted[collection].add(key)
        return dict(noted)


def _remember(connection: sqlite3.Connection, change: TopicChange) -> None:
    connection.execute(
        "INSERT INTO history (slug, before, after, note, at) VALUES (?, ?, ?, ?, ?)",
        tuple(map(storable, astuple(change))),
    )


def _put_passage(
    connection: sqlite3.Connection, passage: KeptPassage, *, page: int | None = None, fact: str | None = None
) -> None:
    """In place of another one of that id."""
    more = (moment(passage.expires), page, None if fact is None else storable(fact))
    query = insert("passages", (*PASSAGE, "until", "page", "fact"), known="REPLACE")
    connection.execute(query, (*values(passage), *more))


def _wipe(connection: sqlite3.Connection, slug: str) -> None:
    connection.execute("DELETE FROM passages WHERE page IN (SELECT number FROM pages WHERE slug = ?)", (slug,))
    connection.execute("DELETE FROM pages WHERE slug = ?", (slug,))
