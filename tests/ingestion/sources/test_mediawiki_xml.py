"""MediaWiki dumps: what is read, and what hostile or broken ones do."""

from __future__ import annotations

import bz2
import gzip
import tracemalloc
from pathlib import Path

import pytest

from graph.errors import SourceError
from graph.model import FailedPage, Page, PageType, SkippedPage, SourceItem
from ingestion.sources import dump_stream
from ingestion.sources.kinds import Place, SourceOptions
from ingestion.sources.mediawiki_xml import KIND, MAX_PAGE_CHARACTERS, MediaWikiXml

SITE_INFO = """<siteinfo><sitename>Hollin</sitename><base>https://wiki.hollin/wiki/Main_Page</base>
<case>first-letter</case><namespaces><namespace key="0" /><namespace key="10">Šablons</namespace>
<namespace key="14">Kategorija</namespace></namespaces></siteinfo>"""


def revision(text: str, number: int = 7, date: str = "2025-01-02T03:04:05Z", rest: str = "") -> str:
    return f"<revision><id>{number}</id><timestamp>{date}</timestamp>{rest}<text>{text}</text></revision>"


def page(title: str, *revisions: str, ns: str = "<ns>0</ns>", redirect: str = "") -> str:
    return f"<page><title>{title}</title>{ns}<id>1</id>{redirect}{''.join(revisions)}</page>"


def dump(*pages: str, info: str = SITE_INFO) -> str:
    return f'<mediawiki version="0.11" xml:lang="en-GB">{info}{"".join(pages)}</mediawiki>'


def opened(path: Path, base_url: str = "") -> MediaWikiXml:
    return MediaWikiXml(path=path, name=path.name.partition(".")[0], base_url=base_url)


def read(folder: Path, xml: str | bytes, name: str = "hollin.xml") -> list[SourceItem]:
    path = folder / name
    path.write_bytes(xml if isinstance(xml, bytes) else xml.encode("utf-8", "surrogatepass"))
    return list(opened(path).read())


def read_broken(folder: Path, xml: str | bytes, name: str = "hollin.xml") -> tuple[list[SourceItem], str]:
    path = folder / name
    path.write_bytes(xml if isinstance(xml, bytes) else xml.encode("utf-8", "surrogatepass"))
    before: list[SourceItem] = []

    def read_on() -> None:
        for item in opened(path).read():
            before.append(item)

    with pytest.raises(SourceError) as raised:
        read_on()
    return before, str(raised.value)


def test_a_page(tmp_path: Path) -> None:
    (only,) = read(tmp_path, dump(page("Port Lyre", revision("A [[town]].\n== Food ==\nEels.[[Kategorija:Towns]]"))))
    assert isinstance(only, Page)
    assert (only.id, only.title, only.url) == ("hollin:Port Lyre", "Port Lyre", "https://wiki.hollin/wiki/Port_Lyre")
    assert (only.revision, only.modified, only.wiki_language) == ("7", "2025-01-02T03:04:05Z", "en")
    assert only.text == "A town.\n\n## Food\n\nEels."
    assert [link.target for link in only.links] == ["Town"]
    assert only.categories == ("Towns",)
    assert only.sections[0].anchor == "Food"


def test_a_base_url_of_the_owners(tmp_path: Path) -> None:
    path = tmp_path / "hollin.xml"
    path.write_text(dump(page("A b", revision("x"))))
    (only,) = opened(path, base_url="http://localhost:8080/w/").read()
    assert isinstance(only, Page)
    assert only.url == "http://localhost:8080/w/A_b"


