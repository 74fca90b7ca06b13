"""What is embedded with a text: each strategy's text, what changing it embeds again, and what it can never say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from config.settings import IngestionSettings
from graph.bm25 import TITLE_TIMES
from graph.errors import DependencyDownError
from graph.knowledge import WIKI, Knowledge
from graph.model import Page, Post, Section, chunk_id, source_hash, text_of
from ingestion.batch import page_hash
from ingestion.chunks import chunk_page
from ingestion.ingest import ingest
from ingestion.report import IngestReport
from ingestion.strategies import embedded_with, recipe_of, strategy_for
from ingestion.verify import repair, verify
from tests.fake_chat import FakeChat
from tests.fakes import FakeVectors, HashEmbedder
from tests.ingestion.small_wiki import ISLAND, ListSource, fake_knowledge, page
from tests.ingestion.test_sync import Feed

QUOTING = ("title+op", "title+op+parent")
ALL = ("bare", "title", *QUOTING, "llm-blurb")
OPENING, PARENT = "How do I mend an eel net?", "Use tarred twine for it."


def reply(text: str = "Mine held for years.", *, opening: str = OPENING, parent: str = PARENT) -> Page:
    return page("Eel nets", text, post=Post(number=3, opening=opening, parent=parent))


def embedded(item: Page, strategy: str, *, blurb: str = "It tells of twine.", window: int = 512) -> list[str]:
    embedder = HashEmbedder()
    embedder.max_tokens = window
    chunks = chunk_page(item, count_tokens=embedder.count_tokens, max_tokens=64)
    made = embedded_with(item, chunks, strategy_for(item, strategy), embedder, [blurb] * len(chunks))
    assert [(chunk.text, chunk.start, chunk.end) for chunk in made] == [(c.text, c.start, c.end) for c in chunks]
    assert all(chunk.source_hash == source_hash(text_of(chunk, item.title)) for chunk in made)
    return [text_of(chunk, item.title) for chunk in made]


def test_each_strategys_text() -> None:
    assert {strategy: embedded(reply(), strategy) for strategy in ALL} == {
        "bare": ["Mine held for years."],
        "title": ["Eel nets › Mine held for years."],
        "title+op": [f"Eel nets › > {OPENING}\n\nMine held for years."],
        "title+op+parent": [f"Eel nets › > {OPENING}\n\n> {PARENT}\n\nMine held for years."],
        "llm-blurb": ["Eel nets › It tells of twine.\n\nMine held for years."],
    }


def test_what_is_in_no_thread_is_embedded_as_ever() -> None:
    for item in (*ISLAND, reply(opening="", parent="")):
        assert embedded(item, "title") == embedded(item, "title+op") == embedded(item, "title+op+parent")
        assert {recipe_of(item, "recipe", strategy) for strategy in ("title", *QUOTING)} == {"recipe"}


@given(st.text(min_size=1), st.text(), st.text(), st.text())
def test_the_default_changes_no_hash(title: str, text: str, opening: str, parent: str) -> None:
    plain = page(title, text)
    post = replace(plain, post=Post(number=7, author="ann", opening=opening, parent=parent))
    embedder = HashEmbedder()
    chunks = chunk_page(post, count_tokens=embedder.count_tokens, max_tokens=64)
    assert chunks == chunk_page(plain, count_tokens=embedder.count_tokens, max_tokens=64)
    assert embedded_with(post, chunks, strategy_for(post, "title"), embedder) == tuple(chunks)
    assert all(chunk.source_hash == source_hash(f"{title} › {chunk.text}") for chunk in chunks)
    assert page_hash(post, recipe_of(post, "recipe", "title")) == page_hash(plain, "recipe")


def test_stores_from_before_there_was_a_choice_stay_as_they_are() -> None:
    old = Page(
        source="w",
        key="Petrel",
        title="Petrel",
        text="A bird.\n\n## Life\n\nIt nests on cliffs, and lays one egg.",
        sections=(Section(start=9, level=2, title="Life", anchor="Life"),),
    )
    chunks = chunk_page(old, count_tokens=lambda text: len(text.split()), max_tokens=12)
    hashes = ["e2416f32e0208886acf223fcc422f4dad08d6596", "b8d88f119ecf8e5bba76189b2a3b3e6ab18bcbc9"]
    assert [chunk.source_hash for chunk in chunks] == hashes
    assert [chunk.id for chunk in chunks] == [chunk_id("w:Petrel", hashed, 0) for hashed in hashes]
    assert chunks[0].id == "b7b07d7c-909b-54ea-9034-94a5d0a3aebd"


@given(st.integers(5, 90), st.sampled_from(("title+op", "title+op+parent", "llm-blurb")))
def test_the_window_cuts_what_is_added_and_never_the_text(window: int, strategy: str) -> None:
    words = " ".join(f"word{number}" for number in range(40))
    item = reply(words, opening="opening " * 37, parent="parent " * 42)
    (text,) = embedded(item, strategy, blurb="blurb " * 60, window=window)
    assert text.endswith(words)
    title = f"Eel nets › {words}"
    assert text == title or HashEmbedder().count_tokens(text) <= window


# --- a whole store -----------------------------------------------------------------------------------------------


THREAD = (
    page("p/1", OPENING, post=Post(number=1)),
    page("p/2", PARENT, post=Post(number=2, opening=OPENING)),
    page("p/3", "Mine held for years.", post=Post(number=3, opening=OPENING, parent=PARENT)),
)


def settings(strategy: str, **more: object) -> IngestionSettings:
    return IngestionSettings.model_validate({"chunk_tokens": 64, "embedding_strategy": strategy, **more})


async def fill(knowledge: Knowledge, strategy: str, items: Sequence[Page] = (*ISLAND, *THREAD)) -> IngestReport:
    return await ingest(ListSource(items), knowledge, settings(strategy), prune=True)


def texts(knowledge: Knowledge) -> dict[str, str]:
    """What was embedded → its strategy. BM25's text has the title on lines of its own before it, but for `bare`."""
    assert isinstance(knowledge.vectors, FakeVectors)
    found = {}
    for point in knowledge.vectors.collections[WIKI].values():
        strategy = str(point.payload.get("strategy"))
        lines = point.text.split("\n", 0 if strategy == "bare" else TITLE_TIMES - 1)
        assert len(set(lines[:-1])) <= 1
        assert all(lines[-1].startswith(line) for line in lines[:-1])
        found[lines[-1]] = strategy
    return found


