"""Which source a path is, and one clear sentence where it is none."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from graph.errors import SourceError
from ingestion.sources.detect import open_source, source_name
from ingestion.sources.markdown_folder import MarkdownFolder
from ingestion.sources.mediawiki_xml import MediaWikiXml


def sentence_of(path: str | Path, **options: str) -> str:
    with pytest.raises(SourceError) as raised:
        open_source(path, **options)
    sentence = str(raised.value)
    assert "\n" not in sentence
    assert sentence.endswith(".")
    return sentence


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
    assert source_name(tmp_path / name) == short


def test_names_of_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "wiki_md_dnd.srd").mkdir()
    assert source_name(tmp_path / "wiki_md_dnd.srd") == "wiki_md_dnd.srd"
    monkeypatch.chdir(tmp_path / "wiki_md_dnd.srd")
    assert source_name(Path()) == "wiki_md_dnd.srd"
    assert source_name(Path("/")) == "wiki"
    assert len(source_name(tmp_path / ("x" * 200))) == 64


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
        (b"7z\xbc\xaf\x27\x1c\0", "is packed with 7-Zip, which is not read; unpack it"),
        (b"\xfd7zXZ\0\0", "is packed with xz"),
        (b"PK\x03\x04", "is packed with Zip"),
    ],
)
def test_files_of_other_kinds(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "f.bin").write_bytes(content)
    sentence = sentence_of(tmp_path / "f.bin")
    assert words in sentence
    assert "f.bin" in sentence


def test_folders_without_pages(tmp_path: Path) -> None:
    assert "is empty" in sentence_of(tmp_path)
    (tmp_path / "a.txt").write_text("x")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/a.md").write_text("x")
    assert "holds no page: no file in it ends in .markdown, .md" in sentence_of(tmp_path)


def test_what_is_in_the_way(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "page.md").write_text("x")
    (tmp_path / "loop").symlink_to("loop")
    assert "There is nothing at" in sentence_of(tmp_path / "missing.xml")
    assert "neither a file nor a folder" in sentence_of(tmp_path / "pipe")
    assert "neither a file nor a folder" in sentence_of("/dev/zero")
    assert "is a single Markdown file; give the folder" in sentence_of(tmp_path / "page.md")
    assert "is not a usable path" in sentence_of(tmp_path / "loop")
    assert "cannot be read yet" in sentence_of("https://en.wikipedia.org/wiki/")


def test_a_kind_that_does_not_fit(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("x")
    (tmp_path / "d.xml").write_text("<mediawiki/>")
    assert "choose one of: mediawiki-xml, markdown" in sentence_of(tmp_path, kind="dokuwiki")
    assert "is a folder; a MediaWiki dump is a file" in sentence_of(tmp_path, kind="mediawiki-xml")
    assert "give the folder that holds it" in sentence_of(tmp_path / "d.xml", kind="markdown")


def test_the_paths_of_the_vectors(data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    for line in (data_dir / "fuzz/own_vectors/ingest_paths.jsonl").read_text().splitlines():
        path = json.loads(line)["path"]
        sentence = sentence_of(path)
        assert len(sentence) < 600
