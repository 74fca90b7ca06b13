"""Research, deep research and the gate as stages of a topic's life."""

from __future__ import annotations

from graph.research import Topic
from server.research.budget import Budget
from server.research.collect import research
from server.research.deep import deepen
from server.research.found import Found, ResearchTools
from server.research.gate import Verdict, gate
from server.research.plan import Report
from server.research.run import Gathered

NOTHING_FOUND = "the search found nothing"


class WebResearch:
    """What `run.Stages` asks for, but for the extraction of facts."""

    def __init__(self, tools: ResearchTools) -> None:
        self._tools = tools
        self._notes: dict[str, tuple[str, ...]] = {}
        """By slug: what the last search for it said, for the verdict's reasons."""

    @property
    def rounds(self) -> int:
        return self._tools.settings.rounds

    async def research(self, topic: Topic, *, seconds: float, report: Report) -> Gathered:
        return self._gathered(topic, await research(topic, self._tools, budget=self._budget(seconds), report=report))

    async def deepen(self, topic: Topic, *, seconds: float, report: Report) -> Gathered:
        """One round."""
        found = await deepen(
            topic,
            self._tools,
            budget=self._budget(seconds),
            report=report,
            round_number=topic.deepened + 1,
        )
        return self._gathered(topic, found)

    async def judge(self, topic: Topic) -> Verdict:
        tools = self._tools
        return await gate(
            topic, tools.shelf.store, tools.reranker, tools.settings, notes=self._notes.pop(topic.slug, ())
        )

    def _budget(self, seconds: float) -> Budget:
        settings = self._tools.settings
        return Budget(seconds=min(seconds, settings.topic_minutes * 60), pages=settings.pages, tokens=settings.tokens)

    def _gathered(self, topic: Topic, found: Found) -> Gathered:
        """Where nothing was found, the verdict says which engines did not answer."""
        if not found.results:
            self._notes[topic.slug] = tuple(note for note in found.notes if not note.startswith("asked: "))
        return Gathered(left_out=found.left_out, counts=found.counts, notes=found.notes)
