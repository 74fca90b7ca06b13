"""Personas: who answers, in which voice, how long, and what it says when it does not know.

A persona is a TOML file; those in `config/personas/` are shipped, the owner's folder adds to or replaces them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, StringConstraints

from config.loading import SettingsProblem
from config.settings import Section
from config.toml_file import TomlFile

SHIPPED = Path(__file__).with_name("personas")
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Language = Annotated[str, StringConstraints(pattern=r"^[a-z]{2}$")]
Origin = Literal["wiki", "web", "research", "knowledge", "evergreen", "persona"]


class VoiceChunk(Section):
    """A sample of how the persona speaks, and of what it speaks so."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    trigger: Annotated[Text, StringConstraints(max_length=500)] = Field(
        description="What the question is about when this sample is shown to the model."
    )
    text: Annotated[Text, StringConstraints(max_length=2_000)] = Field(description="The persona's own words.")


class Persona(Section):
    """Who answers. The keys of its file are these fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,49}$")]
    voice: Text = Field(description="Who speaks, and how; the model reads it as it stands.")
    language_rule: Text = Field(description="Which language to answer in.")
    language: Language | Literal[""] = Field(
        "", description="The one language it ever answers in (ISO 639-1); empty: that of the question."
    )
    instructions: str = Field("", description="What this persona does beyond answering.")
    refusal: dict[Language, Text] = Field(
        min_length=1, description="ISO 639-1 code → what it says when it does not know."
    )
    source_weights: dict[Origin, Annotated[float, Field(ge=0, le=1)]] = Field(
        default_factory=dict,
        description="Origin of evidence → weight; where nothing is said, 1 or what [knowledge] says.",
    )
    temperature: float = Field(0.2, ge=0, le=2, description="Of the model, unless the request says otherwise.")
    length: int = Field(700, ge=16, le=100_000, description="Upper size of an answer in the model's tokens.")
    voice_chunks: tuple[VoiceChunk, ...] = Field(
        (),
        strict=False,
        max_length=500,
        description="Samples of its voice; those whose trigger is nearest to the question are shown to the model.",
    )

    def speaks(self, language: str) -> str:
        """The language it answers in when it is asked in that one."""
        return self.language or language

    def refusal_in(self, language: str) -> str:
        """For a question in that language: else in English, else in the first one of the file."""
        first = next(iter(self.refusal.values()))
        return self.refusal.get(self.speaks(language), self.refusal.get("en", first))


def load_personas(folder: Path | None) -> dict[str, Persona]:
    """Name → persona: the shipped ones, then the owner's, which replace shipped ones of the same name."""
    personas = _read_folder(SHIPPED)
    if folder is not None:
        if not folder.is_dir():
            raise SettingsProblem(f"answer.persona_dir: {folder} is not a folder; make it, or leave the setting out")
        personas.update(_read_folder(folder))
    return personas


def _read_folder(folder: Path) -> dict[str, Persona]:
    personas: dict[str, Persona] = {}
    files: dict[str, Path] = {}
    for path in sorted(folder.glob("*.toml")):
        persona = read_persona(path)
        if persona.name in files:
            raise SettingsProblem(f"{path}: the name {persona.name!r} is taken by {files[persona.name]}; rename one")
        files[persona.name] = path
        personas[persona.name] = persona
    return personas


def read_persona(path: Path) -> Persona:
    """One file. Every fault is a `SettingsProblem` that names file and line."""
    file = TomlFile.read(path)
    return file.checked(Persona, {"name": path.stem, **file.tables})
