"""A piece under way: evidence for all sections, shared out, then the words, and everything that is told meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from graph.errors import DependencyError
from server.writing.assign import Offer, share_out
from server.writing.gather import Gathered, best_of, document_of, fitting, gather
from server.writing.markdown import section_markdown
from server.writing.model import (
    Piece,
    PieceDone,
    PlannedSection,
    Progress,
    SectionBegun,
    SectionDone,
    SectionResult,
    SectionText,
    Stage,
    TokenReport,
    WritingEvent,
)
from server.writing.numbering import Numbering
from server.writing.prompt import SHARE, evidence_room
from server.writing.section import Writer, failed
from server.writing.summary import summary_of

SEARCHES_AT_ONCE = 2
"""The cross-encoder takes all cores there are."""
SHARES = 3
"""The summary, the voice's samples and the failed claims, which may each take one part in `SHARE` of the room."""


@dataclass(slots=True)
class Run:
    """`results`: sections that are done, by number; those it begins with were saved before."""

    writer: Writer
    plan: tuple[PlannedSection, ...]
    results: dict[int, SectionResult]
    events: asyncio.Queue[WritingEvent | None] = field(default_factory=asyncio.Queue)
    legs: dict[str, str] = field(default_factory=dict)
    reason: str = ""
    """Why the piece is partial."""
    stopped: bool = False
    """No section is begun any more."""
    numbering: Numbering = field(default_factory=Numbering)
    told: list[SectionResult] = field(default_factory=list)
    """In order, with the piece's numbers."""

    def __post_init__(self) -> None:
        self.writer = replace(self.writer, report=self.report)

    async def drive(self) -> None:
        """Write what is not done; `None` after the last event."""
        try:
            self._tell()
            todo = [section for section in self.plan if section.number not in self.results]
            found = await self._gather(todo)
            shares = self._share_out(found)
            await self._write_all(found, shares)
            self.events.put_nowait(PieceDone(piece=self._piece()))
        finally:
            self.events.put_nowait(None)

    def report(self, stage: Stage, section: PlannedSection) -> None:
        """Tell how far the piece is."""
        self.events.put_nowait(
            Progress(
                done=sum(one.state == "done" for one in self.results.values()),
                total=len(self.plan),
                stage=stage,
                section=section.number,
                heading=section.heading,
            )
        )

    async def _gather(self, todo: Sequence[PlannedSection]) -> list[Gathered]:
        """Before a word is written, so that documents can be shared out in both modes."""
        turns = asyncio.Semaphore(SEARCHES_AT_ONCE)

        async def one(section: PlannedSection) -> Gathered | None:
            async with turns:
                self.report("searching", section)
                try:
                    return await gather(section, self.writer.request, self.writer.backends)
                except DependencyError as error:
                    self._end(failed(section, str(error)), stop=self.writer.request.sequential)
                    return None

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(section)) for section in todo]
        found = [gathered for task in tasks if (gathered := task.result()) is not None]
        for gathered in found:
            self.legs |= gathered.legs
        # Of the first section, also where it was written before: its scores are what the topic alone had.
        first = next((one for one in found if one.section.number == 1), self.results.get(1))
        topic_best = best_of(first.evidence) if first else None
        least = self.writer.backends.settings.answer.abstain_below
        return [fitting(one, topic_best, least) for one in found]

    def _share_out(self, found: Sequence[Gathered]) -> dict[int, list[int]]:
        """Section number → places among what was found for it."""
        writer = self.writer
        offers = [self._offers(one) for one in found]
        chosen = share_out(offers, [self._room(one) for one in found], writer.owners)
        for one, places in zip(found, chosen, strict=True):
            for place in places:
                writer.owners.setdefault(document_of(one.evidence[place]), one.section.number)
        # A passage too long for the window is cut by the prompt.
        return {
            one.section.number: places or [0][: len(one.evidence)] for one, places in zip(found, chosen, strict=True)
        }

    def _offers(self, gathered: Gathered) -> list[Offer]:
        return [
            Offer(item.key, document_of(item), self.writer.cost([replace(item, number=99)]) + 1)
            for item in gathered.evidence
        ]

    def broad_places(self, gathered: Gathered) -> list[int]:
        """Of what is found for the first section, what it could have, did nothing belong to the others."""
        return share_out([self._offers(gathered)], [self._room(gathered)])[0]

    def _room(self, gathered: Gathered) -> int:
        window = self.writer.window
        if window is None:
            return gathered.section.tokens
        room = evidence_room(self.writer.task(gathered), window)
        return min(gathered.section.tokens, room - SHARES * (room // SHARE))

    async def _write_all(self, found: Sequence[Gathered], shares: dict[int, list[int]]) -> None:
        """In sequence, or the first alone and then so many at once, which know what stands in it."""
        settings = self.writer.backends.settings.writing
        rest = list(found)
        if rest and (rest[0].section.number == 1 or self.writer.request.sequential):
            first = rest.pop(0)
            await self._write(first, shares)
        # Sentences are chosen by the cross-encoder, which takes all cores there are.
        alone = self.writer.request.sequential or self.writer.backends.chat is None
        turns = asyncio.Semaphore(1 if alone else settings.at_once)

        async def one(gathered: Gathered) -> None:
            async with turns:
                await self._write(gathered, shares)

        async with asyncio.TaskGroup() as group:
            for gathered in rest:
                group.create_task(one(gathered))

    async def _write(self, gathered: Gathered, shares: dict[int, list[int]]) -> None:
        section = gathered.section
        if self.stopped:
            why = f"not begun: {self.reason}"
            self._end(replace(failed(section, why), state="skipped"), stop=True)
            return
        evidence = [gathered.evidence[place] for place in shares[section.number]]
        self.events.put_nowait(
            SectionBegun(number=section.number, heading=section.heading, queries=section.queries, sources=len(evidence))
        )
        result = await self.writer.write(gathered, evidence, self._summary(section.number))
        if section.number == 1 and evidence:
            broad = self.writer.cost([gathered.evidence[place] for place in self.broad_places(gathered)])
            result = replace(result, tokens=replace(result.tokens, broad=broad))
        self._end(result, stop=result.state == "failed")

    def _summary(self, number: int) -> str:
        before = [self.results[n] for n in range(1, number) if n in self.results]
        tokens = self.writer.backends.settings.writing.summary_tokens
        return summary_of(before, count_tokens=self.writer.count_tokens, tokens=tokens)

    def _end(self, result: SectionResult, *, stop: bool) -> None:
        self.stopped = self.stopped or stop
        self.results[result.number] = result
        if result.state == "failed" and not self.reason:
            self.reason = f"section {result.number} ({result.heading!r}) failed: {result.reason}"
        self.events.put_nowait(SectionDone(section=result))
        self._tell()

    def _tell(self) -> None:
        """Sections for readers, as far as all before them have ended."""
        while (number := len(self.told) + 1) in self.results:
            section = self.numbering.section(self.results[number])
            self.told.append(section)
            self.events.put_nowait(SectionText(number=number, text=section_markdown(section, self.writer.topic)))

    def _piece(self) -> Piece:
        writer, sections = self.writer, tuple(self.told)
        chat = writer.backends.chat
        by_model = any(one.mode == "generated" and one.state == "done" for one in sections)
        unknown = all(one.mode == "unknown" for one in sections)
        return Piece(
            topic=writer.topic,
            kind=writer.request.kind,
            persona=writer.persona.name,
            model=chat.model if chat and by_model else "",
            language=writer.language,
            state="partial" if any(one.state != "done" for one in sections) else "done",
            reason=self.reason,
            sections=sections,
            references=self.numbering.references,
            tokens=token_report(sections),
            legs=self.legs,
            notes=("nothing that was searched knows of this topic",) if unknown else (),
        )


def token_report(sections: Sequence[SectionResult]) -> TokenReport:
    """Of the sections that have evidence: nothing need be said of the rest."""
    written = [one.tokens for one in sections if one.tokens.context]
    return TokenReport(
        focused=sum(one.context + one.summary for one in written),
        broad=len(written) * max((one.broad for one in written), default=0),
        prompt=max((one.prompt for one in written), default=0),
        window=max((one.window for one in written), default=0),
    )
