"""What every manifest must do."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph.model import Link, PageType
from graph.protocols import StateStore
from graph.sqlite_state import SqliteState
from tests.fakes import FakeState
from tests.pages import Committed, page, redirect
from tests.places import quick_folder

Opener = Callable[[Path], StateStore]
BACKENDS: dict[str, Opener] = {"fake": lambda _: FakeState(), "sqlite": lambda folder: SqliteState(folder / "state.db")}


@pytest.fixture(params=BACKENDS)
def state(request: pytest.FixtureRequest) -> Iterator[StateStore]:
    with quick_folder() as folder:
        store = BACKENDS[request.param](folder)
        yield store
        store.close()


def link_all(state: StateStore) -> None:
    state.mark_linked(state.unlinked(1_000_000))


def test_an_empty_store_knows_nothing(state: StateStore) -> None:
    assert state.manifests(["wiki:A"]) == {}
    assert list(state.all_manifests()) == []
    assert state.chunks(["x"]) == {}
    assert state.chunk_names(["x"]) == {}
    assert state.neighbours("x", 1) == []
    assert state.unfinished() == state.live_ids() == set()
    assert list(state.titles()) == []
    assert state.spread_changed_keys() == 0
    assert state.unlinked(5) == []
    assert state.meta("x") is None
    state.commit_removal(["wiki:A"])
    state.mark_linked(["x"])


def test_a_page_comes_back_as_it_was_given(state: StateStore) -> None:
    manifest, (first, second), names = page(
        "Animal Farm",
        "A novel.",
        "By George Orwell.",
        url="https://wiki/Animal_Farm",
        page_type=PageType.STUB,
        language="en",
        revision="7",
        modified="2026-01-02T03:04:05Z",
        page_hash="abc",
        aliases=("La Ferme des animaux", "动物农场"),
        links=(Link(target="George Orwell", shown="Orwell"), Link(target="Pig")),
        categories=("Novels", "1945"),
    )
    second = replace(second, heading_path=("Author", "Life"), anchor="Life")
    names[second.id] = ["George Orwell", "Orwell"]
    state.commit_pages([(manifest, [first, second], names)])
    assert state.manifests([manifest.page_id, "wiki:none"]) == {manifest.page_id: manifest}
    stored = state.chunks([second.id, "none"])
    assert list(stored) == [second.id]
    assert stored[second.id].chunk == second
    assert (stored[second.id].title, stored[second.id].url) == ("Animal Farm", "https://wiki/Animal_Farm")
    assert (stored[second.id].page_type, stored[second.id].source) == (PageType.STUB, "wiki")
    assert (stored[second.id].language, stored[second.id].modified) == ("en", "2026-01-02T03:04:05Z")
    assert stored[second.id].categories == ("Novels", "1945")
    assert state.chunk_names([first.id, second.id]) == {first.id: (), second.id: ("George Orwell", "Orwell")}
    assert state.live_ids() == {first.id, second.id}


def test_a_chunk_keeps_how_it_was_embedded(state: StateStore) -> None:
    manifest, (first, second), names = page("Nets", "Tarred twine.", "Knots.")
    quoting = replace(first, strategy="title+op", context="> Which twine?")
    state.commit_pages([(manifest, [quoting, second], names)])
    found = state.chunks([first.id, second.id])
    assert {key: stored.chunk for key, stored in found.items()} == {first.id: quoting, second.id: second}
    assert list(state.neighbours(second.id, 1)) == [quoting, second]
    state.commit_pages([(manifest, [first, second], names)])
    assert state.chunks([first.id])[first.id].chunk == first


def test_manifests_are_ordered_by_page_id_and_can_be_of_one_source(state: StateStore) -> None:
    keys = [f"{letter}{number}" for letter in "bacé" for number in range(300)]
    state.commit_pages([page(key, source=source) for key in keys for source in ("wiki", "docs")])
    every = [manifest.page_id for manifest in state.all_manifests()]
    assert every == sorted(every)
    assert len(every) == 2 * len(keys)
    assert [manifest.page_id for manifest in state.all_manifests("docs")] == sorted(f"docs:{key}" for key in keys)
    assert list(state.all_manifests("none")) == []


def test_manifests_can_be_changed_while_they_are_read(state: StateStore) -> None:
    state.commit_pages([page(f"{number:04}", "text") for number in range(1200)])
    seen = 0
    for manifest in state.all_manifests():
        seen += 1
        if seen % 100 == 0:
            state.commit_removal([manifest.page_id])
    assert seen == 1200
    assert len(state.live_ids()) == 1188


def test_replacing_a_page_keeps_unchanged_chunks_and_drops_the_others(state: StateStore) -> None:
    manifest, chunks, names = page("A", "one", "two", "three")
    names[chunks[2].id] = ["Three"]
    state.commit_pages([(manifest, chunks, names)])
    changed, new_chunks, _ = page("A", "zero", "three")
    state.commit_pages([(changed, new_chunks, {new_chunks[0].id: ["Zero"]})])
    assert state.live_ids() == set(changed.chunk_ids)
    assert chunks[2].id == new_chunks[1].id
    assert state.chunks([chunks[2].id])[chunks[2].id].chunk.ordinal == 1
    assert state.chunk_names(changed.chunk_ids) == {new_chunks[0].id: ("Zero",), new_chunks[1].id: ("Three",)}
    assert state.chunks([chunks[0].id]) == {}


def test_a_page_must_bring_the_chunks_it_lists(state: StateStore) -> None:
    state.commit_pages([page("A", "old")])
    manifest, _, _ = page("A", "old", "new")
    with pytest.raises(ValueError, match="does not bring"):
        state.commit_pages([page("B", "text"), (manifest, [], {})])
    assert [found.page_id for found in state.all_manifests()] == ["wiki:A"]
    assert state.live_ids() == set(page("A", "old")[0].chunk_ids)


def test_removing_a_page_takes_its_chunks_along(state: StateStore) -> None:
    state.commit_pages([page("A", "one", "two"), page("B", "three")])
    state.commit_removal(["wiki:A", "wiki:none"])
    assert [manifest.page_id for manifest in state.all_manifests()] == ["wiki:B"]
    assert state.live_ids() == set(page("B", "three")[0].chunk_ids)
    assert set(state.unlinked(10)) == state.live_ids()


def test_neighbours_are_of_the_same_page_in_order(state: StateStore) -> None:
    state.commit_pages([page("A", *"abcde"), page("B", *"abcde")])
    ids = page("A", *"abcde")[0].chunk_ids
    assert [chunk.text for chunk in state.neighbours(ids[2], 1)] == ["b", "c", "d"]
    assert [chunk.text for chunk in state.neighbours(ids[0], 2)] == ["a", "b", "c"]
    assert [chunk.text for chunk in state.neighbours(ids[4], 0)] == ["e"]
    assert {chunk.page_id for chunk in state.neighbours(ids[2], 9)} == {"wiki:A"}


def test_a_batch_is_unfinished_until_it_ends(state: StateStore) -> None:
    state.begin_batch(["a", "b"], ["c"])
    state.begin_batch(["b", "d"], [])
    assert state.unfinished() == {"a", "b", "c", "d"}
    state.end_batch()
    assert state.unfinished() == set()


def test_a_transaction_is_all_or_nothing(state: StateStore) -> None:
    state.commit_pages([page("A", "one")])
    with pytest.raises(RuntimeError), state.transaction():  # noqa: PT012
        state.commit_pages([page("B", "two")])
        state.commit_removal(["wiki:A"])
        assert [manifest.page_id for manifest in state.all_manifests()] == ["wiki:B"]
        raise RuntimeError
    assert [manifest.page_id for manifest in state.all_manifests()] == ["wiki:A"]
    with state.transaction():
        state.commit_pages([page("B", "two")])
        state.set_meta("k", "v")
        with pytest.raises(RuntimeError), state.transaction():  # noqa: PT012
            state.set_meta("k", "other")
            raise RuntimeError
    assert len(list(state.all_manifests())) == 2
    assert state.meta("k") == "v"


def test_meta_is_replaced(state: StateStore) -> None:
    state.set_meta("k", "1")
    state.set_meta("k", "2")
    assert state.meta("k") == "2"


def test_titles_are_those_of_pages_that_stand_for_a_thing(state: StateStore) -> None:
    state.commit_pages(
        [
            page("Paris", "text", aliases=("Paris", "Ville lumière")),
            page("Talk:Paris", page_type=PageType.TALK, aliases=("x",)),
            page("Mercury", page_type=PageType.DISAMBIGUATION),
            page("Novels", page_type=PageType.LIST),
            redirect("Lutetia", "paris"),
            redirect("Lutèce", "lutetia#Name"),
            redirect("Mercury (x)", "Mercury"),
            redirect("Loop", "Pool"),
            redirect("Pool", "Loop"),
            redirect("Self", "Self"),
            redirect("Nowhere", "No such page"),
            redirect("Elsewhere", "Paris", source="docs"),
        ]
    )
    lost = [("Loop", "Pool"), ("Nowhere", "No such page"), ("Pool", "Loop"), ("Self", "Self")]
    assert list(state.dangling_redirects("wiki")) == lost
    assert list(state.dangling_redirects("docs")) == [("Elsewhere", "Paris")]
    assert sorted(state.titles()) == [
        ("wiki:Novels", "Novels", "Novels"),
        ("wiki:Paris", "Lutetia", "Paris"),
        ("wiki:Paris", "Lutèce", "Paris"),
        ("wiki:Paris", "Paris", "Paris"),
        ("wiki:Paris", "Ville lumière", "Paris"),
    ]


@pytest.mark.parametrize(
    ("title", "target", "meets"),
    [
        ("Animal Farm", "animal_Farm", True),
        ("animal Farm", "Animal Farm", True),
        ("Animal Farm", "animal farm", False),
        ("Animal Farm", " Animal__Farm ", True),
        ("Animal Farm", "Animal Farm#Plot", True),
        ("C#", "C#", True),
        ("C", "C#", True),
        ("élan", "Élan", True),
        ("Animal Farm", "", False),
        ("Animal Farm", "#Plot", False),
    ],
)
def test_redirects_compare_titles_as_mediawiki_does(state: StateStore, title: str, target: str, meets: bool) -> None:
    state.commit_pages([page("1", title=title), redirect("Other", target or "#")])
    found = [other for _, other, _ in state.titles()]
    assert found == ([title, "Other"] if meets else [title])
    assert list(state.dangling_redirects("wiki")) == ([] if meets else [("Other", target or "#")])


def test_a_redirect_prefers_a_page_over_another_redirect_and_then_the_first_id(state: StateStore) -> None:
    state.commit_pages(
        [page("b", title="Same"), page("a", title="Same"), redirect("Same", "Far"), page("Far"), redirect("R", "Same")]
    )
    assert ("wiki:a", "R", "Same") in list(state.titles())
    assert ("wiki:Far", "Same", "Far") in list(state.titles())


def test_a_long_chain_of_redirects_ends(state: StateStore) -> None:
    state.commit_pages([redirect(f"R{number}", f"R{number + 1}") for number in range(100)] + [page("R100")])
    titles = {title for _, title, _ in state.titles()}
    assert {"R100", "R99", "R98"} <= titles
    assert "R0" not in titles


def test_committed_chunks_are_unlinked_until_marked(state: StateStore) -> None:
    state.commit_pages([page("A", "one", "two"), page("B", "three")])
    assert set(state.unlinked(10)) == state.live_ids()
    assert len(state.unlinked(2)) == 2
    link_all(state)
    assert state.unlinked(10) == []
    state.commit_pages([page("A", "one", "new")])
    assert set(state.unlinked(10)) == set(page("A", "one", "new")[0].chunk_ids)


def test_a_changed_key_unlinks_the_chunks_whose_text_has_it(state: StateStore) -> None:
    pages = [
        page("A", "He met George Orwell's sister.", "He met George and Orwell."),
        page("B", "AC/DC played", "北京大学在中国", "Ça et là: Zürich"),
    ]
    state.commit_pages(pages)
    ids = [chunk.text for _, chunks, _ in pages for chunk in chunks], [c.id for _, chunks, _ in pages for c in chunks]
    texts = dict(zip(ids[1], ids[0], strict=True))

    def met(*keys: str) -> set[str]:
        link_all(state)
        state.add_changed_keys(keys)
        count = state.spread_changed_keys()
        marked = {texts[chunk] for chunk in state.unlinked(10)}
        assert count == len(marked)
        assert state.spread_changed_keys() == 0
        return marked

    assert met("george orwell") == {"He met George Orwell's sister."}
    assert met("george", "ac dc") == {"He met George Orwell's sister.", "He met George and Orwell.", "AC/DC played"}
    assert met("AC/DC") == {"AC/DC played"}
    assert met("北 京") == {"北京大学在中国"}
    assert met("zurich") == {"Ça et là: Zürich"}
    assert met("orwel", "eorge", "dc played ac") == set()
    assert met() == set()


def test_pages_can_be_unlinked(state: StateStore) -> None:
    state.commit_pages([page("A", "one", "two"), page("B", "three")])
    link_all(state)
    state.unlink_pages(["wiki:A", "wiki:none"])
    assert set(state.unlinked(10)) == set(page("A", "one", "two")[0].chunk_ids)


HOSTILE = [
    "AC/DC",
    "tb-",
    '"',
    "NEAR(",
    "*",
    "a*",
    "^a",
    "a AND b",
    "words:a",
    "-",
    "(",
    "\0",
    "a\0b",
    "\ud800",
    "",
    " ",
    "'",
    "a" * 40_000,
]


@pytest.mark.parametrize("key", HOSTILE)
def test_a_hostile_key_is_only_text(state: StateStore, key: str) -> None:
    state.commit_pages([page("Page", "nothing of the kind here, b words")])
    link_all(state)
    state.add_changed_keys([key])
    assert state.spread_changed_keys() == 0
    assert state.unlinked(10) == []


def test_enough_changed_keys_may_unlink_more_but_never_less(state: StateStore) -> None:
    state.commit_pages([page("A", "one"), page("B", "two")])
    link_all(state)
    state.add_changed_keys(["one", *(f"key {number}" for number in range(1000))])
    state.spread_changed_keys()
    assert set(page("A", "one")[0].chunk_ids) <= set(state.unlinked(10))


def test_a_reader_sees_the_old_page_or_the_new_one_never_a_mix(state: StateStore) -> None:
    versions = [page("A", *(f"{version} {number}" for number in range(20)), revision=version) for version in "xy"]
    every = [chunk for manifest, _, _ in versions for chunk in manifest.chunk_ids]
    state.commit_pages([versions[0]])
    wrong: list[set[str]] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            seen = {found.chunk.text[0] for found in state.chunks(every).values()}
            near = {chunk.text[0] for chunk in state.neighbours(every[5], 50)}
            if len(seen) != 1 or len(near) > 1:
                wrong.append(seen | near)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for turn in range(60):
        state.commit_pages([versions[turn % 2]])
    done.set()
    for reader in readers:
        reader.join()
    assert wrong == []


texts_of_pages = st.dictionaries(
    st.sampled_from(["P1", "P2", "P3", "P4"]),
    st.lists(st.sampled_from(["a b", "b c", "c d", "d a"]), max_size=3),
    max_size=4,
)


@pytest.mark.parametrize("backend", BACKENDS)
@settings(max_examples=25, deadline=None)
@given(steps=st.lists(texts_of_pages, min_size=1, max_size=4), key=st.sampled_from(["a", "b c", "d"]))
def test_what_is_live_depends_on_the_last_version_of_each_page(
    backend: str, steps: list[dict[str, list[str]]], key: str
) -> None:
    with quick_folder() as folder:
        state = BACKENDS[backend](folder)
        last: dict[str, Committed] = {}
        for step in steps:
            committed = {name: page(name, *texts) for name, texts in step.items()}
            last.update(committed)
            state.commit_pages(list(committed.values()))
            gone = [name for name in last if name not in step][:1]
            state.commit_removal([f"wiki:{name}" for name in gone])
            last = {name: value for name, value in last.items() if name not in gone}
        chunks = {chunk.id: chunk for _, found, _ in last.values() for chunk in found}
        assert state.live_ids() == chunks.keys()
        assert {found.page_id for found in state.all_manifests()} == {one.page_id for one, _, _ in last.values()}
        assert {key: found.chunk for key, found in state.chunks(list(chunks)).items()} == chunks
        link_all(state)
        state.add_changed_keys([key])
        state.spread_changed_keys()
        marked = {chunks[found].text for found in state.unlinked(100)}
        assert marked == {chunk.text for chunk in chunks.values() if key in chunk.text}
        state.close()
