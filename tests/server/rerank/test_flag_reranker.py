"""A BGE cross-encoder through FlagEmbedding: its logits, in order, within the budget.

The checks on a real (tiny) model run in the Python that `tests.services.flag_venv` makes.
"""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

from graph.errors import SettingsError
from server.rerank.flag_reranker import BATCH_SIZE, FlagReranker
from tests.services.flag_venv import report

REAL = [pytest.mark.services, pytest.mark.slow]
WITHOUT = pytest.mark.skipif(importlib.util.find_spec("FlagEmbedding") is not None, reason="the extra is installed")


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    rerank: dict[str, Any] = report()["rerank"]
    return rerank


@WITHOUT
def test_the_missing_extra_is_named() -> None:
    with pytest.raises(SettingsError, match=r"rerank\.provider.*uv sync --extra flag.*pip install 'trivet\[flag\]'"):
        FlagReranker("BAAI/bge-reranker-v2-m3")


class TestRealModel:
    pytestmark = REAL

    def test_logits_are_flag_embeddings_own(self, found: dict[str, Any]) -> None:
        assert len(found["scores"]) == 5
        assert found["scores"] == pytest.approx(found["own_scores"], abs=1e-4)
        assert len(set(found["scores"])) == 5

    def test_a_long_question_and_a_long_passage_are_cut(self, found: dict[str, Any]) -> None:
        assert all(isinstance(score, float) for score in found["long"])

    def test_without_time_nothing_is_scored(self, found: dict[str, Any]) -> None:
        assert found["no_time"] == [None] * 5
        assert found["none"] == []

    def test_the_first_passages_are_scored_until_the_budget_is_spent(self, found: dict[str, Any]) -> None:
        scored = sum(found["some"])
        assert found["some"] == [True] * scored + [False] * (len(found["some"]) - scored)
        assert 0 < scored < len(found["some"])
        assert scored % BATCH_SIZE == 0
        assert found["spent"] < found["budget"] + 1  # one run's time over it, on a machine that others use too

    @pytest.mark.parametrize("case", ["rerank_hub", "rerank_broken"])
    def test_what_cannot_be_used_is_a_setting(self, case: str) -> None:
        kind, message = report()["errors"][case]
        assert kind == "SettingsError"
        assert "rerank.name is" in message
