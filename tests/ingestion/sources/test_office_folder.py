"""Office files, made here: what of them becomes text, what is left out, and what is damaged, locked or a bomb."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterator
from datetime import date, datetime
from pathlib import Path
from typing import Any

import docx
import odfdo
import openpyxl
import pptx
import pytest
from docx.opc.constants import RELATIONSHIP_TYPE
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls
from pptx.util import Inches

from graph.errors import SourceError
from graph.feed import Checkpoint, FeedItem
from graph.model import FailedPage, Link, Page, PageType, SkippedPage
from ingestion import office_content
from ingestion.file_content import FileReader
from ingestion.sources.detect import look_at, open_source, recognise
from ingestion.sources.kinds import SourceOptions
from ingestion.sources.office_folder import KIND, OfficeFolder

BOILERPLATE = "It is kept in the net loft, where the twine is tarred every spring. " * 4


class SharedReader(FileReader):
    """One child process for all tests: it takes a while to start."""

    def close(self) -> None:
        pass


@pytest.fixture(scope="module")
def reader() -> Iterator[FileReader]:
    made = SharedReader("ingestion.office_text", seconds_per_megabyte=10.0)
    yield made
    FileReader.close(made)


@pytest.fixture
def item(tmp_path: Path, reader: FileReader) -> Callable[[str, bytes], Page | SkippedPage | FailedPage]:
    """What one file of that name and content becomes."""

    def read(name: str, data: bytes) -> Page | SkippedPage | FailedPage:
        (tmp_path / name).write_bytes(data)
        folder = OfficeFolder(root=tmp_path, name="w", only=name, reader=reader)
        (found, checkpoint) = folder.read()
        assert isinstance(checkpoint, Checkpoint)
        assert isinstance(found, Page | SkippedPage | FailedPage)
        return found

    return read


Item = Callable[[str, bytes], Page | SkippedPage | FailedPage]


def saved(document: Any) -> bytes:
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def page_of(found: Page | SkippedPage | FailedPage) -> Page:
    assert isinstance(found, Page), found
    return found


# --- Word --------------------------------------------------------------------------------------------------------


def link(paragraph: Any, words: str, address: str) -> None:
    number = paragraph.part.relate_to(address, RELATIONSHIP_TYPE.HYPERLINK, is_external=True)
    paragraph._p.append(
        parse_xml(f'<w:hyperlink {nsdecls("w", "r")} r:id="{number}"><w:r><w:t>{words}</w:t></w:r></w:hyperlink>')
    )


def manual() -> Any:
    document = docx.Document()
    document.core_properties.title = ""
    document.core_properties.language = "en-GB"
    document.core_properties.modified = datetime(2024, 5, 1, 12)
    document.add_paragraph("Mending Nets", style="Title")
    document.add_paragraph(BOILERPLATE)
    document.add_heading("Tools", 1)
    document.add_paragraph("A needle", style="List Bullet")
    document.add_paragraph("of bone", style="List Bullet 2")
    document.add_paragraph("Twine", style="List Bullet")
    document.add_heading("Knots", 2)
    document.add_paragraph("Tie it", style="List Number")
    document.add_paragraph("Cut it", style="List Number")
    see = document.add_paragraph("See ")
    link(see, "the sails", "sails%20and%20ropes.docx#x")
    see.add_run(" or ")
    link(see, "the web", "https://example.org/")
    table = document.add_table(rows=3, cols=2)
    for row, words in enumerate((("Twine", "Price"), ("Tarred", "3.50"), ("Plain", "2"))):
        for column, word in enumerate(words):
            table.cell(row, column).text = word
    return document


def test_a_word_document(item: Item) -> None:
    page = page_of(item("manual.docx", saved(manual())))
    assert (page.title, page.aliases, page.language, page.modified) == (
        "Mending Nets",
        ("manual",),
        "en",
        "2024-05-01T12:00:00Z",
    )
    assert page.text == (
        f"{BOILERPLATE.strip()}\n\n## Tools\n\n- A needle\n  - of bone\n- Twine\n\n### Knots\n\n1. Tie it\n2. Cut it"
        "\n\nSee the sails or the web\n\nTwine: Tarred; Price: 3.50\nTwine: Plain; Price: 2"
    )
    assert [(section.level, section.title) for section in page.sections] == [(2, "Tools"), (3, "Knots")]
    assert all(page.text[section.start :].startswith("#") for section in page.sections)
    assert page.links == (Link(target="sails and ropes", shown="the sails"),)
    assert (page.page_type, page.url) == (PageType.ARTICLE, "manual.docx")


def test_what_of_a_word_document_is_not_its_text(item: Item) -> None:
    document = docx.Document()
    body = document.element.body
    document.sections[0].header.paragraphs[0].text = "Confidential header"
    paragraph = document.add_paragraph("Kept ")
    for xml in (
        '<w:del {} w:id="1" w:author="a"><w:r><w:delText>deleted</w:delText></w:r></w:del>',
        '<w:ins {} w:id="2" w:author="a"><w:r><w:t>inserted </w:t></w:r></w:ins>',
        "<w:r {}><w:rPr><w:vanish/></w:rPr><w:t>invisible</w:t></w:r>",
        '<w:r {}><w:rPr><w:vanish w:val="0"/></w:rPr><w:t>shown </w:t></w:r>',
        "<w:sdt {}><w:sdtContent><w:r><w:t>filled in</w:t></w:r></w:sdtContent></w:sdt>",
        "<w:r {}><w:instrText>PAGEREF x</w:instrText></w:r>",
    ):
        paragraph._p.append(parse_xml(xml.format(nsdecls("w"))))
    gallery = '<w:sdtPr><w:docPartObj><w:docPartGallery w:val="Table of Contents"/></w:docPartObj></w:sdtPr>'
    contents = (
        f"<w:sdt {nsdecls('w')}>{gallery}<w:sdtContent><w:p><w:r><w:t>Tools 3</w:t></w:r></w:p></w:sdtContent></w:sdt>"
    )
    body.insert(0, parse_xml(contents))
    held = "<w:sdtContent><w:p><w:r><w:t>Held.</w:t></w:r></w:p></w:sdtContent>"
    body.insert(len(body) - 1, parse_xml(f"<w:sdt {nsdecls('w')}>{held}</w:sdt>"))
    page = page_of(item("x.docx", saved(document)))
    assert page.text == "Kept inserted shown filled in\n\nHeld."


def test_merged_and_nested_tables(item: Item) -> None:
    document = docx.Document()
    table = document.add_table(rows=2, cols=3)
    for column, word in enumerate(("Port", "Spring", "Autumn")):
        table.cell(0, column).text = word
    table.cell(1, 0).text = "Lyre"
    table.cell(1, 1).merge(table.cell(1, 2)).text = "closed"
    frame = document.add_table(rows=1, cols=1)
    frame.cell(0, 0).text = "In a frame."
    inner = frame.cell(0, 0).add_table(rows=2, cols=2)
    for number, word in enumerate(("Eel", "Pound", "smoked", "9")):
        inner.cell(number // 2, number % 2).text = word
    page = page_of(item("x.docx", saved(document)))
    assert page.text == "Port: Lyre; Spring: closed\n\nIn a frame.\n\nEel: smoked; Pound: 9"


def test_headings_by_outline_level_in_styles_of_ones_own(item: Item) -> None:
    document = docx.Document()
    style = document.styles.add_style("Kapitel", 1)
    style.element.get_or_add_pPr().append(parse_xml(f'<w:outlineLvl {nsdecls("w")} w:val="1"/>'))
    based = document.styles.add_style("Kapitel rot", 1)
    based.base_style = style
    document.add_paragraph("Boote", style="Kapitel rot")
    document.add_paragraph("Ein Boot liegt am Steg.")
    assert page_of(item("x.docx", saved(document))).text == "### Boote\n\nEin Boot liegt am Steg."


# --- PowerPoint, Excel, OpenDocument -----------------------------------------------------------------------------


def test_a_presentation(item: Item) -> None:
    deck = pptx.Presentation()
    first = deck.slides.add_slide(deck.slide_layouts[1])
    first.shapes.title.text = "The harbour"
    body = first.placeholders[1].text_frame
    body.text = "Four hundred years old"
    below = body.add_paragraph()
    below.text, below.level = "rebuilt once", 1
    run = body.add_paragraph().add_run()
    run.text, run.hyperlink.address = "its nets", "nets.docx"
    first.notes_slide.notes_text_frame.text = "Mention the eels."
    second = deck.slides.add_slide(deck.slide_layouts[6])
    table = second.shapes.add_table(2, 2, Inches(1), Inches(1), Inches(4), Inches(1)).table
    for number, word in enumerate(("Year", "Catch", "1890", "12 t")):
        table.cell(number // 2, number % 2).text = word
    group = second.shapes.add_group_shape()
    group.shapes.add_textbox(0, 0, 100, 100).text_frame.text = "Within a group."
    hidden = deck.slides.add_slide(deck.slide_layouts[1])
    hidden.shapes.title.text = "Salaries"
    hidden._element.set("show", "0")
    page = page_of(item("talk_on-harbours.pptx", saved(deck)))
    assert page.title == "The harbour"
    assert page.aliases == ("talk on harbours",)
    assert page.text == (
        "## The harbour\n\n- Four hundred years old\n  - rebuilt once\n- its nets\n\nNotes: Mention the eels.\n\n"
        "## Slide 2\n\nYear: 1890; Catch: 12 t\n\nWithin a group."
    )
    assert page.links == (Link(target="nets", shown="its nets"),)


def test_a_workbook(item: Item) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Catch"
    for row in (
        ["Eels landed"],
        ["Year", "Tonnes", "Open", "First day", "By"],
        [1890, 12.5, True, date(1890, 3, 1), None],
        [1891, 3.0, False, datetime(1891, 3, 2, 5, 30), "Ada  Holm"],
        [],
        ["Port", "Boats"],
        ["Lyre", "=1+1"],
    ):
        sheet.append(row)
    book.create_sheet("Empty")
    secret = book.create_sheet("Wages")
    secret.append(["Ada", 9000])
    secret.sheet_state = "hidden"
    page = page_of(item("catch.xlsx", saved(book)))
    assert page.title == "catch"
    assert page.text == (
        "## Catch\n\nEels landed\n\n"
        "Year: 1890; Tonnes: 12.5; Open: yes; First day: 1890-03-01\n"
        "Year: 1891; Tonnes: 3; Open: no; First day: 1891-03-02 05:30; By: Ada Holm\n\n"
        "Port: Lyre"
    )


def odt() -> odfdo.Document:
    document = odfdo.Document("text")
    document.meta.title = "Sails and Ropes"
    document.meta.language = "de-AT"
    body = document.body
    body.clear()
    body.append(odfdo.Header(1, "Sails"))
    paragraph = odfdo.Paragraph("Canvas  is sewn, see ")
    paragraph.append(odfdo.Link("../manual.odt", text="the manual"))
    body.append(paragraph)
    inner = odfdo.List(["of hemp"])
    listed = odfdo.List(["Rope"])
    listed.get_item(position=0).append(inner)
    listed.append_item("Thread")
    body.append(listed)
    table = odfdo.Table("t")
    for row in (["Sail", "Area"], ["Jib", "9"], ["Main", "20"]):
        table.append_row(odfdo.Row(len(row)))
        table.set_row_values(table.height - 1, row)
    body.append(odfdo.Header(2, "Sizes"))
    body.append(table)
    noted = odfdo.Paragraph("The end.")
    noted.insert_annotation(after="end", body="A comment.", creator="x")
    body.append(noted)
    return document


def test_an_opendocument_text(item: Item) -> None:
    page = page_of(item("sails.odt", saved(odt())))
    assert (page.title, page.aliases, page.language) == ("Sails and Ropes", ("sails",), "de")
    assert page.text == (
        "## Sails\n\nCanvas is sewn, see the manual\n\n- Rope\n  - of hemp\n- Thread\n\n### Sizes\n\n"
        "Sail: Jib; Area: 9\nSail: Main; Area: 20\n\nThe end."
    )
    assert page.links == (Link(target="manual", shown="the manual"),)


# --- what is wrong with files ------------------------------------------------------------------------------------


def repacked(data: bytes, **parts: bytes) -> bytes:
    """An archive with some of its parts replaced or added; "/" and "." in names written as "__" and "_"."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        wanted = {name.replace("__", "/").replace("_xml", ".xml"): content for name, content in parts.items()}
        for name in old.namelist():
            if name not in wanted:
                new.writestr(name, old.read(name))
        for name, content in wanted.items():
            new.writestr(name, content)
    return out.getvalue()


