"""One section: words from its evidence, checked, and written again where they do not hold (mission.md §7.4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from config.personas import Persona
from graph.errors import DependencyError
from graph.model import Evidence
from graph.token_estimate import estimate_tokens
from server.answer.fence import Fence
from server.backends import Backends
from server.model import Claim
from server.writing.check import (
    checked,
    confidence_of,
    evidence_for_rewrite,
    failed_of,
    must_be_rewritten,
    said_by,
    verbatim,
)
from server.writing.draft import Draft, extracted, generated
from server.writing.gather import Gathered, document_of, gather_for_claims
from server.writing.model import PlannedSection, SectionMode, SectionResult, SectionTokens, Stage, WritingRequest
from server.writing.prompt import SectionPrompt, SectionTask, Window, build_section_prompt, entry_of

NOTHING_CLAIMED = 1000
"""Worse than so many sentences that are not there."""
Report = Callable[[Stage, PlannedSection], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """What all sections of a piece share. `owners`: document → the section that has it; it grows."""

    request: WritingRequest
    topic: str
    headings: tuple[str, ...]
    persona: Persona
    language: str
    backends: Backends
    owners: dict[str, int]
    said: set[str] = field(default_factory=set)
    """Sentences of the evidence that stand in a section; it grows too."""
    report: Report = lambda _stage, _section: None

    @property
    def window(self) -> Window | None:
        chat = self.backends.chat
        return Window(tokens=chat.context_tokens, count_tokens=chat.count_tokens) if chat else None

    @property
    def count_tokens(self) -> Callable[[str], int]:
        return self.backends.chat.count_tokens if self.backends.chat else estimate_tokens

    def task(self, gathered: Gathered, summary: str = "", samples: tuple[str, ...] = ()) -> SectionTask:
        return SectionTask(
            topic=self.topic,
            section=gathered.section,
            headings=self.headings,
            persona=self.persona,
            zone=gathered.zone,
            language=self.language,
            summary=summary,
            samples=samples,
        )

    def cost(self, evidence: Sequence[Evidence]) -> int:
        """Tokens of what a prompt shows of them."""
        fence = Fence.of(self.topic, evidence)
        return self.count_tokens("\n".join(entry_of(item, fence) for item in evidence)) if evidence else 0

    async def write(self, gathered: Gathered, evidence: Sequence[Evidence], summary: str) -> SectionResult:
        """Never raises for a model that fails: the section has failed then, and says why."""
        if not evidence:
            return self.unknown(gathered)
        if self.backends.chat is None:
            return await self.extractive(gathered, evidence)
        chosen, problem = await self.backends.voices.chosen(
            self.persona,
            f"{self.topic} {gathered.section.focus}",
            self.backends.embedder,
            self.backends.question_vectors,
        )
        work = _Section(self, gathered, self.task(gathered, summary, chosen), notes=(problem,) if problem else ())
        try:
            return await work.written(evidence)
        except DependencyError as error:
            return failed(gathered.section, str(error))

    async def extractive(self, gathered: Gathered, evidence: Sequence[Evidence], *, note: str = "") -> SectionResult:
        """The evidence's own sentences."""
        section = gathered.section
        self.report("writing", section)
        numbered = [replace(item, number=number) for number, item in enumerate(evidence, 1)]
        draft = await extracted(section.queries[-1], numbered, self.backends, said=self.said)
        if not draft.text:
            return self.unknown(gathered)
        self.said.update(draft.sentences)
        claims = verbatim(draft) if self.backends.settings.answer.check_claims else ()
        tokens = SectionTokens(context=self.cost(numbered))
        result = result_of(gathered, draft, claims, tokens, mode="extractive")
        return replace(result, notes=(note, *result.notes)) if note else result

    async def claims(self, draft: Draft) -> tuple[Claim, ...]:
        if not self.backends.settings.answer.check_claims:
            return ()
        return await checked(draft, self.language, self.backends)

    def unknown(self, gathered: Gathered) -> SectionResult:
        return SectionResult(
            number=gathered.section.number,
            heading=gathered.section.heading,
            state="done",
            mode="unknown",
            reason="nothing that was found answers this",
            text=self.persona.refusal_in(self.language),
            queries=gathered.section.queries,
        )


