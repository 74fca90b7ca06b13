"""What has happened in a MediaWiki since a cursor: its recent changes and its logs, read together in order of time.

The two tell which titles to look at, not what became of them: a page is as it is found afterwards. So it does not
matter in which order things happened, nor that MediaWiki drops a deleted page's changes and keeps a moved page's
under the old title.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Generic, TypeVar

import msgspec

from ingestion.sources.mediawiki_calls import Answer, Api, Time, broken
from ingestion.sources.polite_http import PageFault

OVERLAP = timedelta(seconds=60)
"""A change may become visible a little after its time: the last minute is looked at again, less what was seen."""
REMOVING = frozenset({"delete", "move", "merge", "suppress"})
"""Types of logs whose title may be gone."""
TELLING = REMOVING | {"import", "contentmodel", "upload"}
"""Types of logs after which a page may be another without an entry in the recent changes; restoring is a `delete`."""
TARGETS = (("target_ns", "target_title"), ("dest_ns", "dest_title"))
"""Where a log's parameters name a second page: of a move, of a merged history."""


class Change(msgspec.Struct):
    """A row of `list=recentchanges`."""

    rcid: int
    timestamp: Time
    ns: int = 0
    title: str = ""
    revid: int = 0


class Event(msgspec.Struct):
    """A row of `list=logevents`; without a title where that is hidden."""

    logid: int
    timestamp: Time
    type: str = ""
    ns: int = 0
    title: str = ""
    params: object = None


class Statistics(msgspec.Struct):
    """`siprop=statistics`."""

    edits: int = 0
    pages: int = 0


