"""Web pages to main text: what stays, what goes, what hostile pages cost."""

from __future__ import annotations

import json
import logging
import re
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from lxml import html as lxml_html

from graph.model import Link, Section
from ingestion.killable import TooMuchError
from ingestion.main_content import MAX_HTML, HtmlContent, HtmlReader

WIKI = "https://wiki.example.org/docs/page.html"
PROSE = "Port Lyre lies on the western coast, and its harbour has been in use for more than four hundred years. "


@pytest.fixture(scope="module")
def reader() -> Iterator[HtmlReader]:
    made = HtmlReader()
    yield made
    made.close()


def read(reader: HtmlReader, body: str, head: str = "", html: str = "<html>") -> HtmlContent:
    return reader.read(f"{html}<head>{head}</head><body>{body}</body></html>", address=WIKI, name="a page")


def test_everything_a_page_may_hold(reader: HtmlReader) -> None:
    content = read(
        reader,
        f"""<nav><a href="/">Home</a></nav><main><h1>Port Lyre</h1><p>{PROSE * 2}See <a href="norvik.html#food">the
        village</a> and <code>x = 1</code>.</p><h2 id="trade">Trade<a class="headerlink" href="#trade">¶</a></h2>
        <ul><li>eels<ul><li>smoked</li></ul></li><li>salt</li></ul><ol><li>first</li><li>second</li></ol>
        <table><caption>Ships</caption><tr><th>Name</th><th>Year</th></tr><tr><td>Heron</td><td>1702</td></tr>
        <tr><td>Otter</td><td>1710</td></tr></table>
        <table><tr><th>Founded</th><td>1588</td></tr><tr><th>People</th><td>900</td></tr></table>
        <h3><span class="mw-headline" id="Code_of_law">Law</span><span class="mw-editsection">[edit]</span></h3>
        <pre><code class="language-py">def f():\n    return 1\n\nf()</code></pre><blockquote><p>{PROSE}</p></blockquote>
        </main><footer>© the authors</footer>""",
        head='<title>Port Lyre - Isle Wiki</title><meta property="og:site_name" content="Isle Wiki">',
        html='<html lang="en-GB">',
    )
    assert content.title == "Port Lyre"
    assert content.language == "en"
    assert content.text.split("\n\n") == [
        (PROSE * 2) + "See the village and `x = 1`.",
        "## Trade",
        "- eels\n  - smoked\n- salt",
        "1. first\n2. second",
        "Ships\nName: Heron; Year: 1702\nName: Otter; Year: 1710",
        "Founded: 1588\nPeople: 900",
        "### Law",
        "```py\ndef f():\n    return 1",
        "f()\n```",
        f"> {PROSE.strip()}",
    ]
    at = content.text.index
    assert content.sections == (
        Section(start=at("## Trade"), level=2, title="Trade", anchor="trade"),
        Section(start=at("### Law"), level=3, title="Law", anchor="Code_of_law"),
    )
    assert content.links == (Link(target="https://wiki.example.org/docs/norvik.html#food", shown="the village"),)
    assert content.addresses == ("https://wiki.example.org/", "https://wiki.example.org/docs/norvik.html#food")


@pytest.mark.parametrize(
    ("head", "body", "title"),
    [
        ("<title>Norvik | Isle Wiki</title>", "<h1>Isle Wiki</h1>", "Norvik"),
        ("<title>Norvik - a village - Isle Wiki</title>", "<h1>Norvik - a village</h1>", "Norvik - a village"),
        ("<title>Norvik</title>", "<h2>Food</h2>", "Norvik"),
        ("", "<h1>Norvik <small>(village)</small></h1>", "Norvik (village)"),
        ('<meta property="og:title" content="Norvik"><title>x</title>', "<h1>y</h1>", "Norvik"),
        (
            '<meta property="og:title" content="Norvik - Isle"><meta property="og:site_name" content="Isle">',
            "",
            "Norvik",
        ),
        ("", "", ""),
        ("<title>a\nb\u200b  c</title>", "", "a b c"),
    ],
)
def test_titles(reader: HtmlReader, head: str, body: str, title: str) -> None:
    assert read(reader, f"{body}<p>{PROSE}</p>", head).title == title


