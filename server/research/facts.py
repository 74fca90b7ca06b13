"""A fact's text: made plain, given an id that a rerun finds again, and compared with what others say."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from graph.names import fold, words
from graph.research import Fact, FactState, ResearchPage, ResearchStore, Topic
from graph.storable import storable
from graph.timestamps import now
from server.answer.claim_words import negations
from server.answer.number_words import ORDINALS, SMALL, TENS
from server.answer.plain import plain_line, visible

FACT_NAMESPACE = uuid.UUID("b1c8a3de-2f53-5b0e-8d57-747269766574")  # if it changed, a rerun would propose all again
MOST_FACTS = 6
"""Of one page."""
MOST_PASSAGES = 200
"""Of one page that are read."""
SAME = 0.85
"""Share of the shorter one's words from which two facts say the same, as among an answer's sentences."""
SIZES = 0.6
"""Unless the longer one says so much more."""
ALL = 1_000_000
NUMBER_WORDS = SMALL.keys() | TENS.keys() | ORDINALS.keys()


def fact_id(slug: str, url: str, text: str) -> str:
    return str(uuid.uuid5(FACT_NAMESPACE, "\x1f".join(map(storable, (slug, url, " ".join(fold(text).split()))))))


def plain(text: str) -> str:
    """One line as a reader sees it: no Markdown, HTML, images or hidden characters; of a link its words."""
    return plain_line(visible(storable(text)))


def page_text(page: ResearchPage) -> str:
    return "\n".join(page.passages[:MOST_PASSAGES])


def proposed(topic: Topic, page: ResearchPage, text: str, quote: str, *, support: float, extractive: bool) -> Fact:
    return Fact(
        id=fact_id(topic.slug, page.url, text),
        topic=topic.slug,
        category=topic.category,
        text=text,
        quote=quote,
        url=page.url,
        title=page.title,
        published=page.published,
        extractive=extractive,
        support=support,
        created=now(),
    )


def all_facts(store: ResearchStore, *, topic: str, state: FactState | None = None) -> Sequence[Fact]:
    return store.facts(topic=topic, state=state, limit=ALL)


class Said:
    """What has been said already; a fact that says it again is one fact with it."""

    def __init__(self, texts: Sequence[str] = ()) -> None:
        self._said = [_Statement(text) for text in texts]

    def add(self, text: str) -> bool:
        """Whether it was new."""
        statement = _Statement(text)
        if any(statement.like(other) for other in self._said):
            return False
        self._said.append(statement)
        return True


class _Statement:
    def __init__(self, text: str) -> None:
        said = words(text)
        self.words = frozenset(said)
        # The first word has a capital whatever it is.
        capitals = (word for part in text.split()[1:] if part.strip("\"'“‘«(")[:1].isupper() for word in words(part))
        self.specific = frozenset(word for word in said if word in NUMBER_WORDS or any(map(str.isdigit, word)))
        self.specific |= frozenset(capitals)
        self.negated = negations(text) > 0

    def like(self, other: _Statement) -> bool:
        """Nearly the same words, and not another number, name or "not" in the place of one."""
        small, large = sorted((len(self.words), len(other.words)))
        if small == 0 or small < SIZES * large or len(self.words & other.words) < SAME * small:
            return False
        return self.negated == other.negated and not (self.specific - other.words and other.specific - self.words)
