"""What people decide about facts: it has one effect, is told to who comes second, can be taken back, and stays."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from graph.errors import ConflictError, DependencyDownError, InputError, NotFoundError
from graph.qdrant_edge_store import QdrantEdge
from graph.research import EVERGREEN, Fact, FactState, TopicState
from graph.sqlite_research import SqliteResearch
from server.research.changes import Action, FactChange, Outcome, make_all
from server.research.extract import FactTools, extract
from server.research.facts import all_facts, proposed
from server.research.review import Review
from server.research.shelf import Shelf, knowledge_collection, research_collection
from tests.fake_research import FakeResearch
from tests.fakes import FakeVectors, HashEmbedder
from tests.places import quick_folder
from tests.server.cli_runner import ROOT
from tests.server.research.pages import BRIDGE, TOPIC

BRIDGES = knowledge_collection("bridges")
COST = proposed(
    TOPIC,
    BRIDGE,
    "Hollin Bridge cost 2.5 million crowns.",
    "The bridge cost 2.5 million crowns and is 214 metres long.",
    support=0.8,
    extractive=False,
)
NOW = datetime(2030, 5, 4, 12, tzinfo=UTC)


class Place:
    """A topic in review with its page and facts, and what has been written of them."""

    def __init__(self) -> None:
        self.store = FakeResearch(clock=lambda: NOW)
        self.vectors = FakeVectors()
        self.embedder = HashEmbedder()
        self.shelf = Shelf(self.store, self.vectors, self.embedder)
        self.review = Review(self.shelf, clock=lambda: NOW)

    async def fill(self) -> None:
        self.store.add_topic(TOPIC)
        await self.shelf.put_page(TOPIC, BRIDGE)
        self.store.move_topic(TOPIC.slug, TopicState.RESEARCHING)
        self.store.move_topic(TOPIC.slug, TopicState.OK)
        await extract(TOPIC.slug, self.store, FactTools())
        self.store.add_facts([COST])

    async def answering(self, collection: str = BRIDGES) -> set[str]:
        """Texts that answer questions, in the store; the vectors must agree."""
        kept = self.store.passages(sorted(self.store.ids(collection)))
        assert await self.vectors.ids(collection) == set(kept)
        return {passage.text for passage in kept.values()}

    def fact(self, fact_id: str = COST.id) -> Fact:
        found = self.store.fact(fact_id)
        assert found is not None
        return found


@pytest.fixture
async def place() -> Place:
    made = Place()
    await made.fill()
    return made


# --- one decision -------------------------------------------------------------------------------------------------


async def test_approving_twice_has_one_effect(place: Place) -> None:
    first = await place.review.keep(COST.id, by="Ada", version=1)
    assert (first.state, first.version, first.changed_by) == (FactState.APPROVED, 2, "Ada")
    assert await place.answering() == {COST.text}
    embedded = len(place.embedder.embedded)
    # Once more, by somebody else who saw the same, and without saying what was seen.
    for version in (1, 2, None):
        assert await place.review.keep(COST.id, by="Ben", version=version) == first
    assert place.fact() == first
    assert len(place.embedder.embedded) == embedded
    assert await place.answering() == {COST.text}


async def test_two_approvals_at_once_have_one_effect(place: Place) -> None:
    both = await asyncio.gather(*(place.review.keep(COST.id, by=by, version=1) for by in ("Ada", "Ben")))
    assert both[0] == both[1] == place.fact()
    assert place.fact().version == 2


async def test_evergreen_facts_live_elsewhere(place: Place) -> None:
    await place.review.keep(COST.id, by="Ada", evergreen=True)
    assert (await place.answering(EVERGREEN), await place.answering()) == ({COST.text}, set())
    moved = await place.review.keep(COST.id, by="Ada", evergreen=False)
    assert (await place.answering(EVERGREEN), await place.answering()) == (set(), {COST.text})
    assert moved.version == 3
    await place.review.undo(COST.id, by="Ada")
    assert (await place.answering(EVERGREEN), await place.answering()) == ({COST.text}, set())


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("", ""),
        ("2030-05-04", "2030-05-04T23:59:59Z"),
        ("2031-01-31T12:00:00+02:00", "2031-01-31T10:00:00Z"),
        (" 2031-01-31T12:00:00 ", "2031-01-31T12:00:00Z"),
    ],
)
async def test_the_end_of_a_fact(place: Place, given: str, stored: str) -> None:
    assert (await place.review.keep(COST.id, by="Ada", expires=given)).expires == stored


@pytest.mark.parametrize(
    "given", ["2030-05-03", "1990-01-01T00:00:00Z", "soon", "2030-13-01", "2030-02-30", "99999-01-01", "x" * 9999]
)
async def test_ends_that_are_none(place: Place, given: str) -> None:
    with pytest.raises(InputError):
        await place.review.keep(COST.id, by="Ada", expires=given)
    assert place.fact().state is FactState.PROPOSED


async def test_rejecting_takes_an_approved_fact_back(place: Place) -> None:
    await place.review.keep(COST.id, by="Ada")
    rejected = await place.review.reject(COST.id, by="Ben")
    assert (rejected.state, rejected.version) == (FactState.REJECTED, 3)
    assert await place.review.reject(COST.id, by="Cy") == rejected
    assert await place.answering() == set()


async def decided(
    review: Review, ids: Sequence[str], action: Action, *, by: str = "Ada", versions: Mapping[str, int] | None = None
) -> tuple[Outcome, ...]:
    """One decision for many facts."""
    known = versions or {}
    return await make_all([FactChange(id=each, action=action, by=by, version=known.get(each)) for each in ids], review)


@pytest.mark.parametrize("by", ["", "  ", "\u200b\n"])
async def test_a_decision_has_a_name(place: Place, by: str) -> None:
    for call in (place.review.keep, place.review.reject, place.review.delete, place.review.undo):
        with pytest.raises(InputError, match="name"):
            await call(COST.id, by=by)
    (outcome,) = await decided(place.review, [COST.id], Action.KEEP, by=by or " ")
    assert isinstance(outcome.error, InputError)
    assert "name" in str(outcome.error)
    assert place.fact().version == 1
    assert (await place.review.keep(COST.id, by=" Ada\n\u202eHolm " + "x" * 500)).changed_by.startswith("Ada Holm xxx")
    assert len(place.fact().changed_by) == 100


# --- in other words -----------------------------------------------------------------------------------------------


async def test_an_edited_text_is_checked_and_its_support_said(place: Place) -> None:
    edited = await place.review.edit(COST.id, by="Ada", text="Hollin Bridge is  **214 metres** long.")
    assert (edited.fact.text, edited.reason) == ("Hollin Bridge is 214 metres long.", "")
    assert edited.fact.support > 0.5
    assert edited.fact.undoes["text"] == COST.text
    wrong = await place.review.edit(COST.id, by="Ada", text="Hollin Bridge is 999 metres long.")
    assert (wrong.fact.support, wrong.fact.text) == (0.0, "Hollin Bridge is 999 metres long.")
    assert "999" in wrong.reason
    # One step back, not two.
    assert (await place.review.undo(COST.id, by="Ada")).text == "Hollin Bridge is 214 metres long."
    with pytest.raises(ConflictError, match="nothing to undo"):
        await place.review.undo(COST.id, by="Ada")


async def test_editing_an_approved_fact_changes_what_answers(place: Place) -> None:
    await place.review.keep(COST.id, by="Ada")
    await place.review.edit(COST.id, by="Ada", text="Hollin Bridge is 214 metres long.")
    assert await place.answering() == {"Hollin Bridge is 214 metres long."}
    await place.review.undo(COST.id, by="Ada")
    assert await place.answering() == {COST.text}
    assert place.fact().support == COST.support


async def test_a_new_quote_must_be_in_the_page(place: Place) -> None:
    edited = await place.review.edit(COST.id, by="Ada", quote="the bridge COST 2.5 million crowns")
    assert edited.fact.quote == "The bridge cost 2.5 million crowns"
    with pytest.raises(InputError, match=r"not in https://wend.example/bridge"):
        await place.review.edit(COST.id, by="Ada", quote="The bridge cost 3.5 million crowns")
    # Once the page is wiped, there is only the old quote.
    await place.shelf.wipe(TOPIC.slug)
    assert (await place.review.edit(COST.id, by="Ada", quote="2.5 million crowns")).fact.quote == "2.5 million crowns"
    with pytest.raises(InputError, match="as far as that is kept"):
        await place.review.edit(COST.id, by="Ada", quote="The Mayor of Hollin opened the bridge")
    checked = await place.review.edit(COST.id, by="Ada", text="Hollin Bridge cost 9 crowns.")
    assert checked.fact.support == 0.0


async def test_a_sentence_that_is_edited_is_no_sentence_of_the_page_any_more(place: Place) -> None:
    sentence = next(fact for fact in all_facts(place.store, topic=TOPIC.slug) if fact.extractive)
    edited = await place.review.edit(sentence.id, by="Ada", text=f"It is known: {sentence.text}")
    assert not edited.fact.extractive
    assert (await place.review.undo(sentence.id, by="Ada")).extractive
    same = await place.review.edit(sentence.id, by="Ada", text=sentence.text)
    assert same.fact.version == 3


@pytest.mark.parametrize("text", ["", "   ", "…!", "\u200b", "x" * 2001])
async def test_texts_that_are_none(place: Place, text: str) -> None:
    with pytest.raises(InputError, match="needs a text"):
        await place.review.edit(COST.id, by="Ada", text=text)
    with pytest.raises(InputError, match="new text or a new quote"):
        await place.review.edit(COST.id, by="Ada")


# --- two people at once -------------------------------------------------------------------------------------------


async def test_who_comes_second_is_told_who_and_when(place: Place) -> None:
    await place.review.edit(COST.id, by="Ada", version=1, text="Hollin Bridge is 214 metres long.")
    for decide in (place.review.keep, place.review.reject, place.review.delete, place.review.undo):
        with pytest.raises(ConflictError, match=r"^Ada changed fact .* at 2030-05-04T12:00:00") as told:
            await decide(COST.id, by="Ben", version=1)
        assert "proposed now and version 2, not 1" in str(told.value)
    with pytest.raises(ConflictError, match=r"^Ada changed"):
        await place.review.edit(COST.id, by="Ben", version=1, text="Hollin Bridge is long.")
    assert place.fact().version == 2


async def test_approving_what_was_edited_and_approved_meanwhile_is_a_conflict(place: Place) -> None:
    await place.review.edit(COST.id, by="Ada", text="Hollin Bridge is 214 metres long.")
    await place.review.keep(COST.id, by="Ada")
    with pytest.raises(ConflictError, match=r"^Ada changed"):
        await place.review.keep(COST.id, by="Ben", version=1)
    # Approved first and edited then: not what Ben saw, either.
    await place.review.edit(COST.id, by="Ada", text=COST.text)
    with pytest.raises(ConflictError, match=r"^Ada changed"):
        await place.review.keep(COST.id, by="Ben", version=3)


async def test_a_race_to_the_store_is_told_too(place: Place) -> None:
    decisions = (place.review.reject(COST.id, by="Ada"), place.review.keep(COST.id, by="Ben"))
    done = await asyncio.gather(*decisions, return_exceptions=True)
    won = [one for one in done if isinstance(one, Fact)]
    lost = [one for one in done if isinstance(one, ConflictError)]
    assert len(won) == len(lost) == 1
    assert str(lost[0]).startswith(f"{won[0].changed_by} changed fact")


async def test_approving_what_was_deleted_meanwhile_says_so(place: Place) -> None:
    await place.review.delete(COST.id, by="Ada", version=1)
    with pytest.raises(NotFoundError, match=r"any more: Ada deleted it at \d{4}-"):
        await place.review.keep(COST.id, by="Ben", version=1)
    with pytest.raises(NotFoundError, match="may have been deleted"):
        await Review(place.shelf).keep(COST.id, by="Ben")
    with pytest.raises(NotFoundError):
        await place.review.undo(COST.id, by="Ada")


async def test_deleting_an_approved_fact_takes_its_passage(place: Place) -> None:
    await place.review.keep(COST.id, by="Ada")
    await place.review.delete(COST.id, by="Ada")
    assert await place.answering() == set()


# --- undo ---------------------------------------------------------------------------------------------------------


async def test_an_approval_is_taken_back_with_its_passage(place: Place) -> None:
    await place.review.keep(COST.id, by="Ada", evergreen=True, expires="2031-01-01")
    undone = await place.review.undo(COST.id, by="Ben")
    assert (undone.state, undone.evergreen, undone.expires) == (FactState.PROPOSED, False, "")
    assert (undone.version, undone.changed_by, undone.undoes) == (3, "Ben", {})
    assert await place.answering(EVERGREEN) == set()
    await place.review.keep(COST.id, by="Ada")
    await place.review.reject(COST.id, by="Ada")
    assert (await place.review.undo(COST.id, by="Ada")).state is FactState.APPROVED
    assert await place.answering() == {COST.text}


async def test_what_nobody_changed_cannot_be_undone(place: Place) -> None:
    with pytest.raises(ConflictError, match="nothing to undo"):
        await place.review.undo(COST.id, by="Ada")


# --- many at once -------------------------------------------------------------------------------------------------


async def test_each_of_many_has_its_outcome(place: Place) -> None:
    facts = [fact.id for fact in all_facts(place.store, topic=TOPIC.slug)]
    await place.review.edit(COST.id, by="Ben", text="Hollin Bridge is 214 metres long.")
    wanted = ["nothing", *facts, facts[0]]
    outcomes = await decided(place.review, wanted, Action.KEEP, by="Ada", versions={COST.id: 1})
    assert [one.id for one in outcomes] == ["nothing", *facts]
    told = {one.id: one for one in outcomes}
    assert isinstance(told["nothing"].error, NotFoundError)
    assert isinstance(told[COST.id].error, ConflictError)
    assert "Ben changed" in str(told[COST.id].error)
    kept = [one.fact for one in outcomes if one.fact is not None]
    assert {fact.id for fact in kept} == set(facts) - {COST.id}
    assert all(fact.state is FactState.APPROVED for fact in kept)
    assert await place.answering() == {fact.text for fact in kept}
    await decided(place.review, [fact.id for fact in kept], Action.UNDO, by="Ada")
    assert await place.answering() == set()
    gone = await decided(place.review, facts, Action.DELETE, by="Ada")
    assert all(one.error is None and one.fact is None for one in gone)
    assert all_facts(place.store, topic=TOPIC.slug) == []


async def test_where_a_service_is_down_the_rest_is_not_tried(place: Place) -> None:
    class Down(HashEmbedder):
        async def embed_passages(self, texts):  # type: ignore[no-untyped-def]
            self.embedded.append(texts)
            raise DependencyDownError("no embedder", dependency="ollama")

    down = Down()
    review = Review(Shelf(place.store, place.vectors, down))
    facts = [fact.id for fact in all_facts(place.store, topic=TOPIC.slug)]
    outcomes = await decided(review, facts, Action.KEEP, by="Ada")
    assert [str(one.error) for one in outcomes] == ["no embedder"] * len(facts)
    assert len(down.embedded) == 1
    assert all(fact.state is FactState.PROPOSED for fact in all_facts(place.store, topic=TOPIC.slug))


async def test_nothing_to_decide_is_nothing_done(place: Place) -> None:
    assert await decided(place.review, [], Action.KEEP) == ()


# --- the end of a review ------------------------------------------------------------------------------------------


async def test_a_review_ends_when_all_is_decided(place: Place) -> None:
    research = research_collection("bridges")
    facts = [fact.id for fact in all_facts(place.store, topic=TOPIC.slug)]
    with pytest.raises(ConflictError, match=rf"of topic 'hollin-bridge' wait for a decision \({len(facts)}\)"):
        await place.review.finish(TOPIC.slug, by="Ada")
    assert len(await place.answering(research)) == len(BRIDGE.passages)
    await place.review.keep(facts[0], by="Ada")
    await decided(place.review, facts[1:], Action.REJECT, by="Ada")
    ended = await place.review.finish(TOPIC.slug, by="Ada")
    assert (ended.topic.state, ended.wiped, ended.undecided) == (TopicState.DONE, len(BRIDGE.passages), 0)
    assert await place.answering(research) == set()
    assert len(await place.answering()) == 1
    assert place.store.history(TOPIC.slug)[-1].note == f"Ada finished the review: 1 of {len(facts)} facts approved"
    history = place.store.history(TOPIC.slug)
    again = await place.review.finish(TOPIC.slug, by="Ada")
    assert (again.topic.state, again.wiped) == (TopicState.DONE, 0)
    assert place.store.history(TOPIC.slug) == history
    # Also after the end a decision can be changed.
    await place.review.undo(facts[0], by="Ada")
    assert await place.answering() == set()


async def test_a_review_that_is_ended_by_force(place: Place) -> None:
    ended = await place.review.finish(TOPIC.slug, by="Ada", force=True)
    assert ended.undecided == len(all_facts(place.store, topic=TOPIC.slug))
    assert (await place.review.keep(COST.id, by="Ada")).state is FactState.APPROVED


async def test_what_is_not_in_review_cannot_be_ended(place: Place) -> None:
    with pytest.raises(NotFoundError, match="no topic"):
        await place.review.finish("nothing", by="Ada")
    place.store.add_topic(replace(TOPIC, slug="new"))
    with pytest.raises(ConflictError, match="queued, not in review"):
        await place.review.finish("new", by="Ada", force=True)


# --- kill -9 ------------------------------------------------------------------------------------------------------

DIMENSION = 64
DECIDES = """
import asyncio, sys, time
from pathlib import Path
from graph.qdrant_edge_store import QdrantEdge
from graph.sqlite_research import SqliteResearch
from server.research.review import Review
from server.research.shelf import Shelf
from tests.fakes import HashEmbedder

