"""Which Office files can be read, and by which package."""

from __future__ import annotations

import importlib.util

LOCKED = "it is encrypted; save it without a password"
LIBRARIES = {".docx": "docx", ".pptx": "pptx", ".xlsx": "openpyxl", ".odt": ""}
"""Suffix → the package that reads such a file; OpenDocument needs none beside what is there anyway."""


def missing(suffix: str) -> str:
    """What to do before such a file can be read; "" where it can."""
    library = LIBRARIES[suffix]
    if not library or importlib.util.find_spec(library) is not None:
        return ""
    return f"{suffix} files need the extra `office`; install it: pip install 'trivet[office]'"
