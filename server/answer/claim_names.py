"""Names in a claim, and whether evidence has them: by whole words, with partial names, plurals and initials allowed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from graph.names import DATE_WORDS, fold, words
from server.answer.claim_words import STOP, language_of
from server.answer.number_words import COMPOUNDS, ORDINALS, SCALES, SMALL, TENS
from server.answer.quantities import MONTHS

TOKEN = re.compile(r"[^\W_]+(?:[.'’-][^\W_]+)*")
ELIDED = re.compile(r"^(?:[ldjcmnst]|qu)['’](?=\w)", re.IGNORECASE)
CONNECTORS = frozenset("of de du des von van der di da del la le the und".split())
OPENS = re.compile(r"(?:^|[.!?:;•\[]\s*)\s*$")
"""What a word stands behind that has a capital letter for its place only."""
CODE = re.compile(r"(?=.*\d)(?=.*[A-Za-z])[A-Za-z\d.'’-]+|\d+(?:\.\d+){2,}")
MEASURE = re.compile(
    r"h\d{2}|\d+(?:st|nd|rd|th|e|er|ère|ème|eme|s|km|m|cm|mm|kg|g|ft|mi|h|k|bn|mn)?|.*['’]s", re.IGNORECASE
)
HONORIFICS = frozenset(
    """mr mrs ms miss dr sir lord lady saint st prof professor president king queen emperor empress pope prince
    princess duke count general captain colonel bishop cardinal minister senator governor mayor judge
    monsieur madame roi reine président général herr frau señor don""".split()
)
NO_NAMES = frozenset(
    fold(word)
    for listed in (DATE_WORDS, HONORIFICS, SMALL, TENS, COMPOUNDS, ORDINALS, SCALES, MONTHS)
    for word in listed
) | {"wikipedia", "source", "sources", "note", "section"}
SUFFIXES = frozenset("s es n an ian ean ese ish i ic y e al ns ans ians er ers".split())
NATIONS = tuple(
    frozenset(names.split())
    for names in (
        "france french frenchman francais francaise francais",
        "spain spanish spaniard spaniards",
        "england english british britain uk",
        "netherlands dutch holland",
        "greece greek greeks",
        "germany german germans allemagne allemand",
        "china chinese",
        "wales welsh",
        "scotland scottish scots",
        "ireland irish",
        "poland polish poles",
        "denmark danish danes",
        "sweden swedish swedes",
        "switzerland swiss",
        "turkey turkish turks",
        "finland finnish",
        "norway norwegian",
        "us usa america american americans",
        "uk british",
        "europe european",
    )
)
ADVERB = re.compile(r".{3,}(?:ly|ing|ed|ment|tion|ions)$")


@dataclass(frozen=True, slots=True)
class Name:
    """A run of capitalised words; `firm` are those that are a name beyond doubt, in the words of `graph.names`."""

    text: str
    start: int
    firm: tuple[str, ...]
    doubtful: tuple[str, ...] = ()
    """The word that opens the sentence."""


@dataclass(frozen=True, slots=True)
class NameIndex:
    """All words of a text, and the initials of its names."""

    words: frozenset[str]
    initials: frozenset[str] = field(default_factory=frozenset)

    def has(self, name: Name, tokens: Sequence[str]) -> bool:
        if all(self.has_word(token) for token in tokens):
            return True
        return len(name.firm) > 1 and "".join(token[0] for token in name.firm) in self.words

    def has_word(self, token: str) -> bool:
        if token in self.words or token in self.initials:
            return True
        if any(token in nation and not nation.isdisjoint(self.words) for nation in NATIONS):
            return True
        return len(token) > 3 and any(_varies(token, word) for word in self.words if word[:3] == token[:3])


def index_of(text: str) -> NameIndex:
    runs = _runs(text)
    initials = {"".join(fold(token[0]) for token, _, _ in run if token[0].isupper()) for run in runs if len(run) > 1}
    dotted = {fold(found.replace(".", "")) for found in re.findall(r"\b(?:[^\W\d_]\.){2,5}", text)}
    joined = {part for token in TOKEN.findall(text) if CODE.fullmatch(token) for part in (fold(token),)}
    return NameIndex(frozenset(words(text)) | dotted | joined, frozenset(initials))


def names_in(text: str, recognised: Iterable[str] = ()) -> list[Name]:
    """`recognised`: names that a language model sees in it; they decide whether the first word is one."""
    known = {word for name in recognised for word in words(name)}
    if language_of(text) == "de":  # which writes every noun with a capital letter
        return []
    found = [_name(run, text, known) for run in _runs(text)]
    found += [
        Name(token[0], token.start(), (fold(token[0]),))
        for token in TOKEN.finditer(text)
        if CODE.fullmatch(token[0]) and not MEASURE.fullmatch(token[0])
    ]
    return [name for name in found if name.firm or name.doubtful]


def _runs(text: str) -> list[list[tuple[str, int, int]]]:
    """Capitalised words that stand side by side or with "of" between them: (word, start, end)."""
    runs: list[list[tuple[str, int, int]]] = []
    pending = False
    for found in TOKEN.finditer(text):
        elided = ELIDED.match(found[0])
        start = found.start() + (elided.end() if elided else 0)
        token = text[start : found.end()]
        capital = token[0].isupper() or any(letter.isupper() for letter in token[1:])
        adjoining = bool(runs) and text[runs[-1][-1][2] : start].strip(" ") in (
            "",
            "&",
            *(CONNECTORS if pending else ()),
        )
        if capital:
            if adjoining and not elided:
                runs[-1].append((token, start, found.end()))
            else:
                runs.append([(token, start, found.end())])
        pending = not capital and token in CONNECTORS
    return runs


def _name(run: list[tuple[str, int, int]], text: str, known: set[str]) -> Name:
    firm: list[str] = []
    doubtful: list[str] = []
    first = run[0][1]
    for token, start, _ in run:
        opens = start == first and OPENS.search(text[:start]) is not None
        for word in words(token):
            common = word in STOP and not (token.isupper() and len(token) > 1)
            if len(word) < 2 or word.isdigit() or common or word in NO_NAMES:
                continue
            if opens and not (token.isupper() and len(token) > 1) and word not in known:
                if len(run) > 1 and not ADVERB.fullmatch(word):
                    doubtful.append(word)
            else:
                firm.append(word)
    return Name(text[first : run[-1][2]], first, tuple(firm), tuple(doubtful))


def _varies(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    if len(short) < 4 or len(long) - len(short) > 4:
        return False
    shared = short if long.startswith(short) else short[:-1]
    if not long.startswith(shared) or len(shared) < 4:
        return False
    rests = {short[len(shared) :], long[len(shared) :]}
    return all(not rest or rest in SUFFIXES for rest in rests)
