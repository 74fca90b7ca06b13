"""A module that is imported when a name in it is first asked for: for libraries that take seconds to import."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class ImportedOnUse:
    """Stands for a module where nobody may ever need it, as a client of a server that is not in the settings."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(import_module(self._name), attribute)
