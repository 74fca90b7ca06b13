"""Every MediaWiki dump of the shared data: read whole, none failed, and no link to a page that is there is a red one.

    python -m tests.ingestion.sources.test_real_dumps

prints the table that is in the docs.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from graph.errors import SourceError
from graph.model import EMBEDDED_TYPES, FailedPage, Page, SkippedPage
from graph.titles import TitleDictionary
from ingestion.sources.mediawiki_xml import MediaWikiXml, dump_files

GENSIM, LTG = "mediawiki_xml_gensim", "mediawiki_xml_ltgwiki"
PYWIKIBOT = "mediawiki_xml_pywikibot/tests/data/xml"
DUMPS = {
    f"{GENSIM}/enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2": (106, 100),
    f"{GENSIM}/bgwiki-latest-pages-articles-shortened.xml.bz2": None,
    f"{GENSIM}/enwiki-table-markup.xml.bz2": None,
    f"{LTG}/smallwiki-latest-pages-articles.xml": None,
    f"{LTG}/tinywiki-latest-pages-articles.xml": None,
    **dict.fromkeys([f"{PYWIKIBOT}/{name}.xml" for name in ("article-pear", "article-pear-0.10", "pair-0.10")]),
    **{f"{PYWIKIBOT}/article-pyrus{suffix}": (0, 1) for suffix in ("-utf16.xml", "-utf16.xml.bz2")},
    **{f"{PYWIKIBOT}/article-pyrus.xml{packed}": (0, 1) for packed in ("", ".7z", ".bz2", ".gz", ".lzma", ".xz")},
    **dict.fromkeys([f"{PYWIKIBOT}/dummy-reflinks.xml", f"{PYWIKIBOT}/dummy-template.xml"]),
}
"""Dump → its pages and redirects, where they are known beforehand."""


@dataclass(slots=True)
class Account:
    """What became of a dump."""

    pages: int = 0
    redirects: int = 0
    links: int = 0
    """Distinct targets of a page, without categories."""
    resolving: int = 0
    """Those that lead to a page of the dump, by its title or an alias."""
    wrongly_red: list[str] = field(default_factory=list)
    """Targets that name an article or an alias of one, and that the graph finds no entity for."""
    skipped: Counter[str] = field(default_factory=Counter)
    failed: list[FailedPage] = field(default_factory=list)


def account_of(dump: Path) -> Account:
    account = Account()
    pages: list[Page] = []
    for item in MediaWikiXml(path=dump, name="wiki").read():
        if isinstance(item, FailedPage):
            account.failed.append(item)
        elif isinstance(item, SkippedPage):
            account.skipped[item.reason] += 1
        else:
            pages.append(item)
    account.redirects = sum(bool(page.redirect_to) for page in pages)
    account.pages = len(pages) - account.redirects
    known = {page.title for page in pages}
    things = {page.title: page.id for page in pages if page.page_type in EMBEDDED_TYPES}
    titles = [(page_id, title, title) for title, page_id in things.items()]
    titles += [(things[to], p.title, to) for p in pages if (to := p.redirect_to.partition("#")[0]) in things]
    dictionary = TitleDictionary.build(titles)
    thing_names = {name for _, name, _ in titles}
    for page in pages:
        for target in {link.target for link in page.links}:
            account.links += 1
            account.resolving += target in known
            if target in thing_names and not dictionary.link_target(target):
                account.wrongly_red.append(f"{page.title} → {target}")
    return account


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("name", DUMPS)
def test_a_dump_is_read_whole(data_dir: Path, name: str) -> None:
    account = account_of(data_dir / "wikis" / name)
    assert account.failed == []
    assert account.wrongly_red == []
    assert account.pages or account.redirects
    if expected := DUMPS[name]:
        assert (account.pages, account.redirects) == expected


@pytest.mark.data
def test_one_page_is_the_same_however_it_is_packed(data_dir: Path) -> None:
    folder = data_dir / "wikis" / PYWIKIBOT
    plain, *others = (
        list(MediaWikiXml(path=folder / f"article-pyrus.xml{packed}", name="wiki").read())
        for packed in ("", ".7z", ".bz2", ".gz", ".lzma", ".xz")
    )
    assert all(other == plain for other in others)


@pytest.mark.data
def test_a_broken_archive_is_named(data_dir: Path) -> None:
    path = data_dir / "wikis" / PYWIKIBOT / "article-pyrus.xml_invalid.7z"
    with pytest.raises(SourceError, match=r"article-pyrus\.xml_invalid\.7z"):
        list(MediaWikiXml(path=path, name="wiki").read())


@pytest.mark.data
def test_a_folder_of_several_dumps_is_refused(data_dir: Path) -> None:
    with pytest.raises(SourceError, match=r"several dumps \(bgwiki-.*, enwiki-.*give the path of one of its files"):
        dump_files(data_dir / "wikis" / GENSIM)


def main() -> None:
    data = Path(os.environ.get("TRIVET_DATA", Path(__file__).parents[3].parent / "shared" / "data"))
    print("| dump | pages | redirects | links | resolve | skipped | failed |\n|---|---|---|---|---|---|---|")
    for name in DUMPS:
        account = account_of(data / "wikis" / name)
        skipped = ", ".join(f"{count} {reason}" for reason, count in account.skipped.most_common()) or "–"
        counts = f"{account.pages:,} | {account.redirects:,} | {account.links:,} | {account.resolving:,}"
        print(f"| {name.rpartition('/')[2]} | {counts} | {skipped} | {len(account.failed)} |")


if __name__ == "__main__":
    main()
