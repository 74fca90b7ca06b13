"""What only the SQLite stores do: survive what happens to files and processes, and keep readers and writers apart."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from graph.errors import StoreCorruptError, StoreError, StoreFullError, StoreVersionError
from graph.graph_model import Entity, GraphPage, Mention, NeighbourhoodBounds
from graph.sqlite_file import SqliteFile
from graph.sqlite_graph import SqliteGraph
from graph.sqlite_state import SqliteState
from tests.pages import page
from tests.places import quick_folder

STORES: list[Callable[[Path], SqliteState | SqliteGraph]] = [SqliteState, SqliteGraph]
SCHEMA = "CREATE TABLE t (value TEXT);\nCREATE TABLE other (value TEXT)"


async def closed(store: SqliteState | SqliteGraph) -> None:
    if isinstance(store, SqliteState):
        store.close()
    else:
        await store.close()


# --- opening ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("opener", STORES)
async def test_a_store_of_a_newer_version_is_refused_and_left_alone(
    tmp_path: Path, opener: Callable[[Path], SqliteState | SqliteGraph]
) -> None:
    path = tmp_path / "x.db"
    await closed(opener(path))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 9")
    before = path.read_bytes()
    with pytest.raises(StoreVersionError, match=rf"{path} .*newer Trivet \(its format is 9, this one knows 1\)"):
        opener(path)
    assert path.read_bytes() == before


def test_a_manifest_from_before_there_were_strategies_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    state = SqliteState(path)
    committed = page("Nets", "Tarred twine.")
    state.commit_pages([committed])
    state.close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE contexts")
    state = SqliteState(path)
    assert [stored.chunk for stored in state.chunks(committed[0].chunk_ids).values()] == committed[1]
    state.commit_removal([committed[0].page_id])
    state.close()


@pytest.mark.parametrize("opener", STORES)
@pytest.mark.parametrize(
    "content", [b"not a database at all, but longer than a header" * 10, b"SQLite format 3\0garbage" * 200]
)
def test_a_file_that_is_no_database_is_named(
    tmp_path: Path, opener: Callable[[Path], SqliteState | SqliteGraph], content: bytes
) -> None:
    path = tmp_path / "x.db"
    path.write_bytes(content)
    with pytest.raises(StoreCorruptError, match=f"{path} cannot be read .*`trivet ingest --rebuild`"):
        opener(path)
    assert path.read_bytes() == content


def test_another_programs_database_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    before = path.read_bytes()
    with pytest.raises(StoreCorruptError, match="not one of Trivet's"):
        SqliteState(path)
    assert path.read_bytes() == before


def test_an_empty_file_is_a_new_store(tmp_path: Path) -> None:
    (tmp_path / "x.db").touch()
    with closing(SqliteState(tmp_path / "x.db")) as state:
        assert state.live_ids() == set()


def test_damage_in_the_middle_is_a_corrupt_store(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with closing(SqliteState(path)) as state:
        state.commit_pages([page(f"{number}", "text " * 50) for number in range(200)])
    whole = path.read_bytes()
    path.write_bytes(whole[:8192] + b"\xff" * (len(whole) - 8192))
    with closing(SqliteState(path)) as state, pytest.raises(StoreCorruptError, match=str(path)):
        list(state.all_manifests())


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    for path in (tmp_path / "none" / "x.db", tmp_path):
        with pytest.raises(StoreFullError, match=f"Cannot write to {path}"):
            SqliteState(path)


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    state = SqliteState(tmp_path / "x.db")
    state.close()
    state.close()
    for use in (state.live_ids, lambda: state.set_meta("a", "b")):
        with pytest.raises(StoreError, match=r"x\.db"):
            use()


# --- a full disk --------------------------------------------------------------------------------------------------

FILL = """
import resource, signal, sys
from pathlib import Path
from graph.errors import StoreFullError
from graph.sqlite_state import SqliteState
from tests.pages import page
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
state = SqliteState(Path(sys.argv[1]))
state.commit_pages([page("first", "text")])
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
try:
    for number in range(1000):
        state.commit_pages([page(f"{number:04}", "some words " * 2000)])
