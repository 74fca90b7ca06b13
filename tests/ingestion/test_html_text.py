"""What a reader sees of HTML."""

from __future__ import annotations

import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestion.html_text import VisibleText, is_hidden


@pytest.mark.parametrize(
    ("source", "seen"),
    [
        ("a <b>b</b> &lt;c&gt;", "a b <c>"),
        ("a<br>b<hr/>c", "a\nb\nc"),
        ("<img src=x alt='a map'> <img alt=\"no\" hidden>", "a map "),
        ("a<!-- b -->c<!-- d", "ac"),
        ("a<script>b</script>c<style>d</style>e", "ace"),
        ("a<div hidden>b<div>c</div>d</div>e", "ae"),
        ("a<div style='display : none'>b", "a"),
        ("a<span style=font-size:0>b</span><span style=font-size:0.8em>c</span>", "ac"),
        ("a<span aria-hidden=true>b</span>c", "ac"),
        ("1 < 2 and 3 > 2", "1 < 2 and 3 > 2"),
        ("<td>a</td><td>b</td>", "a; b; "),
    ],
)
def test_what_is_seen(source: str, seen: str) -> None:
    assert VisibleText().feed(source) == seen


def test_hidden_until_closed_in_a_later_fragment() -> None:
    html = VisibleText()
    assert html.feed("a<div hidden>b") == "a"
    assert html.hidden
    assert html.feed("c</p>d") == ""
    assert html.feed("e</div>f") == "f"
    assert not html.hidden


def test_attributes() -> None:
    assert is_hidden(' class="x" hidden')
    assert not is_hidden(' class="hidden-track" style="overflow:hidden"')


@pytest.mark.parametrize("pattern", ["<a ", "<!--", "<div hidden>", "</div>", "<a b='", "&#", "<", "<img alt="])
def test_linear_time(pattern: str) -> None:
    started = time.process_time()
    VisibleText().feed(pattern * 100_000)
    assert time.process_time() - started < (2 if sys.gettrace() is None else 10)


@given(st.text(alphabet="ab<>/!-=\"' &;"))
def test_any_text(source: str) -> None:
    VisibleText().feed(source)