def test_what_a_page_says_of_itself(reader: HtmlReader) -> None:
    content = read(
        reader,
        f"<p>{PROSE}</p><a href='b'>b</a><a rel=nofollow href='c'>c</a><a href='mailto:x@y'>m</a><input type=password>"
        '<div id="mw-normal-catlinks"><a>Categories</a><ul><li><a>Ports</a></li><li><a>Towns</a></li></ul></div>',
        '<base href="/w/"><link rel="canonical" href="Port_Lyre"><meta name="robots" content="NOINDEX">'
        '<meta property="article:modified_time" content="2024-05-01T10:00:00+02:00">',
    )
    assert content.canonical == "https://wiki.example.org/w/Port_Lyre"
    assert content.addresses == ("https://wiki.example.org/w/b",)
    assert content.robots == "noindex"
    assert content.modified == "2024-05-01T08:00:00Z"
    assert content.categories == ("Ports", "Towns")
    assert content.asks_password


@pytest.mark.parametrize(
    "hidden",
    [
        "<!-- {} -->",
        '<div style="display: none">{}</div>',
        "<p hidden>{}</p>",
        '<p aria-hidden="true">{}</p>',
        "<div hidden=until-found><div><p>{}</p></div></div>",
        '<span style="font-size:0px">{}</span>',
        "<script>{}</script>",
        "<template><p>{}</p></template>",
        "<p>" + "".join(f"&#{0xE0000 + ord(ch)};" for ch in "ignore all") + "&#x200b;&#xd800;&#1;</p>",
        "<p>\u200b" + "".join(chr(0xE0000 + ord(ch)) for ch in "ignore all") + "</p>",
    ],
)
@pytest.mark.parametrize("around", [PROSE * 3, ""])
def test_hidden_text_is_never_text(reader: HtmlReader, hidden: str, around: str) -> None:
    text = read(reader, f"<p>{around}Visible.</p>{hidden.format('IGNORE ALL')}<p>End.</p>").text
    assert "IGNORE" not in text
    assert all(ord(ch) < 0xE0000 for ch in text)
    assert "Visible." in text


def test_text_between_blocks_is_kept(reader: HtmlReader) -> None:
    loose = "for any pair <i>u</i> of vectors, where it is <a href=p>the product</a>\noperation."
    body = f"<div><p>{PROSE * 2}</p>{loose}<p>{PROSE}</p></div>"
    assert "for any pair u of vectors, where it is the product operation." in read(reader, body).text


def test_a_short_page_and_a_page_of_links_are_pages(reader: HtmlReader) -> None:
    assert read(reader, "<h1>Norvik</h1><p>A village.</p>", "<title>Norvik</title>").text == "A village."
    items = "".join(f'<li><a href="{n}.html">Page {n}</a></li>' for n in range(40))
    links = read(reader, f"<ul>{items}</ul>")
    assert len(links.links) == 40
    assert links.list_items == 40


def test_an_unknown_make_of_page_keeps_its_structure(reader: HtmlReader) -> None:
    parts = "".join(
        f"<h2 id=h{n}>Part {n}</h2><p>{n}. {PROSE * 3}</p><ul><li>eels {n}</li><li>salt {n}</li></ul>" for n in range(6)
    )
    links = "".join(f"<li><a href=/{n}>Elsewhere {n}</a></li>" for n in range(20))
    content = read(reader, f"<div class=zq><ul>{links}</ul></div><div class=qz><div class=zz>{parts}</div></div>")
    assert [section.anchor for section in content.sections] == [f"h{n}" for n in range(6)]
    assert "- eels 3\n- salt 3" in content.text
    assert "Elsewhere" not in content.text


def test_formulas_are_an_option() -> None:
    image = r'<img class="mwe-math-fallback-image-inline" aria-hidden="true" alt="{\displaystyle a^{2}}" src="x">'
    body = f'<p>{PROSE * 2} Here <span class="mwe-math-element">{image}</span> is a square.</p>'
    for formulas, words in ((True, "Here a^{2} is a square."), (False, "Here is a square.")):
        reader = HtmlReader(formulas=formulas)
        assert read(reader, body).text.endswith(words)
        reader.close()


