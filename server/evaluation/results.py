"""What was measured: plain records, as they are kept in a file and compared later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from server.evaluation.dataset import JudgedQuestion

Kind = Literal["leg", "stage", "ablation"]
BASE = "reranked"
"""The run that the others are compared to: what users get."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What one way of searching returned."""

    name: str
    kind: Kind
    says: str = ""
    """What was changed, or what the run is."""
    documents: tuple[tuple[str, ...], ...]
    """Per question, in the order of the questions: document ids, best first."""
    milliseconds: tuple[float, ...] = ()
    """Per question; empty for a run that was computed from another's results."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Confidence:
    """How sure the cross-encoder was of one question."""

    best: float | None
    """Its best logit; None where nothing was scored."""
    candidates: int
    """0: nothing was found, so the answer is that it does not know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerChecks:
    """How an extractive answer compares with the set's answers; each 0 to 1."""

    question: str
    mode: str
    contains: float
    exact: float
    f1: float
    first_citation: float | None
    """Whether the first cited passage is gold or contains an answer; None where nothing is cited."""
    citations: float | None
    """The same, as a share of all cited passages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """All of one measurement."""

    dataset: str
    corpus: str
    """Fingerprint of the corpus."""
    questions: tuple[JudgedQuestion, ...]
    runs: tuple[Run, ...]
    answerable: tuple[Confidence, ...] = ()
    """Per question, in order."""
    unanswerable: tuple[Confidence, ...] = ()
    answers: tuple[AnswerChecks, ...] = ()
    unscored: float = 0.0
    """Share of the passages that the cross-encoder did not score in time: such figures depend on the machine."""
    settings: Mapping[str, object] = field(default_factory=dict)
    """Dotted key → value of what can change a figure."""
    versions: Mapping[str, str] = field(default_factory=dict)
