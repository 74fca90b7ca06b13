"""Thresholds of a model from labelled questions, and as a piece of `trivet.toml`. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graph.errors import InputError
from server.evaluation.abstention import FALSE_REFUSALS, highest_threshold, logits_of
from server.evaluation.results import Confidence

LEAST_QUESTIONS = 50
"""Of fewer, the worst 5 % are two questions or none."""
LEAST_UNFOUNDED = 10
"""Questions whose evidence does not answer them: with fewer, no bound can be told from chance."""
MOST_WARNED = 0.2
"""The most good evidence that may be called doubtful: a warning beside every second answer is not read."""
LOST = 0.05
"""The most gold passages found by vectors that noise control may count as noise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """A question with what the search knew of it."""

    answerable: bool
    gold_cosines: tuple[float, ...] = ()
    """Of the dense hits that answer it."""
    other_cosines: tuple[float, ...] = ()
    confidence: Confidence
    founded: bool = False
    """Whether a document that answers it is among the evidence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorBound:
    """`search.vector_threshold`: the highest under which at most 5 % of the gold passages lie."""

    threshold: float
    gold: int
    kept: float
    """Share of the gold passages found by vectors that stay."""
    dropped: float
    """Share of the other passages that go, unless BM25 found them too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Zones:
    """`answer.abstain_below` and `answer.caution_below`."""

    abstain_below: float
    refused_answerable: float
    refused_unanswerable: float | None
    """None where the set has no such questions."""
    caution_below: float
    """As `abstain_below` where too few questions had evidence that does not answer them: no zone of caution."""
    unfounded: int
    """Questions whose evidence does not answer them."""
    cautious_founded: float
    """Share of the questions with good evidence that are below the bound."""
    cautious_unfounded: float
    """The same of the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What was found; None where the models that it needs are off or gave nothing."""

    answerable: int
    unanswerable: int
    vector: VectorBound | None
    zones: Zones | None


def calibrate(questions: Sequence[Labelled]) -> Calibration:
    """Raises `InputError` for fewer than 50 answerable questions."""
    answerable = sum(one.answerable for one in questions)
    if answerable < LEAST_QUESTIONS:
        raise InputError(
            f"{answerable} questions with a relevant document are too few to find thresholds; "
            f"at least {LEAST_QUESTIONS} are needed."
        )
    return Calibration(
        answerable=answerable,
        unanswerable=len(questions) - answerable,
        vector=vector_bound(questions),
        zones=zones(questions),
    )


def vector_bound(questions: Sequence[Labelled]) -> VectorBound | None:
    """None where vectors found fewer than 50 gold passages."""
    gold = np.array([cosine for one in questions for cosine in one.gold_cosines])
    other = np.array([cosine for one in questions for cosine in one.other_cosines])
    if len(gold) < LEAST_QUESTIONS:
        return None
    threshold = _down(highest_threshold(gold, LOST), digits=3)
    return VectorBound(
        threshold=threshold,
        gold=len(gold),
        kept=float((gold >= threshold).mean()),
        dropped=float((other < threshold).mean()) if len(other) else 0.0,
    )


def zones(questions: Sequence[Labelled]) -> Zones | None:
    """None where a cross-encoder scored passages of fewer than 50 answerable questions."""
    right = logits_of([one.confidence for one in questions if one.answerable])
    wrong = logits_of([one.confidence for one in questions if not one.answerable])
    if np.isfinite(right).sum() < LEAST_QUESTIONS:
        return None
    abstain = _down(highest_threshold(right, FALSE_REFUSALS))
    founded = logits_of([one.confidence for one in questions if one.founded])
    unfounded = logits_of([one.confidence for one in questions if not one.founded])
    caution = abstain
    if len(founded) and len(unfounded) >= LEAST_UNFOUNDED:
        best = youden(founded, unfounded)
        caution = max(abstain, _down(best)) if math.isfinite(best) else abstain
    return Zones(
        abstain_below=abstain,
        refused_answerable=_below(right, abstain),
        refused_unanswerable=_below(wrong, abstain) if len(wrong) else None,
        caution_below=caution,
        unfounded=len(unfounded),
        cautious_founded=_below(founded, caution),
        cautious_unfounded=_below(unfounded, caution),
    )


def youden(founded: NDArray[np.float64], unfounded: NDArray[np.float64]) -> float:
    """The bound that tells both best: the largest difference of the shares above it (Youden, Cancer 1950).

    It does not depend on how many of each a set happens to have, which is not how many users ask. Where the two
    overlap much it would warn of half of all answers, so bounds below which too many of the founded lie are left out.
    """
    both = np.concatenate([founded, unfounded])
    bounds = np.unique(both[np.isfinite(both)])
    bounds = bounds[np.searchsorted(np.sort(founded), bounds) <= MOST_WARNED * len(founded)]
    if not len(bounds):
        return -math.inf
    above = 1 - np.searchsorted(np.sort(founded), bounds) / len(founded)
    above_unfounded = 1 - np.searchsorted(np.sort(unfounded), bounds) / len(unfounded)
    return float(bounds[np.argmax(above - above_unfounded)])


def _below(logits: NDArray[np.float64], bound: float) -> float:
    return float((logits < bound).mean()) if len(logits) else 0.0


def _down(value: float, *, digits: int = 2) -> float:
    """Few digits for a settings file; downwards, so that what is said of the threshold stays true."""
    scale = 10.0**digits
    return math.floor(value * scale) / scale


def as_toml(found: Calibration, *, dataset: str, embedder: str, reranker: str) -> str:
    """A piece of `trivet.toml`, with what each value rests on."""
    lines = [
        f"# trivet calibrate {dataset}: {found.answerable:,} answerable, {found.unanswerable:,} unanswerable questions",
        f"# models: {embedder}, {reranker or 'no cross-encoder'}",
    ]
    if found.vector:
        one = found.vector
        lines += [
            "",
            "[search]",
            f"# keeps {one.kept:.1%} of {one.gold:,} passages that answer, drops {one.dropped:.1%} of the others",
            f"vector_threshold = {one.threshold:.3f}",
        ]
    if found.zones:
        lines += ["", "[answer]", *_zone_lines(found.zones)]
    return "\n".join(lines) + "\n"


def _zone_lines(found: Zones) -> list[str]:
    unanswerable = (
        "the set has no unanswerable ones"
        if found.refused_unanswerable is None
        else f"and {found.refused_unanswerable:.1%} of the unanswerable"
    )
    caution = (
        f"# warns of {found.cautious_unfounded:.1%} of the evidence that does not answer, and of "
        f"{found.cautious_founded:.1%} that does"
    )
    if found.unfounded < LEAST_UNFOUNDED:
        caution = (
            f"# no zone of caution: {found.unfounded} questions had evidence that does not answer, too few to tell"
        )
    return [
        f"# refuses {found.refused_answerable:.1%} of the answerable questions, {unanswerable}",
        f"abstain_below = {found.abstain_below:.2f}",
        caution,
        f"caution_below = {found.caution_below:.2f}",
    ]
