"""One thing that `trivet doctor` looked at."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at. `fix` is a command, or what to change, and is empty where nothing is wrong."""

    name: str
    ok: bool
    detail: str
    fix: str = ""


def good(name: str, detail: str) -> Check:
    return Check(name=name, ok=True, detail=detail)


def fault(name: str, detail: str, fix: str) -> Check:
    return Check(name=name, ok=False, detail=detail, fix=fix)
