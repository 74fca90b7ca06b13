"""`/api/personas`: who can be asked."""

from __future__ import annotations

from litestar import Controller, get
from msgspec import Struct

from config.personas import Origin, Persona
from server.http.query import PROBLEMS
from server.http.work import ServingDependency


class PersonaView(Struct, frozen=True, kw_only=True):
    """Who answers. `name` is what `persona` in a request and `trivet/NAME` as a model mean."""

    name: str
    default: bool
    """Whether it answers where a request names none."""
    language: str
    """The one language it ever answers in (ISO 639-1); empty: that of the question."""
    voice: str
    """Who it says it is, and how it speaks."""
    instructions: str
    """What it does beyond answering."""
    source_weights: dict[Origin, float]
    """Origin of evidence → weight; one that is not named has its usual weight."""


class PersonasController(Controller):
    """Personas."""

    path = "/api/personas"
    tags = ("questions",)

    @get(summary="Who can answer", responses={code: PROBLEMS[code] for code in (401, 503)})
    async def list_personas(self, serving: ServingDependency) -> list[PersonaView]:
        """The default first, the others by name."""
        first, *others = serving.answerer.personas
        return [view_persona(serving.answerer.persona(name), default=name == first) for name in (first, *others)]


def view_persona(persona: Persona, *, default: bool) -> PersonaView:
    return PersonaView(
        name=persona.name,
        default=default,
        language=persona.language,
        voice=persona.voice,
        instructions=persona.instructions.strip(),
        source_weights=persona.source_weights,
    )