except StoreFullError as error:
    print(error)
print(len(list(state.all_manifests())), len(state.live_ids()), number + 1, flush=True)
"""


def test_a_full_disk_is_named_and_reading_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    ran = subprocess.run([sys.executable, "-c", FILL, path], capture_output=True, text=True, check=True)
    said, counts = ran.stdout.splitlines()
    assert f"Cannot write to {path}" in said
    pages, chunks, tried = map(int, counts.split())
    assert pages == chunks == tried < 1000  # the first, and all but the one that failed
    with closing(SqliteState(path)) as state:
        assert len(state.live_ids()) == chunks
        state.commit_pages([page("more", "text")])


def test_a_failed_commit_leaves_nothing_behind(tmp_path: Path) -> None:
    """SQLite itself rolls back when it runs out of pages, inside nested transactions too."""
    file = SqliteFile(tmp_path / "x.db", schema=SCHEMA, version=1)
    with file.writing() as connection:
        connection.execute("PRAGMA max_page_count = 20")
    with pytest.raises(StoreFullError), file.writing(), file.writing() as connection:
        connection.execute("INSERT INTO t VALUES (?)", ("x" * 1_000_000,))
    with file.writing() as connection:
        connection.execute("INSERT INTO t VALUES ('small')")
    with file.reading() as connection:
        assert connection.execute("SELECT value FROM t").fetchall() == [("small",)]
    file.close()


# --- processes and threads ----------------------------------------------------------------------------------------

INTERRUPTED = """
import sys
from pathlib import Path
from graph.sqlite_state import SqliteState
from tests.pages import page
state = SqliteState(Path(sys.argv[1]))
old, new = page("A", "old"), page("A", "new")
state.commit_pages([old])
state.begin_batch(new[0].chunk_ids, old[0].chunk_ids)
if sys.argv[2] == "committing":
    transaction = state.transaction()
    transaction.__enter__()
    state.commit_pages([new])
if sys.argv[2] == "committed":
    state.commit_pages([new])
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize(("moment", "live"), [("begun", "old"), ("committing", "old"), ("committed", "new")])
def test_kill_9_leaves_one_version_and_the_note_of_the_batch(tmp_path: Path, moment: str, live: str) -> None:
    path = tmp_path / "state.db"
    other = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, path, moment], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert other.stdout is not None
    assert other.stdout.readline() == b"ready\n"
    other.send_signal(signal.SIGKILL)
    other.communicate()
    versions = {text: page("A", text)[0].chunk_ids for text in ("old", "new")}
    with closing(SqliteState(path)) as state:
        assert state.live_ids() == set(versions[live])
        assert state.unfinished() == {*versions["old"], *versions["new"]}
        state.end_batch()
        assert state.unfinished() == set()


