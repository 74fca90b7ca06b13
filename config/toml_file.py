"""One TOML file of the owner, read and checked: every fault is a `SettingsProblem` that names file and line."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from config.given import SettingsProblem

TABLE = re.compile(r"\s{0,20}\[(\[?)([A-Za-z0-9_.-]{1,100})\]")
KEY = re.compile(r"""\s{0,20}(?:"([^"\\]{1,300})"|'([^']{1,300})'|([A-Za-z0-9_.-]{1,300}))\s{0,20}=\s{0,20}(.*)""")
M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, slots=True, kw_only=True)
class TomlFile:
    """A file as it was read. `tables` is what `tomllib` makes of it."""

    path: Path
    text: str
    tables: dict[str, Any]

    @classmethod
    def read(cls, path: Path) -> TomlFile:
        try:
            text = path.read_text(encoding="utf-8-sig")
            return cls(path=path, text=text, tables=tomllib.loads(text))
        except OSError as error:
            raise SettingsProblem(f"{path}: cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise SettingsProblem(f"{path}: is not UTF-8; save it as UTF-8") from None
        except tomllib.TOMLDecodeError as error:
            raise SettingsProblem(f"{path}: is not TOML: {error}") from None

    def checked(self, model: type[M], tables: Mapping[str, Any]) -> M:
        """`tables`: those of the file, or what the caller made of them; keys must be the file's still."""
        try:
            return model.model_validate(tables)
        except ValidationError as error:
            raise SettingsProblem(self._explain(model, error)) from None

    def problem(self, faults: Iterable[tuple[str, str]]) -> SettingsProblem:
        """`faults`: dotted key, and what is wrong with it."""
        lines = key_lines(self.text)
        return SettingsProblem("\n".join(f"{self.path}:{lines.get(key, 1)}: {key!r}: {said}" for key, said in faults))

    def _explain(self, model: type[BaseModel], error: ValidationError) -> str:
        lines = key_lines(self.text)
        problems: list[str] = []
        for fault in error.errors(include_url=False, include_input=False):
            places = [str(part) for part in fault["loc"] if part != "[key]"]
            key = ".".join(places)
            # A missing key stands nowhere, so its table's line is named, and line 1 for one at the top.
            line = lines.get(key) or lines.get(".".join(places[:-1])) or lines.get(places[0], 1)
            if fault["type"] == "extra_forbidden":
                known = ", ".join(_fields(model, places[0]))
                problems.append(f"{self.path}:{line}: unknown key {key!r}; the keys are {known}")
            elif fault["type"] == "missing":
                problems.append(f"{self.path}:{line}: {key!r} is missing; add it")
            elif fault["type"] == "tuple_type":
                problems.append(f"{self.path}:{line}: {key!r} is a list of tables: begin each with [[{key}]]")
            else:
                problems.append(f"{self.path}:{line}: {key!r}: {fault['msg'].removeprefix('Value error, ')}")
        return "\n".join(problems)


def _fields(model: type[BaseModel], table: str) -> Iterable[str]:
    """The keys of the model, or of the model that the list of that name is of."""
    parts = get_args(model.model_fields[table].annotation) if table in model.model_fields else ()
    inner = next((part for part in parts if isinstance(part, type) and issubclass(part, BaseModel)), model)
    return inner.model_fields


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
            lines.setdefault(table + (found[1] or found[2] or found[3]), number)
            quotes = found[4][:3]
            closing = quotes if quotes in ('"""', "'''") and quotes not in found[4][3:] else ""
    return lines
