"""The cross-encoder's say: a second order, fused with the first, and how sure it is (mission.md §4.6, §5.6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from config.settings import AnswerSettings, RerankSettings
from graph.errors import DependencyError
from graph.protocols import Reranker
from server.candidates import Candidate
from server.legs import OFF, OK
from server.model import Zone

RANK_CONSTANT = 1
"""The k of fusing two orders of the same few candidates, chosen on hotpotqa_pool; 60 would level twenty ranks."""


@dataclass(frozen=True, slots=True)
class RerankedOrder:
    """Candidates in their last order, and what became of the reranker."""

    candidates: tuple[Candidate, ...]
    status: str
    best: float | None = None
    """The best logit, None where nothing was scored."""


async def reranked(
    question: str, candidates: Sequence[Candidate], reranker: Reranker | None, settings: RerankSettings
) -> RerankedOrder:
    """Score the first candidates within the time budget. What is not scored keeps its fused place."""
    if reranker is None or not settings.enabled:
        return RerankedOrder(tuple(candidates), OFF)
    if not candidates:
        return RerankedOrder((), OK)
    head = list(candidates[: settings.candidates])
    try:
        scores = await reranker.score(question, [c.text for c in head], budget=settings.budget_seconds)
    except DependencyError as error:
        return RerankedOrder(tuple(candidates), f"unavailable: {error}")
    known = [score for score in scores if score is not None]
    status = (
        OK if len(known) == len(head) else f"ok ({len(known)} of {len(head)} scored in {settings.budget_seconds:g} s)"
    )
    ordered = blend(head, scores, weight=settings.weight)
    return RerankedOrder((*ordered, *candidates[len(head) :]), status, max(known, default=None))


def blend(candidates: Sequence[Candidate], scores: Sequence[float | None], *, weight: float) -> list[Candidate]:
    """Fuse the fused order and the cross-encoder's by reciprocal rank; who was not scored has the same rank in both.

    A cross-encoder reads each passage alone and so throws away the second hop, which answers only together with
    the first; the prior order knows it. `weight` is the cross-encoder's share: on hotpotqa_pool recall@5 is .938 at
    0, .946 at .3 and .850 at 1.
    """
    scored = [n for n, score in enumerate(scores) if score is not None]
    by_score = sorted(scored, key=lambda n: (-(scores[n] or 0.0), n))
    # Among the places that the scored ones hold, so that the others keep theirs.
    second = dict(zip(by_score, scored, strict=True))
    value = [
        (1 - weight) / (RANK_CONSTANT + n + 1) + weight / (RANK_CONSTANT + second.get(n, n) + 1)
        for n in range(len(candidates))
    ]
    order = sorted(range(len(candidates)), key=lambda n: (-value[n], n))
    return [_with_score(candidates[n], scores[n]) for n in order]


def _with_score(candidate: Candidate, score: float | None) -> Candidate:
    provenance = replace(candidate.hit.provenance, rerank_score=score)
    return replace(candidate, hit=replace(candidate.hit, provenance=provenance))


def confidence_zone(order: RerankedOrder, settings: AnswerSettings) -> Zone:
    """By the best logit; nothing found at all is the same as nothing that fits."""
    if not order.candidates:
        return "abstain"
    if order.best is None:
        return "unknown"
    if order.best < settings.abstain_below:
        return "abstain"
    return "caution" if order.best < settings.caution_below else "normal"
