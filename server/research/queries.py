"""What is searched for: a topic's core keywords, and the searches made of them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from graph.names import words
from graph.research import Topic
from graph.titles import FUNCTION_WORDS
from server.keywords import QUOTED

GROUP = 4
"""Keywords of the focus in one search, beside the title's."""
MOST_KEYWORDS = 12
TITLE_WORDS = 6


def core_keywords(text: str, names: Iterable[str] = ()) -> list[str]:
    """Quoted phrases, names and the content words that are in none of them, each once; nothing made up."""
    phrases = [" ".join(phrase.split()) for phrase in (*QUOTED.findall(text), *names)]
    kept: list[str] = []
    seen: set[str] = set()
    for phrase in phrases:
        tokens = [token for token in words(phrase) if token not in FUNCTION_WORDS]
        if tokens and not seen.issuperset(tokens):
            kept.append(phrase)
            seen.update(tokens)
    for token in words(text):
        if token not in seen and token not in FUNCTION_WORDS and (len(token) > 1 or not token.isascii()):
            kept.append(token)
            seen.add(token)
    return kept


def topic_queries(topic: Topic, names: Sequence[str], limit: int) -> list[str]:
    """The title; the title with all of the focus; the focus in pieces, each with the title's words."""
    title = " ".join(topic.title.split())
    named = [name for name in names if name.casefold() not in title.casefold()]
    titled = set(words(title))
    focus = [word for word in core_keywords(topic.focus, named) if not titled.issuperset(words(word))]
    focus = focus[:MOST_KEYWORDS]
    core = " ".join(core_keywords(title)[:TITLE_WORDS]) or title
    found = [title]
    if focus:
        found.append(f"{title} {' '.join(focus)}")
        found += [f"{core} {' '.join(focus[at : at + GROUP])}" for at in range(0, len(focus), GROUP)]
        found.append(" ".join(focus))
    elif topic.category != "general":
        found.append(f"{title} {topic.category}")
    found.append(core)
    return _distinct(found)[:limit]


def _distinct(queries: Iterable[str]) -> list[str]:
    """The first of those that have the same content words."""
    kept: dict[frozenset[str], str] = {}
    for query in queries:
        tokens = frozenset(words(query))
        if tokens:
            kept.setdefault(tokens - FUNCTION_WORDS or tokens, query)
    return list(kept.values())
