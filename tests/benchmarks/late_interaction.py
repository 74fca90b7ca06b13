"""What late interaction costs and what it gives, beside the cross-encoder.

    uv run python -m tests.benchmarks.late_interaction FOLDER [--limit 150] [--index-dir DIR] [--shares .3 .5 .7]

FOLDER is BEIR-style. Prints one JSON object: seconds and bytes for each chunk that gets token vectors (only the
candidates do), milliseconds for each question over `rerank.late_candidates`, and recall@5 and MRR of each order:

    prior          the wiki's ranking, near-copies left out
    late S         late interaction with the share S, 1 ignoring the prior
    cross          the cross-encoder over the first of the prior, without a time budget
    late S, cross  the cross-encoder over the first of `late S`
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from config.settings import RerankSettings, SearchSettings, Settings
from graph.protocols import Reranker
from ingestion.ingest import ingest
from ingestion.sources.beir import BeirCorpus
from server.backends import Backends
from server.candidates import Candidate, candidates_of, drop_duplicates
from server.evaluation.dataset import JudgedQuestion, read_questions
from server.evaluation.metrics import percentile, recall_at, reciprocal_rank
from server.evaluation.stages import RememberingReranker, legs_run, wiki_run
from server.model import Question
from server.open import open_backends
from server.rerank.late import LateInteraction
from server.rerank.order import blend, blend_late

UNHURRIED = 600.0
"""Seconds; what the cross-encoder could do is wanted, not what it can in time."""


async def measure(folder: Path, index: Path, limit: int, shares: Sequence[float]) -> dict[str, object]:
    settings = Settings(
        home=index,
        rerank=RerankSettings(late_interaction=True),
        search=SearchSettings(vector_limit=50, graph_limit=50, graph_seconds=60, vector_seconds=60),
    )
    backends = await open_backends(settings, command="benchmark")
    try:
        assert backends.late is not None
        assert backends.reranker is not None
        await ingest(
            BeirCorpus(folder), replace(backends.knowledge, token_embedder=None), settings.ingestion, prune=True
        )
        questions = read_questions(folder)[:limit]
        found = [await candidates(judged.text, backends) for judged in questions]
        costs = await costs_of(found, backends)
        orders: dict[str, list[list[str]]] = {}
        milliseconds = []
        for judged, prior in zip(questions, found, strict=True):
            reranker = RememberingReranker(backends.reranker)
            started = time.perf_counter()
            scores = await backends.late.score(judged.text, [candidate.hit.key for candidate in prior])
            milliseconds.append((time.perf_counter() - started) * 1000)
            ways = {"prior": prior, **{f"late {s:g}": blend_late(prior, scores, weight=s) for s in (*shares, 1)}}
            ways |= {
                f"{name}, cross".removeprefix("prior, "): await crossed(judged.text, way, reranker, settings.rerank)
                for name, way in ways.items()
            }
            for name, way in ways.items():
                orders.setdefault(name, []).append(documents(way))
        return {
            "dataset": folder.name,
            "questions": len(questions),
            **costs,
            "candidates": round(sum(map(len, found)) / len(found), 1),
            "ms_p50": round(percentile(milliseconds, 0.5), 1),
            "ms_p95": round(percentile(milliseconds, 0.95), 1),
            "orders": {name: figures(order, questions) for name, order in orders.items()},
        }
    finally:
        await backends.close()


async def candidates(text: str, backends: Backends) -> list[Candidate]:
    """What the stage would be given."""
    wiki = await wiki_run(await legs_run(Question(text=text, use_web=False), backends), backends)
    merged = await candidates_of(wiki.hits, [], backends, k=backends.settings.search.rrf_k)
    return (await drop_duplicates(merged, backends))[: backends.settings.rerank.late_candidates]


async def costs_of(found: Sequence[Sequence[Candidate]], backends: Backends) -> dict[str, float]:
    """Make the token vectors that are lacking; what that takes for each chunk."""
    assert backends.late is not None
    texts = {candidate.hit.key: candidate.text for prior in found for candidate in prior}
    started = time.perf_counter()
    made = await make_tokens(texts, backends.late)
    seconds = time.perf_counter() - started
    chunks, size = backends.late.tokens.size()
    return {
        "made": made,
        "seconds_per_chunk": round(seconds / made, 4) if made else 0.0,
        "bytes_per_chunk": round(size / chunks),
    }


async def make_tokens(texts: dict[str, str], late: LateInteraction) -> int:
    lacking = sorted(texts.keys() - late.tokens.ids())
    for start in range(0, len(lacking), 128):
        part = lacking[start : start + 128]
        vectors = await late.embedder.embed_passages([texts[key] for key in part])
        late.tokens.put(dict(zip(part, vectors, strict=True)))
    return len(lacking)


async def crossed(
    text: str, order: Sequence[Candidate], reranker: Reranker, settings: RerankSettings
) -> list[Candidate]:
    head = list(order[: settings.candidates])
    scores = await reranker.score(text, [candidate.text for candidate in head], budget=UNHURRIED)
    return [*blend(head, scores, weight=settings.weight), *order[len(head) :]]


def documents(order: Sequence[Candidate]) -> list[str]:
    pages = (candidate.chunk.chunk.page_id.partition(":")[2] for candidate in order if candidate.chunk)
    return list(dict.fromkeys(pages))


def figures(order: Sequence[Sequence[str]], questions: Sequence[JudgedQuestion]) -> dict[str, float]:
    pairs = [(ranking, judged.gold) for ranking, judged in zip(order, questions, strict=True)]
    return {
        "recall@5": round(sum(recall_at(ranking, gold, 5) for ranking, gold in pairs) / len(pairs), 4),
        "mrr": round(sum(reciprocal_rank(ranking, gold) for ranking, gold in pairs) / len(pairs), 4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--index-dir", type=Path, default=None)
    parser.add_argument("--limit", type=int, default=150)
    parser.add_argument("--shares", type=float, nargs="*", default=[0.3, 0.5, 0.7])
    given = parser.parse_args()
    index = given.index_dir or Path("/tmp") / f"trivet-late-{given.folder.name}"
    print(json.dumps(asyncio.run(measure(given.folder, index, given.limit, given.shares)), indent=2))


if __name__ == "__main__":
    main()
