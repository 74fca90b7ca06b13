"""Packed dumps: xz, lzma and 7z, whole, in pieces, broken and hostile."""

from __future__ import annotations

import bz2
import contextlib
import lzma
import struct
import zlib
from pathlib import Path

import pytest

from graph.errors import SourceError
from ingestion.sources.dump_stream import xml_text

TEXT = "<mediawiki>" + "".join(f"<page>Smoked eels of Norvik, no. {n}.</page>" for n in range(20_000)) + "</mediawiki>"
DATA = TEXT.encode()


def number(value: int) -> bytes:
    """In 7-Zip's form, with all eight bytes."""
    return b"\xff" + struct.pack("<Q", value)


def seven_zip(
    data: bytes = DATA,
    method: bytes = b"\x21",
    properties: bytes = b"\x18",
    *,
    packed: bytes | None = None,
    files: int = 1,
    checksum: int | None = None,
    size: int | None = None,
) -> bytes:
    """An archive with one packed stream, its header as it is."""
    if packed is None:
        filters = [{"id": lzma.FILTER_LZMA2, "dict_size": 2**24}]
        packed = lzma.compress(data, format=lzma.FORMAT_RAW, filters=filters)
    coder = bytes([0x20 | len(method)]) + method + number(len(properties)) + properties
    sums = b"\x0a\x01" + struct.pack("<I", zlib.crc32(data) if checksum is None else checksum)
    header = (
        b"\x01\x04"
        + b"\x06" + number(0) + number(1) + b"\x09" + number(len(packed)) + b"\x00"
        + b"\x07\x0b" + number(1) + b"\x00" + number(1) + coder
        + b"\x0c" + number(len(data) if size is None else size) + sums + b"\x00"
        + (b"\x08\x0d" + number(files) + b"\x00" if files != 1 else b"") + b"\x00\x00"
    )  # fmt: skip
    start = struct.pack("<QQI", len(packed), len(header), zlib.crc32(header))
    return b"7z\xbc\xaf\x27\x1c\x00\x04" + struct.pack("<I", zlib.crc32(start)) + start + packed + header


def text_of(folder: Path, data: bytes) -> str:
    path = folder / "hollin.xml.7z"
    path.write_bytes(data)
    return "".join(xml_text(path))


def refusal(folder: Path, data: bytes) -> str:
    with pytest.raises(SourceError) as raised:
        text_of(folder, data)
    sentence = str(raised.value)
    assert "hollin.xml.7z" in sentence
    assert "\n" not in sentence
    return sentence


LZMA1_PROPERTIES = bytes([(2 * 5 + 0) * 9 + 3]) + struct.pack("<I", 2**20)
LZMA1_PACKED = lzma.compress(
    DATA, format=lzma.FORMAT_RAW, filters=[{"id": lzma.FILTER_LZMA1, "dict_size": 2**20, "lc": 3, "lp": 0, "pb": 2}]
)


@pytest.mark.parametrize(
    "packed",
    [
        lzma.compress(DATA),
        lzma.compress(DATA, format=lzma.FORMAT_ALONE),
        lzma.compress(DATA[:99]) + b"\0" * 8 + lzma.compress(DATA[99:]) + b"\0" * 4,
        seven_zip(),
        seven_zip(method=b"\x03\x01\x01", properties=LZMA1_PROPERTIES, packed=LZMA1_PACKED),
        seven_zip(method=b"\x04\x02\x02", properties=b"", packed=bz2.compress(DATA)),
        seven_zip(method=b"\x00", properties=b"", packed=DATA),
    ],
    ids=["xz", "lzma", "two xz", "7z lzma2", "7z lzma", "7z bzip2", "7z copy"],
)
def test_packed_text_is_read_whole(tmp_path: Path, packed: bytes) -> None:
    assert text_of(tmp_path, packed) == TEXT


@pytest.mark.parametrize(
    ("packed", "words"),
    [
        (lzma.compress(DATA)[:-2000], "is truncated: its compressed data stops after"),
        (lzma.compress(DATA)[:500] + b"x" * 99 + lzma.compress(DATA)[599:], "is damaged after"),
        (seven_zip()[:20], "is truncated"),
        (seven_zip()[:-20], "is truncated: the archive's header, at its end, is missing"),
        (b"7z\xbc\xaf\x27\x1c" + b"x" * 100, "is damaged: its first bytes do not fit their checksum"),
        (seven_zip()[:-5] + b"xxxxx", "is damaged: its header does not fit its checksum"),
        (seven_zip(checksum=7), "is damaged after"),
        (seven_zip(size=len(DATA) + 99), "is truncated: its compressed data stops after"),
        (seven_zip(files=3), "holds several files; unpack it"),
        (seven_zip(method=b"\x03\x04\x01", properties=b"xxxxx"), "is packed with PPMd, which is not read"),
        (seven_zip(method=b"\x06\xf1\x07\x01"), "is packed with a password, which is not read"),
        (seven_zip(method=b"\x77"), "is packed with the method 77, which is not read"),
        (seven_zip(properties=b"\x28"), "needs over 600 MB of memory to be unpacked"),
        (seven_zip(b"", packed=b"x"), "is empty"),
    ],
)
def test_what_cannot_be_read_gets_one_sentence(tmp_path: Path, packed: bytes, words: str) -> None:
    assert words in refusal(tmp_path, packed)


def test_what_stands_before_a_break_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.xz"
    path.write_bytes(lzma.compress(DATA)[:-2000])
    read: list[str] = []
    with pytest.raises(SourceError):
        read.extend(xml_text(path))
    assert len("".join(read)) > 100_000


@pytest.mark.parametrize("pack", [lzma.compress, seven_zip])
def test_a_bomb_is_refused(tmp_path: Path, pack: type[bytes]) -> None:
    assert "unpacks to over 2000 times its size" in refusal(tmp_path, pack(b"<a>" + b"x" * 90 * 2**20))


@pytest.mark.parametrize("cut", range(32, 140, 3))
def test_any_header_gets_a_sentence(tmp_path: Path, cut: int) -> None:
    """One byte of the archive's header changed, and its checksums made right again."""
    data = bytearray(seven_zip(b"<mediawiki/>"))
    size = struct.unpack("<Q", data[20:28])[0]
    at = len(data) - size + cut % size
    data[at] ^= 0xFF
    data[28:32] = struct.pack("<I", zlib.crc32(data[-size:]))
    data[8:12] = struct.pack("<I", zlib.crc32(data[12:32]))
    with contextlib.suppress(SourceError):
        assert text_of(tmp_path, bytes(data)).startswith("<mediawiki")
