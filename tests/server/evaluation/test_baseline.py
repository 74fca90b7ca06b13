"""Measurements kept and compared: what may be compared, what counts as worse."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from graph.errors import InputError
from server.evaluation.baseline import Floor, check_comparable, compare, load, save
from server.evaluation.dataset import JudgedQuestion
from server.evaluation.results import BASE, AnswerChecks, Confidence, Evaluation, Run
from server.evaluation.summary import by_group, summarise

QUESTIONS = tuple(
    JudgedQuestion(id=f"q{n}", text=f"What is {n}?", gold=frozenset({f"d{n}"}), groups={"hops": str(1 + n % 2)})
    for n in range(40)
)


def ranked(right: int) -> tuple[tuple[str, ...], ...]:
    """The first `right` questions have their document first, the others have it not at all."""
    return tuple((f"d{n}" if n < right else "x", "y") for n in range(len(QUESTIONS)))


def measured(*, reranked: int = 30, dense: int = 20) -> Evaluation:
    return Evaluation(
        dataset="birds",
        corpus="abc",
        questions=QUESTIONS,
        runs=(
            Run(name="dense", kind="leg", documents=ranked(dense)),
            Run(name=BASE, kind="stage", documents=ranked(reranked), milliseconds=(5.0,) * 40),
        ),
        answerable=(Confidence(best=1.5, candidates=3),) * 40,
        unanswerable=(Confidence(best=None, candidates=0),),
        answers=(
            AnswerChecks(
                question="q1", mode="extractive", contains=1, exact=0, f1=0.5, first_citation=1, citations=None
            ),
        ),
        settings={"search.rrf_k": 60},
        versions={"trivet": "1"},
    )


def test_what_is_kept_comes_back(tmp_path: Path) -> None:
    save(measured(), tmp_path / "before.json")
    assert load(tmp_path / "before.json") == measured()
    many = replace(QUESTIONS[0], gold=frozenset(f"d{n}" for n in range(20)))
    save(replace(measured(), questions=(many,)), tmp_path / "many.json")
    written = json.loads((tmp_path / "many.json").read_text(encoding="utf-8"))
    gold = written["evaluation"]["questions"][0]["gold"]
    assert gold == sorted(gold)


def test_the_same_measurement_differs_by_nothing() -> None:
    found = compare(measured(), measured())
    assert found.worse == ()
    assert found.settings == {}
    one = found.runs[BASE]["recall@5"]
    assert (one.mean, one.low, one.high, one.p) == (0, 0, 0, 1)


def test_a_run_that_lost_questions_is_worse() -> None:
    found = compare(measured(), measured(reranked=10))
    assert [sentence.split(":")[0] for sentence in found.worse] == [
        f"{BASE} is worse by recall@5",
        f"{BASE} is worse by ndcg@10",
    ]
    assert found.runs[BASE]["recall@5"].mean == pytest.approx(-0.5)
    assert compare(measured(reranked=10), measured()).worse == ()


def test_a_loss_that_chance_explains_is_not_worse() -> None:
    assert compare(measured(), measured(reranked=29)).worse == ()


def test_an_ablation_may_be_worse() -> None:
    ablation = Run(name="no-graph", kind="ablation", documents=ranked(40))
    before = replace(measured(), runs=(*measured().runs, ablation))
    now = replace(measured(), runs=(*measured().runs, replace(ablation, documents=ranked(0))))
    assert compare(before, now).worse == ()
    assert compare(before, measured()).runs.keys() == {"dense", BASE}


def test_settings_and_versions_that_differ_are_named() -> None:
    now = replace(measured(), settings={"search.rrf_k": 20}, versions={"trivet": "1", "numpy": "2"})
    assert compare(measured(), now).settings == {"numpy": (None, "2"), "search.rrf_k": (60, 20)}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"dataset": "fish", "corpus": "other"}, "is a measurement of birds, not of this fish"),
        ({"corpus": "other"}, "another corpus of that name"),
        ({"questions": QUESTIONS[:7]}, r"asked other questions \(40, now 7\)"),
        ({"questions": (replace(QUESTIONS[0], gold=frozenset({"d9"})), *QUESTIONS[1:])}, "or judged them otherwise"),
    ],
)
def test_what_cannot_be_compared_is_refused(changes: dict[str, object], said: str) -> None:
    now = {"dataset": "birds", "corpus": "abc", "questions": QUESTIONS, **changes}
    with pytest.raises(InputError, match=said):
        check_comparable(measured(), path=Path("before.json"), **now)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read: No such file"),
        ("{}", "it names no format"),
        ("[1, 2]", "is not what `trivet eval --save` writes"),
        ("nothing", "is not what `trivet eval --save` writes"),
        (
            '{"format": "trivet-eval-0", "runs": []}',
            "has the format 'trivet-eval-0', this Trivet reads 'trivet-eval-1'",
        ),
        ('{"format": "trivet-eval-1"}', "missing required field `evaluation`"),
    ],
)
def test_a_file_that_is_no_measurement_is_refused(tmp_path: Path, content: str | None, said: str) -> None:
    path = tmp_path / "before.json"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=said):
        load(path)


def test_floors() -> None:
    runs = summarise(measured().runs, QUESTIONS)
    assert Floor.read("recall@5=0.75").missed_by(runs) == ""
    assert Floor.read("recall@5=0.8").missed_by(runs) == "reranked has recall@5 0.750, below 0.8"
    assert Floor.read("dense:mrr=.6").missed_by(runs) == "dense has mrr 0.500, below 0.6"
    with pytest.raises(InputError, match="There is no run “web”"):
        Floor.read("web:mrr=.6").check(["dense", BASE])
    Floor.read("search.rrf_k=5:mrr=.6").check([BASE, "search.rrf_k=5"])
    for wrong in ("recall@5", "recall@5=high", "recall@7=0.5", ":mrr=0.5"):
        with pytest.raises(InputError, match="is not MEASURE=VALUE"):
            Floor.read(wrong)


def test_a_summary_has_means_intervals_and_differences() -> None:
    dense, base = summarise(measured().runs, QUESTIONS)
    assert base.measures["recall@5"].mean == 0.75
    assert 0.55 < base.measures["recall@5"].low < 0.75 < base.measures["recall@5"].high < 0.95
    assert base.differences == {}
    assert (base.p50_ms, dense.p50_ms) == (5.0, None)
    one = dense.differences["recall@5"]
    assert one.mean == -0.25
    assert one.low < one.mean < one.high < 0
    assert one.p <= one.adjusted_p < 0.05


def test_kinds_of_questions_are_told_apart() -> None:
    one, two = by_group(measured().runs, QUESTIONS)
    assert (one.key, one.value, one.questions) == ("hops", "1", 20)
    assert two.value == "2"
    both = (one.runs[BASE]["recall@5"].mean + two.runs[BASE]["recall@5"].mean) / 2
    assert both == pytest.approx(0.75)
    same = [replace(judged, groups={"hops": "1"}) for judged in QUESTIONS]
    assert by_group(measured().runs, same) == []
