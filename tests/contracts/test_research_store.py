"""Every `ResearchStore`: topics and their steps, pages, passages, facts of one version at a time, notes of a crash."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from graph.errors import ConflictError, InputError, NotFoundError
from graph.research import (
    EVERGREEN,
    TRANSITIONS,
    Fact,
    FactState,
    KeptPassage,
    ResearchPage,
    ResearchStore,
    Topic,
    TopicState,
)
from graph.sqlite_research import SqliteResearch
from tests.fake_research import FakeResearch

TOPIC = Topic(slug="gull-rock", title="Gull Rock", category="coast", focus="Its keepers.", kind="analysis")
PAGE = ResearchPage(
    url="https://example.org/rock",
    title="The rock",
    passages=("One.", "Two."),
    author="A. Holm",
    published="2020-01-02",
    language="en",
    query="gull rock",
    fetched="2026-01-01T00:00:00+00:00",
    copies=("https://example.com/copy",),
)
FACT = Fact(
    id="fact-1",
    topic="gull-rock",
    category="coast",
    text="It was lit in 1890.",
    quote="lit in 1890",
    url="https://example.org/rock",
    title="The rock",
    published="2020-01-02",
    extractive=True,
    support=0.5,
)


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 5, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["fake", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Iterator[ResearchStore]:
    path = tmp_path / "research.db"
    made: ResearchStore = FakeResearch(clock=clock) if request.param == "fake" else SqliteResearch(path, clock=clock)
    yield made
    made.close()


def passage(key: str, **changes: object) -> KeptPassage:
    made = KeptPassage(
        id=key, collection="research_coast", origin="research", topic="gull-rock", url=PAGE.url, title="T", text=key
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def kept(key: str, **changes: object) -> KeptPassage:
    return passage(key, **{"collection": "knowledge_coast", "origin": "knowledge", **changes})


def test_a_topic_is_kept_whole_and_there_is_one_of_a_slug(store: ResearchStore) -> None:
    added = store.add_topic(TOPIC)
    assert replace(added, created="", changed="") == TOPIC
    assert added.created == added.changed == "2026-05-01T00:00:00.000+00:00"
    assert store.topic("gull-rock") == added
    assert store.topic("another") is None
    with pytest.raises(ConflictError, match="gull-rock"):
        store.add_topic(replace(TOPIC, title="Another"))
    assert list(store.topics()) == [added]


def test_topics_are_the_oldest_first_and_by_state(store: ResearchStore, clock: Clock) -> None:
    for slug in ("c", "a", "b"):
        store.add_topic(replace(TOPIC, slug=slug))
        clock.now -= timedelta(days=1)  # a clock that goes backwards changes no order
    store.move_topic("a", TopicState.RESEARCHING)
    assert [topic.slug for topic in store.topics()] == ["c", "a", "b"]
    assert [topic.slug for topic in store.topics(TopicState.QUEUED)] == ["c", "b"]


def test_steps_are_remembered_and_reasons_kept_until_there_are_others(store: ResearchStore, clock: Clock) -> None:
    store.add_topic(TOPIC)
    store.move_topic("gull-rock", TopicState.RESEARCHING, note="begun")
    clock.now += timedelta(minutes=1)
    thin = store.move_topic("gull-rock", TopicState.THIN, reasons=["3 passages of 5"], deepened=1)
    assert (thin.reasons, thin.deepened, thin.changed) == (("3 passages of 5",), 1, "2026-05-01T00:01:00.000+00:00")
    again = store.move_topic("gull-rock", TopicState.RESEARCHING)
    assert (again.reasons, again.deepened) == (("3 passages of 5",), 1)
    assert store.topic("gull-rock") == again
    steps = [(change.before, change.after, change.note) for change in store.history("gull-rock")]
    assert steps == [
        ("", "queued", ""),
        ("queued", "researching", "begun"),
        ("researching", "thin", ""),
        ("thin", "researching", ""),
    ]


@pytest.mark.parametrize("state", TopicState)
def test_only_the_steps_of_the_table_are_taken(store: ResearchStore, state: TopicState) -> None:
    for after in TopicState:
        slug = f"to-{after}"
        store.add_topic(replace(TOPIC, slug=slug, state=state))
        if after in TRANSITIONS[state]:
            assert store.move_topic(slug, after).state == after
        else:
            with pytest.raises(ConflictError, match=f"is {state} and cannot become {after}"):
                store.move_topic(slug, after)
            found = store.topic(slug)
            assert found is not None
            assert (found.state, len(store.history(slug))) == (state, 1)


def test_what_is_done_to_a_topic_that_is_gone_is_refused(store: ResearchStore) -> None:
    steps: list[Callable[[], object]] = [
        lambda: store.move_topic("gone", TopicState.RESEARCHING),
        lambda: store.put_page("gone", PAGE, []),
        lambda: store.remove_topic("gone"),
        lambda: store.add_facts([FACT]),
    ]
    for step in steps:
        with pytest.raises(NotFoundError, match="no topic"):
            step()
    store.wipe_research("gone")
    assert not any((store.pages("gone"), store.passages_of("gone"), store.history("gone")))


def test_a_page_is_kept_whole_and_replaces_the_one_before(store: ResearchStore) -> None:
    store.add_topic(TOPIC)
    store.add_topic(replace(TOPIC, slug="other"))
    store.put_page("gull-rock", PAGE, [passage("one", ordinal=0), passage("two", ordinal=1, published="2020-01-02")])
    store.put_page(
        "gull-rock", replace(PAGE, url="https://example.org/2"), [passage("three", url="https://example.org/2")]
    )
    store.put_page("other", PAGE, [passage("four", topic="other")])
    assert store.pages("gull-rock")[0] == PAGE
    assert [found.id for found in store.passages_of("gull-rock")] == ["one", "two", "three"]
    assert [found.id for found in store.passages_of("gull-rock", url=PAGE.url)] == ["one", "two"]
    assert store.passages(["two", "nothing"]) == {"two": passage("two", ordinal=1, published="2020-01-02")}
    store.put_page("gull-rock", replace(PAGE, title="New"), [passage("one"), passage("five", ordinal=1)])
    assert [page.title for page in store.pages("gull-rock")] == ["The rock", "New"]
    assert store.ids("research_coast") == {"one", "five", "three", "four"}


def test_collections_are_those_with_a_live_passage(store: ResearchStore, clock: Clock) -> None:
    assert store.collections() == {}
    store.add_topic(TOPIC)
    store.put_page(
        "gull-rock", PAGE, [passage("one", expires="2026-05-02T02:00:00+02:00"), passage("two", expires="2026-05-03")]
    )
    store.add_facts([FACT])
    store.change_fact(FACT, version=1, passage=kept("three", collection=EVERGREEN, origin="evergreen"))
    assert store.collections() == {"research_coast": "research", EVERGREEN: "evergreen"}
    clock.now = datetime(2026, 5, 2, tzinfo=UTC)
    assert set(store.passages(["one", "two"])) == {"two"}
    assert set(store.passages(["one", "two"], expired=True)) == {"one", "two"}
    clock.now += timedelta(days=1)
    assert store.collections() == {EVERGREEN: "evergreen"}
    assert store.ids("research_coast") == {"one", "two"}
    assert list(store.every_collection()) == [EVERGREEN, "research_coast"]


def test_a_wipe_leaves_the_topic_and_its_facts(store: ResearchStore) -> None:
    store.add_topic(TOPIC)
    store.put_page("gull-rock", PAGE, [passage("one")])
    store.add_facts([FACT])
    store.change_fact(FACT, version=1, passage=kept("two"))
    store.wipe_research("gull-rock")
    assert list(store.pages("gull-rock")) == []
    assert set(store.passages(["one", "two"])) == {"two"}
    assert store.topic("gull-rock") is not None
    assert store.fact("fact-1") is not None


def test_removing_a_topic_leaves_what_a_person_has_approved(store: ResearchStore) -> None:
    store.add_topic(TOPIC)
    store.put_page("gull-rock", PAGE, [passage("one")])
    store.add_facts([replace(FACT, id=state) for state in FactState])
    for state in FactState:
        answers = kept("two") if state == FactState.APPROVED else None
        store.change_fact(replace(FACT, id=state, state=state), version=1, passage=answers)
    store.remove_topic("gull-rock")
    assert [fact.id for fact in store.facts()] == ["approved"]
    assert set(store.passages(["one", "two"])) == {"two"}
    assert (store.topic("gull-rock"), list(store.history("gull-rock"))) == (None, [])
    store.add_topic(TOPIC)
    assert [change.before for change in store.history("gull-rock")] == [""]


def test_facts_are_kept_whole_and_known_ones_left_as_they_are(store: ResearchStore) -> None:
    store.add_topic(TOPIC)
    store.add_facts([FACT])
    found = store.fact("fact-1")
    assert found is not None
    assert replace(found, created="", changed="") == FACT
    store.change_fact(replace(FACT, text="Edited.", undoes={"text": FACT.text}), version=1, passage=None)
    store.add_facts([FACT, replace(FACT, id="fact-2")])
    texts = [(fact.text, dict(fact.undoes)) for fact in store.facts()]
    assert texts == [("Edited.", {"text": FACT.text}), ("It was lit in 1890.", {})]


def test_of_facts_all_or_none_are_added(store: ResearchStore) -> None:
    store.add_topic(TOPIC)
    with pytest.raises(NotFoundError):
        store.add_facts([FACT, replace(FACT, id="fact-2", topic="gone")])
    assert list(store.facts()) == []


def test_facts_come_in_pages_by_what_is_asked_for(store: ResearchStore, clock: Clock) -> None:
    store.add_topic(TOPIC)
    store.add_topic(replace(TOPIC, slug="other"))
    for number in range(5):
        store.add_facts([replace(FACT, id=f"fact-{9 - number}", topic="other" if number == 2 else "gull-rock")])
        clock.now += timedelta(seconds=number % 2)
    first = store.facts(limit=3)
    rest = store.facts(limit=3, after=first[-1].id)
    assert [fact.id for fact in (*first, *rest)] == ["fact-8", "fact-9", "fact-6", "fact-7", "fact-5"]
    assert list(store.facts(after=rest[-1].id)) == []
    assert [fact.id for fact in store.facts(topic="other")] == ["fact-7"]
    assert len(store.facts(category="coast", state=FactState.PROPOSED)) == 5
    assert list(store.facts(category="sea")) == list(store.facts(state=FactState.APPROVED)) == []
    assert list(store.facts(limit=0)) == []
    with pytest.raises(NotFoundError, match="no fact 'gone'"):
        store.facts(after="gone")


def test_a_change_needs_the_version_that_was_looked_at(store: ResearchStore, clock: Clock) -> None:
    store.add_topic(TOPIC)
    store.add_facts([FACT])
    clock.now += timedelta(hours=1)
    ann = replace(FACT, state=FactState.APPROVED, changed_by="Ann")
    changed = store.change_fact(ann, version=1, passage=kept("one"))
    assert (changed.version, changed.changed) == (2, "2026-05-01T01:00:00.000+00:00")
    assert store.fact("fact-1") == changed
    with pytest.raises(ConflictError, match="was changed by Ann meanwhile"):
        store.change_fact(replace(FACT, state=FactState.REJECTED), version=1, passage=None)
    with pytest.raises(ConflictError):
        store.delete_fact("fact-1", version=1)
    assert store.fact("fact-1") == changed
    assert store.fact_passage("fact-1") == kept("one")
    store.delete_fact("fact-1", version=2)
    assert (store.fact("fact-1"), store.fact_passage("fact-1"), store.ids("knowledge_coast")) == (None, None, set())
    with pytest.raises(NotFoundError, match="no fact"):
        store.change_fact(changed, version=3, passage=kept("one"))
    with pytest.raises(NotFoundError):
        store.delete_fact("fact-1", version=2)


def test_a_fact_has_one_passage_at_most(store: ResearchStore) -> None:
    store.add_topic(TOPIC)
    store.add_facts([FACT])
    store.change_fact(FACT, version=1, passage=kept("one"))
    store.change_fact(FACT, version=2, passage=kept("two", collection=EVERGREEN, origin="evergreen"))
    assert (store.ids("knowledge_coast"), store.ids(EVERGREEN)) == (set(), {"two"})
    store.change_fact(FACT, version=3, passage=None)
    assert store.collections() == {}


def test_an_expiry_that_is_no_time_is_refused_and_nothing_changed(store: ResearchStore) -> None:
    store.add_topic(TOPIC)
    with pytest.raises(InputError, match="'soon' is no time to expire at"):
        store.add_facts([replace(FACT, expires="soon")])
    store.add_facts([FACT])
    with pytest.raises(InputError):
        store.change_fact(replace(FACT, expires="2026-13-01"), version=1, passage=None)
    with pytest.raises(InputError):
        store.put_page("gull-rock", PAGE, [passage("one", expires="99999-01-01")])
    assert [fact.version for fact in store.facts()] == [1]
    assert list(store.pages("gull-rock")) == []


def test_a_note_stays_until_its_end(store: ResearchStore) -> None:
    assert store.unfinished() == {}
    store.begin("research_coast", adding=["one", "two"], removing=["three"])
    store.begin("research_coast", adding=["four"])
    store.begin(EVERGREEN, adding=["five"])
    assert store.unfinished() == {"research_coast": {"one", "two", "three", "four"}, EVERGREEN: {"five"}}
    store.end("research_coast")
    store.end("research_sea")
    assert store.unfinished() == {EVERGREEN: {"five"}}
    assert list(store.every_collection()) == [EVERGREEN, "research_coast"]


def test_text_that_no_store_can_hold_is_no_fault(store: ResearchStore) -> None:
    store.add_topic(replace(TOPIC, title="caf\udc9a\x00"))
    store.put_page("gull-rock", replace(PAGE, passages=("caf\udc9a",)), [passage("one", text="caf\udc9a\x00")])
    store.move_topic("gull-rock", TopicState.RESEARCHING, note="\udc9a", reasons=["caf\udc9a"])
    assert store.passages(["one"])["one"].text.startswith("caf")
    assert store.topic("gull\udc9a") is None


def test_it_is_all_still_there_after_a_restart(tmp_path: Path) -> None:
    first = SqliteResearch(tmp_path / "research.db")
    topic = first.add_topic(TOPIC)
    first.put_page("gull-rock", PAGE, [passage("one")])
    first.add_facts([FACT])
    fact = first.change_fact(FACT, version=1, passage=kept("two"))
    first.begin(EVERGREEN, adding=["three"])
    first.close()
    second = SqliteResearch(tmp_path / "research.db")
    assert (second.topic("gull-rock"), list(second.pages("gull-rock"))) == (topic, [PAGE])
    assert (second.fact("fact-1"), second.unfinished()) == (fact, {EVERGREEN: {"three"}})
    assert set(second.passages(["one", "two"])) == {"one", "two"}
    second.close()


def test_half_a_thousand_ids_and_more_are_looked_up(store: ResearchStore) -> None:
    store.add_topic(TOPIC)
    store.put_page("gull-rock", PAGE, [passage(f"id-{n}", ordinal=n) for n in range(1_201)])
    assert len(store.passages([f"id-{n}" for n in range(1_201)])) == 1_201
