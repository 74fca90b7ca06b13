"""Measurements kept in a file, and compared question by question with a later one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from graph.errors import InputError
from server.evaluation.dataset import JudgedQuestion, questions_fingerprint
from server.evaluation.metrics import MEASURES
from server.evaluation.results import BASE, Evaluation
from server.evaluation.summary import Difference, RunSummary, differ, scores_of

FORMAT = "trivet-eval-1"
"""Goes up when a file of before can no longer be read."""
GATED = ("recall@5", "ndcg@10")
"""The measures by which a run is called worse: the one that evidence hangs on, and the one that sees order."""
ALPHA = 0.05


class _File(msgspec.Struct):
    format: str
    evaluation: Evaluation


class _Head(msgspec.Struct):
    format: str = ""


def save(evaluation: Evaluation, path: Path) -> None:
    """All rankings and settings, without a time or a place: two equal measurements differ in milliseconds alone."""
    data = msgspec.json.encode(_File(format=FORMAT, evaluation=evaluation), order="deterministic")
    path.write_bytes(data + b"\n")


def load(path: Path) -> Evaluation:
    """Raises `InputError` where the file cannot be read, is no measurement, or of another format."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from error
    try:
        found = msgspec.json.decode(data, type=_Head).format
        if found == FORMAT:
            return msgspec.json.decode(data, type=_File).evaluation
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not what `trivet eval --save` writes: {error}.") from error
    if not found:
        raise InputError(f"{path} is not what `trivet eval --save` writes: it names no format.")
    raise InputError(f"{path} has the format {found!r}, this Trivet reads {FORMAT!r}; make it again with --save.")


def check_comparable(
    before: Evaluation, *, dataset: str, corpus: str, questions: Sequence[JudgedQuestion], path: Path
) -> None:
    """Raises `InputError` where the file is of another set or of other questions: such differences mean nothing."""
    if before.corpus != corpus:
        other = "another corpus of that name" if before.dataset == dataset else before.dataset
        raise InputError(f"{path} is a measurement of {other}, not of this {dataset}; compare the same set.")
    if questions_fingerprint(before.questions) != questions_fingerprint(questions):
        raise InputError(
            f"{path} asked other questions ({len(before.questions):,}, now {len(questions):,}) or judged them "
            "otherwise; use the same --limit and the same qrels."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Now against before; differences are now minus before, over the same questions."""

    runs: dict[str, dict[str, Difference]]
    worse: tuple[str, ...]
    """One sentence for each run that is worse by more than chance explains."""
    settings: dict[str, tuple[object, object]]
    """Dotted key or package → before and now, where they differ."""


def compare(before: Evaluation, now: Evaluation) -> Comparison:
    """Runs that both have. Both must be comparable (`check_comparable`)."""
    earlier = {run.name: run for run in before.runs}
    shared = {run.name: run for run in now.runs if run.name in earlier}
    differences = differ(
        {
            name: scores_of(run, now.questions) - scores_of(earlier[name], before.questions)
            for name, run in shared.items()
        }
    )
    worse = [
        f"{name} is worse by {measure}: {one.mean:+.3f} [{one.low:+.3f}, {one.high:+.3f}], p = {one.adjusted_p:.4f}"
        for name, by_measure in differences.items()
        if shared[name].kind != "ablation"
        for measure in GATED
        if (one := by_measure[measure]).mean < 0 and one.adjusted_p < ALPHA
    ]
    was, is_now = {**before.settings, **before.versions}, {**now.settings, **now.versions}
    changed = {key: (was.get(key), is_now.get(key)) for key in sorted(was | is_now) if was.get(key) != is_now.get(key)}
    return Comparison(runs=differences, worse=tuple(worse), settings=changed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """What a run must reach."""

    run: str
    measure: str
    least: float

    @classmethod
    def read(cls, text: str) -> Floor:
        """`recall@5=0.9`, of what users get, or `graph:recall@5=0.9`. Raises `InputError`."""
        left, equals, number = text.rpartition("=")
        run, colon, measure = left.strip().rpartition(":")
        try:
            least = float(number)
        except ValueError:
            equals = ""
        if not equals or measure not in MEASURES or (colon and not run):
            known = ", ".join(MEASURES)
            raise InputError(f"“{text}” is not MEASURE=VALUE or RUN:MEASURE=VALUE; the measures are {known}.")
        return cls(run=run or BASE, measure=measure, least=least)

    def check(self, runs: Iterable[str]) -> None:
        """Raises `InputError` where it is of a run that will not be measured."""
        names = list(runs)
        if self.run not in names:
            raise InputError(f"There is no run “{self.run}”; the runs are {', '.join(names)}.")

    def missed_by(self, runs: Sequence[RunSummary]) -> str:
        """One sentence where the run is below; empty where it is not."""
        mean = next(run for run in runs if run.name == self.run).measures[self.measure].mean
        return f"{self.run} has {self.measure} {mean:.3f}, below {self.least:g}" if mean < self.least else ""