@dataclass(slots=True)
class _Section:
    """A section while a model writes it."""

    writer: Writer
    gathered: Gathered
    task: SectionTask
    notes: tuple[str, ...] = ()
    queries: tuple[str, ...] = ()
    tokens: SectionTokens = field(default_factory=SectionTokens)
    rewrites: int = 0

    async def written(self, evidence: Sequence[Evidence]) -> SectionResult:
        writer, section = self.writer, self.gathered.section
        writer.report("writing", section)
        draft = await self._draft(self.task, evidence)
        if not draft.text:
            chat = writer.backends.chat
            note = f"{chat.model if chat else ''} wrote nothing, so these are the best sentences found"
            return await writer.extractive(self.gathered, evidence, note=note)
        if self._refuses(draft):
            return replace(writer.unknown(self.gathered), tokens=self.tokens)
        writer.report("checking", section)
        best = (draft, await writer.claims(draft))
        current = best
        settings = writer.backends.settings.writing
        while self.rewrites < settings.rewrites and must_be_rewritten(best[1], settings.confidence):
            try:
                current = await self._rewritten(*current)
            except DependencyError as error:
                self.notes = (*self.notes, f"the section could not be rewritten: {error}")
                break
            best = min(best, current, key=lambda one: _badness(one[1]))
        result = result_of(self.gathered, *best, self.tokens, mode="generated")
        return replace(
            result,
            queries=(*result.queries, *self.queries),
            rewrites=self.rewrites,
            notes=(*self.notes, *result.notes),
        )

    async def _rewritten(self, draft: Draft, claims: Sequence[Claim]) -> tuple[Draft, tuple[Claim, ...]]:
        """Once more, with evidence for what did not hold. A draft that is empty or refuses is no better one."""
        writer = self.writer
        self.rewrites += 1
        writer.report("rewriting", self.gathered.section)
        wrong = failed_of(claims)
        said = [said_by(claim, draft) for claim in wrong]
        asked = [text[: writer.backends.settings.answer.question_chars] for text in said]
        self.queries = (*self.queries, *asked)
        found = await gather_for_claims(asked, writer.request, writer.backends)
        evidence = evidence_for_rewrite(draft, claims, self._new(found, draft))
        failures = tuple(f"{text} ({claim.reason})" for text, claim in zip(said, wrong, strict=True))
        again = await self._draft(replace(self.task, failed=failures), evidence)
        if not again.text or self._refuses(again):
            return draft, tuple(claims)
        return again, await writer.claims(again)

    def _refuses(self, draft: Draft) -> bool:
        return not draft.citations and draft.text.startswith(self.writer.persona.refusal_in(self.writer.language))

    def _new(self, found: Sequence[Evidence], draft: Draft) -> list[Evidence]:
        """What the section has not yet; of documents that no other section has, if there are such."""
        own, number = {item.key for item in draft.evidence}, self.gathered.section.number
        new = [item for item in found if item.key not in own]
        free = [item for item in new if self.writer.owners.get(document_of(item), number) == number]
        return free or new

    async def _draft(self, task: SectionTask, evidence: Sequence[Evidence]) -> Draft:
        writer = self.writer
        chat, window = writer.backends.chat, writer.window
        assert chat is not None
        assert window is not None
        prompt = build_section_prompt(task, evidence, window)
        for item in prompt.evidence:
            writer.owners.setdefault(document_of(item), self.gathered.section.number)
        self.tokens = _larger(self.tokens, prompt)
        breaker = writer.backends.breakers.get("llm")
        return await generated(prompt, task.section.heading, chat, breaker, writer.persona.temperature)


def _badness(claims: Sequence[Claim]) -> tuple[int, float]:
    """Fewer sentences that are not there, then more confidence; nothing claimed at all is worst."""
    if not claims:
        return (NOTHING_CLAIMED, 0.0)
    return (sum(claim.verdict == "unsupported" for claim in claims), -(confidence_of(claims) or 0.0))


def _larger(tokens: SectionTokens, prompt: SectionPrompt) -> SectionTokens:
    return prompt.tokens if prompt.tokens.prompt > tokens.prompt else tokens


def result_of(
    gathered: Gathered, draft: Draft, claims: Sequence[Claim], tokens: SectionTokens, *, mode: SectionMode
) -> SectionResult:
    return SectionResult(
        number=gathered.section.number,
        heading=gathered.section.heading,
        state="done",
        mode=mode,
        text=draft.text,
        evidence=draft.evidence,
        citations=draft.citations,
        claims=tuple(claims),
        confidence=confidence_of(claims),
        queries=gathered.section.queries,
        tokens=tokens,
        notes=draft.notes,
    )


def failed(section: PlannedSection, reason: str) -> SectionResult:
    return SectionResult(
        number=section.number, heading=section.heading, state="failed", reason=reason, queries=section.queries
    )
