"""A small web site for tests: real pages, a search over them, and some pages that misbehave.

`python -m tests.services.local_site PORT`. The pages are the sample wiki's plus `pages/*.md`, which hold facts
that are in no wiki, so that only the web leg can find them.
"""

from __future__ import annotations

import json
import re
import sys
import time
from dataclasses import dataclass
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from markdown_it import MarkdownIt

FOLDERS = (Path(__file__).parent / "pages", Path(__file__).resolve().parents[2] / "ingestion" / "sample_wiki")
FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
WIKI_LINK = re.compile(r"\[\[(?:[^\]|]*\|)?([^\]]*)\]\]")
PAGE_SIZE = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class SitePage:
    """A page as it is served and as it is searched."""

    title: str
    text: str
    html: str


def load_pages() -> dict[str, SitePage]:
    """Path → page."""
    pages: dict[str, SitePage] = {}
    for folder in FOLDERS:
        for file in sorted(folder.rglob("*.md")):
            text = WIKI_LINK.sub(r"\1", FRONT_MATTER.sub("", file.read_text(encoding="utf-8")))
            heading = re.search(r"^# (.+)$", text, re.MULTILINE)
            title = heading.group(1) if heading else file.stem.replace("-", " ").title()
            body = MarkdownIt().render(text)
            html = (
                f"<!doctype html><html><head><meta charset='utf-8'><title>{escape(title)}</title></head><body>"
                f"<nav><a href='/'>Home</a></nav><main><article>{body}</article></main></body></html>"
            )
            pages[f"/{file.relative_to(folder).with_suffix('.html')}"] = SitePage(title=title, text=text, html=html)
    return pages


def search(pages: dict[str, SitePage], query: str) -> list[tuple[str, SitePage]]:
    """Pages by how many of the query's words they have, the title counting thrice."""
    wanted = set(re.findall(r"\w+", query.lower()))

    def score(page: SitePage) -> int:
        words = set(re.findall(r"\w+", page.text.lower()))
        return len(wanted & words) + 2 * len(wanted & set(re.findall(r"\w+", page.title.lower())))

    ranked = sorted(pages.items(), key=lambda item: (-score(item[1]), item[0]))
    return [(path, page) for path, page in ranked if score(page)]


class Handler(BaseHTTPRequestHandler):
    """Serves `load_pages()`; `/slow`, `/gone`, `/broken`, `/login`, `/to-private` are the bad ones."""

    protocol_version = "HTTP/1.1"
    pages: dict[str, SitePage] = {}  # noqa: RUF012 - set once in main, before the first request

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        if parts.path == "/search.json":
            self._search(parse_qs(parts.query))
        elif page := self.pages.get(parts.path):
            self._send(200, "text/html; charset=utf-8", page.html.encode())
        elif parts.path == "/slow":
            time.sleep(20)
            self._send(200, "text/html", b"<p>At last.</p>")
        elif parts.path == "/broken":
            self._send(500, "text/html", b"<p>Oh no.</p>")
        elif parts.path == "/login":
            self._send(200, "text/html", b"<title>Log in</title><form><input type=password></form>")
        elif parts.path == "/to-private":
            self.send_response(302)
            self.send_header("Location", "http://169.254.169.254/latest/meta-data/")
            self.send_header("Content-Length", "0")
            self.end_headers()
        else:
            self._send(404, "text/html", b"<p>Not here.</p>")

    def _search(self, query: dict[str, list[str]]) -> None:
        begin = (int(query.get("page", ["1"])[0]) - 1) * PAGE_SIZE
        found = search(self.pages, query.get("q", [""])[0])[begin : begin + PAGE_SIZE]
        base = f"http://{self.headers['Host']}"
        results = [
            {"url": base + path, "title": page.title, "content": " ".join(page.text.split())[:200]}
            for path, page in found
        ]
        self._send(200, "application/json", json.dumps({"results": results}).encode())

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Quiet: the log is for faults."""


def main() -> None:
    Handler.pages = load_pages()
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()


if __name__ == "__main__":
    main()
