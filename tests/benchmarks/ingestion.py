"""What ingestion costs beside its two models, and whether its memory is flat.

    uv run python -m tests.benchmarks.ingestion [--pages 6119] [--small 1500]

Prints one JSON object of ratios, all measured in one run: `total_over_bare` is ingesting the corpus over bare
embedding plus bare name recognition of the same chunks, one after the other; `memory_ratio` is the peak of a
process that ingested all pages over that of one that ingested `--small` of them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from config.settings import Settings
from graph.model import Page, SourceItem, embedded_text
from graph.recognizer import Recognizer
from ingestion.chunks import chunk_page
from ingestion.ingest import ingest
from ingestion.sources.beir import BeirCorpus
from server.memory import limit_arenas
from server.open import open_backends
from server.open_models import open_embedder

DATA = Path(os.environ.get("TRIVET_DATA", Path(__file__).parents[2].parent / "shared" / "data"))
CORPUS = DATA / "benchmarks" / "2wiki1000"


@dataclass(slots=True)
class FirstPages:
    """The first pages of a corpus."""

    corpus: BeirCorpus
    count: int
    name: str = "benchmark"
    kind: str = "beir"

    def read(self) -> Iterator[SourceItem]:
        return islice(self.corpus.read(), self.count)


async def ingest_pages(count: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as home:
        settings = Settings(home=Path(home))
        backends = await open_backends(settings, command="benchmark")
        try:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            started = time.perf_counter()
            report = await ingest(FirstPages(BeirCorpus(CORPUS), count), backends.knowledge, settings.ingestion)
            seconds = time.perf_counter() - started
            again = time.perf_counter()
            await ingest(FirstPages(BeirCorpus(CORPUS), count), backends.knowledge, settings.ingestion)
            unchanged = time.perf_counter() - again
        finally:
            await backends.close()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "pages": count,
        "chunks": report.chunks,
        "seconds": seconds,
        "unchanged_seconds": unchanged,
        "peak_mb": peak / 1024,
        "models_mb": before / 1024,
    }


async def bare(count: int) -> dict[str, float]:
    """The same chunks through each model alone."""
    settings = Settings()
    embedder = await open_embedder(settings)
    limit = settings.ingestion.chunk_tokens
    pages = [page for page in FirstPages(BeirCorpus(CORPUS), count).read() if isinstance(page, Page)]
    chunks = [(p, c) for p in pages for c in chunk_page(p, count_tokens=embedder.count_tokens, max_tokens=limit)]
    texts = [embedded_text(page.title, chunk.heading_path, chunk.text) for page, chunk in chunks]
    recognizer = Recognizer(("en",))
    recognizer.names(["Warm up."], "en")
    started = time.perf_counter()
    size = settings.ingestion.batch_chunks
    for start in range(0, len(texts), size):
        await embedder.embed_passages(texts[start : start + size])
    embedded = time.perf_counter()
    recognizer.names([chunk.text for _, chunk in chunks], "en")
    named = time.perf_counter()
    await embedder.close()
    return {"embedding_seconds": embedded - started, "names_seconds": named - embedded}


def in_process(part: str, count: int) -> dict[str, float]:
    """Each part in a process of its own, so that peaks do not mix."""
    command = [sys.executable, "-m", "tests.benchmarks.ingestion", "--part", part, "--pages", str(count)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    measured: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=6119)
    parser.add_argument("--small", type=int, default=1500)
    parser.add_argument("--part", choices=["ingest", "bare"])
    chosen = parser.parse_args()
    if chosen.part:
        limit_arenas()  # as the command does
        part = ingest_pages if chosen.part == "ingest" else bare
        print(json.dumps(asyncio.run(part(chosen.pages))))
        return
    small = in_process("ingest", chosen.small)
    alone = in_process("bare", chosen.pages)
    whole = in_process("ingest", chosen.pages)
    models = alone["embedding_seconds"] + alone["names_seconds"]
    ratios = {
        "total_over_bare": round(whole["seconds"] / models, 3),
        "memory_ratio": round(whole["peak_mb"] / small["peak_mb"], 3),
        "rerun_share": round(whole["unchanged_seconds"] / whole["seconds"], 4),
    }
    print(json.dumps({**ratios, "whole": whole, "small": small, "bare": alone}, indent=2))


if __name__ == "__main__":
    main()
