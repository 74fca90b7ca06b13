"""Every folder of the shared data that is a wiki of files: what of it becomes pages, aliases and links."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from graph.feed import Checkpoint, FeedItem
from graph.model import FailedPage, Page, SkippedPage
from graph.protocols import ChangingSource, Source
from ingestion.sources import dokuwiki_folder, markdown_folder, text_folder
from ingestion.sources.kinds import Place, SourceKind, SourceOptions
from ingestion.sources.markdown_folder import MarkdownFolder

pytestmark = pytest.mark.data

KINDS: tuple[SourceKind, ...] = (*markdown_folder.KINDS, dokuwiki_folder.KIND, text_folder.KIND)
CODE = re.compile(r"^[ ]*(`{3,})[^\n]*\n.*?^[ ]*\1[ ]*$|(?<!`)(`{1,2})(?!`)[^`\n]+\2", re.DOTALL | re.MULTILINE)
LEFTOVER = re.compile(
    r"\[\[(?!\]\])|\{\{|(?:^|\s)\^[a-z0-9-]{4,}$|^[ ]*(?:- )?(?:id|title|alias|tags|collapsed)::|<WRAP|</?note\b|~~NO",
    re.MULTILINE,
)
LITERAL = {
    "pages/Filename format.md",  # a quoted `title::`
    "fr:handbook:chroot",  # `[[fr:cookbook:start|Cookbook]`, misspelt
    "fr:wiki:syntax",  # an explanation of the syntax, between <nowiki>
    "pt:wiki:syntax",
    "en:guidelines",
    "es:guidelines",
    "fr:guidelines",
    "pt:guidelines",
    "ru:guidelines",
}
"""Pages that show markup as text."""


def opened(folder: Path) -> tuple[Source, str]:
    names = {f"{path.relative_to(folder)}{'/' if path.is_dir() else ''}" for path in folder.glob("*")}
    names |= {f"{path.relative_to(folder)}{'/' if path.is_dir() else ''}" for path in folder.glob("*/*")}
    place = Place(shown=folder.name, path=folder, names=frozenset(names))
    kind = max(KINDS, key=lambda each: each.fits(place))
    return kind.open(place, SourceOptions(name="w")), kind.name


def line_of(folder: str, kind: str, items: Sequence[FeedItem]) -> str:
    """A row of the table in the docs."""
    pages = [item for item in items if isinstance(item, Page)]
    skipped = [item for item in items if isinstance(item, SkippedPage)]
    failed = sum(isinstance(item, FailedPage) for item in items)
    links, resolved = counted(pages)
    aliases = sum(len(page.aliases) for page in pages)
    reasons = f" ({', '.join(sorted({item.reason for item in skipped}))})" if skipped else ""
    return (
        f"| {folder} | {kind} | {len(pages)} | {aliases} | {links} | {resolved} | {len(skipped)}{reasons} | {failed} |"
    )


def counted(pages: Sequence[Page]) -> tuple[int, int]:
    """Internal links, and how many of them lead to a page."""
    names = {name.casefold() for page in pages for name in (page.title, *page.aliases)}
    targets = [link.target.casefold() for page in pages for link in page.links]
    return len(targets), sum(target in names for target in targets)


@pytest.mark.parametrize(
    ("folder", "kind", "pages", "links", "share"),
    [
        ("bookstack_md_docs", "markdown", 161, 197, 0.83),
        ("dokuwiki_slitaz", "dokuwiki", 469, 2164, 0.6),
        ("githubwiki_md_asahi", "markdown", 93, 112, 1.0),
        ("logseq_md_docs", "logseq", 243, 1290, 0.58),
        ("obsidian_style_foam", "markdown", 86, 197, 0.98),
        ("wiki_md_dnd_srd", "markdown", 935, 320, 1.0),
        ("wikijs_md_export", "wikijs", 85, 147, 0.95),
    ],
)
def test_a_real_wiki(data_dir: Path, folder: str, kind: str, pages: int, links: int, share: float) -> None:
    source, found_kind = opened(data_dir / "wikis" / folder)
    items = list(source.read())
    found = [item for item in items if isinstance(item, Page)]
    print(line_of(folder, found_kind, items))
    assert found_kind == kind
    assert len(found) == pages
    assert not any(isinstance(item, FailedPage) for item in items)
    assert all(item.reason == "empty" for item in items if isinstance(item, SkippedPage))
    total, resolved = counted(found)
    assert total >= links
    assert resolved >= share * total
    left = {page.key: LEFTOVER.findall(CODE.sub("", page.text)) for page in found if page.key not in LITERAL}
    assert not {key: marks for key, marks in left.items() if marks}


@pytest.mark.parametrize("folder", ["dokuwiki_slitaz", "logseq_md_docs", "wikijs_md_export"])
def test_a_second_look_reads_nothing(data_dir: Path, folder: str) -> None:
    source, _ = opened(data_dir / "wikis" / folder)
    assert isinstance(source, ChangingSource)
    last = list(source.read())[-1]
    assert isinstance(last, Checkpoint)
    started = time.perf_counter()
    again = list(source.changes(last.cursor) or ())
    assert not any(isinstance(item, Page) for item in again)
    assert again[-1] == last
    assert time.perf_counter() - started < 2


def test_no_link_of_the_dokuwiki_to_a_page_it_has_is_red(data_dir: Path) -> None:
    """Its 861 links that lead nowhere name pages that the sample does not hold."""
    folder = data_dir / "wikis/dokuwiki_slitaz"
    pages = {item.key: item for item in opened(folder)[0].read() if isinstance(item, Page)}
    checked = 0
    for key, page in pages.items():
        markup = (folder / "pages" / f"{key.replace(':', '/')}.txt").read_text()
        targets = {link.target for link in page.links}
        for target in re.findall(r"^[^ \n<%][^<%\n]*?\[\[ ?((?:[a-z]+:)+[a-z_-]+) ?[|\]#]", markup, re.MULTILINE):
            if target in pages and pages[target].title != page.title:
                checked += 1
                assert pages[target].title in targets, (key, target)
    assert checked > 50


def test_the_commonmark_examples_as_pages(data_dir: Path, tmp_path: Path) -> None:
    spec = (data_dir / "fuzz/commonmark/spec.txt").read_text()
    examples = re.findall(r"^`{32} example\n(.*?)\n\.\n", spec, re.DOTALL | re.MULTILINE)
    for number, example in enumerate([spec, *examples]):
        (tmp_path / f"{number}.md").write_text(example.replace("→", "\t"))
    for kind in ("markdown", "obsidian", "logseq", "wikijs", "github-wiki"):
        spent = [time.process_time()]
        for item in MarkdownFolder(root=tmp_path, name="w", kind=kind).read():
            assert not isinstance(item, FailedPage)
            spent.append(time.process_time())
        assert max(after - before for before, after in pairwise(spent[1:])) < 1


@pytest.mark.parametrize("unit", ["x", "[[a]] ", "<b>", "| a ", "%%"])
def test_a_page_of_one_long_line(tmp_path: Path, unit: str) -> None:
    (tmp_path / "long.md").write_text(unit * (2_000_000 // len(unit)))
    (tmp_path / "longer.md").write_text(unit * (10_000_000 // len(unit)))
    (tmp_path / "kept.md").write_text("x")
    found = {}
    for item in MarkdownFolder(root=tmp_path, name="w").read():
        if not isinstance(item, Checkpoint):
            found[item.key] = item
    assert isinstance(found["kept.md"], Page)
    assert isinstance(found["longer.md"], FailedPage)
    assert isinstance(found["long.md"], Page)