def test_changed_keys_survive_until_their_chunks_are_marked(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    state = SqliteState(path)
    state.commit_pages([page("P", "one word")])
    state.mark_linked(state.unlinked(9))
    state.add_changed_keys(["one"])
    with pytest.raises(RuntimeError), state.transaction():  # noqa: PT012 — dies after spreading, before the commit
        assert state.spread_changed_keys() == 1
        raise RuntimeError
    state.close()
    with closing(SqliteState(path)) as again:
        assert again.unlinked(9) == []
        assert again.spread_changed_keys() == 1
        assert len(again.unlinked(9)) == 1


def test_a_reader_does_not_wait_for_a_writer(tmp_path: Path) -> None:
    state = SqliteState(tmp_path / "x.db")
    state.commit_pages([page("A", "one")])
    seen: list[int] = []
    with state.transaction():
        state.commit_pages([page("B", "two")])
        reader = threading.Thread(target=lambda: seen.append(len(state.live_ids())))
        reader.start()
        reader.join(timeout=5)
        assert seen == [1]  # and not 2: what is not committed is not there
        assert len(state.live_ids()) == 2
    assert len(state.live_ids()) == 2
    state.close()


def test_a_writer_does_not_wait_for_a_slow_reader(tmp_path: Path) -> None:
    state = SqliteState(tmp_path / "x.db")
    state.commit_pages([page(f"{number:04}", "text") for number in range(700)])
    slow = state.all_manifests()
    next(slow)
    state.commit_removal([f"wiki:{number:04}" for number in range(600, 700)])
    assert sum(1 for _ in slow) == 599
    state.close()


def test_many_threads_write_in_turn(tmp_path: Path) -> None:
    with quick_folder() as folder:
        state = SqliteState(folder / "x.db")

        def write(name: int) -> None:
            for number in range(10):
                with state.transaction():
                    count = int(state.meta("count") or "0")
                    state.commit_pages([page(f"{name}-{number}", "text")])
                    state.set_meta("count", str(count + 1))

        writers = [threading.Thread(target=write, args=(name,)) for name in range(6)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        assert state.meta("count") == "60"
        assert len(state.live_ids()) == 60
        state.close()


# --- text that no store can hold ----------------------------------------------------------------------------------


def test_surrogates_and_nul_are_replaced_everywhere(tmp_path: Path) -> None:
    bad, good = "a\ud800b\0c", "a\ufffdb\ufffdc"
    manifest, (chunk,), _ = page("P", "text", aliases=(bad,), categories=(bad,), url=bad)
    odd_chunk = type(chunk)(
        id=chunk.id, page_id=chunk.page_id, ordinal=0, start=0, end=5, text=bad, heading_path=(bad,), anchor=bad
    )
    with closing(SqliteState(tmp_path / "x.db")) as state:
        state.commit_pages([(manifest, [odd_chunk], {chunk.id: [bad]})])
        stored = state.chunks([chunk.id, bad])[chunk.id]
        assert (stored.chunk.text, stored.chunk.heading_path, stored.chunk.anchor) == (good, (good,), good)
        assert (stored.url, stored.categories) == (good, (good,))
        assert len(stored.chunk.text) == len(bad)
        assert state.chunk_names([chunk.id]) == {chunk.id: (good,)}
        assert [title for _, title, _ in state.titles()] == ["P", good]
        state.set_meta(bad, bad)
        assert state.meta(bad) == good
        state.begin_batch([bad], [])
        assert state.unfinished() == {good}
        state.commit_removal([bad])
        assert state.manifests([bad]) == {}


async def test_the_graph_replaces_them_too(tmp_path: Path) -> None:
    bad, good = "a\ud800b\0c", "a\ufffdb\ufffdc"
    graph = SqliteGraph(tmp_path / "g.db")
    await graph.set_entities([Entity(id=bad, name=bad, keys=(bad,), titled=True)])
    await graph.put_pages(
        [GraphPage(page_id=bad, title_entity=bad, chunk_ids=(bad,), link_entities=(bad,), categories=(bad,))]
    )
    await graph.set_mentions({bad: [Mention(entity_id=bad, count=2)]})
    found = await graph.neighbourhood([bad], [bad], NeighbourhoodBounds(max_nodes=1))
    assert found.entity_ids == found.entity_names == (good,)
    assert await graph.find_entities([bad]) == {good: (Entity(id=good, name=good, keys=(good,), titled=True),)}
    assert await graph.linking_pages([bad]) == {good}
    await graph.remove_pages([bad])
    assert await graph.ids() == (set(), set())
    await graph.close()


# --- the cached neighbourhood -------------------------------------------------------------------------------------


async def test_the_whole_graph_is_one_object_until_somebody_writes(tmp_path: Path) -> None:
    graph, other = SqliteGraph(tmp_path / "g.db"), SqliteGraph(tmp_path / "g.db")
    await graph.put_pages([GraphPage(page_id="p", chunk_ids=("c",))])
    bounds = NeighbourhoodBounds()
    first = await graph.neighbourhood([], [], bounds)
    assert await graph.neighbourhood(["x"], ["c"], bounds) is first
    await other.put_pages([GraphPage(page_id="q", chunk_ids=("d",))])
    second = await graph.neighbourhood([], [], bounds)
    assert second.chunk_ids == ("c", "d")
    assert second.version == (await other.neighbourhood([], [], bounds)).version != first.version
    await graph.close()
    await other.close()
