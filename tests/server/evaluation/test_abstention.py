"""Thresholds for "I don't know": counted by hand, and against every pair."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.evaluation.abstention import abstention, auroc, highest_threshold, logits_of, point
from server.evaluation.results import Confidence

LOGITS = st.lists(st.integers(-5, 5).map(float), min_size=2, max_size=25).map(np.array)


def sure(*logits: float) -> list[Confidence]:
    return [Confidence(best=logit, candidates=3) for logit in logits]


def test_a_threshold_counted_by_hand() -> None:
    right, wrong = np.array([1.0, 2.0, 3.0, -1.0]), np.array([-2.0, 0.0, 4.0])
    found = point(right, wrong, 0.5)
    assert found.precision == pytest.approx(2 / 3, abs=1e-4)
    assert found.recall == pytest.approx(2 / 3, abs=1e-4)
    assert found.false_refusals == 0.25
    assert point(right, wrong, -10).precision is None


@given(LOGITS, LOGITS)
def test_auroc_is_the_share_of_pairs_in_the_right_order(right: np.ndarray, wrong: np.ndarray) -> None:
    pairs = np.sign(right[:, None] - wrong[None, :])
    area, low, high = auroc(right, wrong)
    assert area == pytest.approx(((pairs + 1) / 2).mean(), abs=1e-4)
    assert 0 <= low <= area + 1e-4
    assert area - 1e-4 <= high <= 1


def test_the_interval_of_auroc_covers_the_truth() -> None:
    random = np.random.default_rng(5)
    truth = 0.7602  # Φ(1/√2): two normal distributions one standard deviation apart
    within = 0
    for _ in range(300):
        _, low, high = auroc(random.normal(1, 1, 80), random.normal(0, 1, 60))
        within += low <= truth <= high
    assert 0.90 <= within / 300 <= 0.98


@given(LOGITS, st.sampled_from([0.0, 0.05, 0.1, 0.5]))
def test_the_highest_threshold_keeps_its_share(right: np.ndarray, share: float) -> None:
    threshold = highest_threshold(right, share)
    assert (right < threshold).mean() <= share
    higher = right[right > threshold]
    if len(higher):
        assert (right < higher.min()).mean() > share


def test_nothing_found_is_refused_and_nothing_scored_is_left_out() -> None:
    unsure = [Confidence(best=None, candidates=0), Confidence(best=None, candidates=4)]
    assert logits_of(unsure).tolist() == [-np.inf]
    found = abstention(sure(1, 2, 3), [*unsure, *sure(-1)], threshold=0)
    assert found is not None
    assert (found.answerable, found.unanswerable, found.unscored) == (3, 2, 1)
    assert found.auroc == 1
    assert found.configured.recall == 1
    assert found.at_most_5.threshold == 1
    assert [one.threshold for one in found.curve] == [-1, 1, 2, 3]
    assert abstention(sure(1), [], threshold=0) is None
