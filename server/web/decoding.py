"""From the bytes of a response to text: unpacking within a limit, charset, and what shows nothing."""

from __future__ import annotations

import re
import zlib
from collections.abc import AsyncIterable, AsyncIterator

from graph.errors import DependencyFaultError

CHARSET = re.compile(
    r"utf-?8|utf-?16(?:[lb]e)?|us-ascii|ascii|iso-?8859-?\d+|latin-?1|windows-?\d+|cp\d+|koi8-[ru]|gb2312|gbk|gb18030"
    r"|big5(?:-?hkscs)?|euc[-_](?:jp|kr)|shift[-_]jis|iso-?2022-(?:jp|kr)|mac-?roman|tis-620",
    re.IGNORECASE,
)
"""Python's other codecs are no charsets of pages, and some are slow."""
META_CHARSET = re.compile(rb"<meta[^>]{0,200}charset\s*=\s*[\"']?([A-Za-z0-9_-]{2,20})", re.IGNORECASE)

INVISIBLE = dict.fromkeys(
    ch
    for first, last in (
        (0xAD, 0xAD),
        (0x180E, 0x180E),
        (0x200B, 0x200B),
        (0x200E, 0x200F),
        (0x202A, 0x202E),
        (0x2060, 0x206F),
        (0xFEFF, 0xFEFF),
        (0xE0000, 0xE007F),
    )
    for ch in range(first, last + 1)
)
"""Characters that show nothing, in which instructions for a model can be hidden. Not the joiners: scripts need them."""


async def decompressed(pieces: AsyncIterable[bytes], encoding: str, limit: int) -> AsyncIterator[bytes]:
    """Decoded pieces, none of which is larger than `limit` + 1: a bomb is never unpacked."""
    encoding = encoding.strip().lower()
    if encoding in {"", "identity"}:
        async for piece in pieces:
            yield piece
        return
    if encoding not in {"gzip", "x-gzip", "deflate"}:
        raise _packing_fault(f"is encoded as {encoding[:20]!r}, which was not asked for")
    unpacker = zlib.decompressobj(zlib.MAX_WBITS | 32)
    try:
        async for piece in pieces:
            yield unpacker.decompress(piece, limit + 1)
            if unpacker.unconsumed_tail or unpacker.eof:
                break
    except zlib.error as error:
        raise _packing_fault("is not packed the way it says") from error


def decode(body: bytes, content_type: str) -> str:
    """By the header's charset, else by a byte order mark or the page's own `<meta>`, else UTF-8, else Windows-1252."""
    declared = re.search(r"charset\s*=\s*[\"']?([\w-]{2,20})", content_type)
    meta = META_CHARSET.search(body[:2048])
    named = declared.group(1) if declared else meta.group(1).decode() if meta else ""
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


def visible(text: str) -> str:
    return text.translate(INVISIBLE)


def _packing_fault(why: str) -> DependencyFaultError:
    return DependencyFaultError(f"The page {why}.", dependency="web")