async def test_another_strategy_embeds_again_only_what_it_changes() -> None:
    knowledge = fake_knowledge()
    first = await fill(knowledge, "title")
    before = texts(knowledge)
    assert (first.embedded, set(before.values())) == (9, {"None"})
    assert (await fill(knowledge, "title+op")).embedded == 2
    assert sum(label == "title+op" for label in texts(knowledge).values()) == 2
    assert (await fill(knowledge, "title+op+parent")).embedded == 1
    assert set(texts(knowledge).values()) == {"None", "title+op+parent"}
    again = await fill(knowledge, "title+op+parent")
    assert (again.embedded, again.changed) == (0, 0)
    assert (await fill(knowledge, "bare")).embedded == 9
    assert set(texts(knowledge).values()) == {"bare"}
    await fill(knowledge, "title")
    assert texts(knowledge) == before
    assert (await verify(knowledge)).clean


async def test_repair_embeds_the_same_texts() -> None:
    for strategy in ALL[:4]:
        knowledge = fake_knowledge()
        await fill(knowledge, strategy)
        before = texts(knowledge)
        await knowledge.vectors.delete(WIKI, sorted(await knowledge.vectors.ids(WIKI)))
        assert (await repair(knowledge, settings(strategy))).clean
        assert texts(knowledge) == before


async def test_readers_and_the_graph_see_the_text_alone() -> None:
    knowledge = fake_knowledge()
    await fill(knowledge, "title+op+parent")
    stored = knowledge.state.chunks(sorted(knowledge.state.live_ids()))
    assert sorted(found.chunk.text for found in stored.values() if found.chunk.page_id.startswith("w:p/")) == sorted(
        item.text for item in THREAD
    )


async def test_a_post_is_found_by_what_its_strategy_quotes() -> None:
    found: dict[str, set[str]] = {}
    for strategy in ALL[:4]:
        knowledge = fake_knowledge()
        await fill(knowledge, strategy, [replace(item, title="Nets") for item in THREAD])
        for word in ("mend", "tarred", "nets"):
            ranked = await knowledge.vectors.search(WIKI, dense=None, text=word, limit=9)
            stored = knowledge.state.chunks([scored.key for scored in ranked.sparse])
            found[f"{strategy}: {word}"] = {chunk.chunk.page_id for chunk in stored.values()}
    first, second, third = "w:p/1", "w:p/2", "w:p/3"
    assert found == {
        "bare: mend": {first},
        "bare: tarred": {second},
        "bare: nets": set(),
        "title: mend": {first},
        "title: tarred": {second},
        "title: nets": {first, second, third},
        "title+op: mend": {first, second, third},
        "title+op: tarred": {second},
        "title+op: nets": {first, second, third},
        "title+op+parent: mend": {first, second, third},
        "title+op+parent: tarred": {second, third},
        "title+op+parent: nets": {first, second, third},
    }


