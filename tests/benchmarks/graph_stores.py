"""Neo4j against SQLite: the same answers, what a question costs on each, and what writing costs ingestion.

    eval "$(uv run python -m tests.services.run start neo4j)"
    uv run python -m tests.benchmarks.graph_stores [--pages 6119] [--questions 944]

Prints one JSON object, all of one run: `write_share` is the part of the ingestion of 2wiki1000 into Neo4j during
which a graph write was under way; `recall` is recall@5 of the graph leg on each store, which must agree to three
decimals; `p50_ratio` and `p95_ratio` are Neo4j's time for a question over SQLite's, asked in turns.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import SecretStr

from config.settings import GraphSettings, RerankSettings, Settings
from graph.graph_model import Entity, GraphPage, Mention
from graph.neo4j_store import Neo4jGraph
from graph.protocols import GraphStore
from graph.sqlite_graph import SqliteGraph
from ingestion.ingest import ingest
from ingestion.migrate import migrate
from ingestion.sources.beir import BeirCorpus
from server.backends import Backends
from server.evaluation.dataset import read_questions
from server.evaluation.metrics import percentile, recall_at
from server.evaluation.stages import graph_run, ranked_documents
from server.graph_leg import WalkCache
from server.memory import limit_arenas
from server.model import Question
from server.open import open_backends
from tests.benchmarks.ingestion import CORPUS, FirstPages
from tests.contracts.neo4j_backend import empty_neo4j_graph
from tests.services.environment import service


class TimedWrites(Neo4jGraph):
    """Adds up the time in which a write is under way."""

    def __init__(self, graph: Neo4jGraph) -> None:
        super().__init__(graph._connection)
        self.seconds = 0.0

    async def _timed(self, write: Awaitable[object]) -> None:
        started = time.perf_counter()
        try:
            await write
        finally:
            self.seconds += time.perf_counter() - started

    async def put_pages(self, pages: Sequence[GraphPage]) -> None:
        await self._timed(super().put_pages(pages))

    async def remove_chunks(self, chunk_ids: Sequence[str]) -> None:
        await self._timed(super().remove_chunks(chunk_ids))

    async def remove_pages(self, page_ids: Sequence[str]) -> None:
        await self._timed(super().remove_pages(page_ids))

    async def set_entities(self, entities: Sequence[Entity]) -> None:
        await self._timed(super().set_entities(entities))

    async def set_mentions(self, mentions: Mapping[str, Sequence[Mention]]) -> None:
        await self._timed(super().set_mentions(mentions))

    async def prune_entities(self) -> int:
        started = time.perf_counter()
        gone = await super().prune_entities()
        self.seconds += time.perf_counter() - started
        return gone


async def measure(pages: int, limit: int) -> dict[str, object]:
    empty_neo4j_graph()
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(
            home=Path(folder) / "home",
            rerank=RerankSettings(enabled=False),
            graph=GraphSettings(
                neo4j_url=service("NEO4J_URL"),
                neo4j_user=service("NEO4J_USER"),
                neo4j_password=SecretStr(service("NEO4J_PASSWORD")),
            ),
        )
        backends = await open_backends(settings, command="benchmark")
        try:
            assert isinstance(backends.graph, Neo4jGraph)
            timed = TimedWrites(backends.graph)
            backends = replace(backends, graph=timed)
            started = time.perf_counter()
            report = await ingest(FirstPages(BeirCorpus(CORPUS), pages), backends.knowledge, settings.ingestion)
            total = time.perf_counter() - started
            said = {
                "pages": pages,
                "chunks": report.chunks,
                "entities": report.entities,
                "ingestion_seconds": round(total, 1),
                "write_seconds": round(timed.seconds, 1),
                "write_share": round(timed.seconds / total, 3),
            }
            print(json.dumps(said), file=sys.stderr, flush=True)
            sqlite = SqliteGraph(Path(folder) / "graph.db")
            await migrate(backends.knowledge, graph=sqlite)
            try:
                return said | await compare(backends, sqlite, limit)
            finally:
                await sqlite.close()
        finally:
            await backends.close()


async def compare(backends: Backends, sqlite: GraphStore, limit: int) -> dict[str, object]:
    """Each question on both stores, in turns, so that what else the machine does falls on both."""
    stores = {"neo4j": backends, "sqlite": replace(backends, graph=sqlite, walks=WalkCache())}
    questions = read_questions(CORPUS)[:limit]
    times: dict[str, list[float]] = {name: [] for name in stores}
    recall: dict[str, list[float]] = {name: [] for name in stores}
    different = 0
    for number, judged in enumerate([questions[0], *questions]):
        rankings = []
        for name in sorted(stores, reverse=number % 2 == 1):
            started = time.perf_counter()
            chunks = await graph_run(Question(text=judged.text, use_web=False), stores[name])
            spent = time.perf_counter() - started
            rankings.append(chunks)
            if number == 0:
                continue  # reads the whole graph
            times[name].append(spent)
            documents = await ranked_documents(chunks, BeirCorpus(CORPUS).name, backends)
            recall[name].append(recall_at(documents, judged.gold, 5))
        different += number > 0 and rankings[0] != rankings[1]

    def ratio(q: float) -> float:
        return round(percentile(times["neo4j"], q) / percentile(times["sqlite"], q), 2)

    return {
        "questions": len(questions),
        "recall": {name: round(sum(values) / len(values), 4) for name, values in recall.items()},
        "rankings_that_differ": different,
        "p50_ms": {name: round(percentile(values, 0.5) * 1000, 1) for name, values in times.items()},
        "p50_ratio": ratio(0.5),
        "p95_ratio": ratio(0.95),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=6119)
    parser.add_argument("--questions", type=int, default=944)
    given = parser.parse_args()
    limit_arenas()
    print(json.dumps(asyncio.run(measure(given.pages, given.questions)), indent=2))


if __name__ == "__main__":
    main()
