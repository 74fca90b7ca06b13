"""Text from outside made storable: what every title, path and page text passes through before anything reads it."""

from __future__ import annotations

import codecs
import hashlib
import re
import unicodedata

MAX_TITLE = 512

# Control characters but tab and newline; format characters that show nothing (zero-width space, word joiner, soft
# hyphen, byte order mark, bidirectional overrides, tag characters): words can be hidden in them or torn by them.
INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ufdd0-\ufdef\ufffe\uffff\U000e0000-\U000e007f]"
)
# Persian, Indic scripts and emoji need the two joiners; after anything else they hide text.
LONE_JOINER = re.compile(
    "(?<![\u0600-\u08ff\u0900-\u0dff\u0e00-\u109f\u1780-\u18af\ufb50-\ufdcf\ufe0f\u2600-\u27bf\U0001f000-\U0001faff])"
    "[\u200c\u200d]"
)
SURROGATE = re.compile("[\ud800-\udfff]")
BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32-le",  # before UTF-16, whose mark it begins with
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
UTF8_SEQUENCE = re.compile(rb"[\xc3-\xf4][\x80-\xbf]{2}|[\xc3\xc5\xc4][\x80-\xbf]")
LINE_END = re.compile("\r\n?|[\u2028\u2029\x0b\x0c\x85]")


def clean_text(text: str) -> str:
    """NFC, `\\n` line ends, no control, invisible or surrogate character.

    A pair of surrogates is joined, a lone one becomes U+FFFD. Offsets change, so it runs before any parsing.
    """
    if not text.isascii():
        if SURROGATE.search(text):
            text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        text = unicodedata.normalize("NFC", text)
        text = LONE_JOINER.sub("", text)
    return INVISIBLE.sub("", LINE_END.sub("\n", text))


def clean_title(title: str) -> str:
    """One line of at most `MAX_TITLE` characters; may be ""."""
    return " ".join(clean_text(title).split())[:MAX_TITLE].rstrip()


def clean_key(key: str) -> str:
    """A page's key. One that must be cut, or that loses characters, keeps apart from its likes by a hash."""
    if unicodedata.normalize("NFC", key) == (cleaned := clean_title(key)):
        return cleaned
    digest = hashlib.sha1(key.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()[:8]
    return f"{cleaned[: MAX_TITLE - 9]}~{digest}"


def printable_name(name: str) -> str:
    """A file name for a message: bytes that are no UTF-8 shown as `\\xff`, control characters escaped."""
    shown = name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return "".join(ch if ch.isprintable() else ch.encode("unicode_escape").decode() for ch in shown)


def decode_bytes(data: bytes, *, cut: bool = False) -> str:
    """The text of a file: UTF-8, UTF-16 or UTF-32 with a byte order mark, or what can only be Latin-1 (cp1252).

    `cut` allows the last character to be incomplete. Raises ValueError, with a sentence, for anything else.
    """
    marked = next((mark for mark in BYTE_ORDER_MARKS if data.startswith(mark)), b"")
    encoding = BYTE_ORDER_MARKS.get(marked, "utf-8")
    data = data[len(marked) :]
    try:
        return codecs.getincrementaldecoder(encoding)("surrogatepass").decode(data, not cut)
    except UnicodeDecodeError as error:
        if encoding == "utf-8" and (text := _decode_latin(data)):
            return text
        raise ValueError(f"not valid {encoding.upper()} at byte {error.start:,}; save the file as UTF-8") from error


def _decode_latin(data: bytes) -> str:
    """Text in cp1252, or "" where that would make no sense: binary, or UTF-8 that is merely damaged."""
    if b"\0" in data or UTF8_SEQUENCE.search(data):
        return ""
    try:
        text = data.decode("cp1252")
    except UnicodeDecodeError:
        return ""
    foreign = [ch for ch in text if not ch.isascii()]
    # Prose in a Latin alphabet: few letters carry an accent, and those that do are letters or quotes.
    letters = sum(ch.isalpha() or ch in "‘’“”–—…«»°§€£·ºª\xa0¿¡" for ch in foreign)
    return text if len(foreign) <= 0.25 * len(text) and letters >= 0.8 * len(foreign) else ""
