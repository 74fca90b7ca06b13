"""Streams that unpack xz, lzma and 7z dumps with the standard library's decoders, a bounded piece at a time.

7-Zip's own readers in Python bring seven compiled packages, and push what they unpack instead of being read. A dump's
archive holds one file, packed with one method that the standard library knows; so only the container is read here.
"""

from __future__ import annotations

import bz2
import lzma
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from io import BufferedReader
from typing import Protocol

READ_BYTES = 65_536
MEMORY_LIMIT = 600 * 2**20
"""Of a decoder; `xz -9` needs 65 MB, 7-Zip's largest setting of old 260 MB."""
MAX_HEADER = 4 * 2**20
SEVEN_ZIP = b"7z\xbc\xaf\x27\x1c"
XZ = b"\xfd7zXZ\x00"
LZMA_ALONE = b"\x5d\x00\x00"
COPY, LZMA1, LZMA2, BZIP2 = b"\x00", b"\x03\x01\x01", b"\x21", b"\x04\x02\x02"
OTHER_METHODS = {
    b"\x03\x04\x01": "PPMd", b"\x04\x01\x08": "Deflate", b"\x04\x01\x09": "Deflate64",
    b"\x06\xf1\x07\x01": "a password", b"\x04\xf7\x11\x01": "Zstandard",
}  # fmt: skip


class PackingError(Exception):
    """What is wrong with a packed file, as the end of a sentence: "is damaged (…)"."""


class Decoder(Protocol):
    """`lzma.LZMADecompressor` and `bz2.BZ2Decompressor`."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


class _Copying:
    """The decoder of what is stored as it is."""

    eof = False
    needs_input = True
    unused_data = b""

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        return data


class XzStream:
    """An .xz or .lzma file; several of them one after the other are one, as `xz` itself has it."""

    def __init__(self, raw: BufferedReader) -> None:
        self._raw = raw
        self._decoder = lzma.LZMADecompressor(memlimit=MEMORY_LIMIT)

    def read1(self, size: int) -> bytes:
        """At most `size` bytes, b"" at the end. Raises EOFError at a break, `lzma.LZMAError` where it is damaged."""
        piece = b""
        while not piece:
            data = b""
            if self._decoder.eof:
                data = self._next_stream(self._decoder.unused_data)
                if not data:
                    return b""
                self._decoder = lzma.LZMADecompressor(memlimit=MEMORY_LIMIT)
            elif self._decoder.needs_input and not (data := self._raw.read(READ_BYTES)):
                raise EOFError
            piece = self._decoder.decompress(data, size)
        return piece

    def _next_stream(self, data: bytes) -> bytes:
        """Where the next one begins, after padding; b"" at the end of the file."""
        while not (rest := data.lstrip(b"\0")) and (data := self._raw.read(READ_BYTES)):
            pass
        return rest


@dataclass(slots=True)
class _Folder:
    """One packed stream of an archive and how it is unpacked."""

    method: bytes = b""
    properties: bytes = b""
    unpacked_size: int = 0
    checksum: int | None = None


@dataclass(slots=True)
class _Streams:
    """What an archive says of its streams."""

    position: int = 0
    sizes: list[int] = field(default_factory=list)
    folders: list[_Folder] = field(default_factory=list)
    files: int = 1
    """In the first folder."""


class SevenZipStream:
    """The one file in a 7z archive."""

    def __init__(self, raw: BufferedReader) -> None:
        """Reads the archive's header, which stands at its end. Raises `PackingError`."""
        self._raw = raw
        streams = _archive(raw)
        if len(streams.folders) > 1 or streams.files > 1:
            raise PackingError("holds several files; unpack it and give the dump's own path")
        self._folder = streams.folders[0]
        self._decoder = _decoder(self._folder)
        self._packed = streams.sizes[0]
        self._left = self._folder.unpacked_size
        self._checksum = 0
        raw.seek(32 + streams.position)

    def read1(self, size: int) -> bytes:
        """As `XzStream.read1`."""
        while self._left:
            data = b""
            if self._decoder.needs_input:
                data = self._raw.read(min(READ_BYTES, self._packed))
                self._packed -= len(data)
                if not data:
                    raise EOFError
            piece = self._decoder.decompress(data, min(size, self._left))[: self._left]
            if not piece and self._decoder.eof:
                raise EOFError
            if piece:
                self._left -= len(piece)
                self._checksum = zlib.crc32(piece, self._checksum)
                return piece
        if self._folder.checksum not in (None, self._checksum):
            raise lzma.LZMAError("its checksum is wrong")
        return b""


