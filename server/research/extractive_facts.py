"""Facts without a model: the sentences of a page that say most about the topic and can be understood alone."""

from __future__ import annotations

import asyncio
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from graph.errors import DependencyError
from graph.names import words
from graph.protocols import Reranker
from graph.research import ResearchPage, Topic
from server.answer.claim_words import STOP, language_of, stem
from server.answer.claims import PRONOUNS
from server.answer.gate import refused_for
from server.answer.plain import CLOSED, sentences
from server.research.facts import MOST_FACTS, Said, page_text
from server.research.quotes import Reading, find_quote

FEWEST_FACTS = 3
FEWEST_WORDS, MOST_WORDS = 6, 60
MOST_SENTENCES = 2_000
SCORED = 16
"""Sentences the cross-encoder reads."""
LOGIT_GAP = 5.0
WORDS_LOGITS = 4.0
"""What all of the topic's words in a sentence are worth beside the cross-encoder's logit, as in extractive answers."""
WORDS_GAP = 0.7
LEAD = 0.5
"""What standing first is worth beside all of the topic's words: pages say first what they are about."""
LEAD_SENTENCES = 12
NO_VERB = 0.3
"""What it costs to have none of the most common verbs, as captions and lists of literature do."""
OPENING = 4
"""Words at the beginning, none of which may point back."""
LETTERS = 0.6
MOST_SEMICOLONS = 2
OPENERS = frozenset(
    words(
        "however therefore thus moreover furthermore also but and or so then hence instead meanwhile nevertheless "
        "nonetheless otherwise similarly likewise additionally finally consequently besides such there here another "
        "other others both neither either "
        "cependant donc mais et puis ainsi toutefois néanmoins aber und doch jedoch deshalb daher außerdem dabei dann "
        "pero y además entonces"
    )
)
"""Words that tie a sentence to the one before it."""
POINTERS = frozenset("it he she they this these those il elle ils elles er sie es dies dieser diese dieses".split())
VERBS = frozenset(
    words(
        "is are was were be been has have had can could may might must will would does do did became become becomes "
        "made makes began came gave went took est sont était étaient fut furent a ont avait avaient peut peuvent "
        "ist sind war waren wird werden wurde wurden hat haben hatte kann können es son era eran fue fueron ha han "
        "puede pueden"
    )
)
WITH_VERBS = frozenset(("en", "fr", "de", "es"))
BOILERPLATE = re.compile(
    r"\b(?:cookies?|all rights reserved|subscribe|newsletter|sign up|sign in|log ?in|privacy policy|"
    r"terms of (?:use|service)|click here|read more|learn more|(?:for|more) information|see also|javascript|copyright|"
    r"retrieved from|tous droits réservés|alle rechte vorbehalten|todos los derechos)\b|©|https?://|www\.",
    re.IGNORECASE,
)
LITERATURE = re.compile(r"\bISBN\b|\b(?:[Vv]ols?|pp|[Ee]ds?|et al)\.|\d[–-]\d{1,4}\.?$")
CODE = re.compile(r"[{}\\|=<>→⇒]|\$[\w(]|::|->")


@dataclass(frozen=True, slots=True)
class Sentence:
    """The how-manieth of its page, and how the page itself writes it."""

    place: int
    text: str
    quote: str
    alone: bool
    """Whether it names what it is about: no pronoun and no connective opens it."""


async def best_sentences(
    topic: Topic, page: ResearchPage, reading: Reading, reranker: Reranker | None, *, budget: float
) -> tuple[list[Sentence], str]:
    """Three to six in page order, fewer where a page has no more; and why the cross-encoder did not choose them."""
    wanted = f"{topic.title}. {topic.focus}"
    ranked = await asyncio.to_thread(_ranked, wanted, page, reading)
    logits: list[float | None] = []
    problem = ""
    if reranker is not None and ranked:
        try:
            texts = [f"{page.title}. {one.text}" for _, one in ranked[:SCORED]]
            logits = await reranker.score(wanted, texts, budget=budget)
        except DependencyError as error:
            problem = str(error)
    return _chosen(*_blended(ranked, logits)), problem


