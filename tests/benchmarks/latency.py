"""How long a question takes at 2,000, 20,000 and 100,000 chunks, stage by stage, and how it grows.

    uv run python -m tests.benchmarks.latency FOLDER [FOLDER …] [--sizes 2000 20000 100000] [--questions 300]
        [--index-dir DIR]

FOLDERs are BEIR-style; their passages are multiplied up to each size (`enlarged.py`), their first questions asked one
after the other on the embedded backends, without the web. Prints one JSON object. For each size: chunks a second of
the first and the last tenth of the ingestion, the store's MB, this process's peak MB, and p50 and p95 milliseconds of

    vector    embed the question, search dense and BM25, fuse
    graph     the names in it, their entities, the walk
    legs      both at once
    fusion    the second walk, and stage 1
    wiki      legs and fusion: what the aims are about (40 and 120 at 100,000)
    dedup     candidates with their texts, without near-copies

and `growth`: p50 and p95 of each at a size divided by those at the size before.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from config.settings import Settings
from ingestion.ingest import ingest
from ingestion.report import Progress
from server.backends import Backends
from server.candidates import candidates_of, drop_duplicates
from server.evaluation.dataset import read_questions
from server.evaluation.metrics import percentile
from server.evaluation.stages import graph_run, legs_run, timed, vector_run, wiki_run
from server.model import Question
from server.open import open_backends
from server.question_vectors import QuestionVectors
from tests.benchmarks.enlarged import Enlarged, RenamingRecognizer, TurningEmbedder

Times = dict[str, list[float]]
Summary = dict[str, dict[str, float]]


async def build(folders: Sequence[Path], size: int, backends: Backends, keep: Path) -> dict[str, float]:
    """Fill the store, where it is not yet; chunks a second at the beginning and the end."""
    if len(await backends.vectors.ids("wiki")) >= size:
        return {}
    course: list[tuple[int, float]] = []
    embedder = TurningEmbedder(backends.embedder, keep)
    knowledge = replace(backends.knowledge, embedder=embedder, recognizer=RenamingRecognizer())

    def note(progress: Progress) -> None:
        course.append((progress.chunks, time.perf_counter()))

    began = time.perf_counter()
    await ingest(Enlarged(folders, size), knowledge, backends.settings.ingestion, on_progress=note)
    seconds = time.perf_counter() - began
    embedder.keep()
    return {"seconds": round(seconds), "rate_last_by_first_tenth": round(_rates(course), 2)}


def _rates(course: Sequence[tuple[int, float]]) -> float:
    """The first tenth is left to warming up and to the originals, whose vectors are made: the second is the first."""
    total = course[-1][0]

    def at(share: float) -> float:
        return next(seconds for chunks, seconds in course if chunks >= share * total)

    return (at(0.6) - at(0.5)) / max(at(1.0) - at(0.9), 1e-9)


async def ask(questions: Sequence[str], backends: Backends) -> Times:
    times: Times = defaultdict(list)
    for position, text in enumerate([*questions[:5], *questions]):
        question = Question(text=text, use_web=False)
        row: dict[str, float] = {}
        _, row["vector"] = await timed(vector_run(question, backends))
        _, row["graph"] = await timed(graph_run(question, backends))
        found, row["legs"] = await timed(legs_run(question, backends))
        wiki, row["fusion"] = await timed(wiki_run(found, backends))
        row["wiki"] = row["legs"] + row["fusion"]
        began = time.perf_counter()
        merged = await candidates_of(wiki.hits, [], backends, k=backends.settings.search.rrf_k)
        await drop_duplicates(merged, backends)
        row["dedup"] = (time.perf_counter() - began) * 1000
        if position >= 5:  # the first warm the caches up
            for stage, spent in row.items():
                times[stage].append(spent)
    return times


def summary(times: Times) -> Summary:
    return {
        stage: {"p50": round(percentile(spent, 0.5), 1), "p95": round(percentile(spent, 0.95), 1)}
        for stage, spent in times.items()
    }


def grown(smaller: Summary, larger: Summary) -> Summary:
    return {
        stage: {name: round(larger[stage][name] / smaller[stage][name], 2) for name in ("p50", "p95")}
        for stage in larger
    }


async def measure(folders: Sequence[Path], sizes: Sequence[int], questions: int, index: Path) -> dict[str, object]:
    each = questions // len(folders)
    texts = [judged.text for folder in folders for judged in read_questions(folder)[:each]]
    report: dict[str, object] = {}
    before: Summary = {}
    for size in sizes:
        settings = Settings(home=index / str(size))
        backends = await open_backends(settings, command="benchmark")
        try:
            row: dict[str, object] = {**await build(folders, size, backends, index / "originals.npz")}
            print(f"{size}: built, {row}", file=sys.stderr)
            backends = await _again(backends, settings)
            counts = await backends.graph.counts()
            stages = summary(await ask(texts, backends))
            row |= {
                "chunks": counts.chunks,
                "entities": counts.entities,
                "mentions": counts.mentions,
                "store_mb": sum(f.stat().st_size for f in settings.home.rglob("*") if f.is_file()) >> 20,
                "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
                "ms": stages,
            }
            if before:
                row["growth"] = grown(before, stages)
            before = stages
        finally:
            await backends.close()
        report[str(size)] = row
        print(json.dumps({str(size): row}), file=sys.stderr)
    return report


async def _again(backends: Backends, settings: Settings) -> Backends:
    """As a server opens it, without what the ingestion has left in memory."""
    await backends.close()
    opened = await open_backends(settings, command="benchmark")
    return replace(opened, question_vectors=QuestionVectors(0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--sizes", type=int, nargs="+", default=[2_000, 20_000, 100_000])
    parser.add_argument("--questions", type=int, default=300)
    parser.add_argument("--index-dir", type=Path, default=Path("/tmp/trivet-latency"))
    given = parser.parse_args()
    print(json.dumps(asyncio.run(measure(given.folders, given.sizes, given.questions, given.index_dir)), indent=2))


if __name__ == "__main__":
    main()
