"""Research over the opened backends: which part does what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from graph.protocols import PoliteFetcher
from graph.research import Topic
from server.backends import Backends
from server.research.desk import Desk
from server.research.extract import Extraction, FactTools, PageFacts, extract
from server.research.found import ResearchTools
from server.research.plan import Report, RunProgress
from server.research.review import Review
from server.research.run import Gathered
from server.research.web_research import WebResearch

RERANK_SECONDS = 5.0
"""For the sentences of one page: nobody waits for the answer."""


class AllStages(WebResearch):
    """From the search to proposed facts."""

    def __init__(self, tools: ResearchTools, facts: FactTools) -> None:
        super().__init__(tools)
        self._store = tools.shelf.store
        self._facts = facts

    async def extract(self, topic: Topic, *, seconds: float, report: Report) -> Gathered:
        """When the time is up, the rest is done without the model."""
        proposed = 0

        def tell(page: PageFacts) -> None:
            nonlocal proposed
            proposed += len(page.facts)
            report(RunProgress(topic=topic.slug, stage="extracting", detail=f"{proposed} facts, {page.url}"))

        tools = replace(self._facts, total_seconds=seconds)
        return Gathered(notes=_notes(await extract(topic.slug, self._store, tools, report=tell)))


def _notes(extraction: Extraction) -> Sequence[str]:
    """What the model's facts were dropped for, and what was done without it, each once."""
    dropped: Counter[str] = Counter()
    notes: Counter[str] = Counter()
    for page in extraction.pages:
        dropped.update(page.dropped)
        notes.update([page.note] if page.note else [])
    said = [f"{count} of the model's facts were dropped: {reason}" for reason, count in dropped.items()]
    return [*(note if count == 1 else f"{note} ({count} pages)" for note, count in notes.items()), *said]


def desk_over(backends: Backends) -> Desk | None:
    """None where the store keeps no research."""
    shelf = backends.shelf
    if shelf is None:
        return None
    review = Review(shelf, names_of=backends.recognizer.names)
    return Desk(shelf, _stages(backends), review, seconds=backends.settings.research.minutes * 60)


def _stages(backends: Backends) -> AllStages | None:
    """None without a search engine."""
    shelf, search, fetcher = backends.shelf, backends.web, backends.fetcher
    if shelf is None or search is None or not isinstance(fetcher, PoliteFetcher):
        return None
    names_of = backends.recognizer.names
    tools = ResearchTools(
        shelf=shelf,
        search=search,
        fetcher=fetcher,
        settings=backends.settings.research,
        domains=backends.domains,
        reranker=backends.reranker,
        chat=backends.chat,
        names_of=names_of,
        allow_private=backends.settings.web.allow_private,
    )
    facts = FactTools(chat=backends.chat, reranker=backends.reranker, names_of=names_of, rerank_seconds=RERANK_SECONDS)
    return AllStages(tools, facts)
