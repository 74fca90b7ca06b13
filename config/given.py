"""What the owner gave, and where: flags, environment, settings file, each as flat dotted keys with their place."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ENVIRONMENT_PREFIX = "TRIVET_"
FILE_NAME = "trivet.toml"
FIRST_VERSION_NAMES = {
    "VECTOR_SIMILARITY_THRESHOLD": "search.vector_threshold",
    "HYBRID_RAG_VECTOR_LIMIT": "search.vector_limit",
    "HYBRID_RAG_GRAPH_LIMIT": "search.graph_limit",
    "HYBRID_RAG_WEB_LIMIT": "search.web_limit",
}
"""The names under which the first version knew four of the settings (mission.md §9)."""
NOT_SETTINGS = frozenset(
    {"TRIVET_CONFIG", "TRIVET_DATA", "TRIVET_EXAMPLES", "TRIVET_REQUIRE_SERVICES", "TRIVET_SERVICES_CACHE"}
    | {"TRIVET_FLAG_PYTHON", "TRIVET_TEST_SITE_URL"}
)
"""Environment names with our prefix that are not settings: where the settings file is, and what tests go by."""


class SettingsProblem(ValueError):  # noqa: N818 — `graph.errors.SettingsError` is what the layers above raise
    """A setting is unknown, missing or wrong; the message names it and where it was given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """One value as it was given: `key` is dotted ("llm.url"), `place` is a flag, a variable or file:line."""

    key: str
    value: object
    place: str
    folder: Path | None = None
    """What a relative path is relative to: the settings file's folder, or None for the current one."""


def find_settings_file(flags: Mapping[str, object], environment: Mapping[str, str], default_home: Path) -> Path | None:
    """The one file that is read: `--config`, `TRIVET_CONFIG`, `./trivet.toml`, `trivet.toml` in the home folder.

    The first that is named or exists wins; files are not merged. A named one that is missing is a problem.
    """
    for named, place in ((flags.get("config"), "--config"), (environment.get("TRIVET_CONFIG"), "TRIVET_CONFIG")):
        if named:
            path = Path(str(named)).expanduser()
            if not path.is_file():
                raise SettingsProblem(f"{place} names {path}, which is not a file.")
            return path
    home = Path(str(flags.get("home") or environment.get("TRIVET_HOME") or default_home)).expanduser()
    return next((path for path in (Path(FILE_NAME), home / FILE_NAME) if path.is_file()), None)


def given_by_flags(flags: Mapping[str, object]) -> Iterator[Given]:
    """Keys are dotted; None means that the flag was not used."""
    for key, value in flags.items():
        if value is not None:
            yield Given(key=key, value=value, place="--home" if key == "home" else f"--set {key}")


def given_by_first_version(environment: Mapping[str, str]) -> Iterator[Given]:
    """The four names of the first version: the lowest among environment names."""
    for name, key in FIRST_VERSION_NAMES.items():
        if name in environment:
            yield Given(key=key, value=environment[name], place=name)


def given_by_environment(environment: Mapping[str, str]) -> Iterator[Given]:
    """`TRIVET_LLM__URL` is llm.url."""
    for name in sorted(environment):
        if name.startswith(ENVIRONMENT_PREFIX) and name not in NOT_SETTINGS:
            key = name.removeprefix(ENVIRONMENT_PREFIX).lower().replace("__", ".")
            yield Given(key=key, value=environment[name], place=name)


def given_by_file(path: Path) -> Iterator[Given]:
    """Every key of a TOML file, with its line."""
    try:
        text = path.read_text(encoding="utf-8")
        tables = tomllib.loads(text)
    except OSError as error:
        raise SettingsProblem(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise SettingsProblem(f"{path} is not UTF-8 text (byte {error.start}).") from error
    except tomllib.TOMLDecodeError as error:
        raise SettingsProblem(f"{path} is not valid TOML: {error}.") from error
    lines = _lines_of_keys(text)
    folder = path.resolve().parent
    for key, value in _flat(tables, ""):
        line = lines.get(key)
        yield Given(key=key, value=value, place=f"{path}:{line}" if line else str(path), folder=folder)


def _flat(table: Mapping[str, object], prefix: str) -> Iterator[tuple[str, object]]:
    for key, value in table.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{prefix}{key}.")
        elif not isinstance(value, dict):
            yield f"{prefix}{key}", value


HEADER = re.compile(r"\s*\[\s*([\w.\-\s\"']+?)\s*\]")
ASSIGNMENT = re.compile(r"\s*([\w.\-\"']+)\s*=")


def _lines_of_keys(text: str) -> dict[str, int]:
    """Where each key stands; tomllib does not say. A key inside a multi-line string may fool it: harmless."""
    lines: dict[str, int] = {}
    section = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if header := HEADER.match(line):
            section = re.sub(r"[\"'\s]", "", header[1]) + "."
        elif assignment := ASSIGNMENT.match(line):
            lines.setdefault(section + re.sub(r"[\"']", "", assignment[1]), number)
    return lines
