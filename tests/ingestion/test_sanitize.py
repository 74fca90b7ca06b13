"""Outside text made storable."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestion.sanitize import MAX_TITLE, clean_key, clean_text, clean_title, decode_bytes, printable_name

ANY_TEXT = st.text(alphabet=st.characters(codec=None, exclude_categories=()))


@pytest.mark.parametrize(
    ("given_text", "kept"),
    [
        ("caf\udc9a", "caf\ufffd"),
        ("\ud83d\ude00", "😀"),
        ("a\0b\x07c", "abc"),
        ("a\r\nb\rc\u2028d", "a\nb\nc\nd"),
        ("pass\u200bword\ufeff", "password"),
        ("sa\u00adlut", "salut"),
        ("safe\u202etxt", "safetxt"),
        ("hid\U000e0041\U000e0042den", "hidden"),
        ("x\u200d\u200d\u200cy", "xy"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("👩\u200d🚀", "👩\u200d🚀"),
        ("e\u0301", "é"),
    ],
)
def test_what_is_kept(given_text: str, kept: str) -> None:
    assert clean_text(given_text) == kept


@given(ANY_TEXT)
def test_cleaned_text_can_be_stored_and_cleaned_again(text: str) -> None:
    cleaned = clean_text(text)
    cleaned.encode()
    assert "\0" not in cleaned
    assert clean_text(cleaned) == cleaned


@given(ANY_TEXT)
def test_a_title_is_one_short_line(text: str) -> None:
    title = clean_title(text)
    assert len(title) <= MAX_TITLE
    assert title == " ".join(title.split())


@given(st.lists(ANY_TEXT, unique=True, min_size=2, max_size=2))
def test_different_keys_stay_different(keys: list[str]) -> None:
    first, second = (clean_key(key) for key in keys)
    same_to_a_reader = clean_text(keys[0]) == clean_text(keys[1]) == first
    assert first != second or same_to_a_reader


def test_long_keys_that_begin_alike_stay_apart() -> None:
    first, second = clean_key("x" * 10_000 + "1"), clean_key("x" * 10_000 + "2")
    assert first != second
    assert len(first) <= MAX_TITLE


def test_a_usual_key_stays_as_it_is() -> None:
    assert clean_key("Races/# Racial Traits.md") == "Races/# Racial Traits.md"


def test_a_file_name_for_a_message() -> None:
    assert printable_name("caf\udce9\n.md") == "caf\\xe9\\n.md"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("né à Lyon".encode(), "né à Lyon"),
        (codecs.BOM_UTF8 + "né".encode(), "né"),
        (codecs.BOM_UTF16_LE + "né 量".encode("utf-16-le"), "né 量"),
        (codecs.BOM_UTF16_BE + "né".encode("utf-16-be"), "né"),
        (codecs.BOM_UTF32_LE + "né".encode("utf-32-le"), "né"),
        ("Le café où l’on dînait hier.".encode("cp1252"), "Le café où l’on dînait hier."),
        ("caf\udc9a".encode("utf-8", "surrogatepass"), "caf\udc9a"),
        (b"", ""),
    ],
)
def test_encodings(data: bytes, text: str) -> None:
    assert decode_bytes(data) == text


@pytest.mark.parametrize(
    "data",
    [
        "A page in UTF-16 without a mark: né".encode("utf-16-le"),
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\xff\xfe\xd9",
        bytes(range(128, 256)),
        "Кто написал эту книгу".encode("cp1251"),
        "un café très bon".encode()[:8] + b"\xff" + "très bon à voir".encode(),
    ],
)
def test_what_is_no_text_is_named(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"not valid UTF-8 at byte [\d,]+; save the file as UTF-8"):
        decode_bytes(data)


def test_a_head_may_end_inside_a_character() -> None:
    assert decode_bytes("né".encode()[:2], cut=True) == "n"
