"""What late interaction and the cross-encoder say of the order, and how sure the latter is (mission.md §4.6, §5.6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from config.settings import AnswerSettings, RerankSettings
from graph.errors import DependencyError
from graph.model import Provenance
from graph.protocols import Reranker
from server.candidates import Candidate
from server.legs import OFF, OK, guarded
from server.model import Zone
from server.rerank.late import LateInteraction

RANK_CONSTANT = 1
"""The k of fusing two orders of the same few candidates, chosen on hotpotqa_pool; 60 would level twenty ranks."""
LATE_SECONDS = 1.0
"""For comparing token vectors, which takes 30 ms; a machine that is that busy goes on without."""


@dataclass(frozen=True, slots=True)
class RerankedOrder:
    """Candidates in their last order, and what became of the reranker."""

    candidates: tuple[Candidate, ...]
    status: str
    best: float | None = None
    """The best logit, None where nothing was scored."""
    late: str = OFF
    """What became of late interaction."""


async def reranked(
    question: str,
    candidates: Sequence[Candidate],
    reranker: Reranker | None,
    settings: RerankSettings,
    late: LateInteraction | None = None,
    *,
    open_share: float = 1.0,
) -> RerankedOrder:
    """First the quick comparison of many, then the thorough reading of the best of them; each order is fused with the
    one before.

    `open_share`: how much of the question its names leave open. A cross-encoder reads each passage alone and so throws
    away the second hop, which answers only together with the first; where names led to it the order before knows
    better, where they say little the cross-encoder does. On 205 questions of hotpotqa_pool fixed shares of .3, .5 and
    .7 give a recall@5 of .939, .944 and .937; going from .2 to .8 with it gives .946.
    """
    weight = settings.weight + (settings.open_weight - settings.weight) * open_share
    candidates, status = await compared(question, candidates, late, settings)
    return replace(await read(question, candidates, reranker, settings, weight=weight), late=status)


async def compared(
    question: str, candidates: Sequence[Candidate], late: LateInteraction | None, settings: RerankSettings
) -> tuple[Sequence[Candidate], str]:
    """Late interaction over the first candidates, and what became of it. What has no token vectors keeps its place."""
    if late is None or not settings.late_interaction:
        return candidates, OFF
    head = list(candidates[: settings.late_candidates])
    asked = late.score(question, [candidate.hit.key for candidate in head])
    scores, status = (found := await guarded("late interaction", asked, seconds=LATE_SECONDS)).found, found.status
    if scores is None:
        return candidates, status
    chunks = sum(candidate.chunk is not None for candidate in head)
    lacking = chunks - sum(score is not None for score in scores)
    if lacking:
        status = f"ok ({lacking} of {chunks} chunks have no token vectors; `trivet verify --repair` makes them)"
    return [*blend_late(head, scores, weight=settings.late_weight), *candidates[len(head) :]], status


async def read(
    question: str,
    candidates: Sequence[Candidate],
    reranker: Reranker | None,
    settings: RerankSettings,
    *,
    weight: float,
) -> RerankedOrder:
    """Let the cross-encoder score the first candidates within the time budget. What is not scored keeps its place."""
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
    ordered = blend(head, scores, weight=weight)
    return RerankedOrder((*ordered, *candidates[len(head) :]), status, max(known, default=None))


def blend(candidates: Sequence[Candidate], scores: Sequence[float | None], *, weight: float) -> list[Candidate]:
    """Fuse the order so far and the cross-encoder's, which has the share `weight`."""
    in_order = ((candidates[n], scores[n]) for n in fused_order(scores, weight=weight))
    return [_with(c, replace(c.hit.provenance, rerank_score=score)) for c, score in in_order]


def blend_late(candidates: Sequence[Candidate], scores: Sequence[float | None], *, weight: float) -> list[Candidate]:
    """Fuse the fused order and late interaction's, which reads each passage alone as well."""
    in_order = ((candidates[n], scores[n]) for n in fused_order(scores, weight=weight))
    return [_with(c, replace(c.hit.provenance, late_score=score)) for c, score in in_order]


def fused_order(scores: Sequence[float | None], *, weight: float) -> list[int]:
    """Places in their new order, by reciprocal rank in the order so far and in that of the scores, which has the share
    `weight`; who was not scored has the same rank in both."""
    scored = [n for n, score in enumerate(scores) if score is not None]
    by_score = sorted(scored, key=lambda n: (-(scores[n] or 0.0), n))
    # Among the places that the scored ones hold, so that the others keep theirs.
    second = dict(zip(by_score, scored, strict=True))
    value = [
        (1 - weight) / (RANK_CONSTANT + n + 1) + weight / (RANK_CONSTANT + second.get(n, n) + 1)
        for n in range(len(scores))
    ]
    return sorted(range(len(scores)), key=lambda n: (-value[n], n))


def _with(candidate: Candidate, provenance: Provenance) -> Candidate:
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