def _archive(raw: BufferedReader) -> _Streams:
    start = raw.read(32)
    if len(start) < 32:
        raise PackingError("is truncated; get the whole file")
    checksum, offset, size, header_checksum = struct.unpack("<IQQI", start[8:])
    if zlib.crc32(start[12:]) != checksum:
        raise PackingError("is damaged: its first bytes do not fit their checksum; get it again")
    if not size:
        raise PackingError("is an empty archive; give a MediaWiki dump")
    if size > MAX_HEADER or offset >= 2**62:
        raise PackingError(f"has a header of over {MAX_HEADER:,} bytes; it is refused")
    end = raw.seek(0, 2)
    raw.seek(32 + offset)
    header = raw.read(size)
    if len(header) < size:
        raise PackingError("is truncated: the archive's header, at its end, is missing; get the whole file")
    if zlib.crc32(header) != header_checksum:
        raise PackingError("is damaged: its header does not fit its checksum; get it again")
    for _ in range(3):  # a header is usually packed, too; once
        fields = _Fields(header)
        try:
            kind = fields.byte()
            streams = _streams(fields) if kind == 0x17 else _main_streams(fields)
        except (IndexError, struct.error) as error:
            raise PackingError("is damaged: its header makes no sense; get it again") from error
        if not streams.folders or not streams.sizes:
            raise PackingError("is an empty archive; give a MediaWiki dump")
        if 32 + streams.position + streams.sizes[0] > end or streams.folders[0].unpacked_size >= 2**62:
            raise PackingError("is damaged: its header says that it is longer than it is; get it again")
        if kind != 0x17:
            return streams
        header = _packed_header(raw, streams)
    raise PackingError("is damaged: its header is packed again and again; it is refused")


def _packed_header(raw: BufferedReader, streams: _Streams) -> bytes:
    folder = streams.folders[0]
    if folder.unpacked_size > MAX_HEADER or streams.sizes[0] > MAX_HEADER:
        raise PackingError(f"has a header of over {MAX_HEADER:,} bytes; it is refused")
    raw.seek(32 + streams.position)
    try:
        return _decoder(folder).decompress(raw.read(streams.sizes[0]), folder.unpacked_size)
    except (lzma.LZMAError, OSError) as error:
        raise PackingError(f"is damaged: its header cannot be unpacked ({error}); get it again") from error


