"""A piece as one HTML page that stands alone: everything escaped, no script, numbers that lead to the references."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape

from server.answer.plain import BULLET, FENCE, place_of
from server.writing.markdown import ADDRESS, mark_of, marked, shown
from server.writing.model import Piece, Reference, SectionResult

MARKED = "\ufdd0{}\ufdd1"
"""Around a mark, until the text is escaped: characters that no text has."""
NONCHARACTERS = re.compile("[\ufdd0\ufdd1]")
MARK = re.compile("\ufdd0([^\ufdd0\ufdd1]*)\ufdd1")
NUMBER = re.compile(r"\[(\d{1,4})\]")
BOLD = re.compile(r"\*\*(?=\S)([^*\n]{1,300})\*\*")
STYLE = """
body { max-width: 44rem; margin: 2rem auto; padding: 0 1rem; font: 1rem/1.6 system-ui, sans-serif; }
mark { background: #fde2e2; color: #7a1f1f; font-size: .85em; }
table { border-collapse: collapse; font-size: .85em; } td, th { border: 1px solid #ccc; padding: .2rem .5rem; }
.failed, .about { color: #666; } ol { overflow-wrap: anywhere; }
"""
POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def piece_html(piece: Piece) -> str:
    """Nothing in it is fetched, and nothing runs."""
    numbers = {one.number for one in piece.references}
    language = f' lang="{escape(piece.language)}"' if piece.language else ""
    parts = [
        f'<!doctype html>\n<html{language}>\n<head>\n<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
        f"<title>{escape(piece.topic)}</title>\n<style>{STYLE}</style>\n</head>\n<body>",
        f"<h1>{escape(piece.topic)}</h1>",
        *(_section(section, numbers) for section in piece.sections),
        _references(piece),
        f'<p class="failed">{escape(piece.reason)}</p>' if piece.reason else "",
        _about(piece),
        "</body>\n</html>\n",
    ]
    return "\n".join(part for part in parts if part)


def _section(section: SectionResult, numbers: set[int]) -> str:
    head = f'<h2 id="section-{section.number}">{escape(section.heading)}</h2>'
    if section.state != "done":
        return f'{head}\n<p class="failed">This section could not be written: {escape(section.reason)}</p>'
    # One for one, as the claims' offsets are in it.
    text = NONCHARACTERS.sub("\ufffd", section.text)
    text = marked(text, section.claims, lambda claim: MARKED.format(NONCHARACTERS.sub("", mark_of(claim))))
    return "\n".join([head, *_blocks(text, numbers)])


def _blocks(text: str, numbers: set[int]) -> Iterator[str]:
    """Paragraphs, lists and code."""
    paragraph: list[str] = []
    items: list[str] = []
    code: list[str] | None = None
    for line in [*text.splitlines(), ""]:
        bullet = BULLET.match(line)
        if code is not None or FENCE.match(line):
            code, done = _code(code, line)
            if done is not None:
                yield from _closed(paragraph, items, numbers)
                yield done
            continue
        if (bullet and paragraph) or (not bullet and items) or not line.strip():
            yield from _closed(paragraph, items, numbers)
        if bullet:
            items.append(line[bullet.end() :])
        elif line.strip():
            paragraph.append(line)
    if code is not None:
        yield f"<pre>{escape(chr(10).join(code))}</pre>"
    yield from _closed(paragraph, items, numbers)


def _code(code: list[str] | None, line: str) -> tuple[list[str] | None, str | None]:
    """The lines of a code block so far, or the block that this line closes."""
    if code is None:
        return [], None
    if FENCE.match(line):
        return None, f"<pre>{escape(chr(10).join(code))}</pre>"
    return [*code, line], None


def _closed(paragraph: list[str], items: list[str], numbers: set[int]) -> Iterator[str]:
    if paragraph:
        yield f"<p>{'<br>'.join(_inline(line, numbers) for line in paragraph)}</p>"
    if items:
        yield "<ul>\n" + "\n".join(f"<li>{_inline(item, numbers)}</li>" for item in items) + "\n</ul>"
    paragraph.clear()
    items.clear()


def _inline(text: str, numbers: set[int]) -> str:
    def link(found: re.Match[str]) -> str:
        number = int(found[1])
        return f'<a href="#reference-{number}">[{number}]</a>' if number in numbers else found[0]

    text = NUMBER.sub(link, escape(text))
    return MARK.sub(r" <mark>\1</mark>", BOLD.sub(r"<strong>\1</strong>", text))


def _references(piece: Piece) -> str:
    if not piece.references:
        return ""
    return "<h2>References</h2>\n<ol>\n" + "\n".join(map(_reference, piece.references)) + "\n</ol>"


def _reference(one: Reference) -> str:
    name = escape(place_of(one.title, one.heading_path))
    if ADDRESS.fullmatch(one.url):
        name = f'<a href="{escape(one.url)}" rel="noreferrer">{name}</a>'
    elif one.url:
        name += f" ({escape(one.url)})"
    return f'<li id="reference-{one.number}">{name}</li>'


def _about(piece: Piece) -> str:
    rows = "\n".join(
        f"<tr><td>{escape(one.heading)}</td><td>{len(one.evidence)}</td><td>{one.tokens.context}</td>"
        f"<td>{shown(one.confidence)}</td><td>{one.rewrites}</td>"
        f"<td>{escape('; '.join(one.queries))}</td></tr>"
        for one in piece.sections
    )
    head = "".join(
        f"<th>{name}</th>" for name in ("section", "sources", "tokens", "confidence", "rewrites", "searched")
    )
    return f'<details class="about"><summary>Sections</summary>\n<table>\n<tr>{head}</tr>\n{rows}\n</table></details>'
