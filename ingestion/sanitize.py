"""Text from outside made storable: what every title, path and page text passes through before anything reads it."""

from __future__ import annotations

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
    if key == (cleaned := clean_title(key)):
        return key
    lossless = unicodedata.normalize("NFC", " ".join(key.split())) if not SURROGATE.search(key) else ""
    if cleaned == lossless:
        return cleaned
    digest = hashlib.sha1(key.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()[:8]
    return f"{cleaned[: MAX_TITLE - 9]}~{digest}"


def printable_name(name: str) -> str:
    """A file name for a message: bytes that are no UTF-8 shown as `\\xff`, control characters escaped."""
    shown = name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return "".join(ch if ch.isprintable() else ch.encode("unicode_escape").decode() for ch in shown)