def _decoder(folder: _Folder) -> Decoder:
    properties = folder.properties
    if folder.method == COPY:
        return _Copying()
    if folder.method == BZIP2:
        return bz2.BZ2Decompressor()
    options: dict[str, int] = {}
    if folder.method == LZMA1 and len(properties) == 5:
        rest, literal_context = divmod(properties[0], 9)
        position, literal_position = divmod(rest, 5)
        options = {"id": lzma.FILTER_LZMA1, "lc": literal_context, "lp": literal_position, "pb": position}
        options["dict_size"] = struct.unpack("<I", properties[1:])[0]
    elif folder.method == LZMA2 and len(properties) == 1 and properties[0] <= 40:
        bits = properties[0]
        options = {"id": lzma.FILTER_LZMA2, "dict_size": min(2**32 - 1, (2 | bits & 1) << (bits // 2 + 11))}
    if not options:
        method = OTHER_METHODS.get(folder.method, f"the method {folder.method.hex() or 'none'}")
        raise PackingError(f"is packed with {method}, which is not read; unpack it, or pack it as .xz or .bz2")
    if options["dict_size"] > MEMORY_LIMIT:
        raise PackingError(
            f"needs over {MEMORY_LIMIT >> 20} MB of memory to be unpacked; unpack it, or pack it as .bz2"
        )
    try:
        return lzma.LZMADecompressor(format=lzma.FORMAT_RAW, filters=[options])
    except (lzma.LZMAError, ValueError) as error:
        raise PackingError(f"is damaged: its header cannot be right ({error}); get it again") from error


@dataclass(slots=True)
class _Fields:
    """A header, read byte by byte. Raises IndexError at its end."""

    data: bytes
    at: int = 0

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def bytes(self, count: int) -> bytes:
        if count < 0 or self.at + count > len(self.data):
            raise IndexError
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self) -> int:
        """7-Zip's own form: the leading ones of the first byte say how many bytes follow."""
        first = self.byte()
        value = 0
        for shift in range(8):
            mask = 0x80 >> shift
            if not first & mask:
                return value | (first & (mask - 1)) << (8 * shift)
            value |= self.byte() << (8 * shift)
        return value

    def count(self) -> int:
        """A number of things, each of which takes a byte here or more."""
        if (number := self.number()) > len(self.data):
            raise IndexError
        return number


def _main_streams(fields: _Fields) -> _Streams:
    kind = fields.byte()
    if kind == 0x02:  # properties of the archive, which nobody writes
        while fields.byte():
            fields.bytes(fields.count())
        kind = fields.byte()
    return _streams(fields) if kind == 0x04 else _Streams()


def _streams(fields: _Fields) -> _Streams:
    streams = _Streams()
    parts: dict[int, Callable[[_Fields, _Streams], None]] = {0x06: _pack_info, 0x07: _folders, 0x08: _substreams}
    while part := parts.get(fields.byte()):
        part(fields, streams)
    return streams


def _pack_info(fields: _Fields, streams: _Streams) -> None:
    streams.position = fields.number()
    count = fields.count()
    while kind := fields.byte():
        if kind == 0x09:
            streams.sizes = [fields.number() for _ in range(count)]
        elif kind == 0x0A:
            _checksums(fields, count)
        else:
            raise IndexError


def _folders(fields: _Fields, streams: _Streams) -> None:
    if fields.byte() != 0x0B:
        raise IndexError
    count = fields.count()
    if fields.byte():
        raise PackingError("keeps its header elsewhere, which is not read; unpack it")
    streams.folders = [_folder(fields) for _ in range(count)]
    while kind := fields.byte():
        if kind == 0x0C:
            for folder in streams.folders:
                folder.unpacked_size = fields.number()
        elif kind == 0x0A:
            for folder, checksum in zip(streams.folders, _checksums(fields, count), strict=True):
                folder.checksum = checksum
        else:
            raise IndexError


def _folder(fields: _Fields) -> _Folder:
    if fields.count() != 1:
        raise PackingError("is packed in several steps, which is not read; unpack it, or pack it as .xz or .bz2")
    flags = fields.byte()
    method = fields.bytes(flags & 0x0F)
    if flags & 0x10:
        raise PackingError("is packed in several streams, which is not read; unpack it, or pack it as .xz or .bz2")
    return _Folder(method, fields.bytes(fields.count()) if flags & 0x20 else b"")


def _substreams(fields: _Fields, streams: _Streams) -> None:
    counts = [1] * len(streams.folders)
    while kind := fields.byte():
        if kind == 0x0D:
            counts = [fields.count() for _ in counts]
        elif kind == 0x09:
            for count in counts:
                for _ in range(count - 1):
                    fields.number()
        elif kind == 0x0A:
            unknown = sum(n for n, f in zip(counts, streams.folders, strict=True) if n != 1 or f.checksum is None)
            found = _checksums(fields, unknown)
            if counts == [1] and found:
                streams.folders[0].checksum = found[0]
        else:
            raise IndexError
    streams.files = sum(counts)


def _checksums(fields: _Fields, count: int) -> list[int | None]:
    known = [True] * count
    if not fields.byte():  # not all are there: one bit each
        bits = fields.bytes((count + 7) // 8)
        known = [bool(bits[number // 8] & 0x80 >> number % 8) for number in range(count)]
    return [struct.unpack("<I", fields.bytes(4))[0] if is_known else None for is_known in known]
