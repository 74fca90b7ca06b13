"""PDF files, made here: text in order, bookmarks, what has no text, and what is damaged."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pypdf
import pytest

from graph.errors import SourceError
from graph.feed import Checkpoint, FeedItem
from graph.model import FailedPage, Page, SkippedPage
from ingestion.file_content import FileReader
from ingestion.sources.kinds import Place, SourceOptions
from ingestion.sources.pdf_folder import KIND, PdfFolder

PROSE = [
    "Port Lyre lies on the western coast, and its har-",
    "bour has been in use for more than four hundred",
    "years. The well-",
    "known eels are smoked there.",
    "A second paragraph begins here and goes on to the",
    "end of this line and of the next one.",
]


class SharedReader(FileReader):
    """One child process for all tests: it takes a while to start."""

    def close(self) -> None:
        pass


@pytest.fixture(scope="module")
def reader() -> Iterator[FileReader]:
    made = SharedReader("ingestion.pdf_text", seconds_per_megabyte=6.0)
    yield made
    FileReader.close(made)


def pdf(*pages: Sequence[str]) -> bytes:
    """A plain PDF 1.4 file with a line of text for each string."""
    objects: list[bytes] = [b"<</Type/Catalog/Pages 2 0 R>>", b"", b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"]
    kids = []
    for lines in pages:
        shown = "".join(f"({line.replace('(', '').replace(')', '')}) Tj 0 -14 Td " for line in lines)
        stream = f"BT /F1 11 Tf 72 720 Td {shown}ET".encode("latin-1")
        objects.append(b"<</Length %d>>stream\n%s\nendstream" % (len(stream), stream))
        resources = "/Resources<</Font<</F1 3 0 R>>>>"
        head = f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]{resources}/Contents {len(objects)} 0 R>>"
        objects.append(head.encode())
        kids.append(f"{len(objects)} 0 R")
    objects[1] = f"<</Type/Pages/Kids[{' '.join(kids)}]/Count {len(kids)}>>".encode()
    out = bytearray(b"%PDF-1.4\n")
    offsets = []
    for number, body in enumerate(objects, start=1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    out += b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, start)
    return bytes(out)


def rewritten(data: bytes, *, title: str = "", outline: Sequence[tuple[str, int]] = (), password: str = "") -> bytes:
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(data))
    if title:
        writer.add_metadata({"/Title": title, "/ModDate": "D:20240501120000Z"})
    parent: Any = None
    for words, number in outline:
        above = parent if words.startswith(" ") else None
        item = writer.add_outline_item(title=words.strip(), page_number=number, parent=above)
        parent = item if not words.startswith(" ") else parent
    if password:
        writer.encrypt(password, algorithm="RC4-128")
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def read(root: Path, reader: FileReader, only: str = "", base_url: str = "") -> dict[str, FeedItem]:
    items = list(PdfFolder(root=root, name="w", only=only, base_url=base_url, reader=reader).read())
    assert isinstance(items[-1], Checkpoint)
    return {item.key: item for item in items if not isinstance(item, Checkpoint)}


def page(item: FeedItem) -> Page:
    assert isinstance(item, Page), item
    return item


def test_paragraphs_are_mended(tmp_path: Path, reader: FileReader) -> None:
    (tmp_path / "port-lyre.pdf").write_bytes(pdf(["The Port", *PROSE], ["Last page."]))
    found = page(read(tmp_path, reader, base_url="https://isle.org/files")["port-lyre.pdf"])
    assert (found.title, found.aliases) == ("The Port", ("port lyre",))
    assert found.url == "https://isle.org/files/port-lyre.pdf"
    assert "its harbour has been in use for more than four hundred years." in found.text
    assert found.text.endswith("Last page.")


def test_bookmarks_are_sections(tmp_path: Path, reader: FileReader) -> None:
    pages = [["Port Lyre", "1 Trade", *PROSE], ["1.1 Eels", *PROSE], ["Something", *PROSE]]
    outline = [("Trade", 0), (" Eels", 1), ("Unseen heading", 2)]
    (tmp_path / "a.pdf").write_bytes(rewritten(pdf(*pages), title="All of Port Lyre", outline=outline))
    found = page(read(tmp_path, reader)["a.pdf"])
    assert (found.title, found.modified) == ("All of Port Lyre", "2024-05-01T12:00:00Z")
    sections = [(section.level, section.title, section.anchor) for section in found.sections]
    assert sections == [(2, "Trade", "page=1"), (3, "Eels", "page=2"), (2, "Unseen heading", "page=3")]
    for section in found.sections:
        assert found.text[section.start :].startswith(f"{'#' * section.level} {section.title}\n")


def test_running_heads_and_page_numbers_go(tmp_path: Path, reader: FileReader) -> None:
    pages = [["Handbook of the isle", f"Text number {n} of this book.", str(n)] for n in range(1, 7)]
    (tmp_path / "a.pdf").write_bytes(pdf(*pages))
    text = page(read(tmp_path, reader)["a.pdf"]).text
    assert "Handbook" not in text
    assert text.split() == " ".join(f"Text number {n} of this book." for n in range(1, 7)).split()


def test_what_has_no_text_is_skipped_and_what_is_damaged_fails(tmp_path: Path, reader: FileReader) -> None:
    good = pdf(["A good page.", *PROSE])
    (tmp_path / "good.pdf").write_bytes(good)
    (tmp_path / "scan.pdf").write_bytes(pdf([], []))
    (tmp_path / "locked.pdf").write_bytes(rewritten(good, password="x"))
    (tmp_path / "cut.pdf").write_bytes(good[:200])
    (tmp_path / "html.pdf").write_bytes(b"<html>not found</html>")
    (tmp_path / "nothing.pdf").write_bytes(b"")
    (tmp_path / "loop.pdf").write_bytes(good.replace(b"/Kids[5 0 R]", b"/Kids[2 0 R]"))
    (tmp_path / "notes.txt").write_text("no page")
    items = read(tmp_path, reader)
    found = {key: type(item) for key, item in items.items()}
    assert found.pop("loop.pdf") in (FailedPage, SkippedPage)
    assert found == {
        "good.pdf": Page,
        "scan.pdf": SkippedPage,
        "locked.pdf": SkippedPage,
        "cut.pdf": FailedPage,
        "html.pdf": FailedPage,
        "nothing.pdf": FailedPage,
    }
    locked, scan = items["locked.pdf"], items["scan.pdf"]
    assert isinstance(locked, SkippedPage)
    assert "password" in locked.reason
    assert isinstance(scan, SkippedPage)
    assert "only pictures" in scan.reason


def test_an_endless_file_costs_itself_alone(
    tmp_path: Path, reader: FileReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ingestion.file_content.MOST_SECONDS", 0.3)
    many = pdf(*[PROSE * 20] * 400)
    (tmp_path / "a.pdf").write_bytes(many)
    (tmp_path / "b.pdf").write_bytes(pdf(["Good.", *PROSE]))
    items = read(tmp_path, reader)
    assert isinstance(items["a.pdf"], FailedPage)
    assert "takes more than" in items["a.pdf"].reason
    assert isinstance(items["b.pdf"], Page)


def test_the_kind(tmp_path: Path, reader: FileReader) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(pdf(["A page."]))
    (tmp_path / "b.pdf").write_bytes(pdf(["Another."]))
    file = Place(shown="a.pdf", path=path, head=path.read_bytes()[:4096])
    assert KIND.fits(file) > 90
    assert KIND.fits(Place(shown="x", path=tmp_path, names=frozenset({"a.pdf", "b.pdf"}))) > 50
    assert KIND.fits(Place(shown="x", path=tmp_path, names=frozenset({"a.md", "b.md", "c.pdf"}))) < 20
    assert KIND.fits(Place(shown="x", url="https://x.org/")) == 0
    opened = KIND.open(file, SourceOptions(name="w"))
    assert isinstance(opened, PdfFolder)
    assert list(read(opened.root, reader, only=opened.only)) == ["a.pdf"]
    with pytest.raises(SourceError, match="no PDF"):
        KIND.open(Place(shown="x", path=path, head=b"PK"), SourceOptions(name="w"))
