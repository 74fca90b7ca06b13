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

PATIENCE = 10.0
"""How much longer than for an answer the cross-encoder may take: what it has not read cannot be left out for not
fitting, and a piece takes minutes anyhow."""
CLAIM_RESULTS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """What was found for a section, best first; what does not fit its questions is left out."""

    section: PlannedSection
    evidence: tuple[Evidence, ...]
    zone: Zone
    legs: dict[str, str]
    """Those that did not work."""


def patient(backends: Backends) -> Backends:
    """The same, where the cross-encoder has more time."""
    rerank = backends.settings.rerank
    longer = rerank.model_copy(update={"budget_seconds": PATIENCE * rerank.budget_seconds})
    return replace(backends, settings=backends.settings.model_copy(update={"rerank": longer}))


async def gather(section: PlannedSection, request: WritingRequest, backends: Backends) -> Gathered:
    """Raises `DependencyDownError` where the wiki cannot be searched."""
    found = [await search(_question(query, request, limit=section.results), backends) for query in section.queries]
    least = backends.settings.answer.abstain_below
    evidence = _interleaved([fitting(one, least) for one in found])[: section.results]
    zone = next((one.zone for one in found if one.zone != "abstain"), found[0].zone)
    return Gathered(section=section, evidence=tuple(evidence), zone=zone, legs=_amiss(found))


async def gather_for_claims(claims: Sequence[str], request: WritingRequest, backends: Backends) -> list[Evidence]:
    """What speaks of these sentences, best first of each in turn."""
    found = [await search(_question(claim, request, limit=CLAIM_RESULTS), backends) for claim in claims]
    least = backends.settings.answer.abstain_below
    return _interleaved([fitting(one, least) for one in found])


def fitting(found: SearchResult, least: float) -> list[Evidence]:
    """The evidence that answers, as far as there is a cross-encoder to tell; what it had no time for counts for
    nothing then. Each passage alone, without its neighbours: more documents find room in a section so."""
    if found.zone == "abstain":
        return []
    scores = {item.key: item.provenance.rerank_score for item in found.evidence}
    read = any(score is not None for score in scores.values())
    return [
        replace(item, context="")
        for item in found.evidence
        if not read or ((score := scores[item.key]) is not None and score >= least)
    ]


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
