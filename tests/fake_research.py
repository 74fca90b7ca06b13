"""Research and knowledge in memory."""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from graph.research import (
    Fact,
    FactState,
    KeptOrigin,
    KeptPassage,
    ResearchPage,
    Topic,
    TopicChange,
    TopicState,
)
from graph.research_rules import check_step, check_version, moment, no_fact, no_topic, topic_is_there


@dataclass
class _Tables:
    """What a failed call puts back."""

    topics: dict[str, Topic] = field(default_factory=dict)
    changes: list[TopicChange] = field(default_factory=list)
    pages: dict[tuple[str, str], tuple[ResearchPage, dict[str, KeptPassage]]] = field(default_factory=dict)
    facts: dict[str, Fact] = field(default_factory=dict)
    answering: dict[str, KeptPassage] = field(default_factory=dict)
    """Passages of facts, by the fact's id."""
    notes: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    names: set[str] = field(default_factory=set)


class FakeResearch:
    """`ResearchStore` in dictionaries."""

    def __init__(self, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._now = _Tables()
        self._clock = clock

    @contextmanager
    def _transaction(self) -> Iterator[_Tables]:
        before = copy.deepcopy(self._now)
        try:
            yield self._now
        except BaseException:
            self._now = before
            raise

    def _stamp(self) -> str:
        return self._clock().isoformat(timespec="milliseconds")

    def add_topic(self, topic: Topic) -> Topic:
        if topic.slug in self._now.topics:
            raise topic_is_there(topic.slug)
        topic = replace(topic, created=topic.created or self._stamp(), changed=topic.changed or self._stamp())
        self._now.topics[topic.slug] = topic
        self._now.changes.append(TopicChange(slug=topic.slug, before="", after=topic.state, at=topic.changed))
        return topic

    def topic(self, slug: str) -> Topic | None:
        return self._now.topics.get(slug)

    def topics(self, state: TopicState | None = None) -> Sequence[Topic]:
        return [topic for topic in self._now.topics.values() if state in (None, topic.state)]

    def move_topic(
        self,
        slug: str,
        state: TopicState,
        *,
        note: str = "",
        reasons: Sequence[str] | None = None,
        deepened: int | None = None,
    ) -> Topic:
        before = self._known(slug)
        check_step(before, state)
        self._now.topics[slug] = replace(
            before,
            state=state,
            reasons=before.reasons if reasons is None else tuple(reasons),
            deepened=before.deepened if deepened is None else deepened,
            changed=self._stamp(),
        )
        change = TopicChange(slug=slug, before=before.state, after=state, note=note, at=self._stamp())
        self._now.changes.append(change)
        return self._now.topics[slug]

    def _known(self, slug: str) -> Topic:
        if slug not in self._now.topics:
            raise no_topic(slug)
        return self._now.topics[slug]

    def history(self, slug: str) -> Sequence[TopicChange]:
        return [change for change in self._now.changes if change.slug == slug]

    def put_page(self, slug: str, page: ResearchPage, passages: Sequence[KeptPassage]) -> None:
        self._known(slug)
        for passage in passages:
            moment(passage.expires)
        self._now.pages.pop((slug, page.url), None)
        self._now.pages[slug, page.url] = (page, {passage.id: passage for passage in passages})

    def pages(self, slug: str) -> Sequence[ResearchPage]:
        return [page for (topic, _), (page, _) in self._now.pages.items() if topic == slug]

    def _all(self) -> dict[str, KeptPassage]:
        found = {passage.id: passage for passage in self._now.answering.values()}
        for _, passages in self._now.pages.values():
            found.update(passages)
        return found

    def _live(self, passage: KeptPassage) -> bool:
        until = moment(passage.expires)
        return until is None or until > self._clock().timestamp()

    def passages(self, ids: Sequence[str], *, expired: bool = False) -> Mapping[str, KeptPassage]:
        stored = self._all()
        return {key: stored[key] for key in ids if key in stored and (expired or self._live(stored[key]))}

    def passages_of(self, slug: str, *, url: str | None = None) -> Sequence[KeptPassage]:
        pages = [
            passages for (topic, at), (_, passages) in self._now.pages.items() if topic == slug and url in (None, at)
        ]
        return [
            passage for page in pages for passage in sorted(page.values(), key=lambda each: (each.ordinal, each.id))
        ]

    def collections(self) -> Mapping[str, KeptOrigin]:
        live = {passage.collection: passage.origin for passage in self._all().values() if self._live(passage)}
        return dict(sorted(live.items()))

    def ids(self, collection: str) -> set[str]:
        return {key for key, passage in self._all().items() if passage.collection == collection}

    def every_collection(self) -> Sequence[str]:
        return sorted(self._now.names | {passage.collection for passage in self._all().values()})

    def wipe_research(self, slug: str) -> None:
        for topic, url in list(self._now.pages):
            if topic == slug:
                del self._now.pages[topic, url]

    def remove_topic(self, slug: str) -> None:
        self._known(slug)
        self.wipe_research(slug)
        del self._now.topics[slug]
        self._now.changes = [change for change in self._now.changes if change.slug != slug]
        for fact in list(self._now.facts.values()):
            if fact.topic == slug and fact.state != FactState.APPROVED:
                del self._now.facts[fact.id]

    def add_facts(self, facts: Sequence[Fact]) -> None:
        with self._transaction() as now:
            for fact in facts:
                self._known(fact.topic)
                moment(fact.expires)
                stamped = replace(fact, created=fact.created or self._stamp(), changed=fact.changed or self._stamp())
                now.facts.setdefault(fact.id, stamped)

    def fact(self, fact_id: str) -> Fact | None:
        return self._now.facts.get(fact_id)

    def facts(
        self,
        *,
        topic: str = "",
        category: str = "",
        state: FactState | None = None,
        limit: int = 100,
        after: str = "",
    ) -> Sequence[Fact]:
        ordered = sorted(self._now.facts.values(), key=lambda fact: (fact.created, fact.id))
        if after:
            if after not in self._now.facts:
                raise no_fact(after)
            last = self._now.facts[after]
            ordered = [fact for fact in ordered if (fact.created, fact.id) > (last.created, last.id)]
        found = [
            fact
            for fact in ordered
            if topic in ("", fact.topic) and category in ("", fact.category) and state in (None, fact.state)
        ]
        return found[: max(0, limit)]

    def change_fact(self, fact: Fact, *, version: int, passage: KeptPassage | None) -> Fact:
        moment(fact.expires)
        check_version(fact.id, self.fact(fact.id), version)
        changed = replace(fact, version=version + 1, changed=self._stamp())
        self._now.facts[fact.id] = changed
        self._now.answering.pop(fact.id, None)
        if passage is not None:
            self._now.answering[fact.id] = passage
        return changed

    def fact_passage(self, fact_id: str) -> KeptPassage | None:
        return self._now.answering.get(fact_id)

    def delete_fact(self, fact_id: str, *, version: int) -> None:
        check_version(fact_id, self.fact(fact_id), version)
        del self._now.facts[fact_id]
        self._now.answering.pop(fact_id, None)

    def turn(self) -> AbstractContextManager[None]:
        return nullcontext()

    def begin(self, collection: str, *, adding: Sequence[str] = (), removing: Sequence[str] = ()) -> None:
        self._now.names.add(collection)
        self._now.notes[collection].update(adding, removing)

    def end(self, collection: str) -> None:
        self._now.notes.pop(collection, None)

    def unfinished(self) -> Mapping[str, set[str]]:
        return {collection: set(ids) for collection, ids in self._now.notes.items() if ids}

    def close(self) -> None: ...
