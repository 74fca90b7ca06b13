"""HTML to readable text, and the loop of the child process in which that is done (see reader.py)."""

from __future__ import annotations

import os
import re
import resource
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import trafilatura
from trafilatura.metadata import extract_metadata

from server.web.decoding import visible
from server.web.reader import LENGTH_BYTES, Readable, ReadRequest

MAX_TAGS = 300_000
MAX_SPAN = 20
MAX_AUTHOR = 200
DAY = re.compile(r"[12][0-9]{3}-[01][0-9]-[0-3][0-9]")
LANGUAGE = re.compile(r"([A-Za-z]{2})(?:[-_]|$)")
HIDDEN_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden|(?:font-size|opacity)\s*:\s*0(?![.\d])")
HIDDEN = "descendant::*[@hidden or @aria-hidden='true' or @style]"
NOT_TEXT = frozenset({"script", "style", "template", "noscript", "svg", "head", "iframe", "object", "select"})
INLINE = frozenset(
    {"a", "abbr", "b", "bdi", "bdo", "cite", "code", "em", "font", "i", "kbd", "mark", "q", "s", "samp", "small"}
    | {"span", "strong", "sub", "sup", "u", "var", "wbr"}
)
EMPTY = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
)
"""Elements without an end tag."""


def readable(html: str, *, about: bool = False) -> Readable:
    """The main text of a page; all of its text where Trafilatura finds no main part. May take long: see reader.py."""
    if html.count("<") > MAX_TAGS:
        return Readable(problem=f"it has more than {MAX_TAGS} tags")
    html = html.replace("\x00", "")
    tree = trafilatura.load_html(html.encode(errors="replace"))
    if tree is None:
        return Readable(text=plain_text(html))
    title = _title(tree)
    asks_password = bool(tree.xpath("boolean(//input[@type='password'])"))
    author, published = _metadata(html) if about else ("", "")
    language = _language(tree)
    _drop_hidden(tree)
    text = trafilatura.extract(tree, include_comments=False, include_tables=True) or plain_text(html)
    return Readable(
        title=visible(title),
        text=visible(text),
        author=author,
        published=published,
        language=language,
        asks_password=asks_password,
    )


def plain_text(html: str) -> str:
    """All text that is not hidden, a line for each block; copes with any nesting, unlike libxml2 (256 levels)."""
    collector = _TextCollector()
    collector.feed(html)
    collector.close()
    lines = (" ".join(line.split()) for line in "".join(collector.pieces).splitlines())
    return visible("\n".join(line for line in lines if line))


class _TextCollector(HTMLParser):
    """Gathers text outside of hidden elements. `_hiding` holds the open elements since the first hidden one."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self._hiding: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in INLINE:
            self.pieces.append("\n")
        if tag in EMPTY:
            return
        if self._hiding or tag in NOT_TEXT or _is_hidden(dict(attrs)):
            self._hiding.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in INLINE:
            self.pieces.append("\n")
        if tag in self._hiding:
            while self._hiding.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        if not self._hiding:
            self.pieces.append(data)


def _is_hidden(attributes: dict[str, str | None]) -> bool:
    style = (attributes.get("style") or "").lower()
    return "hidden" in attributes or attributes.get("aria-hidden") == "true" or bool(HIDDEN_STYLE.search(style))


def _drop_hidden(tree: Any) -> None:
    """Take out what no reader sees, which may be meant for the model (field fault 28); Trafilatura would keep it.

    `tree` is an lxml element. Very wide cells go too: each column of a span becomes text.
    """
    for element in tree.xpath(HIDDEN):
        if element.getparent() is not None and _is_hidden(dict(element.attrib)):
            element.drop_tree()
    for cell in tree.xpath(f"//*[@colspan > {MAX_SPAN} or @rowspan > {MAX_SPAN}]"):
        cell.attrib.pop("colspan", None)
        cell.attrib.pop("rowspan", None)


def _title(tree: Any) -> str:
    for path in ("string(//meta[@property='og:title']/@content)", "string(//title)", "string(//h1)"):
        if title := " ".join(str(tree.xpath(path)).split()):
            return title[:500]
    return ""


def _metadata(html: str) -> tuple[str, str]:
    """(author, YYYY-MM-DD). From a tree of its own: Trafilatura takes apart the one it looks into."""
    found = extract_metadata(html)
    author = " ".join(visible(found.author or "").split())[:MAX_AUTHOR]
    published = found.date or ""
    return author, published if DAY.fullmatch(published) else ""


def _language(tree: Any) -> str:
    """The `lang` of the page, ISO 639-1; "" where it has none."""
    found = LANGUAGE.match(str(tree.xpath("string(/html/@lang)")))
    return found[1].lower() if found else ""


# --- the child process --------------------------------------------------------------------------------------------


def limit_memory(extra_bytes: int) -> None:
    """Let this process grow by no more than that. Only where /proc tells its size; elsewhere the time limit must do."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        size = int(statm.read_text().split()[0]) * resource.getpagesize() + extra_bytes
        resource.setrlimit(resource.RLIMIT_AS, (size, size))


def limit_time(cpu_seconds: float) -> None:
    """The kernel ends this process when it has used that much more, even if the parent is gone by then."""
    used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (int(used + cpu_seconds) + 1, hard))


def write_frame(stream: BinaryIO, payload: bytes) -> None:
    stream.write(len(payload).to_bytes(LENGTH_BYTES, "big") + payload)
    stream.flush()


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer one page after the other until there are no more."""
    while header := requests.read(LENGTH_BYTES):
        request = msgspec.msgpack.decode(requests.read(int.from_bytes(header, "big")), type=ReadRequest)
        limit_time(request.cpu_seconds)
        try:
            answer = readable(request.html, about=request.about)
        except MemoryError:
            answer = Readable(problem="it takes too much memory to read")
        except (ValueError, LookupError, RecursionError, TypeError, AttributeError) as error:
            answer = Readable(problem=f"it cannot be read ({type(error).__name__})")
        write_frame(answers, msgspec.msgpack.encode(answer))


def main() -> None:
    os.nice(5)  # questions of others must not wait for a hostile page
    limit_memory(int(sys.argv[1]))
    write_frame(sys.stdout.buffer, b"")  # ready
    serve(sys.stdin.buffer, sys.stdout.buffer)


if __name__ == "__main__":
    main()
