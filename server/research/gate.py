"""The suitability gate: whether enough was found to go on with a topic (mission.md §6.2)."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass

from config.settings import ResearchSettings
from graph.errors import DependencyError
from graph.protocols import Reranker
from graph.research import KeptPassage, ResearchStore, Topic, TopicState
from server.web.passages import by_bm25
from server.web.registrable import registrable

RERANK_SECONDS = 30.0
NO_RERANKER = "how well the passages fit was not judged: the cross-encoder is off"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """OK, THIN or INSUFFICIENT, with what it rests on."""

    state: TopicState
    reasons: tuple[str, ...]
    chunks: int
    mean_score: float | None
    """0…1; None where it was not judged."""
    domains: int


def judge(
    *, chunks: int, mean_score: float | None, domains: int, bounds: ResearchSettings, notes: Sequence[str] = ()
) -> Verdict:
    """`notes` are added to the reasons."""
    faults: list[str] = []
    insufficient = chunks < bounds.min_chunks
    if insufficient:
        faults.append(f"{_count(chunks, 'passage')} found, {bounds.min_chunks} are needed")
    if chunks and mean_score is not None and mean_score < bounds.min_score:
        faults.append(f"the passages fit the topic badly: {mean_score:.2f} on average, {bounds.min_score:g} is needed")
    if chunks and domains < bounds.min_domains:
        faults.append(f"all of it is from {_count(domains, 'domain')}, {bounds.min_domains} are needed")
    state = TopicState.INSUFFICIENT if insufficient else TopicState.THIN if faults else TopicState.OK
    if not faults:
        scored = "" if mean_score is None else f", mean score {mean_score:.2f}"
        faults.append(f"{_count(chunks, 'passage')} of {_count(domains, 'domain')}{scored}")
    return Verdict(state=state, reasons=(*faults, *notes), chunks=chunks, mean_score=mean_score, domains=domains)


async def gate(
    topic: Topic,
    store: ResearchStore,
    reranker: Reranker | None,
    bounds: ResearchSettings,
    *,
    notes: Sequence[str] = (),
) -> Verdict:
    """Judge what is stored for a topic. Without the cross-encoder its quality is not judged, and that is said."""
    passages = await asyncio.to_thread(store.passages_of, topic.slug)
    said = list(notes)
    mean = None
    if passages:
        best = await asyncio.to_thread(best_for, topic, passages, bounds.scored_passages)
        mean, note = await _mean_score(topic, best, reranker)
        said += [note] if note else []
    domains = len({registrable(passage.url) for passage in passages})
    return judge(chunks=len(passages), mean_score=mean, domains=domains, bounds=bounds, notes=said)


def question_of(topic: Topic) -> str:
    """What the passages are compared with."""
    return f"{topic.title}: {topic.focus}" if topic.focus.strip() else topic.title


def best_for(topic: Topic, passages: Sequence[KeptPassage], limit: int) -> list[KeptPassage]:
    """By BM25 over title and text, the best first."""
    texts = [f"{passage.title} {passage.text}" for passage in passages]
    return [passages[place] for place, _ in by_bm25(texts, question_of(topic))[:limit]]


async def _mean_score(
    topic: Topic, passages: Sequence[KeptPassage], reranker: Reranker | None
) -> tuple[float | None, str]:
    """Of those that were scored in time, after a sigmoid; and a note where there is none."""
    if reranker is None:
        return None, NO_RERANKER
    try:
        scores = await reranker.score(
            question_of(topic), [f"{passage.title}\n{passage.text}" for passage in passages], budget=RERANK_SECONDS
        )
    except DependencyError as error:
        return None, f"how well the passages fit was not judged: {error}"
    known = [sigmoid(score) for score in scores if score is not None]
    if not known:
        return None, "how well the passages fit was not judged: the cross-encoder was not done in time"
    return sum(known) / len(known), ""


def sigmoid(logit: float) -> float:
    """Without overflow at either end."""
    if logit >= 0:
        return 1 / (1 + math.exp(-logit))
    return math.exp(logit) / (1 + math.exp(logit))


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
