"""A judged set of a few birds, and stores in memory filled with it: no model, so it takes milliseconds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from config.personas import load_personas
from config.settings import SearchSettings, Settings
from graph.recognizer import Recognizer
from ingestion.ingest import ingest
from ingestion.sources.beir import BeirCorpus
from server.backends import Backends
from tests.fake_state import FakeState
from tests.fakes import FakeGraph, FakeVectors, HashEmbedder

DOCUMENTS = {
    "d1": ("Gull", "The gull steals chips from visitors of Norvik pier."),
    "d2": ("Tern", "The tern dives for sand eels off Norvik."),
    "d3": ("Owl", "The owl sleeps by day in the old barn."),
    "d4": ("Norvik", "Norvik is a harbour town. Ada Holm built its pier."),
    "d5": ("Heron", "The heron stands in the river and waits for frogs."),
}
QUESTIONS = {
    "q1": ("What does the gull steal?", ("d1",), ("chips",), {"type": "food", "hops": 1}),
    "q2": ("What does the tern dive for?", ("d2",), ("sand eels",), {"type": "food", "hops": 1}),
    "q3": ("Who built the pier where the gull steals chips?", ("d1", "d4"), ("Ada Holm",), {"type": "who", "hops": 2}),
    "q4": ("Where does the owl sleep?", ("d3",), ("the old barn",), {"type": "place", "hops": 1}),
}
UNANSWERABLE = {"u1": "Which king crowned zebras quickly?", "u2": "How heavy is the owl?"}


def write_set(folder: Path, *, questions: Mapping[str, tuple] = QUESTIONS, unanswerable: bool = True) -> Path:
    """A BEIR-style folder."""
    folder.mkdir(parents=True, exist_ok=True)
    _write(
        folder / "corpus.jsonl", [{"_id": k, "title": title, "text": text} for k, (title, text) in DOCUMENTS.items()]
    )
    rows = [
        {"_id": key, "text": text, "answers": list(answers), "metadata": metadata}
        for key, (text, _, answers, metadata) in questions.items()
    ]
    _write(folder / "queries.jsonl", rows)
    judged = [f"{key}\t{document}\t1" for key, (_, gold, _, _) in questions.items() for document in gold]
    (folder / "qrels.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *judged]) + "\n", encoding="utf-8")
    if unanswerable:
        _write(folder / "unanswerable.jsonl", [{"_id": key, "text": text} for key, text in UNANSWERABLE.items()])
    return folder


def _write(path: Path, rows: Sequence[object]) -> None:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


class OverlapReranker:
    """The share of the question's words in a passage, as a logit from -5 to 5; counts what it was asked."""

    model = "overlap"

    def __init__(self, *, in_time: int = 1000) -> None:
        self.in_time = in_time
        self.asked = 0

    async def score(self, question: str, passages: Sequence[str], *, budget: float) -> list[float | None]:
        self.asked += len(passages)
        words = set(question.lower().strip("?").split())
        shares = [len(words & set(passage.lower().split())) / len(words) for passage in passages]
        return [10 * share - 5 if place < self.in_time else None for place, share in enumerate(shares)]

    async def close(self) -> None: ...


async def opened(folder: Path, home: Path, **changes: object) -> Backends:
    """Stores in memory with the folder's corpus in them; `changes` replace parts."""
    parts: dict[str, object] = {
        "settings": Settings(home=home, search=SearchSettings(vector_threshold=0.2)),
        "state": FakeState(),
        "vectors": FakeVectors(),
        "graph": FakeGraph(),
        "embedder": HashEmbedder(),
        "recognizer": Recognizer(()),
        "reranker": OverlapReranker(),
        "chat": None,
        "web": None,
        "fetcher": None,
        "personas": load_personas(None),
    }
    backends = Backends(**{**parts, **changes})  # type: ignore[arg-type]
    await ingest(BeirCorpus(folder), backends.knowledge, backends.settings.ingestion)
    return backends