async def main(home, decision, fact_id):
    store = SqliteResearch(home / "research.db")
    vectors = QdrantEdge(home / "vectors", dimension=64)
    review = Review(Shelf(store, vectors, HashEmbedder(64)))
    await getattr(review, decision)(fact_id, by="Ada")
    print("done", flush=True)
    time.sleep(60)

asyncio.run(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3]))
"""


def decide_and_die(home: Path, decision: str, fact_id: str) -> None:
    """Killed as soon as it has said that it is done."""
    command = [sys.executable, "-c", DECIDES, str(home), decision, fact_id]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = process.stdout.readline()
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert said == "done\n"


async def found_after(home: Path) -> tuple[Fact, set[str], set[str]]:
    """The fact, and what answers questions by the store and by the vectors, in a new process's place."""
    with closing(SqliteResearch(home / "research.db")) as store:
        vectors = QdrantEdge(home / "vectors", dimension=DIMENSION)
        try:
            await Shelf(store, vectors, HashEmbedder(DIMENSION)).recover()
            fact = store.fact(COST.id)
            assert fact is not None
            rankings = await vectors.search(BRIDGES, dense=None, text="bridge cost crowns", limit=10)
            found = {scored.key for scored in rankings.sparse}
            assert await vectors.ids(BRIDGES) == found
            return fact, store.ids(BRIDGES), found
        finally:
            await vectors.close()


async def test_an_acknowledged_decision_survives_kill_9() -> None:
    with quick_folder() as home:
        with closing(SqliteResearch(home / "research.db")) as store:
            store.add_topic(TOPIC)
            store.add_facts([COST])
        decide_and_die(home, "keep", COST.id)
        fact, kept, found = await found_after(home)
        assert (fact.state, fact.changed_by, fact.version) == (FactState.APPROVED, "Ada", 2)
        assert kept == found
        assert len(found) == 1
        decide_and_die(home, "keep", COST.id)
        assert (await found_after(home)) == (fact, kept, found)
        decide_and_die(home, "undo", COST.id)
        fact, kept, found = await found_after(home)
        assert (fact.state, kept, found) == (FactState.PROPOSED, set(), set())
