"""Reading the settings: flags > environment (`TRIVET_…`) > `trivet.toml` > defaults. Wrong ones are named by place."""

from __future__ import annotations

import difflib
import itertools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args, get_origin

from pydantic import SecretStr, ValidationError
from pydantic.fields import FieldInfo

from config.given import (
    Given,
    SettingsProblem,
    given_by_environment,
    given_by_file,
    given_by_first_version,
    given_by_flags,
)
from config.settings import Section, Settings

__all__ = ["LoadedSettings", "Settings", "SettingsProblem", "load_settings", "load_with_places"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedSettings:
    """Settings, where each one that is not a default was given (dotted key → place), and the file that was read."""

    settings: Settings
    places: Mapping[str, str]
    file: Path | None


def declared() -> dict[str, FieldInfo]:
    """Every setting by its dotted key, in order of declaration."""
    fields: dict[str, FieldInfo] = {}
    for name, info in Settings.model_fields.items():
        section = info.annotation
        if isinstance(section, type) and issubclass(section, Section):
            fields.update({f"{name}.{key}": field for key, field in section.model_fields.items()})
        else:
            fields[name] = info
    return fields


def load_settings(*, flags: Mapping[str, object], environment: Mapping[str, str], file: Path | None) -> Settings:
    """Flags (dotted keys) > environment > file > defaults. Raises `SettingsProblem`."""
    return load_with_places(flags=flags, environment=environment, file=file).settings


def load_with_places(
    *, flags: Mapping[str, object], environment: Mapping[str, str], file: Path | None
) -> LoadedSettings:
    """As `load_settings`, and says where each value came from."""
    fields = declared()
    merged: dict[str, Given] = {}
    layers = (
        given_by_file(file) if file else (),
        given_by_first_version(environment),
        given_by_environment(environment),
        given_by_flags(flags),
    )
    for given in itertools.chain(*layers):
        if given.key not in fields:
            raise SettingsProblem(_unknown(given, fields))
        merged[given.key] = given
    nested: dict[str, Any] = {}
    for key, given in merged.items():
        section, _, name = key.rpartition(".")
        target = nested.setdefault(section, {}) if section else nested
        target[name] = _plain(given, fields[key])
    try:
        settings = Settings.model_validate(nested)
    except ValidationError as error:
        raise SettingsProblem(_wrong(error, merged, fields)) from None
    places = {key: given.place for key, given in merged.items()}
    _agree(settings, places)
    return LoadedSettings(settings=settings, places=places, file=file)


def _plain(given: Given, field: FieldInfo) -> object:
    """A value from text as its field wants it: lists split, empty paths unset, relative paths made absolute."""
    value = given.value
    accepted = {field.annotation, *get_args(field.annotation)}
    if isinstance(value, str) and get_origin(field.annotation) is tuple:
        return [part.strip() for part in value.strip("[] ").replace('"', "").split(",") if part.strip()]
    if isinstance(value, str | Path) and Path in accepted:
        if value == "":
            return None
        return (given.folder or Path.cwd()) / Path(value).expanduser()
    return value


def _unknown(given: Given, fields: Mapping[str, FieldInfo]) -> str:
    inside = [key for key in fields if key.startswith(f"{given.key}.")]
    if inside:
        return f"{given.place}: “{given.key}” is a group of settings, not a setting; did you mean “{inside[0]}”?"
    names = {key: key for key in fields} | {key.rpartition(".")[2]: key for key in fields}
    close = difflib.get_close_matches(given.key, names, n=1, cutoff=0.5) or difflib.get_close_matches(
        given.key.rpartition(".")[2], names, n=1, cutoff=0.5
    )
    hint = f"; did you mean “{names[close[0]]}”?" if close else "; `trivet config show` lists all."
    return f"{given.place}: “{given.key}” is not a setting{hint}"


def _wrong(error: ValidationError, merged: Mapping[str, Given], fields: Mapping[str, FieldInfo]) -> str:
    """One sentence for all wrong values; a secret's value is never repeated."""
    parts = []
    for problem in error.errors(include_url=False, include_context=False):
        key = next((k for k in (".".join(map(str, problem["loc"][:n])) for n in (2, 1)) if k in fields), "")
        given = merged.get(key)
        shown = "" if given is None or is_secret(fields[key]) else f" = {masked(given.value)}"
        reason = problem["msg"].removeprefix("Value error, ").removeprefix("Input ")
        parts.append(f"{given.place if given else 'settings'}: {key}{shown} {reason}")
    return "; ".join(parts) + "."


def is_secret(field: FieldInfo) -> bool:
    return field.annotation is SecretStr


def masked(value: object) -> str:
    """A value as JSON, without the password a URL may carry."""
    return re.sub(r"://[^/@\s\"]*@", "://***@", json.dumps(value, ensure_ascii=False, default=str))


def _agree(settings: Settings, places: Mapping[str, str]) -> None:
    """Settings that contradict each other."""
    if settings.llm.provider != "none" and not settings.llm.model:
        place = places.get("llm.provider", "settings")
        raise SettingsProblem(f"{place}: llm.provider is “{settings.llm.provider}” but llm.model is not set.")
    rerank = settings.rerank
    if rerank.provider in {"tei", "jina"} and not rerank.url:
        place = places.get("rerank.provider", "settings")
        raise SettingsProblem(f"{place}: rerank.provider is “{rerank.provider}” but rerank.url is not set.")
    strategy = settings.ingestion.embedding_strategy
    for key, value in (("rerank.provider", rerank.provider), ("ingestion.embedding_strategy", strategy)):
        if value in {"llm", "llm-blurb"} and settings.llm.provider == "none":
            place = places.get(key, "settings")
            raise SettingsProblem(f"{place}: {key} is “{value}” but llm.provider is “none”.")
    if settings.embedder.learned_sparse and settings.embedder.provider != "flag":
        place = places.get("embedder.learned_sparse", "settings")
        raise SettingsProblem(f"{place}: embedder.learned_sparse needs embedder.provider “flag”.")
    if settings.answer.caution_below < settings.answer.abstain_below:
        place = places.get("answer.caution_below") or places.get("answer.abstain_below", "settings")
        raise SettingsProblem(f"{place}: answer.caution_below must not be lower than answer.abstain_below.")