def _blended(
    ranked: Sequence[tuple[float, Sentence]], logits: Sequence[float | None]
) -> tuple[list[tuple[float, Sentence]], float]:
    """By logit and words where there are logits; and how far below the best one a sentence may be."""
    known = [logit for logit in logits if logit is not None]
    if not known:
        return list(ranked), WORDS_GAP
    average = sum(known) / len(known)
    scored = [
        ((average if logit is None else logit) + WORDS_LOGITS * score, one)
        for logit, (score, one) in zip(logits, ranked, strict=False)
    ]
    return sorted(scored, key=lambda pair: (-pair[0], pair[1].place)), LOGIT_GAP


def _chosen(ranked: Sequence[tuple[float, Sentence]], gap: float) -> list[Sentence]:
    """The best that do not repeat one another; one that needs the sentence before it only where others are few."""
    said = Said()
    chosen: list[Sentence] = []
    for alone in (True, False):
        for score, one in ranked:
            enough = len(chosen) >= (FEWEST_FACTS if not alone or score < ranked[0][0] - gap else MOST_FACTS)
            if one.alone == alone and not enough and said.add(one.text):
                chosen.append(one)
    return sorted(chosen, key=lambda one: one.place)


def _ranked(wanted: str, page: ResearchPage, reading: Reading) -> list[tuple[float, Sentence]]:
    """Sentences by the share of the topic's words in them, rare ones weighing more, and by how early they stand.

    None where neither they nor the title name the topic. It is BM25 without its lengths and counts: of sentences they
    favour captions and titles of books.
    """
    asked = _stems(wanted) or frozenset(words(wanted))
    titled = asked & (_stems(page.title) or frozenset(words(page.title)))
    found = [(one, asked & (_stems(one.text) or frozenset(words(one.text)))) for one in _candidates(page, reading)]
    frequency = Counter(word for _, shared in found for word in shared)
    weight = {word: math.log(1 + len(found) / (1 + frequency[word])) for word in asked}
    total = sum(weight.values()) or 1.0
    ranked = [
        # The page's title counts half: a sentence rarely repeats what the page is about.
        (sum(weight[word] * (1.0 if word in shared else 0.5) for word in shared | titled) / total + _form(one), one)
        for one, shared in found
        if shared or titled
    ]
    return sorted(ranked, key=lambda pair: (-pair[0], pair[1].place))


def _form(one: Sentence) -> float:
    """What its place and build say of a sentence."""
    lead = LEAD / (1 + one.place / LEAD_SENTENCES)
    return lead if language_of(one.text) not in WITH_VERBS or not VERBS.isdisjoint(words(one.text)) else lead - NO_VERB


def _stems(text: str) -> frozenset[str]:
    return frozenset(stem(word) for word in words(text) if word not in STOP)


def _candidates(page: ResearchPage, reading: Reading) -> Iterator[Sentence]:
    place = 0
    for line in _lines(page_text(page)):
        for text in sentences(line):
            place += 1
            if place > MOST_SENTENCES:
                return
            if _is_statement(text) and (quote := find_quote(text, reading)):
                said = words(text)
                alone = said[0] not in PRONOUNS | OPENERS and POINTERS.isdisjoint(said[:OPENING])
                yield Sentence(place, text, quote, alone)


def _lines(text: str) -> Iterator[str]:
    """Lines apart, so that a heading is not the beginning of a sentence; one cut in the middle is put together."""
    held = ""
    for line in text.splitlines():
        if held and not CLOSED.search(held[-8:].rstrip()) and line[:1].islower():
            held += f" {line}"
            continue
        if held.strip():
            yield held
        held = line
    if held.strip():
        yield held


def _is_statement(text: str) -> bool:
    """Whole, of a sensible length, made of words; no question, no list of links, no order to a model."""
    if not FEWEST_WORDS <= len(words(text)) <= MOST_WORDS:
        return False
    if not CLOSED.search(text) or text.rstrip("\"'”’»)]").endswith(("?", "？", "؟", "…", "...")):
        return False
    first = next((character for character in text if character.isalnum()), "")
    if unicodedata.category(first or " ") == "Ll":
        return False
    letters = sum(character.isalpha() for character in text)
    if letters < LETTERS * len(text.replace(" ", "")) or text.count(";") > MOST_SEMICOLONS:
        return False
    if BOILERPLATE.search(text) or LITERATURE.search(text) or CODE.search(text):
        return False
    return refused_for(text) is None