@pytest.mark.parametrize(
    ("markup", "redirect", "target"),
    [
        ("#REDIRECT [[Norvik]]", "", "Norvik"),
        ("#redirect: [[norvik#Food|x]]", "", "Norvik"),
        ("\n#ПРЕНАСОЧВАНЕ [[Norvik]]", "", "Norvik"),
        ("#PĀRADRESĀCIJA [[Norvik]] {{x}}", "", "Norvik"),
        ("#転送 [[Norvik]]", "", "Norvik"),
        ("whatever", '<redirect title="Norvik#Food" />', "Norvik"),
        ("#REDIRECT [[mw:Portal]]", '<redirect title="mw:Portal" />', "mw:Portal"),
    ],
)
def test_redirects(tmp_path: Path, markup: str, redirect: str, target: str) -> None:
    (only,) = read(tmp_path, dump(page("Norvick", revision(markup), redirect=redirect)))
    assert isinstance(only, Page)
    assert (only.page_type, only.redirect_to, only.text) == (PageType.REDIRECT, target, "")


@pytest.mark.parametrize("markup", ["# see [[Norvik]]", "#see [[Norvik]] and others", "#1 [[Norvik]]"])
def test_what_is_no_redirect(tmp_path: Path, markup: str) -> None:
    (only,) = read(tmp_path, dump(page("Norvick", revision(markup))))
    assert isinstance(only, Page)
    assert only.page_type is not PageType.REDIRECT


def test_the_latest_revision_wins_in_any_order(tmp_path: Path) -> None:
    old = revision("old", 1, "2024-01-01T00:00:00Z")
    new = revision("new", 2, "2025-01-01T00:00:00Z")
    same_second = revision("newest", 3, "2025-01-01T00:00:00Z")
    for order in ([old, new, same_second], [same_second, new, old]):
        (only,) = read(tmp_path, dump(page("Norvik", *order)))
        assert isinstance(only, Page)
        assert (only.text, only.revision) == ("newest", "3")


@pytest.mark.parametrize(
    ("xml", "kind", "reason"),
    [
        ("<revision><id>1</id><text deleted='deleted' /></revision>", SkippedPage, "its text was deleted"),
        ("<revision><id>1</id></revision>", SkippedPage, "its text was deleted"),
        ("", SkippedPage, "it has no revision"),
        ("<revision><id>1</id><text /></revision>", SkippedPage, "empty"),
        (revision("body{}", rest="<model>css</model>"), SkippedPage, "its content is css, not wikitext"),
        (revision("x" * (MAX_PAGE_CHARACTERS + 1)), FailedPage, "more than 4,000,000 characters"),
    ],
)
def test_pages_that_are_left_out(tmp_path: Path, xml: str, kind: type, reason: str) -> None:
    left_out, kept = read(tmp_path, dump(page("Norvik", xml), page("Eel", revision("x"))))
    assert isinstance(left_out, kind)
    assert isinstance(left_out, SkippedPage | FailedPage)
    assert (left_out.key, left_out.reason) == ("Norvik", reason)
    assert isinstance(kept, Page)


def test_namespaces_by_number_and_by_name(tmp_path: Path) -> None:
    pages = [
        page("Kategorija:Ships", revision("x"), ns="<ns>14</ns>"),
        page("Category:Ships", revision("x"), ns=""),
        page("Talk:Eel", revision("x"), ns=""),
        page("Šablons:Box", revision("x"), ns=""),
        page("Re: zero", revision("x")),
    ]
    found = [item for item in read(tmp_path, dump(*pages)) if isinstance(item, Page)]
    assert [item.page_type for item in found] == ["category", "category", "talk", "template", "stub"]
    assert found[1].title == "Kategorija:Ships"
    assert found[4].title == "Re: zero"


def test_unknown_elements_and_other_slots_are_passed_over(tmp_path: Path) -> None:
    extra = "<content><role>meta</role><text>other</text></content><new attr='1'><a>b</a></new>"
    (only,) = read(
        tmp_path, dump(page("Norvik", revision("main", rest=extra)), info=SITE_INFO + "<unknown>x</unknown>")
    )
    assert isinstance(only, Page)
    assert only.text == "main"


@pytest.mark.parametrize(
    "pack", [bytes, bz2.compress, gzip.compress, lambda data: bz2.compress(data[:99]) + bz2.compress(data[99:])]
)
def test_packing_is_known_by_content(tmp_path: Path, pack: type[bytes]) -> None:
    (only,) = read(tmp_path, pack(dump(page("Norvik", revision("é"))).encode()), name="dump.bin")
    assert isinstance(only, Page)
    assert only.text == "é"


