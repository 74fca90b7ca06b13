"""MediaWiki's own functions and variables in pages: the few whose words can be known without a server."""

from __future__ import annotations

from collections.abc import Callable, Sequence

NAMES = frozenset(
    "PAGENAME FULLPAGENAME SUBPAGENAME BASEPAGENAME ROOTPAGENAME SEITENNAME NOMPAGE NOMBREDEPAGINA".split()
)
CASES: dict[str, Callable[[str], str]] = {
    "lc": str.lower, "uc": str.upper, "formatnum": str, "int": str,
    "lcfirst": lambda words: words[:1].lower() + words[1:], "ucfirst": lambda words: words[:1].upper() + words[1:],
}  # fmt: skip


def variable_words(written: str, page_name: str) -> str | None:
    """What `{{PAGENAME}}` and its like show; None for what is none of them."""
    if written not in NAMES:
        return None
    parts = page_name.split("/")
    if written == "SUBPAGENAME":
        return parts[-1]
    if written == "ROOTPAGENAME":
        return parts[0]
    if written == "BASEPAGENAME":
        return "/".join(parts[:-1]) or page_name
    return page_name if written == "FULLPAGENAME" else page_name.partition(":")[2] or page_name


def function_words(name: str, given: Sequence[str]) -> str | None:
    """What `{{#if:…|…|…}}` shows: `given` is its words, the first after the colon. None for what is no function here,
    "" for one that only a server can work out."""
    if name in CASES:
        return CASES[name](given[0])
    if name == "#if":
        return _at(given, 1 if given[0] else 2)
    if name == "#ifeq":
        return _at(given, 2 if given[0] == _at(given, 1) else 3)
    if name == "plural":
        return _at(given, 1 if given[0] == "1" else min(2, len(given) - 1))
    return "" if name.startswith("#") else None


def _at(given: Sequence[str], number: int) -> str:
    return given[number] if number < len(given) else ""
