"""Titles as MediaWiki compares them, and where a redirect leads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from graph.model import PageType

LONGEST_CHAIN = 16
"""MediaWiki follows one redirect; bots repair longer chains, so a longer one than this is a mistake."""


@dataclass(frozen=True, slots=True)
class RedirectTarget:
    """The page a title names: either a page with content, or one more redirect."""

    page_id: str
    title: str
    page_type: PageType
    redirect_to: str = ""


def title_form(title: str) -> str:
    """What two titles of one page have in common: "_" is a space, and the first letter has no case."""
    spaced = " ".join(title.replace("_", " ").split())
    return spaced[:1].upper() + spaced[1:]


def follow(redirect_to: str, find: Callable[[str], RedirectTarget | None]) -> RedirectTarget | None:
    """The page with content at the end of the chain; None where it breaks off or runs in a circle.

    `find` takes a `title_form`. A target with a section ("Hydra#Moon") leads to the page, but the whole
    is tried first: outside MediaWiki "C#" is a title.
    """
    seen: set[str] = set()
    while len(seen) < LONGEST_CHAIN:
        form = title_form(redirect_to)
        target = find(form) or find(title_form(redirect_to.partition("#")[0]))
        if target is None or not target.redirect_to:
            return target
        if form in seen:
            return None
        seen.add(form)
        redirect_to = target.redirect_to
    return None