LAUGHS = (
    b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "'
    + b"ha" * 1000
    + b'"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">'
    + b"".join(b'<!ENTITY %c "%s">' % (letter + 1, b"&%c;" % letter * 10) for letter in range(ord("b"), ord("i")))
    + b"]><x>&i;</x>"
)
COMPOUND = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(2000)
DOCX, ODT = saved(manual()), saved(odt())
ENCRYPTION = (
    b'<m:manifest xmlns:m="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"><m:file-entry m:full-path="content.xml">'
    b"<m:encryption-data/></m:file-entry></m:manifest>"
)
EVIL: dict[str, tuple[str, bytes, str]] = {
    "encrypted": ("x.docx", COMPOUND + "EncryptedPackage".encode("utf-16-le"), "it is encrypted"),
    "encrypted OpenDocument": ("x.odt", repacked(ODT, **{"META-INF__manifest_xml": ENCRYPTION}), "it is encrypted"),
    "before 2007": ("x.docx", COMPOUND, "before 2007"),
    "no archive": ("x.xlsx", b"hello", "damaged"),
    "empty": ("x.docx", b"", "damaged"),
    "cut off": ("x.docx", DOCX[: len(DOCX) // 2], "damaged"),
    "of another kind": ("x.pptx", DOCX, "damaged"),
    "a bomb": ("x.docx", repacked(DOCX, word__media__big=bytes(210 * 2**20)), "more than a document has"),
    "entities": ("x.docx", repacked(DOCX, word__document_xml=LAUGHS), ""),
    "entities in OpenDocument": ("x.odt", repacked(ODT, content_xml=LAUGHS), ""),
    "broken XML": ("x.docx", repacked(DOCX, word__document_xml=b"<w:document"), "damaged"),
}


@pytest.mark.parametrize("why", EVIL)
def test_what_cannot_be_read_is_named(item: Item, why: str) -> None:
    name, data, reason = EVIL[why]
    found = item(name, data)
    assert isinstance(found, FailedPage), found
    assert reason in found.reason
    assert len(found.reason) < 250


def test_an_endless_workbook_is_cut(item: Item) -> None:
    book = openpyxl.Workbook()
    book.active["A1"], book.active["B1"], book.active["XFD1048576"] = "Name", "Value", "far away"
    found = page_of(item("x.xlsx", saved(book)))
    assert found.text == "## Sheet\n\nName; Value"


def test_a_file_without_text_is_skipped(item: Item) -> None:
    assert isinstance(item("x.docx", saved(docx.Document())), SkippedPage)
    assert isinstance(item("x.xlsx", saved(openpyxl.Workbook())), SkippedPage)


# --- folders -----------------------------------------------------------------------------------------------------


def test_a_folder(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "manual.docx").write_bytes(DOCX)
    (tmp_path / "deep" / "sails.odt").write_bytes(ODT)
    (tmp_path / "~$manual.docx").write_bytes(b"open")
    (tmp_path / "broken.xlsx").write_bytes(b"PK\x03\x04")
    assert recognise(tmp_path).kind == "office"
    source = open_source(tmp_path, name="w", base_url="https://files.example.org/")
    items: list[FeedItem] = list(source.read())
    assert [getattr(found, "key", "") for found in items] == ["broken.xlsx", "deep/sails.odt", "manual.docx", ""]
    assert [found.url for found in items if isinstance(found, Page)] == [
        "https://files.example.org/deep/sails.odt",
        "https://files.example.org/manual.docx",
    ]
    assert recognise(tmp_path / "manual.docx").kind == "office"
    assert [found.key for found in open_source(tmp_path / "manual.docx").read() if isinstance(found, Page)] == [
        "manual.docx"
    ]


def test_beside_many_pages_of_another_kind_it_is_not_taken_for_office(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / f"{number}.md").write_text("# Page\n")
    (tmp_path / "x.docx").write_bytes(DOCX)
    assert recognise(tmp_path).kind == "markdown"


def test_without_the_extra_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(office_content, "LIBRARIES", {**office_content.LIBRARIES, ".docx": "no_such_library"})
    (tmp_path / "x.docx").write_bytes(DOCX)
    for place in (tmp_path, tmp_path / "x.docx"):
        with pytest.raises(SourceError, match=r"pip install 'trivet\[office\]'"):
            KIND.open(look_at(place), SourceOptions(name="w"))
    (found, _) = OfficeFolder(root=tmp_path, name="w").read()
    assert isinstance(found, FailedPage)
    assert "trivet[office]" in found.reason
    (tmp_path / "x.docx").unlink()
    (tmp_path / "x.odt").write_bytes(ODT)
    assert KIND.open(look_at(tmp_path), SourceOptions(name="w"))
    (tmp_path / "x.txt").write_text("x")
    with pytest.raises(SourceError, match="no Office file"):
        KIND.open(look_at(tmp_path / "x.txt"), SourceOptions(name="w"))