Row = TypeVar("Row", Change, Event)
EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)  # there was no MediaWiki
FOREVER = datetime(9999, 12, 30, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class _Part(Generic[Row]):
    """The beginning of a list, or all of it."""

    rows: list[Row]
    breaks_off: bool
    clock: datetime
    """The wiki's, when it was asked first."""


class Cursor(msgspec.Struct, frozen=True):
    """Up to where all is told."""

    since: Time
    """By the wiki's clock."""
    changes: dict[int, Time] = {}
    """Of the last minute before: rcid → its time."""
    events: dict[int, Time] = {}
    """The same for the logs."""
    namespaces: tuple[int, ...] = ()
    edits: int = 0
    """The wiki's counters: where they have not moved, nothing has happened, even if the feed holds nothing any more."""
    pages: int = 0

    def written(self) -> str:
        return msgspec.json.encode(self).decode()


def cursor_from(text: str) -> Cursor | None:
    """None for what no `Cursor` has written."""
    try:
        return msgspec.json.decode(text, type=Cursor)
    except (msgspec.DecodeError, RecursionError):
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A stretch of time: the titles to look at, and where the next look begins."""

    titles: Mapping[str, Seen]
    cursor: Cursor


@dataclass(slots=True)
class Seen:
    """What is known of a title: its newest revision, when it last was heard of, whether it may be gone."""

    revision: int = 0
    time: datetime = EARLIEST
    logged: bool = False
    """In a log: then no revision number tells what came of it."""
    may_be_gone: bool = False


@dataclass(slots=True)
class Feed:
    """Of the pages in `namespaces`. What is wrong with it is a `SourceError`."""

    api: Api
    namespaces: tuple[int, ...]
    counted: Statistics = field(default_factory=Statistics)
    """The wiki's counters, as `now` or `reaches` found them."""

    def now(self) -> Cursor:
        """Taken before the pages are read: whatever is noted as seen here has happened by then."""
        clock = self._ask({"action": "query", "meta": "siteinfo", "siprop": "statistics"}).clock
        start = _minus_overlap(clock)
        changes, events = self._changes(start, FOREVER).rows, self._events(start, FOREVER).rows
        return self._cursor(clock, {c.rcid: c.timestamp for c in changes}, {e.logid: e.timestamp for e in events})

    def reaches(self, cursor: Cursor) -> bool:
        """Whether no change since the cursor has been dropped: wikis keep them for 90 days (`$wgRCMaxAge`)."""
        if cursor.namespaces != self.namespaces:
            return False
        oldest = {"list": "recentchanges", "rcdir": "newer", "rclimit": "1", "rcprop": "ids|timestamp|title"}
        answer = self._ask({"action": "query", "meta": "siteinfo", "siprop": "statistics", **oldest})
        if cursor.since > answer.clock + OVERLAP:
            return False  # the wiki was set back to an older copy, or its clock was
        try:
            kept = answer.part("recentchanges", list[Change])
        except PageFault as fault:
            raise broken(self.api.shown, fault) from fault
        if kept and kept[0].timestamp <= cursor.since:
            return True
        return (self.counted.edits, self.counted.pages) == (cursor.edits, cursor.pages)

    def windows(self, cursor: Cursor) -> Iterator[Window]:
        """The last one ends now. `reaches` was asked before."""
        start = _minus_overlap(cursor.since)
        while True:
            changes = self._changes(start, cursor.since)
            events = self._events(start, cursor.since)
            # Past the end of the list that breaks off first, the other one would be only half of the truth.
            ends = [part.rows[-1].timestamp for part in (changes, events) if part.breaks_off]
            end = min(ends, default=max(cursor.since, changes.clock))
            new_changes = [c for c in changes.rows if c.rcid not in cursor.changes and (not ends or c.timestamp <= end)]
            new_events = [e for e in events.rows if e.logid not in cursor.events and (not ends or e.timestamp <= end)]
            cursor = self._cursor(
                end,
                {**cursor.changes, **{c.rcid: c.timestamp for c in new_changes}},
                {**cursor.events, **{e.logid: e.timestamp for e in new_events}},
            )
            yield Window(titles=self._titles(new_changes, new_events), cursor=cursor)
            if not ends:
                return
            start = end

    def removed_since(self, title: str, time: datetime) -> bool:
        """Whether the wiki's logs tell of the end of a page that changed at `time`."""
        asked = {"letitle": title, "lelimit": "20", "leprop": "ids|title|type|timestamp"}
        events, _ = next(self.api.listing("logevents", asked, Event))
        return any(event.type in REMOVING and event.timestamp >= time for event in events)

    def _titles(self, changes: Sequence[Change], events: Sequence[Event]) -> dict[str, Seen]:
        titles: dict[str, Seen] = {}
        for change in changes:
            if change.title:
                seen = titles.setdefault(change.title, Seen())
                seen.revision = max(seen.revision, change.revid)
                seen.time = max(seen.time, change.timestamp)
        for event in events:
            if event.type in TELLING:
                for title in self._named(event):
                    seen = titles.setdefault(title, Seen())
                    seen.logged = True
                    seen.may_be_gone = seen.may_be_gone or event.type in REMOVING
                    seen.time = max(seen.time, event.timestamp)
        return titles

    def _named(self, event: Event) -> Iterator[str]:
        if event.title and event.ns in self.namespaces:
            yield event.title
        if isinstance(event.params, dict):
            for number, title in TARGETS:
                if event.params.get(number) in self.namespaces and isinstance(event.params.get(title), str):
                    yield event.params[title]

    def _changes(self, start: datetime, past: datetime) -> _Part[Change]:
        asked = {
            "rcstart": _written(start), "rcdir": "newer", "rclimit": "max", "rcprop": "ids|title|timestamp",
            "rctype": "edit|new", "rcnamespace": "|".join(map(str, self.namespaces)),
        }  # fmt: skip
        return self._take("recentchanges", asked, Change, past)

    def _events(self, start: datetime, past: datetime) -> _Part[Event]:
        """Of all namespaces: a page that is moved into one of ours is logged where it was."""
        asked = {
            "lestart": _written(start),
            "ledir": "newer",
            "lelimit": "max",
            "leprop": "ids|title|type|timestamp|details",
        }
        return self._take("logevents", asked, Event, past)

    def _take(self, name: str, asked: Mapping[str, str], kind: type[Row], past: datetime) -> _Part[Row]:
        """At least so many rows that the last is later than `past`, if there are."""
        rows: list[Row] = []
        clock = None
        for part, answer in self.api.listing(name, asked, kind):
            rows += part
            clock = clock or answer.clock
            if answer.more and rows and rows[-1].timestamp > past:
                return _Part(rows, True, clock)
        assert clock is not None
        return _Part(rows, False, clock)

    def _cursor(self, since: datetime, changes: Mapping[int, datetime], events: Mapping[int, datetime]) -> Cursor:
        kept = _minus_overlap(since)
        return Cursor(
            since=since,
            changes={number: time for number, time in changes.items() if time >= kept},
            events={number: time for number, time in events.items() if time >= kept},
            namespaces=self.namespaces,
            edits=self.counted.edits,
            pages=self.counted.pages,
        )

    def _ask(self, asked: Mapping[str, str]) -> Answer:
        try:
            answer = self.api.call(asked)
            self.counted = answer.part("statistics", Statistics)
        except PageFault as fault:
            raise broken(self.api.shown, fault) from fault
        return answer


def _minus_overlap(time: datetime) -> datetime:
    return time - OVERLAP if time > EARLIEST else time


def _written(time: datetime) -> str:
    """As MediaWiki wants it."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
