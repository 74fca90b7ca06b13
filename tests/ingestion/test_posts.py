"""Posts' HTML to text."""

from __future__ import annotations

import time

import pytest

from graph.model import Link
from ingestion.posts import post_text


@pytest.mark.parametrize(
    ("cooked", "text"),
    [
        ("<p>One <strong>two</strong>\nthree</p><p>Four<br>five</p>", "One two three\n\nFour\nfive"),
        ("<ul><li>eels</li><li>salt<ul><li>fine</li></ul></li></ul>", "- eels\n- salt\n  - fine"),
        ('<pre><code class="lang-py">a = 1\n  b</code></pre>', "```py\na = 1\n  b\n```"),
        ("<p>Use <code>x</code>.</p>", "Use `x`."),
        (
            '<aside class="quote" data-username="ann"><div class="title"><img class="avatar" alt="a"> ann:</div>'
            "<blockquote><p>Said before.</p></blockquote></aside><p>Yes.</p>",
            "> Said before.\n\nYes.",
        ),
        ('<p><img src="x" alt="a map of the fen"> here</p>', "a map of the fen here"),
        ('<p>Fine <img class="emoji" alt=":smile:" src="x"></p>', "Fine"),
        ('<div class="poll"><ul><li>yes</li></ul></div><p>Vote.</p>', "Vote."),
        ("<p>a</p><!-- hidden --><p style='display:none'>b</p><script>c</script>", "a"),
        (
            '<div class="lightbox-wrapper"><a class="lightbox" href="/x.png"><img alt="a boat" src="x">'
            '<div class="meta"><span>boat.png 10x20 3 KB</span></div></a></div>',
            "a boat",
        ),
        ("<h2>Head</h2><p>Body</p>", "## Head\n\nBody"),
        (
            "<table><thead><tr><th>Fish</th><th>Price</th></tr></thead><tbody><tr><td>eel</td><td>3</td></tr></tbody>"
            "</table>",
            "Fish: eel; Price: 3",
        ),
        ("<p>a&#x200b;b&#xe0041;c</p>", "abc"),
        ("", ""),
        ("no markup at all", "no markup at all"),
        ("<p>open <b>tags", "open tags"),
    ],
)
def test_text(cooked: str, text: str) -> None:
    assert post_text(cooked).text == text


def test_links() -> None:
    cleaned = post_text('<p><a href="/t/x/5">there</a> and <a href="#top">here</a></p>')
    assert cleaned.links == (Link(target="/t/x/5", shown="there"),)


@pytest.mark.parametrize(
    "cooked",
    [
        "<div>" * 50_000 + "words",
        "<blockquote>" * 5_000 + "words",
        "<ul><li>" * 5_000 + "words",
        "<p " + " ".join(f"a{n}=1" for n in range(50_000)) + ">words</p>",
        "<" * 200_000 + " words",
        "<table><tr><th colspan=1000000>words</th></tr></table>",
        "<p>" + "words " * 200_000,
        "\ud800 words \x00",
    ],
)
def test_hostile_posts(cooked: str) -> None:
    started = time.process_time()
    assert "words" in post_text(cooked).text
    assert time.process_time() - started < 1.5