@pytest.mark.parametrize(
    ("encoding", "declared"),
    [
        ("utf-8", ""),
        ("utf-8-sig", ""),
        ("utf-16", "UTF-16"),
        ("utf-16-le", ""),
        ("utf-16-be", ""),
        ("utf-8", "UTF-16"),
        ("latin-1", "ISO-8859-1"),
        ("cp1251", "windows-1251"),
        ("shift_jis", "Shift_JIS"),
    ],
)
def test_encodings(tmp_path: Path, encoding: str, declared: str) -> None:
    word = {"cp1251": "вода", "shift_jis": "灯台"}.get(encoding, "café")
    declaration = f'<?xml version="1.0" encoding="{declared}"?>\n' if declared else ""
    (only,) = read(tmp_path, (declaration + dump(page(word, revision(word)), info="")).encode(encoding))
    assert isinstance(only, Page)
    assert (only.title.casefold(), only.text) == (word, word)


@pytest.mark.parametrize(
    ("title", "shown"),
    [
        ("caf\udc9a", "caf\ufffd"),
        ("caf&#xDC9A;", "caf\ufffd"),
        ("a\0b", "a\ufffdb"),
        ("a&#0;b", "a\ufffdb"),
        ("a\x07b", "a\ufffdb"),
    ],
)
def test_titles_that_xml_forbids(tmp_path: Path, title: str, shown: str) -> None:
    bad, good = read(tmp_path, dump(page(title, revision("x")), page("Norvik", revision("y"))))
    assert isinstance(bad, Page)
    assert isinstance(good, Page)
    assert (bad.title, good.title) == (shown[:1].upper() + shown[1:] if bad.title[0].isupper() else shown, "Norvik")


def test_a_very_long_title_is_cut_and_kept_apart(tmp_path: Path) -> None:
    first, second = read(
        tmp_path, dump(page("x" * 10_000 + "1", revision("a")), page("x" * 10_000 + "2", revision("b")))
    )
    assert isinstance(first, Page)
    assert isinstance(second, Page)
    assert len(first.title) == 512
    assert first.key != second.key


def test_a_reference_may_be_cut_by_the_end_of_a_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for size in range(1024, 1060):
        monkeypatch.setattr(dump_stream, "PIECE_BYTES", size)
        xml = dump(page("Norvik", revision("word " * 150 + "&amp;&#233;&#xE9;&#0;&amp; " * 30)))
        (only,) = read(tmp_path, xml)
        assert isinstance(only, Page)
        assert only.text.endswith("&éé\ufffd&")


def test_a_redirect_that_only_says_that_it_is_one(tmp_path: Path) -> None:
    """Schemas 0.4 and 0.5; then any word before the link will do."""
    (only,) = read(tmp_path, dump(page("Norvick", revision("#umleitung [[Norvik]]"), redirect="<redirect />")))
    assert isinstance(only, Page)
    assert only.redirect_to == "Norvik"


def test_a_dump_without_texts_says_so(tmp_path: Path) -> None:
    (only,) = read(tmp_path, dump(page("Norvik", "<revision><id>1</id><text id='7' bytes='310' /></revision>")))
    assert isinstance(only, SkippedPage)
    assert only.reason == "this dump holds no texts (it is a stub dump)"


def test_a_long_history_is_never_in_memory_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "history.xml"
    with path.open("w") as file:
        file.write(dump().removesuffix("</mediawiki>") + "<page><title>Norvik</title><ns>0</ns><id>1</id>")
        for number in range(400):
            date = f"2024-01-01T00:{number * 7 % 400 // 60:02}:{number * 7 % 400 % 60:02}Z"
            file.write(revision(f"version {date} " + "word " * 20_000, number, date))
        file.write("</page></mediawiki>")
    tracemalloc.start()
    (only,) = opened(path).read()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert isinstance(only, Page)
    assert only.text.startswith("version 2024-01-01T00:06:39Z")
    assert peak < 20 * 2**20


