"""How sure a mean over questions is, by resampling the questions. Pure; columns share resamples, so they are paired."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
RESAMPLES = 10_000
SEED = 20_240_229
"""Any number would do; a fixed one gives the same figures for the same rankings."""
BLOCK = 500
"""Resamples at once: 500 × 1,000 questions are 4 MB."""
LEVEL = 0.95


def bootstrap_means(scores: Numbers, *, resamples: int = RESAMPLES, seed: int = SEED) -> Numbers:
    """(questions, columns) → (resamples, columns): means over questions drawn with replacement.

    Efron, Tibshirani: An Introduction to the Bootstrap, 1993, chapter 13; for retrieval Sakai, SIGIR 2006. What a
    resample is made of is how often it has each question, so that one product of matrices is all means.
    """
    questions = scores.shape[0]
    random = np.random.default_rng(seed)
    blocks = []
    for start in range(0, resamples, BLOCK):
        rows = min(BLOCK, resamples - start)
        drawn = random.integers(0, questions, size=(rows, questions))
        places = (drawn + questions * np.arange(rows)[:, None]).ravel()
        counts = np.bincount(places, minlength=rows * questions).reshape(rows, questions)
        blocks.append(counts @ scores / questions)
    return np.concatenate(blocks)


def interval(means: Numbers, *, level: float = LEVEL) -> tuple[Numbers, Numbers]:
    """(resamples, columns) → lower and upper bounds (columns,): the percentile interval."""
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return low, high


def sign_flip_p(differences: Numbers, *, resamples: int = RESAMPLES, seed: int = SEED) -> Numbers:
    """(questions, columns) of paired differences → (columns,): two-sided p of the paired randomisation test.

    If two runs were the same, each question's difference could as well have the other sign. Smucker, Allan,
    Carterette: A comparison of statistical significance tests…, CIKM 2007. The observed signs count as one of the
    resamples, so p is never 0 (Phipson, Smyth 2010).
    """
    questions = differences.shape[0]
    random = np.random.default_rng(seed)
    observed = np.abs(differences.sum(axis=0))
    tolerance = 1e-9 * np.abs(differences).sum(axis=0)
    extreme = np.zeros(differences.shape[1])
    for start in range(0, resamples, BLOCK):
        signs = random.choice(np.array([-1.0, 1.0]), size=(min(BLOCK, resamples - start), questions))
        extreme += (np.abs(signs @ differences) >= observed - tolerance).sum(axis=0)
    return (extreme + 1) / (resamples + 1)


def holm(p: Numbers) -> Numbers:
    """(tests,) → adjusted p: below .05 together, at most 5 % of such families have a false alarm (Holm 1979)."""
    order = np.argsort(p, kind="stable")
    left = len(p) - np.arange(len(p))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * left))
    return adjusted
