"""A topic's whole life: what state follows what was found, and that it goes on wherever it was killed."""

from __future__ import annotations

import pytest

from graph.errors import DependencyDownError, NotFoundError, StoreFullError
from graph.research import Topic, TopicState
from server.research.plan import Plan, RunProgress, WhenThin
from server.research.report import RunReport, TopicReport
from server.research.run import run
from tests.fake_research import FakeResearch
from tests.server.research.scripted_stages import KilledError, Mortal, ScriptedStages, stored

SEARXNG_DOWN = DependencyDownError("SearXNG does not answer; start it.", dependency="searxng")


@pytest.fixture
def store() -> FakeResearch:
    store = FakeResearch()
    store.add_topic(Topic(slug="gulls", title="Gulls"))
    return store


async def ran(stages: ScriptedStages, plan: Plan | None = None, *, seconds: float = 60.0) -> RunReport:
    said: list[RunProgress] = []
    return await run(plan or Plan(), stages.store, stages, seconds=seconds, report=said.append)


async def alone(stages: ScriptedStages, plan: Plan | None = None) -> TopicReport:
    (report,) = (await ran(stages, plan)).topics
    return report


def states(store: FakeResearch, slug: str = "gulls") -> list[str]:
    return [str(change.after) for change in store.history(slug)]


async def test_what_suffices_goes_straight_to_review(store: FakeResearch) -> None:
    stages = ScriptedStages(store)
    report = await alone(stages)
    assert states(store) == ["queued", "researching", "ok", "extracting", "extracting", "review"]
    assert (report.state, report.pages, report.chunks, report.facts, report.rounds) == (TopicState.REVIEW, 3, 3, 3, 0)
    assert report.left_out == {"blocked domain": ("https://blocked.example/",)}
    assert report.notes == ("bing did not answer",)
    assert not report.error


async def test_a_thin_topic_is_deepened_until_it_suffices(store: FakeResearch) -> None:
    report = await alone(ScriptedStages(store, first=1, each=1))
    assert (report.state, report.pages, report.rounds) == (TopicState.REVIEW, 3, 2)
    assert set(report.left_out) == {"blocked domain", "too few keywords"}
    assert report.left_out["blocked domain"] == ("https://blocked.example/",)
    assert report.counts == {"blocked domain": 1, "too few keywords": 1}
    topic = store.topic("gulls")
    assert topic is not None
    assert topic.deepened == 2


@pytest.mark.parametrize(("first", "verdict"), [(1, "thin"), (0, "insufficient")])
async def test_unattended_a_topic_that_stays_thin_is_given_up_without_facts(
    store: FakeResearch, first: int, verdict: str
) -> None:
    stages = ScriptedStages(store, first=first, each=0)
    report = await alone(stages)
    assert report.state is TopicState.INSUFFICIENT_RESEARCH
    assert report.reasons == (f"{first} pages of 3",)
    assert "extract" not in stages.done
    assert stages.done.count("deepen") == 2
    assert store.history("gulls")[-1].note == f"{verdict} after 2 rounds of deep research"
    assert (await ran(stages)).topics == ()


@pytest.mark.parametrize(("first", "state"), [(1, TopicState.THIN), (0, TopicState.INSUFFICIENT)])
async def test_with_a_person_there_it_stops_where_too_little_was_found(
    store: FakeResearch, first: int, state: TopicState
) -> None:
    stages = ScriptedStages(store, first=first)
    assert (await alone(stages, Plan(topics=("gulls",), when_thin=WhenThin.STOP))).state is state
    assert stages.done == ["research", "judge"]


async def test_a_person_accepts_what_is_thin_but_not_what_is_nothing(store: FakeResearch) -> None:
    stages = ScriptedStages(store, first=1)
    await ran(stages, Plan(topics=("gulls",), when_thin=WhenThin.STOP))
    accept = Plan(topics=("gulls",), when_thin=WhenThin.ACCEPT)
    assert (await alone(stages, accept)).state is TopicState.REVIEW
    assert stages.done == ["research", "judge", "extract"]
    store.add_topic(Topic(slug="none", title="None"))
    nothing = ScriptedStages(store, first=0)
    assert (await alone(nothing, Plan(topics=("none",), when_thin=WhenThin.ACCEPT))).state is TopicState.INSUFFICIENT


async def test_deep_research_on_demand_goes_on_with_what_there_is(store: FakeResearch) -> None:
    stages = ScriptedStages(store)
    await ran(stages)
    report = await alone(stages, Plan(topics=("gulls",), deep=True))
    assert stages.done == ["research", "judge", "extract", "deepen", "judge", "extract"]
    assert (report.state, report.pages, report.facts) == (TopicState.REVIEW, 4, 4)


