"""The store's folder: one holder at a time, and no store used with settings it was not made with."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from graph.errors import StoreBusyError, StoreCorruptError, StoreFullError, StoreVersionError
from graph.home import (
    GRAPH_FILE,
    LOCK_FILE,
    STAMP_FILE,
    STATE_FILE,
    VECTORS_FOLDER,
    HomeLock,
    HomeStamp,
    erase_store,
    prepare_home,
)

STAMP = HomeStamp(embedding_model="bge-small", dimension=384, bm25_language="english", trivet_version="0.1.0")
HOLD = """
import sys, time
from pathlib import Path
from graph.home import HomeLock
lock = HomeLock.acquire(Path(sys.argv[1]), command="trivet serve")
lock.publish("http://127.0.0.1:8642")
print("held", flush=True)
time.sleep(60)
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "home"


def test_the_folder_is_made_for_its_owner_alone(home: Path) -> None:
    HomeLock.acquire(home, command="trivet ingest").release()
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert stat.S_IMODE((home / LOCK_FILE).stat().st_mode) == 0o600


def test_nobody_holds_a_folder_that_is_not_there(home: Path) -> None:
    assert HomeLock.holder(home) is None
    assert not home.exists()


def test_the_second_is_told_who_the_first_is(home: Path) -> None:
    with HomeLock.acquire(home, command="trivet ingest wiki") as lock:
        with pytest.raises(StoreBusyError, match=f"`trivet ingest wiki` \\(process {os.getpid()}, since 2"):
            HomeLock.acquire(home, command="trivet ask")
        lock.publish("http://[::1]:1")
        holder = HomeLock.holder(home)
        assert holder is not None
        assert (holder.pid, holder.url) == (os.getpid(), "http://[::1]:1")
        with pytest.raises(StoreBusyError, match=r"at http://\[::1\]:1"):
            HomeLock.acquire(home, command="trivet ask")
    assert HomeLock.holder(home) is None
    HomeLock.acquire(home, command="trivet ask").release()


def test_releasing_twice_takes_nothing_from_the_next_holder(home: Path) -> None:
    first = HomeLock.acquire(home, command="one")
    first.release()
    with HomeLock.acquire(home, command="two"):
        first.release()
        assert HomeLock.holder(home) is not None


def test_asking_who_holds_it_never_gets_in_the_way(home: Path) -> None:
    HomeLock.acquire(home, command="x").release()
    watcher = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys, pathlib\nfrom graph.home import HomeLock\nprint('on', flush=True)\n"
            "while True: HomeLock.holder(pathlib.Path(sys.argv[1]))",
            home,
        ],
        stdout=subprocess.PIPE,
    )
    try:
        assert watcher.stdout is not None
        watcher.stdout.readline()
        for _ in range(50):
            HomeLock.acquire(home, command="y").release()
    finally:
        watcher.kill()
        watcher.communicate()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_dead_holders_lock_is_free_at_once(home: Path, how: signal.Signals) -> None:
    other = subprocess.Popen([sys.executable, "-c", HOLD, home], stdout=subprocess.PIPE)
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        holder = HomeLock.holder(home)
        assert holder is not None
        assert (holder.pid, holder.command, holder.url) == (other.pid, "trivet serve", "http://127.0.0.1:8642")
        with pytest.raises(StoreBusyError):
            HomeLock.acquire(home, command="trivet ask")
    finally:
        other.send_signal(how)
        other.communicate()
    assert HomeLock.holder(home) is None
    with HomeLock.acquire(home, command="trivet ask"):
        assert str(HomeLock.holder(home)).startswith("`trivet ask` (process")


def test_a_forked_child_does_not_keep_the_lock(home: Path) -> None:
    lock = HomeLock.acquire(home, command="trivet ingest")
    child_hears, parent_says = os.pipe()
    parent_hears, child_says = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(parent_says)
        os.write(child_says, b"!")
        os.read(child_hears, 1)  # lives until the parent has looked
        os._exit(0)
    os.read(parent_hears, 1)
    lock.release()
    held_by_child = HomeLock.holder(home)
    for descriptor in (child_hears, parent_says, parent_hears, child_says):
        os.close(descriptor)
    os.waitpid(child, 0)
    assert held_by_child is None


@pytest.mark.parametrize("said", [b"", b"{", b"[]", b'{"pid": 1}', b"\xff\xfe"])
def test_a_lock_file_that_makes_no_sense_is_still_a_lock(home: Path, said: bytes) -> None:
    with HomeLock.acquire(home, command="trivet ingest"):
        (home / LOCK_FILE).write_bytes(said)
        holder = HomeLock.holder(home)
        assert holder is not None
        assert holder.command == "another program"
    (home / LOCK_FILE).write_bytes(said)
    HomeLock.acquire(home, command="trivet ask").release()


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "home"):
        with pytest.raises(StoreFullError, match=f"Cannot write to {place}"):
            prepare_home(place)
        assert HomeLock.holder(place) is None
        assert HomeStamp.read(place) is None


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_is_not_writable_is_named(home: Path) -> None:
    home.mkdir(parents=True, mode=0o500)
    with pytest.raises(StoreFullError, match="not writable"):
        HomeLock.acquire(home, command="trivet ingest")


