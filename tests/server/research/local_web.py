"""A small web of 60 real pages: 20 about a topic, 10 near-copies, 10 that must not be fetched, 20 about others."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from markdown_it import MarkdownIt

from graph.names import words
from tests.server.web.site import HTML, JSON, Reply, Request

FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
PAGE_SIZE = 10
ASAHI = "githubwiki_md_asahi/docs"
EASY = """alt/boot-process-guide fw/boot platform/pc-boot-differences platform/open-os-interop sw/m1n1-user-guide
    sw/tethered-boot sw/u-boot sw/linux-bringup platform/introduction alt/policy platform/stock-partition-layout
    sw/partitioning-cheatsheet""".split()
"""About the topic, in its own words."""
HIDDEN = """hw/soc/sep fw/nvram sw/macos-kernelcache fw/adt sw/deleting-an-install fw/macho-boot-protocol
    sw/tethered-boot-macos-host sw/m1n1-hypervisor""".split()
"""About it in words of their own: who asks for the title does not find them."""
COPIED = (*EASY[:6], *HIDDEN[:2])
OTHERS = 20
PRIVATE = (
    "http://127.0.0.1/boot",
    "http://[::1]/boot",
    "http://10.1.2.3/boot",
    "http://169.254.169.254/latest/boot",
    "http://inside.example/boot",
    "http://leads-inside.example/boot",
)
"""The last two do not look it: the one by its name, the other by where it redirects to."""
BLOCKED = tuple(f"https://www.spam{number}.example/boot" for number in range(4))


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalPage:
    title: str
    text: str
    html: bytes


@dataclass
class LocalWeb:
    """The pages by URL, and what was asked of the site."""

    pages: dict[str, LocalPage] = field(default_factory=dict)
    topic: list[str] = field(default_factory=list)
    """URLs of the 20, those that are hard to find last."""
    groups: dict[str, list[str]] = field(default_factory=dict)
    """URL → its copies."""
    forbidden: list[str] = field(default_factory=list)
    requests: list[tuple[str, str]] = field(default_factory=list)
    """(host, path)"""
    searches: list[str] = field(default_factory=list)
    _index: Mapping[str, Counter[str]] = field(default_factory=dict)

    def handle(self, request: Request) -> Reply:
        parts, host = urlsplit(request.target), request.headers["host"]
        if parts.path == "/search.json":
            return self._search(parse_qs(parts.query))
        self.requests.append((host, parts.path))
        if parts.path == "/robots.txt":
            return Reply(status=404)
        if host == "leads-inside.example":
            return Reply(status=302, headers={"Location": "http://127.0.0.1/secret"})
        page = self.pages.get(f"http://{host}{parts.path}")
        return Reply(headers=HTML, body=page.html) if page else Reply(status=404)

    def _search(self, query: Mapping[str, list[str]]) -> Reply:
        asked = query.get("q", [""])[0]
        self.searches.append(asked)
        start = (int(query.get("page", ["1"])[0]) - 1) * PAGE_SIZE
        found = [
            {"url": url, "title": self.pages[url].title, "content": " ".join(self.pages[url].text.split())[:200]}
            for url in self._ranked(asked)[start : start + PAGE_SIZE]
        ]
        return Reply(headers=JSON, body=json.dumps({"results": found}).encode())

    def _ranked(self, query: str) -> list[str]:
        """TF-IDF over pages that have most of the words."""
        if query == "lighthouse":  # whether the engine is up is asked so
            return list(self.pages)[:1]
        self._index = self._index or {url: _weights(page) for url, page in self.pages.items()}
        wanted = set(words(query))
        rarity = {
            word: math.log(len(self.pages) / (1 + sum(word in has for has in self._index.values()))) for word in wanted
        }
        scores = {
            url: sum(rarity[word] * (1 + math.log(has[word])) for word in wanted if has[word])
            for url, has in self._index.items()
            if 2 * sum(word in has for word in wanted) > len(wanted)
        }
        return sorted(scores, key=lambda url: (-scores[url], url))


def _weights(page: LocalPage) -> Counter[str]:
    return Counter([*words(page.text), *(3 * words(page.title))])


def build(wikis: Path) -> LocalWeb:
    web = LocalWeb()
    for number, name in enumerate((*EASY, *HIDDEN)):
        host = "asahi.example" if number < len(EASY) else "hardware.example"
        url = f"http://docs.{host}/{name.replace('/', '-')}"
        title, text = _markdown(wikis / ASAHI / f"{name}.md")
        web.pages[url] = _page(title, text)
        web.topic.append(url)
        if name in COPIED:
            copies = [f"http://mirror.{host}/{name.replace('/', '-')}"]
            copies += [f"http://m.{host}/{name.replace('/', '-')}"] if len(web.groups) < 2 else []
            web.groups[url] = copies
            for at, copy in enumerate(copies):
                web.pages[copy] = _page(title, _edited(text, at))
    _, first = _markdown(wikis / ASAHI / f"{EASY[0]}.md")
    for url in (*PRIVATE, *BLOCKED):
        web.pages[url] = _page("Booting Apple silicon Macs", first)
        web.forbidden.append(url)
    for number, (title, text) in enumerate(_others(wikis)):
        web.pages[f"http://other{number % 5}.example/{number}"] = _page(title, text)
    return web


def _others(wikis: Path) -> Iterator[tuple[str, str]]:
    files = sorted((wikis / "wiki_md_dnd_srd" / "Gameplay").rglob("*.md")) + sorted(
        (wikis / "wiki_md_dnd_srd" / "Monsters").glob("*.md")
    )
    large = [file for file in files if file.stat().st_size > 1500]
    for file in large[:OTHERS]:
        yield _markdown(file)


def _markdown(file: Path) -> tuple[str, str]:
    text = FRONT_MATTER.sub("", file.read_text(encoding="utf-8"))
    heading = re.search(r"^title: *(.+)$", file.read_text(encoding="utf-8"), re.MULTILINE) or re.search(
        r"^# (.+)$", text, re.MULTILINE
    )
    return heading[1].strip() if heading else file.stem, text


def _edited(text: str, number: int) -> str:
    """As mirrors do: a line before and after, a word in fifty changed."""
    tokens = text.split(" ")
    changed = [f"{token}s" if at % 50 == 7 + number and token.isalpha() else token for at, token in enumerate(tokens)]
    return f"This page was copied from elsewhere, number {number}.\n\n{' '.join(changed)}\n\nShare this with a friend."


def _page(title: str, text: str) -> LocalPage:
    body = MarkdownIt("commonmark").enable("table").render(text)
    html = (
        f"<!doctype html><html lang=en><head><meta charset=utf-8><title>{escape(title)}</title></head><body>"
        f"<nav><a href='/'>Home</a></nav><main><article><h1>{escape(title)}</h1>{body}</article></main></body></html>"
    )
    return LocalPage(title=title, text=text, html=html.encode())
