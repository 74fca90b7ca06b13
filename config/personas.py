"""Personas: who answers, in which voice, how long, and what it says when it does not know.

A persona is a TOML file; those in `config/personas/` are shipped, the owner's folder adds to or replaces them.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, StringConstraints, ValidationError

from config.loading import SettingsProblem
from config.settings import Section

SHIPPED = Path(__file__).with_name("personas")
TABLE = re.compile(r"\s{0,20}\[(\[?)([A-Za-z0-9_.-]{1,100})\]")
KEY = re.compile(r"""\s{0,20}["']?([A-Za-z0-9_-]{1,100})["']?\s{0,20}=\s{0,20}(.*)""")

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
        default_factory=dict, description="Origin of evidence → weight; 1 where nothing is said."
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
    try:
        text = path.read_text(encoding="utf-8-sig")
        return Persona.model_validate({"name": path.stem, **tomllib.loads(text)})
    except OSError as error:
        raise SettingsProblem(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingsProblem(f"{path}: is not UTF-8; save it as UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise SettingsProblem(f"{path}: is not TOML: {error}") from None
    except ValidationError as error:
        raise SettingsProblem(_explain(path, text, error)) from None


def _explain(path: Path, text: str, error: ValidationError) -> str:
    lines = key_lines(text)
    problems: list[str] = []
    for fault in error.errors(include_url=False, include_input=False):
        places = [str(part) for part in fault["loc"] if part != "[key]"]
        key = ".".join(places)
        # A missing key stands nowhere, so its table's line is named, and line 1 for one at the top.
        line = lines.get(key) or lines.get(".".join(places[:-1])) or lines.get(places[0], 1)
        if fault["type"] == "extra_forbidden":
            known = ", ".join(VoiceChunk.model_fields if places[0] == "voice_chunks" else Persona.model_fields)
            problems.append(f"{path}:{line}: unknown key {key!r}; the keys are {known}")
        elif fault["type"] == "missing":
            problems.append(f"{path}:{line}: {key!r} is missing; add it")
        elif fault["type"] == "tuple_type":
            problems.append(f"{path}:{line}: {key!r} is a list of tables: begin each with [[{key}]]")
        else:
            problems.append(f"{path}:{line}: {key!r}: {fault['msg']}")
    return "\n".join(problems)


def key_lines(text: str) -> dict[str, int]:
    """Dotted key → the line it is set on; tables of a list are numbered from 0. It reads what `tomllib` accepted, so
    it need not check the syntax."""
    lines: dict[str, int] = {}
    counts: Counter[str] = Counter()
    table = ""
    closing = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if closing:
            closing = "" if closing in line else closing
        elif found := TABLE.match(line):
            name = f"{found[2]}.{counts[found[2]]}" if found[1] else found[2]
            counts[found[2]] += 1
            table = name + "."
            lines.setdefault(found[2], number)
            lines.setdefault(name, number)
        elif found := KEY.match(line):
            lines.setdefault(table + found[1], number)
            quotes = found[2][:3]
            closing = quotes if quotes in ('"""', "'''") and quotes not in found[2][3:] else ""
    return lines
