"""A search engine and a few pages on 127.0.0.1 and 127.0.0.2, for commands in processes of their own."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

BIRDS = (
    "herring gull",
    "common gull",
    "great gull",
    "ivory gull",
    "little gull",
    "grey gull",
    "black gull",
    "sea gull",
)
NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight")


def page_html(number: int) -> str:
    """Some passages about the gulls of Norvik, each page's its own."""
    bird, count = BIRDS[number], 100 + number
    paragraphs = (
        f"The {bird} of Norvik nests on the roofs of the smokehouses, and {count} pairs were counted there in 2019.",
        f"A grown {bird} eats herring, sand eels and whatever the {NUMBERS[number]} trawlers of the harbour leave it.",
        f"In winter the {bird} leaves the harbour of Norvik and flies {count * 10} kilometres to the south.",
        f"The town of Norvik has protected every {bird} by law since {1900 + number}, when a warden was appointed.",
    )
    text = "".join(f"<p>{paragraph} {paragraph.replace('Norvik', 'the town')}</p>" for paragraph in paragraphs)
    return (
        f"<html lang=en><head><title>The {bird} of Norvik</title></head><body><article>{text}</article></body></html>"
    )


@dataclass
class SmallWeb:
    """`found` are the addresses that every search finds."""

    port: int = 0
    found: list[str] = field(default_factory=list)
    stall: float = 0.0
    """Seconds before each page."""
    requests: list[str] = field(default_factory=list)

    def page(self, number: int, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}/page/{number}"

    def answer(self, target: str) -> tuple[int, str, str]:
        self.requests.append(target)
        parts = urlsplit(target)
        if parts.path == "/search":
            first = parse_qs(parts.query).get("pageno", ["1"]) == ["1"]
            results = [
                {"url": url, "title": f"Gulls {n}", "content": "Gulls of Norvik.", "engine": "test"}
                for n, url in enumerate(self.found)
            ]
            return 200, "application/json", json.dumps({"results": results if first else []})
        if parts.path.startswith("/page/"):
            time.sleep(self.stall)
            return 200, "text/html; charset=utf-8", page_html(int(parts.path.removeprefix("/page/")))
        return 404, "text/plain", "nothing"


@contextmanager
def small_web() -> Iterator[SmallWeb]:
    web = SmallWeb()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, kind, body = web.answer(self.path)
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body.encode())))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: Any) -> None: ...

    # Every address of the machine's own network: 127.0.0.2 is another site.
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        web.port = server.server_address[1]
        with ThreadingHTTPServer(("127.0.0.2", web.port), Handler) as other:
            threads = [threading.Thread(target=each.serve_forever, args=(0.02,)) for each in (server, other)]
            for thread in threads:
                thread.start()
            try:
                web.found = [web.page(n, f"127.0.0.{1 + n % 2}") for n in range(6)]
                yield web
            finally:
                server.shutdown()
                other.shutdown()
                for thread in threads:
                    thread.join()