async def test_deep_research_of_a_new_topic_looks_around_first(store: FakeResearch) -> None:
    stages = ScriptedStages(store)
    await ran(stages, Plan(topics=("gulls",), deep=True))
    assert stages.done == ["research", "judge", "deepen", "judge", "extract"]


async def test_a_topic_that_is_named_is_researched_again(store: FakeResearch) -> None:
    stages = ScriptedStages(store, first=1, each=0)
    await ran(stages)
    stages.first = 3
    assert (await alone(stages, Plan(topics=("gulls",)))).state is TopicState.REVIEW
    topic = store.topic("gulls")
    assert topic is not None
    assert topic.deepened == 0


async def test_a_job_that_is_done_once_more_begins_nothing_anew(store: FakeResearch) -> None:
    stages = ScriptedStages(store)
    await ran(stages)
    again = Plan(topics=("gulls",), since=store.history("gulls")[1].at)
    report = await alone(stages, again)
    assert report.state is TopicState.REVIEW
    assert stages.done.count("research") == 1


async def test_what_a_service_was_away_for_waits_for_the_next_run(store: FakeResearch) -> None:
    stages = ScriptedStages(store, fails={"research": SEARXNG_DOWN})
    report = await ran(stages)
    assert report.partial
    assert (report.topics[0].state, report.topics[0].error) == (TopicState.QUEUED, str(SEARXNG_DOWN))
    assert report.topics[0].reasons == (str(SEARXNG_DOWN),)
    stages.fails = {"extract": SEARXNG_DOWN}
    assert (await alone(stages)).state is TopicState.OK
    stages.fails = {}
    last = await alone(stages)
    assert (last.state, last.error) == (TopicState.REVIEW, "")


async def test_one_topic_that_fails_does_not_hold_up_the_others(store: FakeResearch) -> None:
    store.add_topic(Topic(slug="terns", title="Terns"))
    stages = ScriptedStages(store, fails={"judge": StoreFullError("No space left.")})
    report = await ran(stages)
    assert [topic.state for topic in report.topics] == [TopicState.FAILED, TopicState.FAILED]
    assert report.partial
    assert store.topic("terns") is not None
    stages.fails = {}
    assert (await ran(stages)).topics == ()  # what has failed is only taken up when it is named
    assert (await alone(stages, Plan(topics=("terns",)))).state is TopicState.REVIEW


async def test_a_topic_may_be_deleted_meanwhile(store: FakeResearch) -> None:
    stages = ScriptedStages(store, before_extraction=lambda: store.remove_topic("gulls"))
    report = await alone(stages)
    assert report.state is None
    assert report.error == "It was deleted meanwhile."


async def test_an_unknown_topic_stops_a_run_before_it_begins(store: FakeResearch) -> None:
    stages = ScriptedStages(store)
    with pytest.raises(NotFoundError, match="terns"):
        await ran(stages, Plan(topics=("gulls", "terns")))
    assert stages.done == []


async def test_what_there_is_no_time_for_is_named(store: FakeResearch) -> None:
    stages = ScriptedStages(store)
    report = await ran(stages, seconds=0.0)
    assert report.not_begun == ("gulls",)
    assert report.partial
    assert states(store) == ["queued"]


async def test_an_added_topic_is_done_in_the_same_run(store: FakeResearch) -> None:
    def add() -> None:
        if store.topic("terns") is None:
            store.add_topic(Topic(slug="terns", title="Terns"))

    report = await ran(ScriptedStages(store, before_extraction=add))
    assert [topic.slug for topic in report.topics] == ["gulls", "terns"]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("first", [1, 3])
async def test_killed_at_any_write_it_goes_on_and_ends_the_same(store: FakeResearch, first: int, after: bool) -> None:
    whole = ScriptedStages(store, first=first)
    await ran(whole)
    expected = stored(store, "gulls")
    killed = 0
    for at in range(1, 40):
        again = FakeResearch()
        again.add_topic(Topic(slug="gulls", title="Gulls"))
        mortal = Mortal(again, at=at, after=after)
        try:
            await ran(ScriptedStages(mortal, first=first))  # type: ignore[arg-type]
        except KilledError:
            killed += 1
        await ran(ScriptedStages(again, first=first))
        assert stored(again, "gulls") == expected, f"killed at write {at}"
    assert killed >= 10
