"""Research and knowledge as commands and HTTP ask for it: topics, runs, facts and what people decide about them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from graph.errors import SettingsError
from graph.research import Fact, FactState, ResearchPage, ResearchStore, Topic, TopicChange, TopicState
from graph.research_rules import no_fact, no_topic
from server.research.changes import NOBODY, Changed, FactChange, Outcome, make, make_all
from server.research.facts import all_facts
from server.research.plan import Plan, Report
from server.research.report import RunReport
from server.research.review import Finished, Review
from server.research.run import Stages, run
from server.research.shelf import Shelf

NO_WEB = (
    "Research needs a search engine, and none is set: set web.searxng_url to the address of a SearXNG "
    "(docs/research.md says how)."
)


class NotSetUpError(SettingsError):
    """A part that this Trivet could have, and for which a setting is missing: nobody else is at fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicFile:
    """A topic with all that is known of it."""

    topic: Topic
    history: Sequence[TopicChange]
    pages: Sequence[ResearchPage]
    facts: Mapping[FactState, int]
    """How many there are in each state."""


class FilingCabinet:
    """What needs no vectors, so that it goes on beside a run. Unknown topics and facts raise `NotFoundError`."""

    def __init__(self, store: ResearchStore) -> None:
        self._store = store

    async def add(self, topic: Topic) -> Topic:
        """Raises `ConflictError` where there is one of that slug."""
        return await asyncio.to_thread(self._store.add_topic, topic)

    async def topics(self, state: TopicState | None = None) -> Sequence[Topic]:
        """The oldest first."""
        return await asyncio.to_thread(self._store.topics, state)

    async def topic(self, slug: str) -> Topic:
        found = await asyncio.to_thread(self._store.topic, slug)
        if found is None:
            raise no_topic(slug)
        return found

    async def file(self, slug: str) -> TopicFile:
        topic = await self.topic(slug)

        def read() -> TopicFile:
            counts = Counter(fact.state for fact in all_facts(self._store, topic=slug))
            return TopicFile(
                topic=topic,
                history=self._store.history(slug),
                pages=self._store.pages(slug),
                facts={state: counts[state] for state in FactState},
            )

        return await asyncio.to_thread(read)

    async def facts(
        self, *, topic: str = "", category: str = "", state: FactState | None = None, limit: int, after: str = ""
    ) -> Sequence[Fact]:
        """As `ResearchStore.facts`."""
        read = partial(self._store.facts, topic=topic, category=category, state=state, limit=limit, after=after)
        return await asyncio.to_thread(read)

    async def fact(self, fact_id: str) -> Fact:
        found = await asyncio.to_thread(self._store.fact, fact_id)
        if found is None:
            raise no_fact(fact_id)
        return found


class Desk(FilingCabinet):
    """The same with what changes both stores."""

    def __init__(self, shelf: Shelf, stages: Stages | None, review: Review, *, seconds: float) -> None:
        """`stages` is None where no search engine is set; `seconds` a run may take unless it says otherwise."""
        super().__init__(shelf.store)
        self._shelf = shelf
        self._review = review
        self._stages = stages
        self._seconds = seconds

    def check_ready(self) -> None:
        """Raises `NotSetUpError` where there can be no research."""
        if self._stages is None:
            raise NotSetUpError(NO_WEB)

    async def run(self, plan: Plan, report: Report) -> RunReport:
        """Raises `NotFoundError` where a topic that is named is not there, `NotSetUpError` as `check_ready`."""
        if self._stages is None:
            raise NotSetUpError(NO_WEB)
        seconds = plan.minutes * 60 if plan.minutes else self._seconds
        return await run(plan, self._store, self._stages, seconds=seconds, report=report)

    async def delete(self, slug: str) -> None:
        """A topic with what was found for it; facts that were approved stay."""
        await self._shelf.remove_topic(slug)

    async def change(self, change: FactChange) -> Changed:
        """Raises `NotFoundError`, and `ConflictError` where somebody else was quicker."""
        return await make(change, self._review)

    async def change_all(self, changes: Sequence[FactChange]) -> Sequence[Outcome]:
        """As `make_all`."""
        return await make_all(changes, self._review)

    async def finish(self, slug: str, *, by: str, force: bool) -> Finished:
        """End a review: research passages go, what was approved stays. `force`: also while facts wait."""
        return await self._review.finish(slug, by=by or NOBODY, force=force)
