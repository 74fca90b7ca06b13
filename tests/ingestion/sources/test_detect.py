"""Which source is at a path or URL, and one clear sentence where there is none."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from graph.errors import SourceError
from graph.registry import RegisteredSource
from ingestion.sources import detect
from ingestion.sources.detect import kinds, look_at, open_source, recognise, reopen, source_name
from ingestion.sources.kinds import Place, SourceOptions
from ingestion.sources.markdown_folder import MarkdownFolder
from ingestion.sources.mediawiki_xml import MediaWikiXml
from tests.ingestion.small_wiki import ListSource, page


def sentence_of(path: str | Path, **options: str) -> str:
    with pytest.raises(SourceError) as raised:
        open_source(path, **options)  # type: ignore[arg-type]
    sentence = str(raised.value)
    assert "\n" not in sentence
    assert sentence.endswith(".")
    return sentence


def name_of(path: Path) -> str:
    return source_name(look_at(path))


def test_a_dump_and_a_folder(tmp_path: Path) -> None:
    (tmp_path / "d.xml").write_text("\n<mediawiki/>")
    (tmp_path / "vault/sub").mkdir(parents=True)
    (tmp_path / "vault/sub/a.md").write_text("x")
    dump = open_source(tmp_path / "d.xml", base_url="http://x/")
    vault = open_source(str(tmp_path / "vault"), name="my vault")
    assert isinstance(dump, MediaWikiXml)
    assert (dump.name, dump.kind, dump.base_url) == ("d", "mediawiki-xml", "http://x/")
    assert isinstance(vault, MarkdownFolder)
    assert (vault.name, vault.kind) == ("my-vault", "markdown")


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2", "enwiki"),
        ("enwiki-20260101-pages-meta-history.xml.bz2", "enwiki"),
        ("smallwiki-latest-pages-articles.xml", "smallwiki"),
        ("article-pear-0.10.xml", "article-pear-0"),
        ("My Wiki: old.xml.gz", "My-Wiki-old"),
        ("Вики.xml", "Вики"),
    ],
)
def test_names_of_dumps(tmp_path: Path, name: str, short: str) -> None:
    (tmp_path / name).write_text("<mediawiki/>")
    assert name_of(tmp_path / name) == short


def test_names_of_folders_and_addresses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "wiki_md_dnd.srd").mkdir()
    assert name_of(tmp_path / "wiki_md_dnd.srd") == "wiki_md_dnd.srd"
    monkeypatch.chdir(tmp_path / "wiki_md_dnd.srd")
    assert name_of(Path()) == "wiki_md_dnd.srd"
    (tmp_path / ("x" * 200)).mkdir()
    assert len(name_of(tmp_path / ("x" * 200))) == 64
    assert source_name(look_at("https://www.wiki.example:8443/w/index.php?title=A")) == "wiki.example"


@pytest.mark.parametrize("name", ["", "///", ".."])
def test_a_name_that_cannot_be(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.md").write_text("x")
    assert "cannot be a source's name" in sentence_of(tmp_path, name=name)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is an empty file"),
        (b"\x89PNG\r\n", "is of no known type"),
        (b"plain text", "is of no known type"),
        (b"PK\x03\x04", "is packed with Zip, which is not read; unpack it"),
    ],
)
def test_files_of_other_kinds(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "f.bin").write_bytes(content)
    sentence = sentence_of(tmp_path / "f.bin")
    assert words in sentence
    assert "f.bin" in sentence


def test_folders_without_pages(tmp_path: Path) -> None:
    assert "is empty" in sentence_of(tmp_path)
    (tmp_path / "a.png").write_text("x")
    (tmp_path / ".git").mkdir()
    assert "holds no page: no file in it is of a kind that is read" in sentence_of(tmp_path)


def test_what_is_in_the_way(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "page.md").write_text("x")
    (tmp_path / "loop").symlink_to("loop")
    assert "There is nothing at" in sentence_of(tmp_path / "missing.xml")
    assert "neither a file nor a folder" in sentence_of(tmp_path / "pipe")
    assert "neither a file nor a folder" in sentence_of("/dev/zero")
    assert "is a single Markdown file; give the folder" in sentence_of(tmp_path / "page.md")
    assert "is not a usable path" in sentence_of(tmp_path / "loop")


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("ftp://wiki.example/", "must begin with http:// or https://"),
        ("http://", "is not an address that can be read"),
        ("http://[::1/", "is not an address that can be read"),
        ("https://me:secret@wiki.example/", "the address holds a user or password"),
    ],
)
def test_addresses_that_cannot_be_read(url: str, words: str) -> None:
    sentence = sentence_of(url)
    assert words in sentence
    assert "secret" not in sentence


def test_a_kind_that_does_not_fit(tmp_path: Path) -> None:
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages/a.md").write_text("x")
    (tmp_path / "d.xml").write_text("<mediawiki/>")
    assert "choose one of: " in sentence_of(tmp_path, kind="nonsense")
    assert "dump" in sentence_of(tmp_path / "pages", kind="mediawiki-xml")
    assert "is no folder" in sentence_of(tmp_path / "d.xml", kind="markdown")


def test_what_was_recognised_can_be_opened_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "wiki").mkdir()
    (tmp_path / "wiki/a.md").write_text("x")
    monkeypatch.chdir(tmp_path)
    found = recognise("wiki", base_url="https://x/", options={"a": "b"})
    assert found == RegisteredSource(
        name="wiki", kind="markdown", location=str(tmp_path / "wiki"), base_url="https://x/", options={"a": "b"}
    )
    monkeypatch.chdir("/")
    assert reopen(found).name == "wiki"
    (tmp_path / "wiki").rename(tmp_path / "elsewhere")
    with pytest.raises(SourceError, match=r"There is nothing at .*wiki; check the path"):
        reopen(found)
    with pytest.raises(SourceError, match="of kind 'gopher', which is not installed here"):
        reopen(RegisteredSource(name="g", kind="gopher", location="/"))


@dataclass(frozen=True)
class OtherKind:
    """Somebody else's kind of wiki."""

    name: str = "other"
    about: str = "a folder with an other.toml"

    def fits(self, place: Place) -> int:
        return 90 if "other.toml" in place.names else 0

    def open(self, place: Place, options: SourceOptions) -> ListSource:
        return ListSource([page("Other", "Text.")], name=options.name)


OTHER = OtherKind()


def test_others_add_kinds_as_entry_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    points = [
        EntryPoint("other", f"{__name__}:OTHER", detect.ENTRY_POINTS),
        EntryPoint("broken", "no.such.module:KIND", detect.ENTRY_POINTS),
    ]
    monkeypatch.setattr(detect, "entry_points", lambda *, group: points if group == detect.ENTRY_POINTS else [])
    assert "other" in kinds()
    (tmp_path / "a.md").write_text("x")
    assert recognise(tmp_path).kind == "markdown"
    (tmp_path / "other.toml").write_text("")
    assert recognise(tmp_path).kind == "other"
    assert isinstance(open_source(tmp_path, name="mine"), ListSource)


def test_the_paths_of_the_vectors(data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    for line in (data_dir / "fuzz/own_vectors/ingest_paths.jsonl").read_text().splitlines():
        path = json.loads(line)["path"]
        sentence = sentence_of(path)
        assert len(sentence) < 600
