"""From the bytes of an HTTP answer to text: unpacked within a limit, in the charset it names."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator

CHARSET = re.compile(
    r"utf-?8|utf-?16(?:[lb]e)?|us-ascii|ascii|iso-?8859-?\d+|latin-?1|windows-?\d+|cp\d+|koi8-[ru]|gb2312|gbk|gb18030"
    r"|big5(?:-?hkscs)?|euc[-_](?:jp|kr)|shift[-_]jis|iso-?2022-(?:jp|kr)|mac-?roman|tis-620",
    re.IGNORECASE,
)
"""Python's other codecs are no charsets of pages, and some are slow."""
HEADER_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w-]{2,20})")
META_CHARSET = re.compile(rb"<meta[^>]{0,200}charset\s*=\s*[\"']?([A-Za-z0-9_-]{2,20})", re.IGNORECASE)


def unpacked(pieces: Iterable[bytes], encoding: str, limit: int) -> Iterator[bytes]:
    """Pieces of which none is larger than `limit` + 1, so a bomb is never unpacked. Raises ValueError with half a
    sentence."""
    encoding = encoding.strip().lower()
    if encoding in {"", "identity"}:
        yield from pieces
        return
    if encoding not in {"gzip", "x-gzip", "deflate"}:
        raise ValueError("is packed in a way that was not asked for")
    unpacker = zlib.decompressobj(zlib.MAX_WBITS | 32)
    begun = False
    try:
        for piece in pieces:
            begun = begun or bool(piece)
            yield unpacker.decompress(piece, limit + 1)
            if unpacker.eof or unpacker.unconsumed_tail:  # a tail is left only where `limit` is passed
                return
    except zlib.error as error:
        raise ValueError("is not packed the way it says") from error
    if begun:
        raise ValueError("breaks off in the middle")


def decode(body: bytes, content_type: str) -> str:
    """By a byte order mark, the header's charset, or the page's own `<meta>`; else UTF-8, else Windows-1252."""
    declared = HEADER_CHARSET.search(content_type.lower())
    meta = META_CHARSET.search(body[:2048])
    named = declared[1] if declared else meta[1].decode() if meta else ""
    if body.startswith((b"\xff\xfe", b"\xfe\xff")):
        named = "utf-16"
    elif body.startswith(b"\xef\xbb\xbf"):
        named = "utf-8-sig"
    for charset in (named, "utf-8"):
        if charset == "utf-8-sig" or CHARSET.fullmatch(charset):
            try:
                return body.decode(charset)
            except (UnicodeDecodeError, LookupError):
                continue
    return body.decode("windows-1252", errors="replace")
