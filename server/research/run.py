"""The whole life of a topic, and a run over many: queued → researching → judged → extracting → review.

Every step ends by moving the topic in the store, and which step is next is read from there. So a run that was killed
goes on where it stopped: a step done once more finds its pages and facts there and makes no second ones.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from graph.errors import DependencyError, InputError, TrivetError
from graph.research import ResearchStore, Topic, TopicState
from graph.research_rules import no_topic
from server.research.facts import all_facts
from server.research.plan import Plan, Report, RunProgress, WhenThin
from server.research.report import RunReport, TopicReport

JUDGED = frozenset({TopicState.OK, TopicState.THIN, TopicState.INSUFFICIENT})
UNDER_WAY = frozenset({TopicState.QUEUED, TopicState.RESEARCHING, TopicState.EXTRACTING}) | JUDGED
"""What a run over the queue takes on."""
ENDED = frozenset(TopicState) - UNDER_WAY
DEEP_NOTE = "deep research, round"
"""How a topic's history begins the line of such a round; a round that was cut short is known by it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """What a step of research left out, and what it has to say."""

    left_out: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """URLs by reason; of many, some."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """How many there are, by reason."""
    notes: Sequence[str] = ()


class Judgement(Protocol):
    """The gate's verdict."""

    @property
    def state(self) -> TopicState: ...
    @property
    def reasons(self) -> Sequence[str]: ...


class Stages(Protocol):
    """What a topic goes through. Each can be done once more after it was cut short."""

    @property
    def rounds(self) -> int:
        """Of deep research, unattended, at most."""
        ...

    async def research(self, topic: Topic, *, seconds: float, report: Report) -> Gathered: ...
    async def deepen(self, topic: Topic, *, seconds: float, report: Report) -> Gathered:
        """One round."""
        ...

    async def judge(self, topic: Topic) -> Judgement: ...
    async def extract(self, topic: Topic, *, seconds: float, report: Report) -> Gathered:
        """Propose facts, and put the topic up for review."""
        ...


async def run(plan: Plan, store: ResearchStore, stages: Stages, *, seconds: float, report: Report) -> RunReport:
    """One topic after the other; one that fails does not hold up the others. `seconds` are for all of them.

    Raises `NotFoundError` where a topic that is named is not there.
    """
    begun = time.monotonic()
    for named in plan.topics:
        await _there(store, named)
    done: dict[str, TopicReport] = {}
    not_begun: list[str] = []
    while (slug := await _next(plan, store, {*done, *not_begun})) is not None:
        left = seconds - (time.monotonic() - begun)
        if left <= 0:
            not_begun.append(slug)
            continue
        done[slug] = await Life(slug, plan, store, stages, ending=time.monotonic() + left, report=report).live()
    taken = time.monotonic() - begun
    return RunReport(topics=tuple(done.values()), not_begun=tuple(not_begun), seconds=round(taken, 1))


async def _next(plan: Plan, store: ResearchStore, seen: set[str]) -> str | None:
    """Looked up anew each time: somebody may add a topic meanwhile."""
    if plan.topics:
        return next((slug for slug in plan.topics if slug not in seen), None)
    topics = await asyncio.to_thread(store.topics)
    return next((topic.slug for topic in topics if topic.state in UNDER_WAY and topic.slug not in seen), None)


async def _there(store: ResearchStore, slug: str) -> Topic:
    topic = await asyncio.to_thread(store.topic, slug)
    if topic is None:
        raise no_topic(slug)
    return topic


