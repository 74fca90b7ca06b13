"""Front matter, whole and broken."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestion.front_matter import FrontMatter, read_front_matter


def test_what_it_says() -> None:
    front, body = read_front_matter(
        "---\ntitle: Norvik\naliases: [Norvick, 'Nord vik']\ntags: fishing, west\ncategories:\n - Settlements\n"
        "lang: en-GB\ndate: 2024-05-01\nupdated: 2025-06-07T08:09:10+02:00\n---\n\n# Norvik\n"
    )
    assert front == FrontMatter(
        title="Norvik",
        aliases=("Norvick", "Nord vik"),
        categories=("Settlements", "fishing", "west"),
        language="en",
        modified="2025-06-07T08:09:10+02:00",
    )
    assert body == "# Norvik\n"


def test_toml_and_json() -> None:
    toml, body = read_front_matter('+++\ntitle = "Norvik"\ntags = ["west"]\ndate = 2019-05-06T17:00:00Z\n+++\ntext')
    assert (toml.title, toml.categories, toml.modified, body) == ("Norvik", ("west",), "2019-05-06T17:00:00Z", "text")
    json, body = read_front_matter('{\n"title": "Norvik"\n}\ntext')
    assert (json.title, body) == ("Norvik", "text")


@pytest.mark.parametrize(
    "line", ["published: false", "published: 'False'", "published: no", "draft: true", "published: 0"]
)
def test_unpublished(line: str) -> None:
    assert not read_front_matter(f"---\n{line}\n---\ntext")[0].published


def test_broken_front_matter_still_says_what_is_plain() -> None:
    front, body = read_front_matter("---\ntitle: Linux: USB\npublished: false\nlist: [a\n---\ntext")
    assert (front.title, front.published, body) == ("Linux: USB", False, "text")
    assert "front matter cannot be read" in front.fault


@pytest.mark.parametrize(
    "text", ["no front matter", "---\n\na rule, never closed", "---\nsome text\n---\nmore", "", "{a}"]
)
def test_what_is_no_front_matter_stays(text: str) -> None:
    assert read_front_matter(text) == (FrontMatter(), text)


def test_an_empty_one_goes() -> None:
    assert read_front_matter("---\n---\ntext") == (FrontMatter(), "text")


@pytest.mark.parametrize(
    "head",
    [
        "a: &a [x, x, x]\nb: &b [*a, *a, *a]\nc: &c [*b, *b, *b]\ntitle: *c",
        "title: " + "[" * 5000,
        "title: !!python/object/apply:os.system ['true']",
        "title:\n  nested: mapping",
        "date: yesterday\ntitle: 2024",
        "? complex\n: key",
        "a: " + " " * 60_000 + "b",
        "x: y\n" * 20_000,
    ],
)
def test_hostile_or_odd_front_matter(head: str) -> None:
    front, body = read_front_matter(f"---\n{head}\n---\ntext")
    assert body == "text"
    assert front.published


@given(st.text())
def test_any_head(head: str) -> None:
    read_front_matter(f"---\n{head}\n---\ntext")
    read_front_matter(f"+++\n{head}\n+++\ntext")


@pytest.mark.parametrize("line", ["publish: false", "public: no"])
def test_other_words_for_unpublished(line: str) -> None:
    assert not read_front_matter(f"---\n{line}\n---\ntext")[0].published


@pytest.mark.parametrize(
    "text",
    [
        "---\ntitle: Norvik\npublished: false\n\n# Norvik",
        "---\ntitle: Norvik\npublished: false\n\n# Norvik\n\nA village.\n\n---\n",
    ],
)
def test_front_matter_that_never_ends_still_hides_its_page(text: str) -> None:
    front, body = read_front_matter(text)
    assert (front.title, front.published, front.fault) == ("Norvik", False, "front matter is never closed")
    assert body.startswith("# Norvik")


def test_front_matter_in_an_html_comment() -> None:
    front, body = read_front_matter(
        "<!--\ntitle: Norvik\npublished: true\neditor: ckeditor\ntags: a, b\n-->\n\n<p>x</p>"
    )
    assert (front.title, front.editor, front.categories, body) == ("Norvik", "ckeditor", ("a", "b"), "<p>x</p>")
    for text in ("<!--\nNote: a remark\n-->\nx", "<!-- title: x -->\ny", "<!--\ntitle: never closed"):
        assert read_front_matter(text) == (FrontMatter(), text)