HOSTILE = {
    "a wide cell": "<table><tr><th colspan=1000000>wide</th></tr><tr><td colspan='99999999 '>cell</td></tr></table>",
    "many attributes": "<body " + " ".join(f"a{n}=1" for n in range(50_000)) + "><p>words</p></body>",
    "nested divs": "<div>" * 300 + "words" + "</div>" * 300,
    "deeply nested divs": "<div>" * 50_000 + "words",
    "nested lists": "<ul><li>" * 240 + "words",
    "nested quotes": "<blockquote>" * 240 + "words",
    "nested tables": "<table><tr><td>" * 200 + "words",
    "open tags": "<" * 1_000_000,
    "open comments": "<!--" * 200_000,
    "hidden nesting": "<div hidden>" * 20_000 + "words",
    "open entities": "&#x" * 300_000,
    "zero bytes": "\0" * 100_000,
    "a lone surrogate": "<p>caf\udc9a</p>",
    "nothing": "",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_pages(reader: HtmlReader, name: str) -> None:
    reader.read("<p>warm</p>", address=WIKI, name="warm")
    started = time.monotonic()
    content = reader.read(HOSTILE[name], address=WIKI, name=name)
    assert time.monotonic() - started < 2.5  # 1 s where nobody else works on this machine
    assert "words" not in HOSTILE[name] or name.startswith("hidden") or "words" in content.text
    assert largest_child() < 500_000_000


def largest_child() -> int:
    return max((child.memory_info().rss for child in psutil.Process().children()), default=0)


def test_a_page_that_is_too_slow_is_read_as_plain_text_and_named(caplog: pytest.LogCaptureFixture) -> None:
    slow = "<p " + " ".join(f"a{n}='>'" for n in range(60_000)) + "><p>words of the page</p>"
    reader = HtmlReader()
    with caplog.at_level(logging.WARNING):
        content = reader.read(slow, address=WIKI, name="slow.html")
    assert content.text.endswith("words of the page")
    assert re.search(r"slow.html: it takes more than .* read as plain text", caplog.text)
    assert reader.read("<p>next</p>", address=WIKI, name="next").text == "next"
    reader.close()


def test_a_page_that_is_too_large_fails_alone(reader: HtmlReader) -> None:
    with pytest.raises(TooMuchError, match="a page may have"):
        reader.read("x" * (MAX_HTML + 1), address=WIKI, name="large")


@pytest.mark.data
def test_shared_vectors_and_fuzz(reader: HtmlReader, data_dir: Path) -> None:
    for line in (data_dir / "fuzz/own_vectors/slow_html.jsonl").read_text().splitlines():
        vector = json.loads(line)
        reader.read(vector["html"] * vector["times"], address=WIKI, name="vector")
    for path in (data_dir / "fuzz/trafilatura").iterdir():
        started = time.monotonic()
        content = reader.read(path.read_bytes().decode(errors="replace"), address=WIKI, name=path.name)
        assert time.monotonic() - started < 2.5
        assert path.suffix != ".html" or content.text
    assert largest_child() < 500_000_000


EDIT_LINK = re.compile(r"\[\s*edit\s*\]")
"""The expected texts still have MediaWiki's edit links, which mission.md §1.4 takes out."""


@pytest.mark.data
@pytest.mark.parametrize("name", ["wikia", "wikipedia", "wikipedia-2", "wikipedia-3", "wikipedia-4"])
def test_main_content_against_the_expected(reader: HtmlReader, data_dir: Path, name: str) -> None:
    folder = data_dir / "wikis/html_rendered_wiki"
    expected = lxml_html.fromstring((folder / f"{name}.expected.html").read_text()).text_content()
    found = reader.read((folder / f"{name}.html").read_text(), address=WIKI, name=name).text
    wanted, got = (Counter(re.findall(r"\w+", text.lower())) for text in (EDIT_LINK.sub("", expected), found))
    both = 2 * (wanted & got).total() / (wanted.total() + got.total())
    assert both >= 0.97
