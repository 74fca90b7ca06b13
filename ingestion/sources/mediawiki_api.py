"""A MediaWiki through its API: all of it once, then what has changed since."""

from __future__ import annotations

import html
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from urllib.parse import urljoin, urlsplit, urlunsplit

from graph.errors import SourceError
from graph.feed import Checkpoint, FeedItem, GonePage
from graph.model import FailedPage, SourceItem
from graph.protocols import Source
from ingestion.sanitize import clean_key, printable_name
from ingestion.sources.kinds import Place, SourceKind, SourceOptions
from ingestion.sources.mediawiki_calls import Api, broken, is_mediawiki
from ingestion.sources.mediawiki_feed import Cursor, Feed, Seen, Window, cursor_from
from ingestion.sources.mediawiki_pages import FoundPage, PageReader, open_reader
from ingestion.sources.polite_http import PageFault, PoliteClient
from ingestion.wikitext_worker import Draft, finish_pages

NAME = "mediawiki-api"
OPTIONS = frozenset({"user", "password", "namespaces"})
HASHED_KEY = re.compile(r"~[0-9a-f]{8}$")
"""A key that is not the title itself (`clean_key`)."""
EDIT_URI = re.compile(r"<link\b[^>]{0,200}\brel\s*=\s*[\"']EditURI[\"'][^>]{0,500}>", re.IGNORECASE)
HREF = re.compile(r"\bhref\s*=\s*[\"']([^\"'<>]{1,500}api\.php[^\"'<>]{0,100})[\"']", re.IGNORECASE)
HEAD_CHARACTERS = 200_000
"""Where a page's links to other forms of it stand."""
GUESSES = ("/w/api.php", "/api.php")
LOOK_SECONDS = 10.0
PROBE = {"action": "query", "meta": "siteinfo", "format": "json", "formatversion": "2"}


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaWikiApi:
    """`url` is that of api.php, and may hold a user and password for the web server. `user` is the wiki's own."""

    url: str
    name: str
    base_url: str = ""
    user: str = ""
    password: str = field(default="", repr=False)
    namespaces: tuple[int, ...] = ()
    """Which to read; by default those that the wiki calls its content."""
    delay: float = 0.0
    seconds: float = 30.0
    sleep: Callable[[float], None] = time.sleep
    kind: str = NAME

    def check(self) -> None:
        """Raises `SourceError` where it cannot be read."""
        with self._api() as api:
            reader, _ = self._open(api)
            next(reader.titles(0))

    def read(self) -> Iterator[FeedItem]:
        with self._api() as api:
            reader, feed = self._open(api)
            cursor = feed.now()
            yield from finish_pages(self._all(reader, feed.namespaces), reader.site)
            yield Checkpoint(cursor=cursor.written())

    def changes(self, cursor: str) -> Iterator[FeedItem] | None:
        known = cursor_from(cursor)
        if known is None:
            return None
        with self._api() as api:
            reader, feed = self._open(api)
            if not feed.reaches(known):
                return None
        return self._changes(known, reader, feed)

    def pages(self, keys: Sequence[str]) -> Iterator[FeedItem]:
        with self._api() as api:
            reader, _ = self._open(api)
            gone: list[FeedItem] = []
            yield from finish_pages(self._single(reader, keys, gone), reader.site)
            yield from gone

    def _all(self, reader: PageReader, namespaces: Sequence[int]) -> Iterator[Draft | SourceItem]:
        for namespace in namespaces:
            for titles in reader.titles(namespace):
                for title, found in reader.fetch(titles):
                    # Deleted while all is read: what is not told of is taken for gone.
                    if isinstance(found, PageFault) or not found.missing:
                        yield _draft(reader, title, found)

    def _single(self, reader: PageReader, keys: Sequence[str], gone: list[FeedItem]) -> Iterator[Draft | SourceItem]:
        for key, found in reader.fetch(keys):
            if isinstance(found, PageFault) or not found.missing:
                yield _draft(reader, key, found)
            elif HASHED_KEY.search(key):
                yield FailedPage(key=key, reason="its title has invisible characters: it is read with all others only")
            else:
                gone.append(GonePage(key=key))

    def _changes(self, cursor: Cursor, reader: PageReader, feed: Feed) -> Iterator[FeedItem]:
        told: dict[str, int] = {}
        # A connection of its own: it may be long before the first item is asked for, or never.
        with self._api() as api:
            reader, feed = replace(reader, api=api), replace(feed, api=api)
            for window in feed.windows(cursor):
                gone: list[FeedItem] = []
                yield from finish_pages(self._changed(reader, feed, window, told, gone), reader.site)
                yield from gone
                yield Checkpoint(cursor=window.cursor.written())

    def _changed(
        self, reader: PageReader, feed: Feed, window: Window, told: dict[str, int], gone: list[FeedItem]
    ) -> Iterator[Draft | SourceItem]:
        """`told`: the revisions that earlier windows found. They may be the very changes of this one."""
        titles = [title for title, seen in window.titles.items() if not _is_told(told, title, seen)]
        for title, found in reader.fetch(titles):
            seen = window.titles[title]
            told[title] = 0 if isinstance(found, PageFault) else found.revision
            if isinstance(found, PageFault) or not found.missing:
                yield _draft(reader, title, found)
            elif seen.may_be_gone or feed.removed_since(title, seen.time):
                gone.append(GonePage(key=clean_key(title)))
            else:
                # It may not have reached the database that was asked, or was removed where we may not look.
                reason = "the wiki tells of a change of it, but does not find it"
                yield FailedPage(key=clean_key(title), reason=reason)

    def _open(self, api: Api) -> tuple[PageReader, Feed]:
        reader = open_reader(api, self.name, self.base_url)
        return reader, Feed(api, self.namespaces or reader.content_namespaces)

    def _api(self) -> Api:
        return Api(
            self.url, user=self.user, password=self.password, delay=self.delay, seconds=self.seconds, sleep=self.sleep
        )


