"""A MediaWiki's API in memory, that can also misbehave: pages, recent changes, logs, continuation, and its clock."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.server.web.site import JSON, Reply, Request

Query = Mapping[str, str]
START = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


@dataclass(slots=True)
class FakeWiki:
    """Pages by title as (revision, text). Every edit takes a second."""

    limit: int = 500
    """Rows in an answer."""
    texts: int = 50
    """Pages with text in an answer; the others come with the next."""
    generator: str = "MediaWiki 1.39.17"
    general: dict[str, str] = field(default_factory=dict)
    pages: dict[str, tuple[int, str]] = field(default_factory=dict)
    changes: list[dict[str, Any]] = field(default_factory=list)
    logs: list[dict[str, Any]] = field(default_factory=list)
    now: datetime = START
    edits: int = 0
    fault: Callable[[Query], Reply | None] = lambda _: None
    asked: list[Query] = field(default_factory=list)

    def edit(self, title: str, text: str, *, seconds: float = 1, told_at: datetime | None = None) -> None:
        self.now += timedelta(seconds=seconds)
        self.edits += 1
        self.pages[title] = (self.edits, text)
        row = {"rcid": self.edits, "revid": self.edits, "ns": 0, "title": title}
        self.changes.append({**row, "timestamp": stamp(told_at or self.now), "type": "edit"})

    def delete(self, title: str, *, logged: bool = True) -> None:
        """MediaWiki drops the changes of a page with it."""
        del self.pages[title]
        self.changes = [row for row in self.changes if row["title"] != title]
        if logged:
            self.log("delete", title)

    def log(self, kind: str, title: str, **params: object) -> None:
        self.now += timedelta(seconds=1)
        row = {"logid": len(self.logs) + 1, "type": kind, "action": kind, "ns": 0, "title": title, "params": params}
        self.logs.append({**row, "timestamp": stamp(self.now)})

    def __call__(self, request: Request) -> Reply:
        parts = urlsplit(request.target)
        query = dict(parse_qsl(parts.query))
        self.asked.append(query)
        if reply := self.fault(query):
            return reply
        if parts.path != "/w/api.php":
            return Reply(status=404)
        return answer(self._said(query), stamp(self.now))

    def _said(self, query: Query) -> dict[str, Any]:
        said: dict[str, Any] = {"query": {}}
        if "general" in query.get("siprop", "general"):
            said["query"]["general"] = {
                "generator": self.generator, "lang": "en-GB", "case": "first-letter", "server": "//wiki.hollin",
                "articlepath": "/wiki/$1", "base": "http://wiki.hollin/wiki/Main", **self.general,
            }  # fmt: skip
        if "namespaces" in query.get("siprop", ""):
            talk = {"id": 1, "name": "Talk"}
            said["query"]["namespaces"] = {"0": {"id": 0, "name": "", "content": True}, "1": talk}
        if "statistics" in query.get("siprop", ""):
            said["query"]["statistics"] = {"edits": self.edits, "pages": len(self.pages)}
        match query.get("list"):
            case "recentchanges":
                since = query.get("rcstart", "")
                rows = sorted(self.changes, key=lambda row: (row["timestamp"], row["rcid"]))
                self._list(said, query, "rc", [row for row in rows if row["timestamp"] >= since])
            case "logevents":
                since, title = query.get("lestart", ""), query.get("letitle")
                rows = [row for row in self.logs if row["timestamp"] >= since and title in (None, row.get("title"))]
                self._list(said, query, "le", rows)
            case "allpages":
                self._list(said, query, "ap", [{"title": title} for title in sorted(self.pages)])
        if "titles" in query:
            self._texts(said, query)
        return said

    def _list(self, said: dict[str, Any], query: Query, prefix: str, rows: list[dict[str, Any]]) -> None:
        start = int(query.get(f"{prefix}continue", 0))
        limit = self.limit if query.get(f"{prefix}limit") == "max" else int(query[f"{prefix}limit"])
        said["query"][query["list"]] = rows[start : start + limit]
        if len(rows) > start + limit:
            said["continue"] = {f"{prefix}continue": start + limit, "continue": "-||"}

    def _texts(self, said: dict[str, Any], query: Query) -> None:
        titles = query["titles"].split("|")
        assert len(titles) <= 50
        start = int(query.get("rvcontinue", 0))
        said["query"]["pages"] = [
            self._page(title, start <= place < start + self.texts) for place, title in enumerate(titles)
        ]
        if len(titles) > start + self.texts:
            said["continue"] = {"rvcontinue": start + self.texts, "continue": "||info"}

    def _page(self, title: str, whole: bool) -> dict[str, Any]:
        if title not in self.pages:
            return {"ns": 0, "title": title, "missing": True}
        revision, text = self.pages[title]
        page = {"ns": 0, "title": title, "pageid": 1, "redirect": text.startswith("#")}
        slots = {"main": {"contentmodel": "wikitext", "content": text}}
        return (
            {**page, "revisions": [{"revid": revision, "timestamp": stamp(START), "slots": slots}]} if whole else page
        )


def answer(said: Mapping[str, Any], clock: str = "2026-03-01T12:00:00Z", **headers: str) -> Reply:
    """Connections are closed, because the body of a form is not read."""
    body = json.dumps({"curtimestamp": clock, **said}).encode()
    return Reply(headers={**JSON, "Connection": "close", **headers}, body=body)


def error(code: str, **headers: str) -> Reply:
    return answer(
        {"error": {"code": code, "info": "words of the wiki's own"}}, **{"MediaWiki-API-Error": code, **headers}
    )


def stamp(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")
