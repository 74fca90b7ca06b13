"""`trivet calibrate`: a judged set's questions asked, with what the search knew of each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from config.settings import Settings
from graph.errors import InputError
from ingestion.report import Progress
from ingestion.sources.beir import BeirCorpus
from server.backends import Backends
from server.evaluation.asking import confidence_of
from server.evaluation.calibration import LEAST_QUESTIONS, Calibration, Labelled, calibrate
from server.evaluation.changes import changed
from server.evaluation.dataset import JudgedQuestion, read_questions, read_unanswerable
from server.evaluation.evaluate import Tell, counted, open_indexed
from server.evaluation.stages import final_run, legs_run, open_to_noise, ranked_documents, vector_run, wiki_run
from server.model import Question

PATIENT = {"search.vector_seconds": 120.0, "search.graph_seconds": 120.0, "rerank.budget_seconds": 60.0}
"""Thresholds are of models, not of this machine's speed."""


async def calibrate_on(
    folder: Path,
    settings: Settings,
    *,
    index_dir: Path | None = None,
    limit: int | None = None,
    on_progress: Callable[[Progress], None] = lambda progress: None,
    tell: Tell = lambda what, done, total: None,
) -> Calibration:
    """Raises `SourceError` where the folder is not a benchmark, `InputError` where it has too few questions."""
    questions = read_questions(folder)[:limit]
    if len(questions) < LEAST_QUESTIONS:
        raise InputError(
            f"{folder} has {len(questions)} questions with a relevant document; at least {LEAST_QUESTIONS} are needed."
        )
    asked = [*questions, *read_unanswerable(folder)[:limit]]
    backends = await open_indexed(folder, changed(settings, PATIENT), index_dir=index_dir, on_progress=on_progress)
    try:
        source = BeirCorpus(folder).name
        return calibrate([await label(judged, source, backends) for judged in counted(asked, "asked", tell)])
    finally:
        await backends.close()


async def label(judged: JudgedQuestion, source: str, backends: Backends) -> Labelled:
    """One question; for one that the set cannot answer, no passage is a gold one."""
    found = await legs_run(Question(text=judged.text, use_web=False), backends)
    cosines: dict[bool, list[float]] = {True: [], False: []}
    # Before noise control, whose threshold is looked for.
    raw = await vector_run(found.question, open_to_noise(backends))
    for scored in raw.dense[: backends.settings.search.vector_limit]:
        documents = await ranked_documents([scored.key], source, backends)
        cosines[not judged.gold.isdisjoint(documents)].append(scored.score)
    order = await final_run(found.question, await wiki_run(found, backends), backends)
    chunks = [candidate.hit.key for candidate in order.candidates]
    shown = await ranked_documents(chunks[: backends.settings.search.evidence_limit], source, backends)
    return Labelled(
        answerable=bool(judged.gold),
        gold_cosines=tuple(cosines[True]),
        other_cosines=tuple(cosines[False]),
        confidence=confidence_of(order),
        founded=not judged.gold.isdisjoint(shown),
    )
