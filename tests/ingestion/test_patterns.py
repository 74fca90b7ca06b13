"""No pattern that meets outside text is slow on any of it."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import time
from collections.abc import Iterator

import pytest

import graph
import ingestion
import server

LENGTH = 20_000
REPEATED = [*"a1 \n=-|!:;,.#*'`_<(){[/\\&%\x05量", "a ", "a: ", "=a", "a;", "[[", "{{", "<a ", "a\n", "|a", "a.", "( "]


def declared() -> Iterator[tuple[str, re.Pattern[str], bool]]:
    """Every pattern that is a constant of one of our modules, and whether it is tried at the start of a text only."""
    for package in (graph, ingestion, server):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            module = importlib.import_module(found.name)
            source = inspect.getsource(module)
            for name, value in vars(module).items():
                here = re.search(rf"^{re.escape(name)}\b[^\n=]*=", source, re.MULTILINE)
                if here and isinstance(value, re.Pattern) and isinstance(value.pattern, str):
                    uses = set(re.findall(rf"\b{re.escape(name)}\.(\w+)", source))
                    yield f"{module.__name__}.{name}", value, bool(uses) and uses <= {"match", "fullmatch"}


PATTERNS = {name: (pattern, at_start) for name, pattern, at_start in declared()}


def test_patterns_are_found() -> None:
    assert len(PATTERNS) > 150
    assert {name.partition(".")[0] for name in PATTERNS} == {"graph", "ingestion", "server"}


@pytest.mark.parametrize("name", PATTERNS)
def test_patterns_are_quick_on_repetition(name: str) -> None:
    pattern, at_start = PATTERNS[name]
    find = pattern.match if at_start else pattern.search
    started = time.process_time()
    for unit in REPEATED:
        find(f"({unit * (LENGTH // len(unit))}!")
        find(f"{unit * (LENGTH // len(unit))})")
    assert time.process_time() - started < 0.1 * 2 * len(REPEATED)
