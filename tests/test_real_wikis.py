"""Real wikis into real stores. The embedder is a constant one, as the graph leg needs none: what is shown here is
pages, aliases, links, order and the entity graph's worth, in the time of a test."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from config.settings import Settings
from graph.knowledge import Knowledge
from graph.model import PageType
from graph.recognizer import Recognizer
from ingestion.ingest import ingest
from ingestion.sources.beir import BeirCorpus
from ingestion.sources.detect import open_source
from ingestion.verify import verify
from server.backends import Backends
from server.candidates import live_only
from server.evaluation.dataset import read_questions
from server.evaluation.metrics import recall_at
from server.graph_leg import explore
from server.model import Question
from server.open import open_backends
from tests.fakes import HashEmbedder
from tests.places import quick_folder

pytestmark = [pytest.mark.data, pytest.mark.slow]
ENWIKI = "wikis/mediawiki_xml_gensim/enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2"


WIDTH = 384
"""Of the bundled model, whose store is filled."""


@asynccontextmanager
async def opened(*, names: bool = False) -> AsyncIterator[tuple[Backends, Knowledge]]:
    """An empty store; with `names`, spaCy finds them as it does for users, which takes a minute for 6,000 pages."""
    with quick_folder() as home:
        backends = await open_backends(Settings(home=home), command="test")
        recognizer = Recognizer(("en",)) if names else Recognizer(())
        try:
            yield backends, replace(backends.knowledge, embedder=HashEmbedder(WIDTH), recognizer=recognizer)
        finally:
            await backends.close()


async def graph_pages(question: str, backends: Backends, count: int) -> list[str]:
    """Keys of the pages that the graph leg alone puts first."""
    found = await explore(question, "en", backends.graph, backends.recognizer, backends.walks, backends.settings.graph)
    chunks = [scored.key for scored in await live_only(found, Question(text=question).where, backends.state, limit=50)]
    stored = backends.state.chunks(chunks)
    pages = [stored[chunk].chunk.page_id.partition(":")[2] for chunk in chunks]
    return list(dict.fromkeys(pages))[:count]


async def test_the_english_dump(data_dir: Path) -> None:
    source = open_source(str(data_dir / ENWIKI), name="enwiki")
    async with opened() as (backends, knowledge):
        report = await ingest(source, knowledge, backends.settings.ingestion)
        manifests = {m.title: m for m in knowledge.state.all_manifests()}
        redirects = [m for m in manifests.values() if m.redirect_to]
        dangling = {line.partition(" → ")[0] for line in report.dangling_redirects}
        aliases = {title for _, title, own in knowledge.state.titles() if title != own}
        assert (report.added, report.redirects, report.failed) == (106, 100, ())
        # Each redirect is the alias of a page, leads to a page that stands for no thing, or is named as dangling.
        leading = {m.title for m in redirects} - dangling - aliases
        assert all(_stands_for_no_thing(manifests[title].redirect_to, manifests) for title in leading)
        assert aliases
        assert (await verify(knowledge)).disagreements == ()
        again = await ingest(source, knowledge, backends.settings.ingestion)
        assert (again.unchanged, again.chunks, again.linked) == (206, 0, 0)
        assert (await graph_pages("Who wrote Animal Farm?", backends, 1)) == ["Animal Farm"]


def _stands_for_no_thing(target: str, manifests: dict[str, object]) -> bool:
    page = manifests.get(target.partition("#")[0].replace("_", " "))
    return page is not None and page.page_type is PageType.DISAMBIGUATION  # type: ignore[attr-defined]


async def test_the_latgalian_dump(data_dir: Path) -> None:
    path = data_dir / "wikis/mediawiki_xml_ltgwiki/smallwiki-latest-pages-articles.xml"
    async with opened() as (backends, knowledge):
        report = await ingest(open_source(str(path)), knowledge, backends.settings.ingestion)
        assert (report.redirects, report.failed) == (195, ())
        types = {m.page_type for m in knowledge.state.all_manifests()}
        assert {PageType.CATEGORY, PageType.TEMPLATE, PageType.ARTICLE} <= types
        assert (await verify(knowledge)).disagreements == ()


async def test_the_rules_wiki(data_dir: Path) -> None:
    async with opened() as (backends, knowledge):
        source = open_source(str(data_dir / "wikis/wiki_md_dnd_srd"))
        report = await ingest(source, knowledge, backends.settings.ingestion)
        assert (report.added, report.failed) == (935, ())
        assert (await verify(knowledge)).disagreements == ()
        assert "Monsters/Stirge.md" in await graph_pages("What does a Stirge eat?", backends, 3)


async def test_multi_hop_recall_of_the_graph_alone(data_dir: Path) -> None:
    """The floor of the issue; the whole set, with the real embedder, is measured by `trivet eval`."""
    folder = data_dir / "benchmarks" / "2wiki1000"
    async with opened(names=True) as (backends, knowledge):
        await ingest(BeirCorpus(folder), knowledge, backends.settings.ingestion)
        recalls = [
            recall_at(await graph_pages(judged.text, backends, 5), judged.gold, 5)
            for judged in read_questions(folder)[:300]
        ]
    assert sum(recalls) / len(recalls) >= 0.90


def test_the_benchmarks_are_what_they_were(data_dir: Path) -> None:
    lines = (data_dir / "benchmarks" / "2wiki1000" / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 6119
    assert set(json.loads(lines[0])) == {"_id", "title", "text"}