def test_parts_of_one_dump_in_a_folder(tmp_path: Path) -> None:
    for number, name in ((1, "1.xml-p1p9"), (2, "2.xml-p10p19"), (10, "10.xml-p20p29")):
        (tmp_path / f"hollin-pages-articles{name}.bz2").write_bytes(
            bz2.compress(dump(page(f"Page {number}", revision("x"))).encode())
        )
    (tmp_path / "hollin-pages-articles-index.txt").write_text("no dump")
    place = Place(shown=str(tmp_path), path=tmp_path, names=frozenset(file.name for file in tmp_path.iterdir()))
    assert KIND.fits(place) == 60
    source = KIND.open(place, SourceOptions(name="hollin", base_url="http://h/w/"))
    assert [item.key for item in source.read() if isinstance(item, Page)] == ["Page 1", "Page 2", "Page 10"]


@pytest.mark.parametrize(
    ("name", "head", "sure"),
    [
        ("a.xml", dump().encode(), 100),
        ("a.xml", ('<?xml version="1.0"?>' + dump()).encode("utf-16"), 100),
        ("a.xml.bz2", b"BZh9...", 90),
        ("a.xml.7z", b"7z\xbc\xaf\x27\x1c\x00\x04", 90),
        ("a.bin", b"\xfd7zXZ\x00...", 40),
        ("a.xml", b"<?xml version='1.0'?><rss>", 20),
        ("a.html", b"<html>", 5),
        ("a.md", b"# Norvik", 0),
    ],
)
def test_how_sure_a_file_is_a_dump(name: str, head: bytes, sure: int) -> None:
    assert KIND.fits(Place(shown=name, path=Path(name), head=head[:4096])) == sure


def test_a_url_and_an_empty_folder_are_no_dump(tmp_path: Path) -> None:
    assert KIND.fits(Place(shown="x", url="https://x.example")) == 0
    options = SourceOptions(name="hollin")
    with pytest.raises(SourceError, match="is a URL, and a MediaWiki dump is a file"):
        KIND.open(Place(shown="https://x.example", url="https://x.example"), options)
    with pytest.raises(SourceError, match="holds no MediaWiki dump"):
        KIND.open(Place(shown="x", path=tmp_path), options)


BOMB = """<!DOCTYPE mediawiki [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>"""


@pytest.mark.parametrize(
    "doctype",
    [
        BOMB,
        "<!DOCTYPE mediawiki>",
        '<!DOCTYPE mediawiki SYSTEM "file:///etc/passwd">',
        "<!DOCTYPE m [<!ENTITY % p 'x'>%p;]>",
    ],
)
def test_a_dtd_is_refused(tmp_path: Path, doctype: str) -> None:
    pages, sentence = read_broken(tmp_path, '<?xml version="1.0"?>' + doctype + dump(page("Norvik", revision("&b;"))))
    assert pages == []
    assert "document type declaration (DTD)" in sentence
    assert "hollin.xml" in sentence


def test_the_billion_laughs(tmp_path: Path, data_dir: Path) -> None:
    _, sentence = read_broken(tmp_path, (data_dir / "fuzz/payloadsallthethings/billion_laughs.xml").read_bytes())
    assert "DTD" in sentence


@pytest.mark.parametrize("pack", [bz2.compress, gzip.compress])
@pytest.mark.parametrize("keep", [0.5, 0.98])
def test_a_truncated_dump_gives_its_pages_then_one_error(tmp_path: Path, pack: type[bytes], keep: float) -> None:
    noise = [f"{number * 7919 % 100_003}" for number in range(40_000)]
    pages = [page(f"Page {number}", revision(" ".join(noise[number::50]))) for number in range(50)]
    packed = pack("".join([dump(*pages)] * 1).encode())
    before, sentence = read_broken(tmp_path, packed[: int(len(packed) * keep)])
    assert "is truncated" in sentence
    assert all(isinstance(item, Page) for item in before)
    if pack is gzip.compress:
        assert len(before) > 50 * keep - 5


