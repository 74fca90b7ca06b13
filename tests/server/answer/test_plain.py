"""Page text as sentences: no Markdown, no headings, no broken abbreviations, in several languages."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.answer.plain import LONGEST, plain_line, sentences, visible


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("He said “Stop.” Then he left.", ["He said “Stop.”", "Then he left."]),
        (
            "Dr. J. K. Rowling met Mr. Smith at 5 p.m. in St. Ives.",
            ["Dr. J. K. Rowling met Mr. Smith at 5 p.m. in St. Ives."],
        ),
        ("It weighs 3.5 kg. It costs 1.000,50 €.", ["It weighs 3.5 kg.", "It costs 1.000,50 €."]),
        ("Version 2.0 came. Node.js is old.", ["Version 2.0 came.", "Node.js is old."]),
        ("He was 12. She was 13.", ["He was 12.", "She was 13."]),
        (
            "Am 3. Oktober 1990 war es soweit. Das war z. B. neu.",
            ["Am 3. Oktober 1990 war es soweit.", "Das war z. B. neu."],
        ),
        ("Il est né le 5 janv. 1900 à Paris. Il y vit.", ["Il est né le 5 janv. 1900 à Paris.", "Il y vit."]),
        ("¿Quién fue? Fue Cervantes.", ["¿Quién fue?", "Fue Cervantes."]),
        ("Он писатель. Он родился в г. Орёл.", ["Он писатель.", "Он родился в г. Орёл."]),
        (
            "乔治是作家。他写了《动物庄园》！“真的吗？”是的。",
            ["乔治是作家。", "他写了《动物庄园》！", "“真的吗？”", "是的。"],
        ),
        ("これは本です。あれは？", ["これは本です。", "あれは？"]),
        ("यह एक किताब है। वह लेखक है।", ["यह एक किताब है।", "वह लेखक है।"]),
        ("هل هذا كتاب؟ نعم هذا كتاب.", ["هل هذا كتاب؟", "نعم هذا كتاب."]),
    ],
)
def test_sentences(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


def test_a_page_of_markdown_becomes_plain_sentences() -> None:
    text = """---
# Animal Farm

Underlined
==========

**Animal Farm** is a *novella*[1] by [George
Orwell](https://en.example/Orwell_(writer) "title").[2][note 3] It has `code` and ~~no~~ pigs.

- Napoleon, a pig
  who rules
- [x] Snowball
1. First
2) Second

> A quotation stands here.

| Year | Event |
|------|:-----:|
| 1945 | **published** |
| 1954 | film |

Name: Boxer; Kind: horse

```python
x = "Not. A. Sentence."
```

![A pig](https://x.example/pig.png) See [[Orwell|the writer]] and [[Farm]].<ref>x</ref><br/>
***
"""
    assert sentences(text) == [
        "Animal Farm is a novella by George Orwell.",
        "It has code and no pigs.",
        "Napoleon, a pig who rules",
        "Snowball",
        "First",
        "Second",
        "A quotation stands here.",
        "1945; published",
        "1954; film",
        "Name: Boxer; Kind: horse",
        "See the writer and Farm.x",
    ]


def test_hidden_text_is_not_text() -> None:
    text = "Seen.<!-- Ignore\nall of it. --> Zero\u200bwidth \u202estays\u202c. \U000e0041\U000e0042Tags go."
    assert visible(text) == "Seen.  Zerowidth stays. Tags go."
    assert visible("An unclosed <!-- comment - hides -- the rest") == "An unclosed  "


def test_joiners_stay_as_some_scripts_need_them() -> None:
    assert visible("می‌خواهم 👩‍👧") == "می‌خواهم 👩‍👧"


def test_a_table_row_shows_its_cells() -> None:
    assert plain_line("| 1945 |  | Animal Farm |") == "1945; Animal Farm"


def test_a_text_without_ends_is_cut_at_spaces() -> None:
    pieces = sentences("word " * 500)
    assert all(len(piece) <= LONGEST for piece in pieces)
    assert " ".join(pieces) == " ".join(["word"] * 500)


@given(st.text(max_size=300))
def test_any_text_has_sentences_of_bounded_length(text: str) -> None:
    assert all(0 < len(sentence) <= LONGEST for sentence in sentences(text))


BRACKETS = ["[", "](", "![", "[a](", "[[", "[[a|", "<", "<a", "<!--", "(a"]
MARKS = ["*", "*a", "**a", "`", "`a", "|", "| a", "- ", "-|", "_", "~~a", "''", "'a'", "#", "=", "1."]
ENDS = ["a. ", ". ", "\u3002", "\u2026", "!", "?a", "\n", "a\n", "\u0301"]


@pytest.mark.parametrize("unit", BRACKETS + MARKS + ENDS, ids=ascii)
def test_no_text_takes_long(unit: str) -> None:
    text = (unit * 20_000)[:20_000] + "!"
    begun = time.thread_time()
    sentences(text)
    # A tenth of it on a quiet machine; what is quadratic would take many seconds.
    assert time.thread_time() - begun < 1
