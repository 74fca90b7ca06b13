"""What may be a topic, and what it is called."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from typing import Literal

from graph.errors import InputError
from graph.research import Topic
from graph.storable import storable
from ingestion.sanitize import clean_text

MOST_TITLE = 300
MOST_FOCUS = 2_000
MOST_CATEGORY = 200
MOST_SLUG = 64
SLUG = re.compile(r"[\w-]+")
BETWEEN = re.compile(r"[^\w]+|_+")
Kind = Literal["research", "analysis", "explanation"]


def new_topic(
    title: str, *, category: str = "general", focus: str = "", kind: Kind = "research", slug: str = ""
) -> Topic:
    """Raises `InputError` where one of these cannot be used."""
    title = _line("title", title, MOST_TITLE)
    if not title:
        raise InputError("The topic has no title; say in a few words what is to be researched.")
    category = _line("category", category, MOST_CATEGORY)
    if not category:
        raise InputError("The category is empty; leave it out, or give one like history.")
    focus = _line("focus", focus, MOST_FOCUS)
    return Topic(
        slug=_checked(slug) if slug else slug_of(title), title=title, category=category, focus=focus, kind=kind
    )


def slug_of(title: str) -> str:
    """Readable in a URL and on a command line; one that had to be cut keeps apart from its likes by a hash."""
    plain = unicodedata.normalize("NFKC", title).casefold()
    slug = BETWEEN.sub("-", plain).strip("-")
    if slug and len(slug) <= MOST_SLUG:
        return slug
    digest = hashlib.sha256(title.encode("utf-8", "replace")).hexdigest()[:8]
    return f"{slug[: MOST_SLUG - 9].rstrip('-')}-{digest}".lstrip("-")


def _line(name: str, given: str, most: int) -> str:
    if len(given) > most:
        raise InputError(f"The {name} has {len(given):,} characters and may have {most:,}; shorten it.")
    return " ".join(clean_text(storable(given)).split())


def _checked(slug: str) -> str:
    if len(slug) > MOST_SLUG or not SLUG.fullmatch(slug):
        raise InputError(
            f"{slug[:100]!r} cannot be a topic's name: up to {MOST_SLUG} letters, digits, - and _, like lighthouses-1."
        )
    return slug
