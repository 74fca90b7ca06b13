"""A big dump through ingestion with models that cost nothing: is it fast, and is it flat?

    nice -n 10 uv run python -m tests.benchmarks.dump [--megabytes 200] [--keep FOLDER] [--limit 600]

Builds a dump from the shared data's, multiplied with distinct titles, ingests it into the embedded stores with a
constant embedder and no named entities, and prints one JSON object: pages a second of the first and the last fifth and
their ratio, the seconds until all was written and until all was linked, and the peak memory of the process and its
children. How far it is goes to standard error.

Resident memory counts pages of files that are mapped, as many as the system has room for. With `--limit` the kernel
holds the process and its children to so many MB (a memory cgroup, version 1; root only), and kills them beyond.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import psutil
from numpy.typing import NDArray

from config.settings import IngestionSettings
from graph.home import GRAPH_FILE, STATE_FILE, VECTORS_FOLDER
from graph.knowledge import Knowledge
from graph.qdrant_edge_store import QdrantEdge
from graph.recognizer import Recognizer
from graph.sqlite_graph import SqliteGraph
from graph.sqlite_state import SqliteState
from ingestion.ingest import ingest
from ingestion.report import Progress
from ingestion.sources.dump_stream import xml_text
from ingestion.sources.mediawiki_xml import MediaWikiXml
from server.memory import limit_arenas

DATA = Path(os.environ.get("TRIVET_DATA", Path(__file__).parents[2].parent / "shared" / "data")) / "wikis"
SAMPLES = (
    "mediawiki_xml_gensim/enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2",
    "mediawiki_xml_ltgwiki/smallwiki-latest-pages-articles.xml",
)
PAGE = re.compile(r"<page>.*?</page>", re.DOTALL)
TITLE = re.compile(r'(?<=<title>)[^<]+(?=</title>)|(?<=<redirect title=")[^"]+(?=")')
NAMESPACES = {2: "Lītuotuojs", 6: "Fails", 10: "Taiss", 14: "Kategoreja"}
"""Of the smaller wiki; the English names are known anyway."""
DIMENSION = 384
"""Of the bundled model, whose store is filled."""


class ConstantEmbedder:
    """One vector for all, and tokens by a rule of thumb."""

    model = "constant"
    dimension = DIMENSION
    max_tokens = 512

    async def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.full((len(texts), DIMENSION), DIMENSION**-0.5, np.float32)

    async def embed_question(self, question: str) -> NDArray[np.float32]:
        return np.full(DIMENSION, DIMENSION**-0.5, np.float32)

    def count_tokens(self, text: str) -> int:
        return len(text) // 4 + 1

    async def close(self) -> None: ...


def copies() -> Iterator[str]:
    """The samples' pages again and again, each time under other titles, so that every part of the dump is alike."""
    pages = [page for sample in SAMPLES for page in PAGE.findall("".join(xml_text(DATA / sample)))]
    number = 1
    while True:
        for page in pages:
            yield page if number == 1 else TITLE.sub(rf"\g<0> {number}", page)
        number += 1


def make_dump(path: Path, megabytes: int) -> int:
    """Write it; how many pages it has."""
    count = size = 0
    with path.open("w", encoding="utf-8") as file:
        file.write('<mediawiki xml:lang="en"><siteinfo><base>https://wiki.example/wiki/X</base><namespaces>\n')
        file.write("".join(f'<namespace key="{key}">{name}</namespace>' for key, name in NAMESPACES.items()))
        file.write("</namespaces></siteinfo>\n")
        for page in copies():
            file.write(page + "\n")
            size += len(page.encode())
            count += 1
            if size >= megabytes * 1_000_000:
                break
        file.write("</mediawiki>\n")
    return count


@dataclass(slots=True)
class Memory:
    """The most memory that this process and its children ever had at once, looked at twice a second."""

    peak: int = 0
    own_peak: int = 0
    children_peak: int = 0
    heap_peak: int = 0
    """Of this process without files that are mapped, which the system takes back when it needs to."""
    every_minute: list[int] = field(default_factory=list)
    """In MB."""
    _stopped: threading.Event = field(default_factory=threading.Event)

    def watch(self) -> None:
        process, started = psutil.Process(), time.monotonic()
        ours = process.cmdline()
        while not self._stopped.wait(0.5):
            now = process.memory_info()
            own = now.rss
            self.heap_peak = max(self.heap_peak, own - now.shared)
            children = sum(_resident(child, ours) for child in process.children(recursive=True))
            self.peak = max(self.peak, own + children)
            self.own_peak = max(self.own_peak, own)
            self.children_peak = max(self.children_peak, children)
            if len(self.every_minute) <= (time.monotonic() - started) // 60:
                self.every_minute.append((own + children) >> 20)

    def stop(self) -> None:
        self._stopped.set()


