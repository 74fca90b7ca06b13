"""Thresholds from labelled questions: what they promise is true of the questions they were found on."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.errors import InputError
from server.evaluation.calibration import Labelled, as_toml, calibrate, youden
from server.evaluation.dataset import read_questions, read_unanswerable
from server.evaluation.labelling import label
from server.evaluation.results import Confidence
from tests.server.evaluation.tiny_set import opened, write_set


def labelled(answerable: int, unanswerable: int, seed: int = 0) -> list[Labelled]:
    """Answerable questions have logits around 3 and cosines around .75; the others -3 and .6."""
    random = np.random.default_rng(seed)
    return [
        Labelled(
            answerable=place < answerable,
            gold_cosines=(float(random.normal(0.75, 0.05)),) if place < answerable else (),
            other_cosines=tuple(random.normal(0.6, 0.05, 9).tolist()),
            confidence=Confidence(best=float(random.normal(3 if place < answerable else -3, 2)), candidates=9),
            founded=place < answerable,
        )
        for place in range(answerable + unanswerable)
    ]


@given(st.integers(50, 300), st.integers(0, 100), st.integers(0, 5))
def test_thresholds_keep_what_they_promise(answerable: int, unanswerable: int, seed: int) -> None:
    questions = labelled(answerable, unanswerable, seed)
    found = calibrate(questions)
    assert found.vector is not None
    assert found.vector.kept >= 0.95
    assert found.vector.dropped > 0.5
    assert found.zones is not None
    assert found.zones.refused_answerable <= 0.05
    assert found.zones.caution_below >= found.zones.abstain_below
    if unanswerable < 10:
        assert found.zones.caution_below == found.zones.abstain_below
    else:
        assert found.zones.cautious_unfounded > found.zones.cautious_founded


def test_the_fragment_is_settings(tmp_path: Path) -> None:
    text = as_toml(calibrate(labelled(80, 30)), dataset="birds", embedder="bge", reranker="minilm")
    assert text.startswith(
        "# trivet calibrate birds: 80 answerable, 30 unanswerable questions\n# models: bge, minilm\n"
    )
    values = tomllib.loads(text)
    assert set(values) == {"search", "answer"}
    assert set(values["answer"]) == {"abstain_below", "caution_below"}
    without = as_toml(calibrate(labelled(80, 0)), dataset="birds", embedder="bge", reranker="")
    assert "the set has no unanswerable ones" in without
    assert "no cross-encoder" in without
    assert "no zone of caution: 0 questions" in without
    bounds = tomllib.loads(without)["answer"]
    assert bounds["caution_below"] == bounds["abstain_below"]


def test_too_few_questions_are_refused() -> None:
    with pytest.raises(InputError, match="49 questions with a relevant document are too few"):
        calibrate(labelled(49, 100))


def test_without_a_cross_encoder_there_are_no_zones() -> None:
    blind = [
        Labelled(answerable=True, gold_cosines=(0.7,), confidence=Confidence(best=None, candidates=5))
        for _ in range(60)
    ]
    found = calibrate(blind)
    assert found.zones is None
    assert found.vector is not None
    assert found.vector.threshold == 0.7
    empty = [Labelled(answerable=True, confidence=Confidence(best=None, candidates=0)) for _ in range(60)]
    assert calibrate(empty).zones is calibrate(empty).vector is None


def test_youdens_bound_on_a_worked_example() -> None:
    # From 1 on: all four of the founded and one of four; from 2 on three and none, which is no better.
    assert youden(np.array([1.0, 2.0, 3.0, 4.0]), np.array([-1.0, 0.0, 1.5, -2.0])) == 1.0
    assert youden(np.array([2.0, 3.0]), np.array([0.0, 1.0])) == 2.0


def test_at_most_a_fifth_of_good_evidence_is_warned_of() -> None:
    founded, unfounded = np.arange(10.0), np.arange(-1.0, 9.0, 0.5)
    assert (founded < youden(founded, unfounded)).mean() <= 0.2
    assert youden(np.full(5, -np.inf), np.array([1.0])) == -np.inf


async def test_questions_are_labelled_by_the_search(tmp_path: Path) -> None:
    folder = write_set(tmp_path / "birds")
    backends = await opened(folder, tmp_path)
    gull = await label(read_questions(folder)[0], "birds", backends)
    assert gull.answerable
    assert gull.founded
    assert len(gull.gold_cosines) == 1
    assert len(gull.other_cosines) == 4
    nothing = await label(read_unanswerable(folder)[0], "birds", backends)
    assert not nothing.answerable
    assert not nothing.founded
    assert nothing.gold_cosines == ()
