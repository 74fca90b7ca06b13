"""A dump's bytes as XML-safe text in small pieces: unpacked and decoded as they come, bombs and breaks named.

Memory stays at a few pieces whatever the file holds.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import lzma
import re
import zlib
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path

from graph.errors import SourceError
from ingestion.sources.dump_packed import LZMA_ALONE, SEVEN_ZIP, XZ, PackingError, SevenZipStream, XzStream

PACKED = (b"BZh", b"\x1f\x8b", SEVEN_ZIP, XZ, LZMA_ALONE)
"""How packed files begin that are read."""
PIECE_BYTES = 262_144
DECLARATION_BYTES = 1024
BOMB_RATIO = 400
"""Real dumps, full histories included, unpack to less than 200 times their size; bz2 can do a million."""
LZMA_BOMB_RATIO = 2_000
"""LZMA looks back so far that a page's thousand revisions take little more than one; it can do seven thousand."""
BOMB_FROM_BYTES = 64 * 2**20
DECLARATION = re.compile(r"\s*<\?xml\b[^>]{0,200}\?>")
ENCODING = re.compile(rb"<\?xml\b[^>]{0,150}?\bencoding\s*=\s*[\"']([A-Za-z][\w.:-]{0,40})[\"']")
# What XML 1.0 forbids, as characters and as references. One of them would end the reading of the whole dump.
FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
REFERENCE = re.compile(r"&#(?:x([0-9a-fA-F]{1,8})|([0-9]{1,10}));")
OPEN_REFERENCE = re.compile(r"&#?[0-9a-zA-Z]{0,10}\Z")


def xml_text(path: Path) -> Iterator[str]:
    """The document without its XML declaration. Raises `SourceError`, at a break after all that stands before it."""
    held = ""
    for number, piece in enumerate(_decoded(path, _unpacked(path))):
        declared = None if number else DECLARATION.match(piece)
        text = held + piece[declared.end() if declared else 0 :]
        # A reference may be cut in two by the end of a piece.
        cut = match.start() if (match := OPEN_REFERENCE.search(text, max(0, len(text) - 12))) else len(text)
        yield _xml_safe(text[:cut])
        held = text[cut:]
    yield _xml_safe(held)


def _xml_safe(text: str) -> str:
    text = FORBIDDEN.sub("\ufffd", text)
    return REFERENCE.sub(_safe_reference, text) if "&#" in text else text


def _safe_reference(match: re.Match[str]) -> str:
    code = int(match[1], 16) if match[1] else int(match[2])
    return match[0] if code <= 0x10FFFF and not FORBIDDEN.match(chr(code)) else "\ufffd"


def _decoded(path: Path, pieces: Iterator[bytes]) -> Iterator[str]:
    first = b""
    while len(first) < DECLARATION_BYTES and (piece := next(pieces, b"")):
        first += piece
    if not first:
        raise SourceError(f"{path} is empty; give a MediaWiki dump.")
    encoding = _encoding(path, first)
    decoder = codecs.getincrementaldecoder(encoding)("surrogatepass" if encoding.startswith("utf") else "strict")
    done = 0
    try:
        yield decoder.decode(first).lstrip("\ufeff")
        done += len(first)
        for piece in pieces:
            yield decoder.decode(piece)
            done += len(piece)
        decoder.decode(b"", True)
    except UnicodeDecodeError as error:
        raise SourceError(
            f"{path} is not valid {encoding.upper()} near byte {done + error.start:,} (unpacked); "
            "say its encoding in the XML declaration, or save it as UTF-8."
        ) from error


def _encoding(path: Path, start: bytes) -> str:
    marks = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
    for mark, encoding in marks.items():
        if start.startswith(mark):
            return encoding
    if start[:4] in (b"<\0?\0", b"<\0m\0"):
        return "utf-16-le"
    if start[:4] in (b"\0<\0?", b"\0<\0m"):
        return "utf-16-be"
    declared = match[1].decode() if (match := ENCODING.match(start.lstrip())) else "utf-8"
    if declared.lower().startswith(("utf-16", "utf-32", "ucs")):
        return "utf-8"  # the declaration itself could not be read so
    try:
        b"a".decode(declared, "replace")  # refuses codecs that are no encodings, such as zlib
        return codecs.lookup(declared).name
    except LookupError as error:
        raise SourceError(f'{path} says its encoding is "{declared}", which is unknown; save it as UTF-8.') from error


Stream = bz2.BZ2File | gzip.GzipFile | XzStream | SevenZipStream | BufferedReader


def _unpacked(path: Path) -> Iterator[bytes]:
    """The file's bytes, unpacked if it starts as bz2, gz, xz, lzma or 7z does, whatever its name."""
    try:
        with path.open("rb") as raw:
            start = raw.read(6)
            raw.seek(0)
            stream = _opened(raw, start)
            yield from _guarded(path, raw, stream)
    except PackingError as error:
        raise SourceError(f"{path} {error}.") from error
    except OSError as error:
        reason = error.strerror or error
        raise SourceError(f"{path} cannot be read ({reason}); check the file and its permissions.") from error


def _opened(raw: BufferedReader, start: bytes) -> Stream:
    if start.startswith(b"BZh"):
        return bz2.BZ2File(raw)
    if start.startswith(b"\x1f\x8b"):
        return gzip.GzipFile(fileobj=raw)
    if start == SEVEN_ZIP:
        return SevenZipStream(raw)
    return XzStream(raw) if start == XZ or start.startswith(LZMA_ALONE) else raw


def _guarded(path: Path, raw: BufferedReader, stream: Stream) -> Iterator[bytes]:
    done = 0
    packed = stream is not raw
    ratio = LZMA_BOMB_RATIO if isinstance(stream, XzStream | SevenZipStream) else BOMB_RATIO
    while True:
        try:
            piece = stream.read1(PIECE_BYTES)  # read() would lose what it holds at a break
        except EOFError as error:
            raise SourceError(
                f"{path} is truncated: its compressed data stops after {done:,} bytes of text; get the whole file."
            ) from error
        except (zlib.error, gzip.BadGzipFile, lzma.LZMAError) as error:
            raise SourceError(f"{path} is damaged after {done:,} bytes of text ({error}); get it again.") from error
        except OSError as error:
            if not packed or error.errno is not None:
                raise
            raise SourceError(f"{path} is damaged after {done:,} bytes of text ({error}); get it again.") from error
        if not piece:
            return
        done += len(piece)
        if packed and done > BOMB_FROM_BYTES and done > ratio * raw.tell():
            raise SourceError(f"{path} unpacks to over {ratio} times its size, as no dump does; it is refused.")
        yield piece
