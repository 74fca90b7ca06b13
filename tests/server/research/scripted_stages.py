"""Research that follows a script over a working store, and may be killed before any of its writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from graph.errors import TrivetError
from graph.research import Fact, KeptPassage, ResearchPage, ResearchStore, Topic, TopicState
from server.research.facts import fact_id
from server.research.run import Gathered, Report
from tests.fake_research import FakeResearch

ENOUGH = 3
"""Pages from which a topic is OK."""


class KilledError(BaseException):
    """Like kill −9: nothing that handles errors sees it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedVerdict:
    state: TopicState
    reasons: Sequence[str] = ()


@dataclass
class ScriptedStages:
    """`first` and `each` are how many pages research and a round find."""

    store: ResearchStore
    first: int = ENOUGH
    each: int = 1
    rounds: int = 2
    fails: dict[str, TrivetError] = field(default_factory=dict)
    """By stage."""
    before_extraction: Callable[[], None] = lambda: None
    done: list[str] = field(default_factory=list)

    async def research(self, topic: Topic, *, seconds: float, report: Report) -> Gathered:
        self._begin("research")
        self._put(topic, range(self.first))
        return Gathered(left_out={"blocked domain": ["https://blocked.example/"]}, notes=["bing did not answer"])

    async def deepen(self, topic: Topic, *, seconds: float, report: Report) -> Gathered:
        self._begin("deepen")
        there = self.first + topic.deepened * self.each
        self._put(topic, range(there, there + self.each))
        return Gathered(left_out={"blocked domain": ["https://blocked.example/"], "too few keywords": ["https://x/"]})

    async def judge(self, topic: Topic) -> ScriptedVerdict:
        self._begin("judge")
        pages = len(self.store.pages(topic.slug))
        if pages >= ENOUGH:
            return ScriptedVerdict(state=TopicState.OK)
        state = TopicState.THIN if pages else TopicState.INSUFFICIENT
        return ScriptedVerdict(state=state, reasons=[f"{pages} pages of {ENOUGH}"])

    async def extract(self, topic: Topic, *, seconds: float, report: Report) -> Gathered:
        self._begin("extract")
        self.before_extraction()
        self.store.move_topic(topic.slug, TopicState.EXTRACTING)
        for page in self.store.pages(topic.slug):
            self.store.add_facts([fact_of(topic.slug, page.url, topic.category)])
        self.store.move_topic(topic.slug, TopicState.REVIEW)
        return Gathered()

    def _begin(self, stage: str) -> None:
        self.done.append(stage)
        if stage in self.fails:
            raise self.fails[stage]

    def _put(self, topic: Topic, numbers: range) -> None:
        for number in numbers:
            url = f"https://{number}.example/"
            page = ResearchPage(url=url, title=f"Page {number}", passages=(f"Text of {number}.",))
            self.store.put_page(topic.slug, page, [passage_of(topic.slug, url)])


def passage_of(slug: str, url: str) -> KeptPassage:
    return KeptPassage(
        id=f"{slug} {url}",
        collection="research_general",
        origin="research",
        topic=slug,
        url=url,
        title="",
        text="Text.",
    )


def fact_of(slug: str, url: str, category: str = "general") -> Fact:
    text = f"Page {url[8]} says that it is so."
    return Fact(id=fact_id(slug, url, text), topic=slug, category=category, text=text, quote=text, url=url)


class Mortal:
    """A store that is killed before its `at`-th write, or after it."""

    WRITES = frozenset({"put_page", "move_topic", "add_facts"})

    def __init__(self, store: FakeResearch, *, at: int, after: bool) -> None:
        self._store = store
        self._left = at
        self._after = after

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        if name not in self.WRITES:
            return method

        def dying(*given: Any, **named: Any) -> Any:
            self._left -= 1
            if self._left == 0 and not self._after:
                raise KilledError
            result = method(*given, **named)
            if self._left == 0:
                raise KilledError
            return result

        return dying


def stored(store: FakeResearch, slug: str) -> Mapping[str, object]:
    """What must be the same however often it was killed."""
    return {
        "state": store.topic(slug) and store.topic(slug).state,  # type: ignore[union-attr]
        "pages": sorted(page.url for page in store.pages(slug)),
        "passages": sorted(passage.id for passage in store.passages_of(slug)),
        "facts": sorted(fact.id for fact in store.facts(topic=slug)),
    }
