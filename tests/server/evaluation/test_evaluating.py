"""Questions through runs and ablations, over stores in memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from config.loading import declared
from config.settings import RerankSettings, SearchSettings, Settings
from graph.errors import DependencyDownError, SettingsError, SourceError
from graph.model import VectorRankings
from server.evaluation.ablations import ABLATIONS, Ablation, available, named
from server.evaluation.asking import RUNS, Asker, ask_unanswerable
from server.evaluation.changes import changed, value_of
from server.evaluation.dataset import questions_fingerprint, read_questions, read_unanswerable
from server.evaluation.results import BASE, Run
from tests.fakes import FakeVectors
from tests.server.evaluation.tiny_set import OverlapReranker, opened, write_set


async def asked(folder: Path, home: Path, *ablations: Ablation, **changes: object) -> tuple[dict[str, Run], Asker]:
    backends = await opened(folder, home, **changes)
    asker = Asker.of(folder.name, backends, ablations)
    questions = read_questions(folder)
    await asker.warm_up(questions[0])
    for judged in questions:
        await asker.ask(judged)
    return {run.name: run for run in asker.runs}, asker


async def test_every_run_ranks_documents_for_every_question(tmp_path: Path) -> None:
    folder = write_set(tmp_path / "birds")
    runs, asker = await asked(folder, tmp_path, *available(Settings(home=tmp_path)))
    assert list(runs) == [*RUNS, *(ablation.name for ablation in available(Settings(home=tmp_path)))]
    assert all(len(run.documents) == 4 for run in runs.values())
    assert all(len(set(ranking)) == len(ranking) for run in runs.values() for ranking in run.documents)
    assert runs[BASE].documents[0][0] == "d1"
    assert {name for name, run in runs.items() if run.milliseconds} == {"vector", "graph", "wiki", BASE}
    assert asker.unscored == 0
    assert all(slow >= quick for slow, quick in zip(runs[BASE].milliseconds, runs["wiki"].milliseconds, strict=True))


async def test_noise_control_can_be_left_out(tmp_path: Path) -> None:
    folder = write_set(tmp_path / "birds")
    strict = Settings(home=tmp_path, search=SearchSettings(vector_threshold=0.99))
    runs, _ = await asked(folder, tmp_path, *available(strict), settings=strict)
    assert all(len(ranking) == 5 for ranking in runs["dense"].documents)
    assert any(len(ranking) < 5 for ranking in runs["vector"].documents)
    assert all(len(ranking) == 5 for ranking in runs["no-noise-control"].documents)


class CountingVectors(FakeVectors):
    searches = 0

    async def search(self, *arguments: object, **named: object) -> VectorRankings:
        self.searches += 1
        return await super().search(*arguments, **named)  # type: ignore[arg-type]


async def test_ablations_search_again_only_where_they_must(tmp_path: Path) -> None:
    folder = write_set(tmp_path / "birds")
    vectors, many = CountingVectors(), CountingVectors()
    await asked(folder, tmp_path, vectors=vectors)
    await asked(folder, tmp_path, *available(Settings(home=tmp_path)), vectors=many)
    assert vectors.searches == 5 * 3  # alone, before noise control, beside the graph; one question is asked twice
    assert many.searches == vectors.searches + 5  # plain rank fusion may be of other lists
    wider = CountingVectors()
    await asked(folder, tmp_path, named("search.vector_limit=3", Settings(home=tmp_path)), vectors=wider)
    assert wider.searches == vectors.searches + 5


async def test_each_passage_is_scored_once_per_question(tmp_path: Path) -> None:
    folder = write_set(tmp_path / "birds")
    reranker = OverlapReranker()
    await asked(folder, tmp_path, *available(Settings(home=tmp_path)), reranker=reranker)
    assert reranker.asked <= 5 * 5  # five questions with the first to warm up, five documents


async def test_a_passage_not_scored_in_time_is_not_scored_for_an_ablation(tmp_path: Path) -> None:
    folder = write_set(tmp_path / "birds")
    alone = Ablation(name="same", says="", changes={"rerank.weight": 0.2})
    runs, asker = await asked(folder, tmp_path, alone, reranker=OverlapReranker(in_time=1))
    assert runs["same"].documents == runs[BASE].documents
    assert 0 < asker.unscored < 1


async def test_leaving_a_leg_out(tmp_path: Path) -> None:
    folder = write_set(tmp_path / "birds")
    no_rerank = RerankSettings(enabled=False)
    settings = Settings(home=tmp_path, rerank=no_rerank, search=SearchSettings(vector_threshold=0.2))
    runs, _ = await asked(folder, tmp_path, *available(settings), settings=settings)
    assert [set(r) for r in runs["no-graph"].documents] == [set(r) for r in runs["vector"].documents]


class AwayVectors(FakeVectors):
    away = False

    async def search(self, *arguments: object, **named: object) -> VectorRankings:
        if self.away:
            raise DependencyDownError("Qdrant cannot be reached", dependency="qdrant")
        return await super().search(*arguments, **named)  # type: ignore[arg-type]


async def test_a_leg_that_fails_ends_the_measuring(tmp_path: Path) -> None:
    folder = write_set(tmp_path / "birds")
    vectors = AwayVectors()
    backends = await opened(folder, tmp_path, vectors=vectors)
    vectors.away = True
    with pytest.raises(DependencyDownError, match="The vector leg failed for"):
        await ask_unanswerable(read_unanswerable(folder), backends)


async def test_confidence_in_questions_without_an_answer(tmp_path: Path) -> None:
    folder = write_set(tmp_path / "birds")
    backends = await opened(folder, tmp_path)
    nothing, something = await ask_unanswerable(read_unanswerable(folder), backends)
    assert (nothing.best or -5) < (something.best or -5)
    assert await ask_unanswerable(read_unanswerable(folder), await opened(folder, tmp_path, reranker=None)) == ()


def test_ablations_are_of_settings_that_exist_and_change_something(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    assert available(changed(settings, {"rerank.late_interaction": True})) == list(ABLATIONS)
    assert len(available(settings)) == len(ABLATIONS) - 1
    for ablation in ABLATIONS:
        assert ablation.changes.keys() <= declared().keys()
        changed(settings, ablation.changes)
    without = changed(settings, {"rerank.enabled": False})
    assert "no-rerank" not in {ablation.name for ablation in available(without)}
    unknown = Ablation(name="x", says="", changes={"search.no_such": 1})
    assert available(settings, [unknown]) == []


def test_settings_change_by_name(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    assert value_of(changed(settings, {"search.rrf_k": "20"}), "search.rrf_k") == 20
    assert named("search.adaptive_weights=false", settings).changes == {"search.adaptive_weights": False}
    assert settings.search.rrf_k == 60


@pytest.mark.parametrize(
    ("pair", "said"),
    [
        ("search.rrf_k", "is not KEY=VALUE"),
        ("search.rrf=20", "“search.rrf” is not a setting"),
        ("search.rrf_k=many", "should be a valid integer"),
        ("embedder.name=bge-m3", "run `trivet eval` twice"),
        ("home=/tmp", "run `trivet eval` twice"),
        ("rerank.name=other", "run `trivet eval` twice"),
        ("graph.neo4j_url=bolt://there", "run `trivet eval` twice"),
        ("rerank.late_interaction=true", "run `trivet eval` twice"),
    ],
)
def test_a_wrong_change_is_refused(tmp_path: Path, pair: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        named(pair, Settings(home=tmp_path))


def test_reading_a_set(tmp_path: Path) -> None:
    folder = write_set(tmp_path / "birds")
    questions = read_questions(folder)
    assert [judged.id for judged in questions] == ["q1", "q2", "q3", "q4"]
    assert questions[2].gold == {"d1", "d4"}
    assert questions[2].answers == ("Ada Holm",)
    assert questions[2].groups == {"type": "who", "hops": "2"}
    assert [judged.id for judged in read_unanswerable(folder)] == ["u1", "u2"]
    assert questions_fingerprint(questions) != questions_fingerprint(questions[:3])
    (folder / "unanswerable.jsonl").write_text("no json\n", encoding="utf-8")
    with pytest.raises(SourceError, match=r"unanswerable\.jsonl:1 is not a question"):
        read_unanswerable(folder)
