"""From research pages to proposed facts: three to six of each page, by a model or as sentences of the page itself."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from graph.errors import DependencyDownError, DependencyError
from graph.model import ChatMessage
from graph.names import words
from graph.protocols import ChatModel, Reranker
from graph.research import Fact, ResearchPage, ResearchStore, Topic, TopicState
from graph.research_rules import no_topic
from server.answer.fence import EchoFilter
from server.answer.gate import refused_for
from server.answer.streams import closing
from server.answer.thinking import ThinkFilter
from server.research.extractive_facts import best_sentences
from server.research.fact_check import FactCheck, NamesOf, no_names
from server.research.facts import MOST_FACTS, Said, all_facts, plain, proposed
from server.research.facts_prompt import facts_prompt
from server.research.facts_reading import Pair, read_answer

TRIES = 2
FEWEST_WORDS, MOST_WORDS = 4, 120
"""Of a model's fact."""
MOST_FAILURES = 2
"""Pages in a row for which the model was not there; it is not asked for the rest."""
By = Literal["model", "sentences"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FactTools:
    """What facts are found with; without `chat` they are sentences of the pages."""

    chat: ChatModel | None = None
    reranker: Reranker | None = None
    names_of: NamesOf = no_names
    page_seconds: float = 120.0
    """For the model, of one page, both tries together."""
    total_seconds: float = 3600.0
    """For the model, of all pages; after it the rest is done without."""
    rerank_seconds: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFacts:
    """What came of one page."""

    url: str
    facts: tuple[Fact, ...] = ()
    by: By = "sentences"
    dropped: Mapping[str, int] = field(default_factory=dict)
    """Why → how many of the model's facts."""
    note: str = ""
    """Why it was done without the model that is set, or without the cross-encoder."""
    model_failed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """What came of a topic's pages; those that had facts already are left out unless asked for again."""

    topic: str
    pages: tuple[PageFacts, ...] = ()
    skipped: int = 0
    repeated: int = 0
    """Facts that said what another one of the topic says, a rejected one too."""

    @property
    def facts(self) -> int:
        return sum(len(page.facts) for page in self.pages)


async def extract(
    slug: str,
    store: ResearchStore,
    tools: FactTools,
    *,
    report: Callable[[PageFacts], None] = lambda page: None,
    again: bool = False,
) -> Extraction:
    """Propose facts of a topic's pages and put it up for review. What was interrupted goes on with the next page.

    `again`: also of pages that have facts. Raises `NotFoundError`, and `ConflictError` where the topic is not at that
    point.
    """
    topic = await asyncio.to_thread(store.topic, slug)
    if topic is None:
        raise no_topic(slug)
    if topic.state is not TopicState.EXTRACTING:
        await asyncio.to_thread(store.move_topic, slug, TopicState.EXTRACTING)
    pages, known = await asyncio.to_thread(lambda: (store.pages(slug), all_facts(store, topic=slug)))
    said = Said([fact.text for fact in known])
    done = set() if again else {fact.url for fact in known}
    results: list[PageFacts] = []
    repeated = failures = 0
    ending = asyncio.get_running_loop().time() + tools.total_seconds
    for page in (page for page in pages if page.url not in done):
        page_tools, why = _tools_now(tools, failures, ending)
        found = await facts_of_page(topic, page, page_tools)
        failures = failures + 1 if found.model_failed else 0 if found.by == "model" else failures
        new = tuple(fact for fact in found.facts if said.add(fact.text))
        repeated += len(found.facts) - len(new)
        found = replace(found, facts=new, note=why or found.note)
        await asyncio.to_thread(store.add_facts, new)
        results.append(found)
        report(found)
    extraction = Extraction(topic=slug, pages=tuple(results), skipped=len(pages) - len(results), repeated=repeated)
    await asyncio.to_thread(
        store.move_topic, slug, TopicState.REVIEW, note=f"{extraction.facts} facts of {len(results)} pages"
    )
    return extraction


def _tools_now(tools: FactTools, failures: int, ending: float) -> tuple[FactTools, str]:
    """Without the model where it is away or its time is up, and why."""
    if tools.chat is None:
        return tools, ""
    left = ending - asyncio.get_running_loop().time()
    if failures >= MOST_FAILURES:
        return replace(tools, chat=None), f"{tools.chat.model} failed for {failures} pages and was not asked any more"
    if left <= 0:
        return replace(tools, chat=None), f"the {tools.total_seconds:g} s for {tools.chat.model} were used up"
    return replace(tools, page_seconds=min(tools.page_seconds, left)), ""


async def facts_of_page(topic: Topic, page: ResearchPage, tools: FactTools) -> PageFacts:
    """Of a model that is there and writes something usable; else sentences of the page, and a note says why."""
    check = FactCheck(page, tools.names_of)
    dropped: Counter[str] = Counter()
    why, failed = "", False
    if tools.chat is not None:
        try:
            facts, why = await _by_model(topic, page, tools.chat, tools.page_seconds, check, dropped)
        except DependencyError as error:
            facts, why, failed = (), str(error), True
        if facts:
            return PageFacts(url=page.url, facts=facts, by="model", dropped=dict(dropped))
        why = f"these are sentences of the page: {why}"
    reading = await asyncio.to_thread(lambda: check.reading)
    chosen, problem = await best_sentences(topic, page, reading, tools.reranker, budget=tools.rerank_seconds)
    facts = tuple(proposed(topic, page, one.text, one.quote, support=1.0, extractive=True) for one in chosen)
    note = "; ".join(part for part in (why, problem) if part)
    return PageFacts(url=page.url, facts=facts, dropped=dict(dropped), note=note, model_failed=failed)


async def _by_model(
    topic: Topic, page: ResearchPage, chat: ChatModel, seconds: float, check: FactCheck, dropped: Counter[str]
) -> tuple[tuple[Fact, ...], str]:
    """The facts that stood the checks, or none and why; what cannot be used is said to the model once."""
    ending = asyncio.get_running_loop().time() + seconds
    problem = ""
    for _ in range(TRIES):
        prompt = facts_prompt(
            topic, page, count_tokens=chat.count_tokens, context_tokens=chat.context_tokens, problem=problem
        )
        if prompt is None:
            return (), f"the page does not fit into the {chat.context_tokens} tokens of {chat.model}"
        text, whole = await _written(chat, prompt.messages, prompt.max_tokens, prompt.nonce, ending)
        answered = read_answer(text)
        facts, lost = await asyncio.to_thread(_accepted, topic, page, answered.pairs, check)
        dropped.update(lost)
        if facts:
            return facts, ""
        problem = answered.problem or f"of its {len(answered.pairs)} facts none could be kept ({_told(lost)})"
        if not whole:
            raise DependencyDownError(f"{chat.model} gave no usable fact within {seconds:g} s", dependency="llm")
    return (), f"{chat.model} was asked twice, and its answer could not be used: {problem}"


def _told(lost: Mapping[str, int]) -> str:
    return ", ".join(f"{why}: {count}" for why, count in lost.items())


async def _written(
    chat: ChatModel, messages: Sequence[ChatMessage], max_tokens: int, nonce: str, ending: float
) -> tuple[str, bool]:
    """What the model wrote, without what it thought; and whether it came to its end in time."""
    parts: list[str] = []
    whole = False
    try:
        async with (
            asyncio.timeout_at(ending),
            closing(chat.stream(messages, temperature=0.0, max_tokens=max_tokens)) as pieces,
        ):
            async for piece in pieces:
                parts.append(piece.text)
        whole = True
    except TimeoutError:
        pass
    thoughts, echoes = ThinkFilter(), EchoFilter(nonce)
    text = thoughts.feed("".join(parts)) + thoughts.close()
    return echoes.feed(text) + echoes.close(), whole


def _accepted(
    topic: Topic, page: ResearchPage, pairs: Sequence[Pair], check: FactCheck
) -> tuple[tuple[Fact, ...], Counter[str]]:
    """The first six that the page bears out, and why the others go. Blocking."""
    facts: list[Fact] = []
    lost: Counter[str] = Counter()
    said = Said()
    for pair in pairs:
        if len(facts) == MOST_FACTS:
            lost["more than six"] += 1
            continue
        found = _fact(topic, page, pair, check)
        if isinstance(found, str):
            lost[found] += 1
        elif said.add(found.text):
            facts.append(found)
        else:
            lost["said twice"] += 1
    return tuple(facts), lost


def _fact(topic: Topic, page: ResearchPage, pair: Pair, check: FactCheck) -> Fact | str:
    """Or why not."""
    text = plain(pair.fact)
    if not FEWEST_WORDS <= len(words(text)) <= MOST_WORDS:
        return "too short or too long"
    if refused_for(text) is not None:
        return "an instruction, not a fact"
    quote = check.quote(pair.quote)
    if quote is None:
        return "the quote is not in the page"
    support = check.support(text, quote)
    if support.verdict == "unsupported":
        return "the page does not say it"
    return proposed(topic, page, text, quote, support=support.share, extractive=False)