def test_pages_before_the_break_of_a_bz2_are_read(tmp_path: Path) -> None:
    half = dump(page("Norvik", revision("word " * 500))).removesuffix("</mediawiki>").encode()
    rest = (page("Eel", revision("word " * 99)) * 99).encode()
    before, sentence = read_broken(tmp_path, bz2.compress(half) + bz2.compress(rest)[:-30])
    assert [item.key for item in before] == ["Norvik"]
    assert "is truncated" in sentence


@pytest.mark.parametrize(
    ("xml", "words"),
    [
        (dump(page("Norvik", revision("x")))[:-5], "breaks off after 1 pages"),
        (dump(page("Norvik", revision("x")), "<page><title>a</b></page>"), "breaks off after 1 pages (mismatched tag"),
        ("<mediawiki><page><title>a", "is no readable XML"),
        ("<html><body>Login</body></html>", "is no MediaWiki dump: its outermost element is <html>"),
        ("<mediawiki>" + "<a>" * 50, "nested more than 32 deep"),
        ("<mediawiki><page a='" + "x" * 4_000_000, "holds a tag or comment of over 2,097,152 characters"),
        ("<mediawiki><!-- " + "x" * 4_000_000, "holds a tag or comment of over 2,097,152 characters"),
        ("not XML", "is no readable XML"),
        ("", "is empty"),
        (b"<mediawiki>caf\xe9</mediawiki>", "is not valid UTF-8 near byte 14"),
        (b'<?xml version="1.0" encoding="klingon"?><mediawiki/>', 'its encoding is "klingon", which is unknown'),
        (b'<?xml version="1.0" encoding="zlib"?><mediawiki/>', 'its encoding is "zlib", which is unknown'),
        (b"BZh91AY&SY" + b"\0" * 200, "is damaged after 0 bytes"),
        (b"\x1f\x8b\x08\0\0\0\0\0\0\0" + b"\xff" * 200, "is damaged after 0 bytes"),
    ],
)
def test_what_is_no_dump_gets_one_sentence(tmp_path: Path, xml: str | bytes, words: str) -> None:
    _, sentence = read_broken(tmp_path, xml)
    assert words in sentence
    assert "hollin.xml" in sentence
    assert "\n" not in sentence


def test_a_bz2_bomb_is_refused(tmp_path: Path) -> None:
    compressor = bz2.BZ2Compressor()
    start = dump(page("Norvik", revision("x"))).removesuffix("</mediawiki>") + "<page><title>a</title><revision><text>"
    packed = compressor.compress(start.encode())
    for _ in range(100):
        packed += compressor.compress(b"x" * 2**20)
    pages, sentence = read_broken(tmp_path, packed + compressor.flush())
    assert [item.key for item in pages] == ["Norvik"]
    assert "unpacks to over 400 times its size" in sentence


def test_memory_stays_flat_whatever_a_page_holds(tmp_path: Path) -> None:
    path = tmp_path / "big.xml"
    with path.open("w") as file:
        file.write(dump(page("Norvik", revision("x"))).removesuffix("</mediawiki>"))
        file.write("<page><title>Big</title><ns>0</ns><id>2</id><revision><id>1</id><text>")
        for _ in range(60):
            file.write("word " * 200_000)
        file.write("</text></revision></page></mediawiki>")
    tracemalloc.start()
    items = list(opened(path).read())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [type(item) for item in items] == [Page, FailedPage]
    assert peak < 30 * 2**20


@pytest.mark.parametrize(
    ("name", "count"),
    [
        *[("article-pear-0.10.xml", 1), ("article-pyrus-utf16.xml", 1), ("article-pyrus-utf16.xml.bz2", 1)],
        *[("article-pyrus.xml.gz", 1), ("pair-0.10.xml", 2), ("dummy-reflinks.xml", 2)],
    ],
)
def test_pywikibots_samples(data_dir: Path, name: str, count: int) -> None:
    items = list(opened(data_dir / "wikis/mediawiki_xml_pywikibot/tests/data/xml" / name).read())
    assert len(items) == count
    assert all(isinstance(item, Page) for item in items)
