"""The claim check finds planted errors and leaves faithful sentences alone: a fixed sample of the benchmark."""

from __future__ import annotations

from pathlib import Path

import pytest

from graph.recognizer import Recognizer
from tests.benchmarks.claim_cases import faithful_cases, read_sections
from tests.benchmarks.claim_plants import PLANTERS, planted_cases
from tests.benchmarks.claims import half_of, measure

PASSAGES, COUNT, SEED = 150, 100, 11


@pytest.mark.data
@pytest.mark.slow
def test_planted_errors_are_found_and_faithful_sentences_pass(data_dir: Path) -> None:
    folder = data_dir / "benchmarks" / "squad_dev"
    sections = read_sections(folder, "en", lambda title: half_of(title) == "held-out", PASSAGES)
    recognizer = Recognizer(("en",))
    faithful = measure(faithful_cases(sections, COUNT, SEED), recognizer, "en")
    assert faithful.count == COUNT
    assert faithful.not_supported <= 0.05, faithful
    planted = measure(planted_cases(sections, COUNT, SEED), recognizer, "en")
    assert planted.count >= 0.6 * COUNT, "the sample has too few dates or quotations"
    assert set(planted.groups) >= {"date shifted", "name of another passage", "number changed", "quotation altered"}
    assert planted.unsupported >= 0.95, planted


def test_every_kind_of_value_is_planted() -> None:
    assert set(PLANTERS) == {"number", "name", "date", "quotation"}