def _resident(process: psutil.Process, ours: list[str]) -> int:
    """Not of a child that is just being started: until it is another program, it shows its parent's memory."""
    try:
        return 0 if process.cmdline() == ours else int(process.memory_info().rss)
    except psutil.Error:
        return 0


@dataclass(slots=True)
class Course:
    """How far the run was when."""

    pages: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    told: int = 0
    stages: Counter[str] = field(default_factory=Counter)
    """Stage → the second in which it was last heard of."""

    def note(self, progress: Progress) -> None:
        if int(progress.seconds) >= self.told + 20:
            self.told = int(progress.seconds)
            shown = f"{self.told} s, {progress.stage}: {progress.pages:,} pages, {progress.chunks:,} chunks"
            print(shown, f"{psutil.Process().memory_info().rss >> 20} MB", file=sys.stderr, flush=True)
        self.stages[progress.stage] = int(progress.seconds)
        if not self.pages or progress.pages > self.pages[-1]:
            self.pages.append(progress.pages)
            self.seconds.append(progress.seconds)

    def rate(self, start: float, end: float) -> float:
        """Pages a second between two shares of all pages."""
        low, high = (bisect_left(self.pages, share * self.pages[-1]) for share in (start, end))
        return (self.pages[high] - self.pages[low]) / (self.seconds[high] - self.seconds[low])


async def measured(dump: Path, home: Path) -> dict[str, object]:
    vectors = QdrantEdge(home / VECTORS_FOLDER, dimension=DIMENSION, language="english")
    graph, state = SqliteGraph(home / GRAPH_FILE), SqliteState(home / STATE_FILE)
    embedder, recognizer = ConstantEmbedder(), Recognizer(())
    knowledge = Knowledge(state=state, vectors=vectors, graph=graph, embedder=embedder, recognizer=recognizer)
    memory, course = Memory(), Course()
    watching = threading.Thread(target=memory.watch)
    watching.start()
    started = time.perf_counter()
    try:
        report = await ingest(
            MediaWikiXml(path=dump, name="big"), knowledge, IngestionSettings(), on_progress=course.note
        )
    finally:
        memory.stop()
        watching.join()
        await vectors.close()
        await graph.close()
        state.close()
    first, last = course.rate(0.0, 0.2), course.rate(0.8, 1.0)
    return {
        "pages": report.added + report.redirects,
        "chunks": report.chunks,
        "links": report.links,
        "failed": len(report.failed),
        "skipped": len(report.skipped),
        "first_fifth_pages_per_second": round(first, 1),
        "last_fifth_pages_per_second": round(last, 1),
        "last_over_first": round(last / first, 3),
        "written_seconds": round(course.seconds[-1], 1),
        "stages": dict(course.stages),
        "total_seconds": round(time.perf_counter() - started, 1),
        "peak_mb": memory.peak >> 20,
        "own_peak_mb": memory.own_peak >> 20,
        "own_heap_peak_mb": memory.heap_peak >> 20,
        "children_peak_mb": memory.children_peak >> 20,
        "mb_every_minute": memory.every_minute,
    }


def limit_memory(megabytes: int) -> None:
    """This process and all it starts get no more, files that they read included."""
    group = Path("/sys/fs/cgroup/memory") / f"trivet-dump-{os.getpid()}"
    group.mkdir()
    (group / "memory.limit_in_bytes").write_text(str(megabytes << 20))
    (group / "cgroup.procs").write_text(str(os.getpid()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--keep", type=Path, help="a folder for the dump and the stores, which are left there")
    parser.add_argument("--limit", type=int, help="MB that the kernel lets it have")
    parser.add_argument("--make", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.make:
        make_dump(chosen.make, chosen.megabytes)
        return
    limit_arenas()  # as the command does
    with tempfile.TemporaryDirectory() as folder:
        place = chosen.keep or Path(folder)
        dump = place / "dump.xml"
        if not dump.exists():  # in a process of its own, whose memory does not count
            make = ["--make", str(dump), "--megabytes", str(chosen.megabytes)]
            subprocess.run([sys.executable, "-m", "tests.benchmarks.dump", *make], check=True)
        if chosen.limit:
            limit_memory(chosen.limit)
        (place / "home").mkdir()
        print(json.dumps(asyncio.run(measured(dump, place / "home")), indent=2))


if __name__ == "__main__":
    main()
