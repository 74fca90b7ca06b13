"""A page is the same through the API of a real MediaWiki and from a dump: so a source can be switched."""

from __future__ import annotations

import bz2
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from graph.feed import Checkpoint
from graph.model import Page
from ingestion.sources.mediawiki_api import MediaWikiApi
from ingestion.sources.mediawiki_xml import MediaWikiXml
from tests.services.environment import service
from tests.services.mediawiki_server import Editor, OwnWiki, own_wiki

pytestmark = pytest.mark.services

MARKUP = [
    ("Latgola", "{{Infobox|name=Latgola|size=3}} '''Latgola''' [[Kategoreja:X]] [[File:A.jpg|thumb|Attēls]]"),
    ("Rēzekne", "== Vēsture ==\n* viens\n* [[latgola|divi]]\n{| class=x\n! a !! b\n|-\n| 1 || 2\n|}\n[[Kategorija:P]]"),
    ("Rēzne", "#PĀRADRESĀCIJA [[rēzekne#Vēsture]]"),
    ("Vecais", "#REDIRECT [[:Kategorija:Pilsētas]]"),
    ("Re: zero", "Text with <nowiki>[[no link]]</nowiki> &amp; entities &nbsp; {{PAGENAME}} <ref>x</ref>"),
    ("C", "x" * 5000 + "\n\n[[A]] [[b]] [[:en:Riga|Riga]] [[Lietotājs:Ansa]] __NOTOC__"),
]  # fmt: skip


def test_a_page_is_the_same_from_the_dump(tmp_path: Path) -> None:
    service("MEDIAWIKI_URL")
    with own_wiki("lv", language="lv") as wiki, closing(Editor(wiki.url)) as editor:
        for title, text in MARKUP:
            editor.edit(title, text)
        titles = [title for title, _ in MARKUP]
        (tmp_path / "dump.xml").write_bytes(editor.export_xml(*titles, "Kategorija:Pilsētas"))
        from_dump = {item.key: item for item in MediaWikiXml(path=tmp_path / "dump.xml", name="hollin").read()}
        from_api = {item.key: item for item in source(wiki).pages(titles) if isinstance(item, Page)}
    assert from_api == from_dump
    assert len(from_api) == len(MARKUP)
    assert from_api["Rēzne"].redirect_to == "Rēzekne"
    assert from_api["Vecais"].redirect_to == "Kategorija:Pilsētas"


def source(wiki: OwnWiki) -> MediaWikiApi:
    return MediaWikiApi(url=f"{wiki.url}/api.php", name="hollin")


SAMPLE = "wikis/mediawiki_xml_gensim/enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2"
PIECE = 1_500_000
"""PHP takes uploads of up to 2 MB."""


@pytest.mark.slow
@pytest.mark.data
def test_the_sample_is_followed_and_is_the_same_as_from_its_dump(data_dir: Path) -> None:
    service("MEDIAWIKI_URL")
    dump = bz2.decompress((data_dir / SAMPLE).read_bytes()).decode()
    head, *pages = dump.removesuffix("</mediawiki>").split("<page>")
    pages[-1] = pages[-1].rpartition("</page>")[0] + "</page>"
    with own_wiki("sample") as wiki, closing(Editor(wiki.url)) as editor:
        cursor = last_cursor(source(wiki))
        while pages:
            piece = [pages.pop()]
            while pages and len("".join(piece).encode()) + len(pages[-1].encode()) < PIECE:
                piece.append(pages.pop())
            editor.import_xml(f"{head}<page>{'<page>'.join(piece)}</mediawiki>".encode())
        told = {item.key: plain(item) for item in source(wiki).changes(cursor) or () if isinstance(item, Page)}
    from_dump = MediaWikiXml(path=data_dir / SAMPLE, name="hollin").read()
    same = {item.key: plain(item) for item in from_dump if isinstance(item, Page) and ":" not in item.key}
    assert {key: page for key, page in told.items() if ":" not in key} == same
    assert len(same) > 100


def plain(page: Page) -> Page:
    """Without what an import changes, or the other wiki's namespaces."""
    return replace(page, revision="", modified="", url="", links=())


def last_cursor(followed: MediaWikiApi) -> str:
    *_, last = followed.read()
    assert isinstance(last, Checkpoint)
    return last.cursor