def _is_told(told: dict[str, int], title: str, seen: Seen) -> bool:
    return not seen.logged and 0 < seen.revision <= told.get(title, 0)


def _draft(reader: PageReader, title: str, found: FoundPage | PageFault) -> Draft | SourceItem:
    return (
        FailedPage(key=clean_key(title), reason=found.reason) if isinstance(found, PageFault) else reader.draft(found)
    )


@dataclass(frozen=True, slots=True)
class MediaWikiApiKind:
    """Found from the URL of any of the wiki's pages, of its index.php or its api.php."""

    name: str = NAME
    about: str = "a MediaWiki, through its API: the URL of any of its pages, or of its api.php"

    def fits(self, place: Place) -> int:
        if not place.url:
            return 0
        try:
            return 95 if find_api(place.url, seconds=LOOK_SECONDS, tries=1) else 0
        except (PageFault, SourceError):
            return 0

    def open(self, place: Place, options: SourceOptions) -> Source:
        if not place.url:
            raise SourceError(f"{place.shown} is no URL; a MediaWiki's API is read from the URL of one of its pages.")
        user, password, namespaces = _options(options)
        try:
            url = find_api(place.url)
        except PageFault as fault:
            raise broken(place.shown, fault) from fault
        source = MediaWikiApi(
            url=url, name=options.name, base_url=options.base_url, delay=options.delay,
            user=user, password=password, namespaces=namespaces,
        )  # fmt: skip
        source.check()
        return source


KIND: SourceKind = MediaWikiApiKind()


def find_api(url: str, *, seconds: float = 30.0, tries: int = 4) -> str:
    """The URL of the wiki's api.php, with the user and password that `url` has. Raises `PageFault` where there is
    none, `SourceError` where there is no host."""
    fault: PageFault | None = None
    with closing(PoliteClient(seconds=seconds, tries=tries, max_bytes=5_000_000)) as client:
        for candidate in _candidates(url, client):
            try:
                if is_mediawiki(client.get(candidate, params=PROBE), printable_name(_without_user(candidate))):
                    return candidate
            except PageFault as error:
                fault = fault or error
    raise fault or PageFault("the wiki's api.php is not to be found from there")


def _candidates(url: str, client: PoliteClient) -> Iterator[str]:
    parts = urlsplit(url)
    if parts.path.endswith("/api.php"):
        yield urlunsplit((parts.scheme, parts.netloc, parts.path, "", ""))
        return
    try:
        page = client.get(url)
    except PageFault as fault:
        if fault.status not in {403, 404}:
            raise
    else:
        link = EDIT_URI.search(page.text[:HEAD_CHARACTERS])
        href = HREF.search(link[0]) if link else None
        if href:
            found = urlsplit(urljoin(page.url, html.unescape(href[1])))
            if found.hostname == parts.hostname:
                secret, at, _ = parts.netloc.rpartition("@")
                yield urlunsplit((found.scheme, secret + at + found.netloc, found.path, "", ""))
                return
    before, script, _ = parts.path.partition("/index.php")
    for guess in [f"{before}/api.php"] if script else GUESSES:
        yield urlunsplit((parts.scheme, parts.netloc, guess, "", ""))


def _without_user(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _options(options: SourceOptions) -> tuple[str, str, tuple[int, ...]]:
    """User, password, namespaces."""
    extra = options.extra
    if unknown := sorted(extra.keys() - OPTIONS):
        raise SourceError(
            f'A MediaWiki has no option "{printable_name(unknown[0][:60])}"; it has: {", ".join(sorted(OPTIONS))}.'
        )
    user, password = extra.get("user", ""), extra.get("password", "")
    if bool(user) != bool(password):
        raise SourceError("A MediaWiki's user and password go together; give both with --option, or none.")
    written = extra.get("namespaces", "")
    if written and not re.fullmatch(r"\d{1,5}(?:[,|]\d{1,5})*", written, re.ASCII):
        raise SourceError("The option namespaces takes numbers with commas between them, such as namespaces=0,4.")
    return user, password, tuple(sorted({int(number) for number in re.split("[,|]", written) if number}))
