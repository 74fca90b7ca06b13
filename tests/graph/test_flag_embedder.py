"""BGE-M3 through FlagEmbedding: what ours gives is what FlagEmbedding gives, with our order, prefixes and errors.

The library is 5 GB, so the checks on a real (tiny) model run in the Python that `tests.services.flag_venv` makes.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graph.errors import SettingsError
from graph.flag_embedder import FlagEmbedder, model_folder, token_weights
from tests.services.flag_venv import report

REAL = [pytest.mark.services, pytest.mark.slow]
WITHOUT = pytest.mark.skipif(importlib.util.find_spec("FlagEmbedding") is not None, reason="the extra is installed")


@pytest.fixture(scope="module")
def dense() -> dict[str, Any]:
    found: dict[str, Any] = report()["dense"]
    return found


@pytest.fixture(scope="module")
def sparse() -> dict[str, Any]:
    found: dict[str, Any] = report()["sparse"]
    return found


@WITHOUT
def test_the_missing_extra_is_named() -> None:
    with pytest.raises(SettingsError, match=r"embedder\.provider.*uv sync --extra flag.*pip install 'trivet\[flag\]'"):
        FlagEmbedder("BAAI/bge-m3")


def test_a_folder_is_taken_as_it_is_and_a_missing_one_named(tmp_path: Path) -> None:
    assert model_folder(str(tmp_path), setting="embedder.name") == tmp_path
    with pytest.raises(SettingsError, match=r"embedder\.name is .*/none, which is not a folder"):
        model_folder(f"{tmp_path}/none", setting="embedder.name")


def test_a_word_weighs_what_it_weighs_most() -> None:
    weights = token_weights([0, 9, 8, 9, 7, 2], [1.0, 0.25, 0.5, 0.75, 0.0, 1.0], frozenset({0, 2}))
    assert weights == {9: 0.75, 8: 0.5}


class TestRealModel:
    pytestmark = REAL

    def test_unit_vectors_row_by_row(self, dense: dict[str, Any]) -> None:
        assert (dense["shape"], dense["type"], dense["dimension"]) == ([6, 32], "float32", 32)
        assert np.linalg.norm(dense["vectors"], axis=1) == pytest.approx(1, abs=1e-5)
        assert dense["none"] == [0, 32]

    def test_order_and_batch_do_not_matter(self, dense: dict[str, Any]) -> None:
        assert np.asarray(dense["vectors"]) == pytest.approx(np.asarray(dense["alone"]), abs=1e-5)

    def test_prefixes_go_where_they_belong(self, dense: dict[str, Any]) -> None:
        assert dense["question"] == pytest.approx(dense["question_by_hand"], abs=1e-5)
        assert dense["passage"] == pytest.approx(dense["passage_by_hand"], abs=1e-5)

    def test_tokens_are_counted_untruncated_and_read_up_to_the_limit(self, dense: dict[str, Any]) -> None:
        assert dense["counts"] == [303, 2]
        assert dense["max_tokens"] == [64, 40]

    def test_only_the_one_with_weights_is_sparse(self, dense: dict[str, Any], sparse: dict[str, Any]) -> None:
        assert (dense["is_sparse"], sparse["is_sparse"]) == (False, True)

    def test_vectors_are_flag_embeddings_own(self, sparse: dict[str, Any]) -> None:
        assert np.asarray(sparse["vectors"]) == pytest.approx(np.asarray(sparse["own_vectors"]), abs=1e-5)
        assert sparse["question"] == pytest.approx(sparse["question_alone"], abs=1e-5)

    def test_weights_are_flag_embeddings_own(self, sparse: dict[str, Any]) -> None:
        ours, own = ([dict(map(tuple, text)) for text in sparse[name]] for name in ("weights", "own_weights"))
        assert [text.keys() for text in ours] == [text.keys() for text in own]
        assert [len(text) for text in ours] == [4, 4, 0, 1, 2, 5]
        for mine, theirs in zip(ours, own, strict=True):
            assert mine == pytest.approx(theirs, abs=1e-5)

    def test_a_question_weighs_its_words_and_nothing_else(self, sparse: dict[str, Any]) -> None:
        assert sorted(sparse["words"]) == ["▁lamp", "▁the", "▁trims", "▁who"]
        assert all(weight > 0 for _, weight in sparse["question_weights"])

    @pytest.mark.parametrize(
        ("case", "said"),
        [
            ("hub", "embedder.name is nobody/bge-m3"),
            ("folder", "embedder.name is /no/such/folder"),
            ("broken", "embedder.name"),
            ("dimension", "embedder.dimension is 1024"),
            ("plain", "has no sparse_linear.pt"),
            ("device", "embedder.name"),
        ],
    )
    def test_what_cannot_be_used_is_a_setting(self, case: str, said: str) -> None:
        kind, message = report()["errors"][case]
        assert kind == "SettingsError"
        assert said in message

    def test_after_close_nothing_is_embedded(self) -> None:
        assert report()["errors"]["closed"][0] == "DependencyFaultError"
