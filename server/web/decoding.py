"""From the bytes of a response to text: unpacking within a limit, and what shows nothing."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterable, AsyncIterator

from graph.errors import DependencyFaultError

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


def visible(text: str) -> str:
    return text.translate(INVISIBLE)


def _packing_fault(why: str) -> DependencyFaultError:
    return DependencyFaultError(f"The page {why}.", dependency="web")