class Life:
    """One topic from where it is to where it needs a person, or no more is to be done."""

    def __init__(
        self, slug: str, plan: Plan, store: ResearchStore, stages: Stages, *, ending: float, report: Report
    ) -> None:
        """`ending`: of `time.monotonic`, until when there is research; what was found by then is still used."""
        self._slug = slug
        self._plan = plan
        self._store = store
        self._stages = stages
        self._ending = ending
        self._report = report
        self._rounds = 0
        self._left_out: defaultdict[str, dict[str, None]] = defaultdict(dict)
        self._counts: Counter[str] = Counter()
        self._notes: dict[str, None] = {}

    async def live(self) -> TopicReport:
        begun = time.monotonic()
        error = ""
        try:
            topic = await self._begin()
            while (step := self._step(topic)) is not None:
                topic = await step(topic)
        except TrivetError as problem:
            error = str(problem)
            await self._put_back(problem)
        return await asyncio.to_thread(self._told, error, round(time.monotonic() - begun, 1))

    def _step(self, topic: Topic) -> Callable[[Topic], Awaitable[Topic]] | None:
        """What comes next; None: nothing, or a person."""
        state, thin = topic.state, self._plan.when_thin
        if state is TopicState.QUEUED:
            return self._open
        if state is TopicState.RESEARCHING:
            return self._research
        if state is TopicState.EXTRACTING:
            return self._extract
        if state in JUDGED and self._wants_round(topic):
            return self._deepen
        if state is TopicState.OK or (state is TopicState.THIN and thin is WhenThin.ACCEPT):
            return self._accept
        if state in JUDGED and thin is WhenThin.DEEPEN:
            return self._give_up
        return None

    def _wants_round(self, topic: Topic) -> bool:
        if self._seconds() <= 0:
            return False
        if self._plan.deep and not self._rounds:
            return True
        if topic.state is TopicState.OK or self._plan.when_thin is not WhenThin.DEEPEN:
            return False
        return topic.deepened < self._stages.rounds

    def _seconds(self) -> float:
        return self._ending - time.monotonic()

    async def _begin(self) -> Topic:
        """A topic that is named begins anew, wherever it had ended; deep research goes on with what there is."""
        topic = await _there(self._store, self._slug)
        plan = self._plan
        ended = topic.state in ENDED or topic.state in (TopicState.THIN, TopicState.INSUFFICIENT)
        if self._slug not in plan.topics or not ended or plan.when_thin is WhenThin.ACCEPT:
            return topic
        history = await asyncio.to_thread(self._store.history, self._slug)
        if plan.since and any(change.at >= plan.since and change.before for change in history):
            self._rounds = int(any(change.at >= plan.since and change.note.startswith(DEEP_NOTE) for change in history))
            return topic
        if plan.deep and len(await asyncio.to_thread(self._store.pages, self._slug)):
            return await self._deepen(topic)
        return await self._move(TopicState.RESEARCHING, note="begun again", reasons=(), deepened=0)

    async def _open(self, topic: Topic) -> Topic:
        return await self._move(TopicState.RESEARCHING, reasons=())

    async def _research(self, topic: Topic) -> Topic:
        """Or, where a round of deep research was cut short, only to judge what it found."""
        history = await asyncio.to_thread(self._store.history, self._slug)
        if not history[-1].note.startswith(DEEP_NOTE):
            self._say("researching")
            self._note(await self._stages.research(topic, seconds=max(self._seconds(), 0.0), report=self._report))
        return await self._judge(topic)

    async def _deepen(self, topic: Topic) -> Topic:
        number = topic.deepened + 1
        self._say("deepening", f"round {number}")
        topic = await self._move(TopicState.RESEARCHING, note=f"{DEEP_NOTE} {number}")
        self._note(await self._stages.deepen(topic, seconds=max(self._seconds(), 0.0), report=self._report))
        self._rounds += 1
        return await self._judge(topic, deepened=number)

    async def _judge(self, topic: Topic, *, deepened: int | None = None) -> Topic:
        self._say("judging")
        verdict = await self._stages.judge(topic)
        return await self._move(TopicState(verdict.state), reasons=tuple(verdict.reasons), deepened=deepened)

    async def _accept(self, topic: Topic) -> Topic:
        note = "accepted although it is thin" if topic.state is TopicState.THIN else ""
        return await self._move(TopicState.EXTRACTING, note=note)

    async def _extract(self, topic: Topic) -> Topic:
        self._say("extracting")
        self._note(await self._stages.extract(topic, seconds=max(self._seconds(), 0.0), report=self._report))
        return await _there(self._store, self._slug)

    async def _give_up(self, topic: Topic) -> Topic:
        """Facts are not drawn from too little."""
        done = f"{topic.deepened} rounds of deep research" if topic.deepened else "no deep research"
        why = f"{topic.state.value} after {done}"
        return await self._move(TopicState.INSUFFICIENT_RESEARCH, note=why)

    async def _put_back(self, error: TrivetError) -> None:
        """To where the next run takes it up, if a service was away; else it has failed, and says why."""
        topic = await asyncio.to_thread(self._store.topic, self._slug)
        if topic is None or topic.state not in (TopicState.RESEARCHING, TopicState.EXTRACTING):
            return
        state = TopicState.FAILED
        if isinstance(error, DependencyError):
            state = TopicState.QUEUED
            if topic.state is TopicState.EXTRACTING:
                state = await asyncio.to_thread(self._before_extraction)
        try:
            await self._move(state, note=str(error), reasons=(str(error),))
        except InputError:  # moved or deleted by somebody else at this moment
            return

    def _before_extraction(self) -> TopicState:
        """Blocking. What a topic was when it was first sent there; a run that goes on sends it there again."""
        extracting = TopicState.EXTRACTING
        steps = [step.before for step in self._store.history(self._slug) if step.after == extracting != step.before]
        return TopicState.THIN if TopicState.THIN in steps[-1:] else TopicState.OK

    async def _move(
        self, state: TopicState, *, note: str = "", reasons: Sequence[str] | None = None, deepened: int | None = None
    ) -> Topic:
        move = partial(self._store.move_topic, self._slug, state, note=note, reasons=reasons, deepened=deepened)
        return await asyncio.to_thread(move)

    def _say(self, stage: str, detail: str = "") -> None:
        self._report(RunProgress(topic=self._slug, stage=stage, detail=detail))

    def _note(self, gathered: Gathered) -> None:
        for reason, urls in gathered.left_out.items():
            named = self._left_out[reason]
            again = sum(url in named for url in urls)
            self._counts[reason] += gathered.counts.get(reason, len(urls)) - again
            named.update(dict.fromkeys(urls))
        self._notes.update(dict.fromkeys(gathered.notes))

    def _told(self, error: str, seconds: float) -> TopicReport:
        """Blocking."""
        topic = self._store.topic(self._slug)
        if topic is None:
            return TopicReport(slug=self._slug, seconds=seconds, error="It was deleted meanwhile.")
        pages = self._store.pages(self._slug)
        return TopicReport(
            slug=topic.slug,
            title=topic.title,
            state=topic.state,
            reasons=topic.reasons,
            pages=len(pages),
            chunks=sum(len(page.passages) for page in pages),
            facts=count_facts(self._store, topic.slug),
            rounds=self._rounds,
            left_out={reason: tuple(urls) for reason, urls in self._left_out.items()},
            counts=dict(self._counts),
            notes=tuple(self._notes),
            seconds=seconds,
            error=error,
        )


def count_facts(store: ResearchStore, slug: str) -> int:
    """Blocking."""
    return sum(1 for _ in all_facts(store, topic=slug))
