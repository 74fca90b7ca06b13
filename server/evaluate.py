"""`trivet eval`: each leg and stage measured on a BEIR-style folder (mission.md §8)."""

from __future__ import annotations

import asyncio
import csv
import hashlib
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import platformdirs

from config.settings import Settings
from graph.errors import DependencyDownError, SourceError
from graph.model import Hit, Scored
from ingestion.ingest import ingest
from ingestion.language import detect_language
from ingestion.report import Progress
from ingestion.sources.beir import BeirCorpus
from server.backends import Backends
from server.candidates import candidates_of, drop_duplicates, live_only
from server.graph_leg import explore
from server.metrics import all_at, hit_at, ndcg_at, percentile, recall_at, reciprocal_rank
from server.model import Question
from server.open import open_backends
from server.rerank.order import reranked
from server.search import fuse_wiki, run_legs, vector_leg

RUNS = ("vector", "graph", "wiki", "reranked")
DEPTH = 20
"""Chunks asked for, so that ten documents remain where a document has several chunks."""

Run = dict[str, str | int | float]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedQuestion:
    """A question and the documents that answer it."""

    id: str
    text: str
    gold: frozenset[str]


@dataclass(slots=True)
class Rankings:
    """What one run returned, and how long each question took."""

    documents: list[list[str]] = field(default_factory=list)
    milliseconds: list[float] = field(default_factory=list)


async def evaluate(
    folder: Path,
    settings: Settings,
    *,
    index_dir: Path | None = None,
    limit: int | None = None,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> dict[str, object]:
    """Index the folder's corpus once (kept in a cache folder), ask its questions, and measure.

    Raises `SourceError` where the folder is not a benchmark.
    """
    questions = read_questions(folder)[:limit]
    corpus = BeirCorpus(folder)
    home = index_dir or default_index_dir(folder)
    backends = await open_backends(settings.model_copy(update={"home": home}), command="eval")
    try:
        await ingest(corpus, backends.knowledge, settings.ingestion, prune=True, on_progress=on_progress)
        measured = await ask_all(questions, corpus.name, backends)
    finally:
        await backends.close()
    return {"dataset": folder.name, "runs": [summary(name, measured[name], questions) for name in RUNS]}


def default_index_dir(folder: Path) -> Path:
    """A cache folder of its own for each path, so that two sets of one name do not meet."""
    place = hashlib.sha1(str(folder.resolve()).encode(), usedforsecurity=False).hexdigest()[:8]
    return Path(platformdirs.user_cache_dir("trivet")) / "eval" / f"{folder.name}-{place}"


def read_questions(folder: Path) -> list[JudgedQuestion]:
    """The questions that have a gold document, in file order."""
    gold = read_qrels(folder)
    path = folder / "queries.jsonl"
    if not path.is_file():
        raise SourceError(
            f"{folder} has no queries.jsonl: a BEIR-style folder needs corpus.jsonl, queries.jsonl and qrels"
        )
    questions = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            query = json.loads(line)
            key, text = str(query["_id"]), str(query["text"])
        except (ValueError, KeyError, TypeError) as error:
            raise SourceError(f"{path}:{number} is not a question: {error}") from error
        if key in gold:
            questions.append(JudgedQuestion(id=key, text=text, gold=frozenset(gold[key])))
    if not questions:
        raise SourceError(f"{folder} has no question with a relevant document; check its qrels")
    return questions


def read_qrels(folder: Path) -> dict[str, set[str]]:
    """Question id → ids of its relevant documents, from `qrels.tsv` or BEIR's `qrels/test.tsv`."""
    path = next((p for p in (folder / "qrels.tsv", folder / "qrels" / "test.tsv") if p.is_file()), None)
    if path is None:
        raise SourceError(f"{folder} has neither qrels.tsv nor qrels/test.tsv, so nothing can be measured")
    gold: dict[str, set[str]] = {}
    with path.open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines, delimiter="\t"):
            try:
                relevant = float(row["score"]) > 0
                key, document = row["query-id"], row["corpus-id"]
            except (KeyError, TypeError, ValueError) as error:
                raise SourceError(f"{path} must have the columns query-id, corpus-id and score: {error!r}") from error
            if relevant:
                gold.setdefault(key, set()).add(document)
    return gold


