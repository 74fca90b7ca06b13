"""A long piece from beginning to end: plan, evidence for every section, words, checks (mission.md §7)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from graph.errors import ConflictError, QuestionError
from ingestion.language import detect_language
from server.answer.gate import check_question, refused_for
from server.answer.plain import sentences
from server.backends import Backends
from server.writing.gather import Gathered, document_of, patient
from server.writing.model import Piece, PieceDone, PlannedSection, SectionResult, WritingEvent, WritingRequest
from server.writing.plan import plan_of
from server.writing.prompt import evidence_room
from server.writing.run import Run
from server.writing.section import Writer
from server.writing.summary import without_markers


async def whole_piece(request: WritingRequest, backends: Backends, *, done: Sequence[SectionResult] = ()) -> Piece:
    """The piece at once; the same as the last event of `write`."""
    async with aclosing(write(request, backends, done=done)) as events:
        async for event in events:
            if isinstance(event, PieceDone):
                return event.piece
    raise AssertionError("a piece ends with PieceDone")


async def write(
    request: WritingRequest, backends: Backends, *, done: Sequence[SectionResult] = ()
) -> AsyncGenerator[WritingEvent, None]:
    """Events of a piece, `PieceDone` last. `done`: sections saved before; those that are done are kept as they are.

    Raises before the first event: `QuestionError` (topic empty, too long, refused), `InputError` (kind, outline),
    `NotFoundError` (persona), `ConflictError` (`done` is of another piece), `SettingsError` (the window is too small).
    A model that fails ends the piece with `state` "partial" and raises nothing. Closing it stops all work.
    """
    run = await _begun(request, patient(backends), done)
    work = asyncio.create_task(run.drive())
    try:
        while (event := await run.events.get()) is not None:
            yield event
        await work
    except ExceptionGroup as group:
        raise group.exceptions[0] from group
    finally:
        if not work.done():
            work.cancel()
            await asyncio.wait([work])


async def check_request(request: WritingRequest, backends: Backends) -> None:
    """Raises what `write` would raise before its first event."""
    await _begun(request, backends, ())


async def _begun(request: WritingRequest, backends: Backends, done: Sequence[SectionResult]) -> Run:
    """Everything that may be refused is refused here."""
    topic = " ".join(check_question(request.topic, backends.settings.answer.question_chars).split())
    for text in (topic, *request.outline):
        if attack := refused_for(text):
            raise QuestionError(f"Nothing is written about {text[:60]!r} ({attack[0]}); choose another topic.")
    persona = backends.persona(request.persona)
    detected = request.language or await asyncio.to_thread(detect_language, topic, default="")
    language = request.language or persona.speaks(detected)
    plan = plan_of(topic, request, backends.settings.writing, language)
    kept = kept_of(done, plan)
    writer = Writer(
        request=request,
        topic=topic,
        headings=tuple(section.heading for section in plan),
        persona=persona,
        language=language,
        backends=backends,
        said={said for one in kept.values() if one.mode == "extractive" for said in sentences(without_markers(one))},
        owners={document_of(item): one.number for one in kept.values() for item in one.evidence},
    )
    if writer.window is not None:
        for section in plan:
            evidence_room(writer.task(Gathered(section=section, evidence=(), zone="normal", legs={})), writer.window)
    return Run(writer=writer, plan=plan, results=kept)


def kept_of(done: Sequence[SectionResult], plan: Sequence[PlannedSection]) -> dict[int, SectionResult]:
    """The saved sections that need not be written again. Raises `ConflictError` where they are none of this piece's."""
    headings = {section.number: section.heading for section in plan}
    for one in done:
        if headings.get(one.number) != one.heading:
            planned = headings.get(one.number, "nothing")
            raise ConflictError(
                f"What was saved is of another piece: its section {one.number} is {one.heading[:60]!r}, and "
                f"{planned[:60]!r} is planned there; begin anew, or ask for the same piece."
            )
    return {one.number: one for one in done if one.state == "done"}
