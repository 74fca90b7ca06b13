"""Intervals and p-values: exact where they must be, and right as often as they say on made-up data."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from server.evaluation.resampling import bootstrap_means, holm, interval, sign_flip_p

UNIT = st.floats(0, 1, allow_nan=False)
SOME = arrays(np.float64, st.tuples(st.integers(1, 30), st.integers(1, 3)), elements=UNIT)


@given(SOME)
def test_identical_runs_differ_by_nothing(scores: np.ndarray) -> None:
    nothing = scores - scores
    assert not bootstrap_means(nothing, resamples=50).any()
    assert (sign_flip_p(nothing, resamples=50) == 1).all()


@given(SOME)
def test_an_interval_lies_within_the_scores_and_one_seed_gives_one_result(scores: np.ndarray) -> None:
    means = bootstrap_means(scores, resamples=200)
    low, high = interval(means)
    assert (low <= high).all()
    assert (low >= scores.min(axis=0) - 1e-9).all()
    assert (high <= scores.max(axis=0) + 1e-9).all()
    assert np.array_equal(means, bootstrap_means(scores, resamples=200))


@given(arrays(np.float64, st.integers(1, 20), elements=UNIT), st.floats(-1, 1))
def test_columns_share_their_resamples(scores: np.ndarray, shift: float) -> None:
    means = bootstrap_means(np.stack([scores, scores + shift], axis=1), resamples=20)
    assert means[:, 1] - means[:, 0] == pytest.approx(shift)


def test_bootstrap_has_the_spread_that_theory_gives() -> None:
    scores = np.random.default_rng(1).normal(size=(400, 1))
    spread = bootstrap_means(scores).std()
    assert spread == pytest.approx(scores.std() / np.sqrt(400), rel=0.03)


def test_intervals_cover_the_truth_as_often_as_they_say() -> None:
    random = np.random.default_rng(2)
    # Each column is an experiment of its own: 60 questions that are answered with probability .7.
    answered = (random.random((60, 1000)) < 0.7).astype(float)
    low, high = interval(bootstrap_means(answered, resamples=2000))
    covered = ((low <= 0.7) & (high >= 0.7)).mean()
    assert 0.92 <= covered <= 0.97


def test_p_is_small_as_rarely_as_it_says_where_nothing_differs() -> None:
    nothing = np.random.default_rng(3).normal(size=(40, 2000))
    p = sign_flip_p(nothing, resamples=1000)
    assert (p < 0.05).mean() == pytest.approx(0.05, abs=0.015)
    assert (p < 0.5).mean() == pytest.approx(0.5, abs=0.04)


def test_p_is_that_of_all_sign_flips() -> None:
    """Against the exact test, which tries every assignment of signs."""
    differences = np.array([0.3, 0.1, -0.05, 0.2, 0.4, 0.0, 0.15, -0.1])
    flips = np.array(list(itertools.product([-1, 1], repeat=len(differences))))
    exact = (np.abs(flips @ differences) >= abs(differences.sum()) - 1e-9).mean()
    assert sign_flip_p(differences[:, None])[0] == pytest.approx(exact, abs=0.01)


def test_p_is_never_zero() -> None:
    assert sign_flip_p(np.ones((100, 1)), resamples=99)[0] == pytest.approx(0.01)


def test_holm_on_a_worked_example() -> None:
    """p of .01, .04, .03, .005 become .03, .06, .06, .02 (Holm 1979, as in R's p.adjust)."""
    assert holm(np.array([0.01, 0.04, 0.03, 0.005])) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm(np.array([0.9, 0.8])) == pytest.approx([1.0, 1.0])


@given(arrays(np.float64, st.integers(1, 12), elements=UNIT))
def test_holm_never_lowers_a_p_and_keeps_their_order(p: np.ndarray) -> None:
    adjusted = holm(p)
    assert (adjusted >= p - 1e-12).all()
    assert (adjusted <= 1).all()
    order = np.argsort(p, kind="stable")
    assert (np.diff(adjusted[order]) >= -1e-12).all()
