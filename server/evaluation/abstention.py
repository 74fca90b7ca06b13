"""When to say "I don't know": how well the best cross-encoder logit tells what the set cannot answer. Pure.

An answer abstains where its best logit is below a threshold, or nothing was found (`confidence_zone`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from server.evaluation.results import Confidence

Logits = NDArray[np.float64]
FALSE_REFUSALS = 0.05
"""The most answerable questions that may be refused for a threshold to be of use."""
MOST_POINTS = 200
"""Of a curve: more cannot be seen."""
NORMAL_97_5 = 1.959964
"""Standard deviations on each side of a 95 % interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AbstentionPoint:
    """What a threshold does."""

    threshold: float
    precision: float | None
    """Share of the refused questions that the set cannot answer; None where nothing is refused."""
    recall: float
    """Share of the unanswerable questions that are refused."""
    false_refusals: float
    """Share of the answerable questions that are refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Abstention:
    """The whole curve, and three of its values."""

    answerable: int
    unanswerable: int
    unscored: int
    """Questions without a logit though something was found; they are left out."""
    auroc: float
    auroc_low: float
    auroc_high: float
    configured: AbstentionPoint
    at_most_5: AbstentionPoint
    """The highest threshold that refuses at most 5 % of the answerable questions."""
    curve: tuple[AbstentionPoint, ...]


def abstention(
    answerable: Sequence[Confidence], unanswerable: Sequence[Confidence], *, threshold: float
) -> Abstention | None:
    """None where one side has no question with a logit."""
    right, wrong = logits_of(answerable), logits_of(unanswerable)
    if not len(right) or not len(wrong):
        return None
    area, low, high = auroc(right, wrong)
    return Abstention(
        answerable=len(right),
        unanswerable=len(wrong),
        unscored=len(answerable) + len(unanswerable) - len(right) - len(wrong),
        auroc=area,
        auroc_low=low,
        auroc_high=high,
        configured=point(right, wrong, threshold),
        at_most_5=point(right, wrong, highest_threshold(right, FALSE_REFUSALS)),
        curve=curve(right, wrong),
    )


def logits_of(confidences: Sequence[Confidence]) -> Logits:
    """(questions,) — minus infinity where nothing was found, as that is refused anyway; without unscored ones."""
    known = [-math.inf if not one.candidates else one.best for one in confidences]
    return np.array([logit for logit in known if logit is not None], np.float64)


def point(right: Logits, wrong: Logits, threshold: float) -> AbstentionPoint:
    """Refused is what lies below the threshold."""
    refused_right, refused_wrong = int((right < threshold).sum()), int((wrong < threshold).sum())
    refused = refused_right + refused_wrong
    return AbstentionPoint(
        threshold=round(float(threshold), 4),
        precision=round(refused_wrong / refused, 4) if refused else None,
        recall=round(refused_wrong / len(wrong), 4),
        false_refusals=round(refused_right / len(right), 4),
    )


def highest_threshold(right: Logits, share: float) -> float:
    """The highest threshold below which at most `share` of these lie; it is one of them."""
    ordered = np.sort(right[np.isfinite(right)])
    nowhere = len(right) - len(ordered)
    place = math.floor(share * len(right) + 1e-9) - nowhere
    if not len(ordered):
        return -math.inf
    return float(ordered[min(max(place, 0), len(ordered) - 1)])


def curve(right: Logits, wrong: Logits) -> tuple[AbstentionPoint, ...]:
    """From refusing least to refusing most, at quantiles of all logits."""
    both = np.concatenate([right, wrong])
    finite = np.unique(both[np.isfinite(both)])
    if not len(finite):
        return ()
    places = np.unique(np.linspace(0, len(finite) - 1, min(len(finite), MOST_POINTS)).round().astype(int))
    return tuple(point(right, wrong, float(finite[place])) for place in places)


def auroc(right: Logits, wrong: Logits) -> tuple[float, float, float]:
    """How often an answerable question has the higher logit of a pair, ties half; with its 95 % interval.

    The area under the ROC curve is Mann and Whitney's U over all pairs; its variance as in DeLong, DeLong,
    Clarke-Pearson, Biometrics 1988.
    """
    ordered_wrong, ordered_right = np.sort(wrong), np.sort(right)
    below = np.searchsorted(ordered_wrong, right, "left") + np.searchsorted(ordered_wrong, right, "right")
    above = np.searchsorted(ordered_right, wrong, "left") + np.searchsorted(ordered_right, wrong, "right")
    of_right = below / (2 * len(wrong))
    of_wrong = 1.0 - above / (2 * len(right))
    area = float(of_right.mean())
    variance = _variance(of_right) / len(right) + _variance(of_wrong) / len(wrong)
    spread = NORMAL_97_5 * math.sqrt(variance)
    return round(area, 4), round(max(0.0, area - spread), 4), round(min(1.0, area + spread), 4)


def _variance(values: Logits) -> float:
    return float(values.var(ddof=1)) if len(values) > 1 else 0.0
