"""Evidence for sections, through the same search as any question; and for claims that their evidence does not bear."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from graph.model import Evidence
from server.backends import Backends
from server.legs import OFF, OK
from server.model import Question, SearchResult, Zone
from server.search import search
from server.writing.model import PlannedSection, WritingRequest

PATIENCE = 25.0
"""How much longer than for an answer the cross-encoder may take: what it has not read counts for nothing here, and a
piece takes minutes anyhow."""
CANDIDATES = 30
"""What it reads at least: of those that fit, other sections have some."""
SPARE = 2
"""How many times more is asked for than is wanted, as much of it does not fit."""
CLAIM_RESULTS = 4
FOCUS_LOGITS = 4.0
"""On a wiki of 269 pages “frontiers”, “formalism” and the like cost the best passage 2 to 6 logits. Passages about
the topic had more than -7.5 then, those about something else less than -10."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """What was found for a section, best first."""

    section: PlannedSection
    evidence: tuple[Evidence, ...]
    zone: Zone
    legs: dict[str, str]
    """Those that did not work."""


def patient(backends: Backends) -> Backends:
    """The same, where the cross-encoder reads more and has more time."""
    rerank = backends.settings.rerank
    more = {"budget_seconds": PATIENCE * rerank.budget_seconds, "candidates": max(CANDIDATES, rerank.candidates)}
    longer = rerank.model_copy(update=more)
    return replace(backends, settings=backends.settings.model_copy(update={"rerank": longer}))


async def gather(section: PlannedSection, request: WritingRequest, backends: Backends) -> Gathered:
    """Everything that was found. Raises `DependencyDownError` where the wiki cannot be searched."""
    found = [
        await search(_question(query, request, limit=SPARE * section.results), backends) for query in section.queries
    ]
    zone = next((one.zone for one in found if one.zone != "abstain"), found[0].zone)
    evidence = _interleaved([_alone(one) for one in found])
    return Gathered(section=section, evidence=tuple(evidence), zone=zone, legs=_amiss(found))


async def gather_for_claims(claims: Sequence[str], request: WritingRequest, backends: Backends) -> list[Evidence]:
    """What speaks of these sentences, best first of each in turn."""
    found = [await search(_question(claim, request, limit=CLAIM_RESULTS), backends) for claim in claims]
    least = backends.settings.answer.abstain_below
    return _interleaved([above(_alone(one), least) for one in found])


def fitting(gathered: Gathered, topic_best: float | None, least: float) -> Gathered:
    """The best of what fits. `topic_best`: the best logit that the topic alone had.

    What was asked for a section is the topic and a word or two that no page has, which costs every passage about as
    much as the best one: so much less is enough, within bounds.
    """
    best = best_of(gathered.evidence)
    lost = 0.0 if best is None or topic_best is None else min(max(topic_best - best, 0.0), FOCUS_LOGITS)
    return replace(gathered, evidence=tuple(above(gathered.evidence, least - lost)[: gathered.section.results]))


def best_of(evidence: Sequence[Evidence]) -> float | None:
    """The best logit; None where nothing was scored."""
    return max((s for item in evidence if (s := item.provenance.rerank_score) is not None), default=None)


def above(evidence: Sequence[Evidence], least: float) -> list[Evidence]:
    """What the cross-encoder thinks fits, if there is one; what it had no time for counts for nothing then."""
    if best_of(evidence) is None:
        return list(evidence)
    return [item for item in evidence if (s := item.provenance.rerank_score) is not None and s >= least]


def _alone(found: SearchResult) -> list[Evidence]:
    """Each passage without its neighbours: more documents find room in a section so."""
    return [] if found.zone == "abstain" else [replace(item, context="") for item in found.evidence]


def document_of(item: Evidence) -> str:
    """What counts as one document: a page of the wiki or of the web."""
    return item.page_id or item.url or item.key


def _question(text: str, request: WritingRequest, *, limit: int) -> Question:
    return Question(text=text, persona=request.persona, where=request.where, limit=limit, use_web=request.use_web)


def _interleaved(rankings: Iterable[Sequence[Evidence]]) -> list[Evidence]:
    """The first of each, then the second ones, …; each passage once."""
    lists = [list(ranking) for ranking in rankings]
    kept: dict[str, Evidence] = {}
    for rank in range(max(map(len, lists), default=0)):
        for ranking in lists:
            if rank < len(ranking):
                kept.setdefault(ranking[rank].key, ranking[rank])
    return list(kept.values())


def _amiss(found: Iterable[SearchResult]) -> dict[str, str]:
    """Legs that are neither well nor off."""
    return {
        leg: status for one in found for leg, status in one.legs.items() if status != OK and not status.startswith(OFF)
    }