def test_a_new_store_is_stamped_and_the_same_one_accepted(home: Path) -> None:
    prepare_home(home)
    assert HomeStamp.read(home) is None
    STAMP.settle(home)
    STAMP.settle(home)
    found = HomeStamp.read(home)
    assert found == replace(STAMP, id=found.id if found else "")
    assert found is not None
    assert len(found.id) == 16
    assert [path.name for path in home.iterdir()] == [STAMP_FILE]


def test_a_newer_trivet_updates_its_name(home: Path) -> None:
    prepare_home(home)
    STAMP.settle(home)
    replace(STAMP, trivet_version="0.2.0").settle(home)
    found = HomeStamp.read(home)
    assert found is not None
    assert found == replace(STAMP, trivet_version="0.2.0", id=found.id)


@pytest.mark.parametrize(
    ("made_with", "says"),
    [
        (
            replace(STAMP, embedding_model="e5"),
            r"made with the embedding model e5 \(384.*is bge-small.*ingest --rebuild`",
        ),
        (replace(STAMP, dimension=768), r"\(768 numbers\).*\(384\).*`trivet ingest --rebuild`"),
        (replace(STAMP, bm25_language="french"), "BM25 for french.*english.*`trivet ingest --rebuild`"),
        (replace(STAMP, vectors="qdrant"), "vectors .* are in Qdrant .*qdrant_url is not set; .*`.*--to embedded`"),
        (replace(STAMP, graph="neo4j"), "graph .* is in Neo4j .*neo4j_url is not set; .*`.*--to embedded`"),
        (replace(STAMP, format=0), "has format 0.*writes format 1.*`trivet ingest --rebuild`"),
    ],
)
def test_a_store_made_otherwise_is_refused_and_left_alone(home: Path, made_with: HomeStamp, says: str) -> None:
    prepare_home(home)
    made_with.write(home)
    with pytest.raises(StoreVersionError, match=says):
        STAMP.settle(home)
    assert HomeStamp.read(home) == made_with


def test_a_server_that_is_set_later_does_not_hide_what_the_folder_has(home: Path) -> None:
    prepare_home(home)
    STAMP.settle(home)
    with pytest.raises(
        StoreVersionError, match=r"vectors\.qdrant_url is set; unset it, or .*`trivet migrate --to servers`"
    ):
        replace(STAMP, vectors="qdrant").settle(home)
    with pytest.raises(
        StoreVersionError, match=r"graph\.neo4j_url is set; unset it, or .*`trivet migrate --to servers`"
    ):
        replace(STAMP, graph="neo4j").settle(home)


def test_a_stamp_of_the_first_version_means_the_folder(home: Path) -> None:
    prepare_home(home)
    said = {"embedding_model": "bge-small", "dimension": 384, "bm25_language": "english", "format": 1}
    (home / STAMP_FILE).write_text(json.dumps({**said, "trivet_version": "0.1.0"}))
    assert HomeStamp.read(home) == STAMP
    assert len(STAMP.settle(home).id) == 16


def test_a_store_of_a_newer_trivet_is_refused_whatever_else_it_says(home: Path) -> None:
    prepare_home(home)
    (home / STAMP_FILE).write_text(json.dumps({"format": 7, "trivet_version": "9.1", "models": {}}))
    with pytest.raises(StoreVersionError, match=r"Trivet 9\.1 in format 7, and this one knows format 1; update Trivet"):
        HomeStamp.read(home)


@pytest.mark.parametrize("said", ["", "{", "[]", "{}", '{"format": 1, "trivet_version": "1"}', '{"format": "1"}', "\0"])
def test_a_broken_stamp_is_no_empty_store(home: Path, said: str) -> None:
    prepare_home(home)
    (home / STAMP_FILE).write_text(said)
    with pytest.raises(StoreCorruptError, match=r"store\.json is not what Trivet wrote"):
        STAMP.settle(home)


def test_erasing_leaves_the_lock_and_what_is_not_ours(home: Path) -> None:
    with HomeLock.acquire(home, command="trivet ingest --rebuild"):
        STAMP.settle(home)
        for name in (STATE_FILE, f"{STATE_FILE}-wal", GRAPH_FILE, "notes.txt"):
            (home / name).write_text("")
        (home / VECTORS_FOLDER / "wiki").mkdir(parents=True)
        erase_store(home)
        erase_store(home)
        assert sorted(path.name for path in home.iterdir()) == [LOCK_FILE, "notes.txt"]
        assert HomeLock.holder(home) is not None