async def ask_all(questions: Sequence[JudgedQuestion], source: str, backends: Backends) -> dict[str, Rankings]:
    """Each question through each run, one after the other, as a single user would."""
    await _warm_up(questions[0], backends)
    measured = {name: Rankings() for name in RUNS}
    for judged in questions:
        question = Question(text=judged.text, use_web=False)
        for name, run in _runs(question, backends).items():
            started = time.perf_counter()
            chunks = await run
            measured[name].milliseconds.append((time.perf_counter() - started) * 1000)
            measured[name].documents.append(await ranked_documents(chunks, source, backends))
    return measured


def _runs(question: Question, backends: Backends) -> dict[str, Awaitable[list[str]]]:
    return {
        "vector": _vector(question, backends),
        "graph": graph_run(question, backends),
        "wiki": _wiki(question, backends),
        "reranked": _reranked(question, backends),
    }


async def _vector(question: Question, backends: Backends) -> list[str]:
    rankings, _ = await vector_leg(question, backends)
    return _keys(rankings.fused)


async def graph_run(question: Question, backends: Backends) -> list[str]:
    language = await asyncio.to_thread(detect_language, question.text, default="")
    found = await explore(
        question.text, language, backends.graph, backends.recognizer, backends.walks, backends.settings.graph
    )
    return _keys(await live_only(found, question.where, backends.state, limit=DEPTH))


async def _wiki_hits(question: Question, backends: Backends) -> tuple[Hit, ...]:
    """Raises `DependencyDownError` where a leg failed: a figure without it would be another search's."""
    language = await asyncio.to_thread(detect_language, question.text, default="")
    vector, graph, _ = await run_legs(question, language, backends)
    if vector.found is None or graph.found is None:
        name, status = ("vector", vector.status) if vector.found is None else ("graph", graph.status)
        raise DependencyDownError(f"The {name} leg failed for {question.text!r}: {status}", dependency=name)
    return (await fuse_wiki(question, vector.found[0], graph.found, backends)).hits


async def _wiki(question: Question, backends: Backends) -> list[str]:
    return [hit.key for hit in await _wiki_hits(question, backends)]


async def _reranked(question: Question, backends: Backends) -> list[str]:
    hits = await _wiki_hits(question, backends)
    candidates = await candidates_of(hits, [], backends, k=backends.settings.search.rrf_k)
    candidates = await drop_duplicates(candidates, backends)
    order = await reranked(question.text, candidates, backends.reranker, backends.settings.rerank)
    return [candidate.hit.key for candidate in order.candidates]


def _keys(ranking: Sequence[Scored]) -> list[str]:
    return [scored.key for scored in ranking]


async def ranked_documents(chunks: Sequence[str], source: str, backends: Backends) -> list[str]:
    """Chunk ids → document ids, each at its best chunk's place."""
    stored = await asyncio.to_thread(backends.state.chunks, chunks)
    pages = (stored[chunk].chunk.page_id for chunk in chunks if chunk in stored)
    return list(dict.fromkeys(page.removeprefix(f"{source}:") for page in pages))


async def _warm_up(judged: JudgedQuestion, backends: Backends) -> None:
    """Models load and the graph's snapshot is built with the first question; that is not its latency."""
    for run in _runs(Question(text=judged.text, use_web=False), backends).values():
        await run


def summary(name: str, measured: Rankings, questions: Sequence[JudgedQuestion]) -> Run:
    """The means of one run over all questions."""
    pairs = [(ranking, judged.gold) for ranking, judged in zip(measured.documents, questions, strict=True)]

    def mean(measure: Callable[[Sequence[str], frozenset[str]], float]) -> float:
        return round(sum(measure(ranking, gold) for ranking, gold in pairs) / len(pairs), 4)

    return {
        "name": name,
        "questions": len(pairs),
        "hit@5": mean(lambda ranking, gold: hit_at(ranking, gold, 5)),
        "recall@2": mean(lambda ranking, gold: recall_at(ranking, gold, 2)),
        "recall@5": mean(lambda ranking, gold: recall_at(ranking, gold, 5)),
        "recall@10": mean(lambda ranking, gold: recall_at(ranking, gold, 10)),
        "mrr": mean(reciprocal_rank),
        "ndcg@10": mean(lambda ranking, gold: ndcg_at(ranking, gold, 10)),
        "all@5": mean(lambda ranking, gold: all_at(ranking, gold, 5)),
        "p50_ms": round(percentile(measured.milliseconds, 0.5), 1),
        "p95_ms": round(percentile(measured.milliseconds, 0.95), 1),
    }