async def test_with_another_strategy_a_feed_is_read_as_a_whole_once() -> None:
    feed, knowledge = Feed(), fake_knowledge()
    feed.pages = {item.key: replace(item, title=item.key) for item in THREAD}
    assert (await ingest(feed, knowledge, settings("title"))).whole
    assert not (await ingest(feed, knowledge, settings("title"), since="0")).whole
    changed = await ingest(feed, knowledge, settings("title+op"), since="0")
    assert (changed.whole, changed.embedded) == (True, 2)
    assert not (await ingest(feed, knowledge, settings("title+op"), since="0")).whole


# --- a model's sentences -----------------------------------------------------------------------------------------


def asked_about(chat: FakeChat) -> list[str]:
    return [messages[1].content.rpartition("passage ")[2].split("\n")[1] for messages in chat.asked]


async def test_the_model_is_asked_once_for_each_chunk() -> None:
    chat = FakeChat("It is about  the\nisland.")
    knowledge = replace(fake_knowledge(), chat=chat)
    pages = [page("A", "Of the first."), page("B", "Of the second.")]
    report = await fill(knowledge, "llm-blurb", pages)
    assert set(texts(knowledge)) == {
        "A › It is about the island.\n\nOf the first.",
        "B › It is about the island.\n\nOf the second.",
    }
    assert (report.without_blurb, report.warnings[:0], len(chat.asked)) == (0, (), 2)
    assert chat.options[0] == {"temperature": 0.0, "max_tokens": 100, "stop": ()}
    assert (await fill(knowledge, "llm-blurb", pages)).unchanged == 2
    pages[1] = replace(pages[1], categories=("New",))
    assert (await fill(knowledge, "llm-blurb", pages)).embedded == 0
    assert len(chat.asked) == 2
    pages[1] = page("B", "Of the second, edited.")
    assert (await fill(knowledge, "llm-blurb", pages)).embedded == 1
    assert asked_about(chat)[2:] == ["Of the second, edited."]


async def test_of_an_edited_page_only_the_edited_chunk_is_asked_for() -> None:
    chat = FakeChat("It is so.")
    knowledge = replace(fake_knowledge(), chat=chat)
    paragraphs = [" ".join([word] * 50) for word in ("gull", "heron", "petrel")]
    await fill(knowledge, "llm-blurb", [page("Birds", "\n\n".join(paragraphs))])
    assert len(chat.asked) == 3
    paragraphs[1] = paragraphs[1].replace("heron", "stork")
    await fill(knowledge, "llm-blurb", [page("Birds", "\n\n".join(paragraphs))])
    assert asked_about(chat)[3:] == [paragraphs[1]]


async def test_a_model_that_is_down_costs_the_sentences_and_is_asked_again_in_the_next_run() -> None:
    chat = FakeChat("It is so.", error=DependencyDownError("the model is away", dependency="llm"))
    knowledge = replace(fake_knowledge(), chat=chat)
    report = await fill(knowledge, "llm-blurb")
    assert (report.without_blurb, report.embedded) == (9, 9)
    assert any("9 pages" in warning and "the model is away" in warning for warning in report.warnings)
    assert len(chat.asked) <= 6  # three failures in a row, and those that were under way
    assert set(texts(knowledge).values()) == {"None"}
    chat.error = None
    report = await fill(knowledge, "llm-blurb")
    assert (report.without_blurb, report.embedded) == (0, 9)
    assert set(texts(knowledge).values()) == {"llm-blurb"}
    assert (await verify(knowledge)).clean


async def test_what_the_time_does_not_allow_is_asked_for_in_the_next_run() -> None:
    chat = FakeChat("It is so.", first_seconds=0.2)
    knowledge = replace(fake_knowledge(), chat=chat)
    left = [9]
    while left[-1] and len(left) < 9:
        chosen = settings("llm-blurb", blurb_seconds=0.5, batch_chunks=3)
        left.append((await ingest(ListSource((*ISLAND, *THREAD)), knowledge, chosen)).without_blurb)
    assert left == sorted(left, reverse=True)
    assert left[-1] == 0
    assert len(left) > 2


async def test_without_a_model_it_is_said() -> None:
    report = await fill(fake_knowledge(), "llm-blurb")
    assert (report.without_blurb, report.embedded) == (9, 9)
    assert any("no model is configured" in warning for warning in report.warnings)


async def test_a_long_page_is_cut_around_the_passage_to_the_models_window() -> None:
    chat = FakeChat("It is so.", context_tokens=1000)
    knowledge = replace(fake_knowledge(), chat=chat)
    await fill(knowledge, "llm-blurb", [page("Long", "\n\n".join(f"Paragraph {n} of it." * 5 for n in range(500)))])
    sizes = [sum(chat.count_tokens(message.content) for message in messages) for messages in chat.asked]
    assert max(sizes) + 100 <= 1000
    assert all(passage in messages[1].content for passage, messages in zip(asked_about(chat), chat.asked, strict=True))
