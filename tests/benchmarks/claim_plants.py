"""Wrong values for true sentences: numbers, dates, names and words of quotations that the evidence does not have.

Each planter gives the sentence with one value changed and the kind of change, or None where there is nothing to change.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence

from tests.benchmarks.claim_cases import (
    DATES,
    MOIS,
    MONTH_YEAR,
    MONTHS,
    Case,
    Section,
    case_of,
    places,
    rewritten,
)

NUMBER = re.compile(r"(?<![\w.,$€£])\d{1,3}(?:,\d{3})+(?![\d,.]\d)|(?<![\w.,])\d+(?:\.\d+)?(?![\w]|[.,/]\d)")
QUOTE = re.compile(r"\"([^\"]*)\"|“([^“”]*)”|« ?([^«»]*?) ?»")
SHORTEST_QUOTE = 12


def _lacks(section: Section, value: str) -> bool:
    """Whether the evidence has none of the value's words."""
    whole = f"{section.title} {section.context}".casefold().replace(",", "")
    return not any(
        re.search(rf"(?<!\w){re.escape(part)}", whole)
        for part in value.casefold().replace(",", "").split()
        if len(part) > 2 or part.isdigit()
    )


def changed_number(
    text: str, section: Section, others: Sequence[Section], rng: random.Random
) -> tuple[str, str] | None:
    found = [one for one in NUMBER.finditer(_unquoted(text)) if not _in_date(text, one, section.doc.lang_)]
    if not found:
        return None
    one = rng.choice(found)
    written = one[0].replace(",", "")
    for _ in range(20):
        if rng.random() < 0.4:
            pool = NUMBER.findall(rng.choice(others).text)
            near = [value for value in pool if abs(len(value) - len(one[0])) <= 1]
            value, kind = (rng.choice(near) if near else ""), "number of another passage"
        elif "." in written:
            value, kind = (
                f"{float(written) + rng.choice([-1.1, 0.4, 1.3, 2.2]):.{len(written.split('.')[1])}f}",
                "number changed",
            )
        else:
            step = rng.choice([-10, -3, -2, -1, 1, 2, 3, 5, 10, 20]) * (10 ** max(0, len(written) - 4))
            number = int(written) + step
            value, kind = (f"{number:,}" if "," in one[0] else str(number)), "number changed"
        if value and not value.startswith("-") and value != one[0] and _lacks(section, value):
            return text[: one.start()] + value + text[one.end() :], kind
    return None


def same_number(text: str, section: Section, others: Sequence[Section], rng: random.Random) -> tuple[str, str] | None:
    found = [one for one in NUMBER.finditer(_unquoted(text)) if not _in_date(text, one, section.doc.lang_)]
    said = {one[0] for one in NUMBER.finditer(text)}
    pool = [value for value in NUMBER.findall(section.context) if value not in said]
    near = [(one, value) for one in found for value in pool if abs(len(value) - len(one[0])) <= 1]
    if not near:
        return None
    one, value = rng.choice(near)
    return text[: one.start()] + value + text[one.end() :], "number of the same evidence"


def changed_date(text: str, section: Section, others: Sequence[Section], rng: random.Random) -> tuple[str, str] | None:
    language = section.doc.lang_
    months = MONTHS if language == "en" else MOIS
    if found := DATES[language].search(_unquoted(text)):
        day, month, year = int(found[1] or found[4]), months.index(found[2] or found[3]), int(found[5])
        which = rng.choice(["day", "month", "year"])
        if which == "day":
            day = (day - 1 + rng.choice([1, 2, 5, 9])) % 28 + 1
        elif which == "month":
            month = (month + rng.choice([1, 2, 6])) % 12
        else:
            year += rng.choice([-10, -2, -1, 1, 2, 10])
        value = f"{day} {months[month]} {year}" if found[1] else f"{months[month]} {day}, {year}"
    elif found := MONTH_YEAR[language].search(_unquoted(text)):
        month, year = months.index(found[1]), int(found[2])
        if rng.random() < 0.5:
            month = (month + rng.choice([1, 2, 6])) % 12
        else:
            year += rng.choice([-10, -2, -1, 1, 2, 10])
        value = f"{months[month]} {year}"
    else:
        return None
    if value in section.context:
        return None
    return text[: found.start()] + value + text[found.end() :], "date shifted"


def other_name(text: str, section: Section, others: Sequence[Section], rng: random.Random) -> tuple[str, str] | None:
    here = [
        (kind, name) for kind, name in section.names if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", _unquoted(text))
    ]
    rng.shuffle(here)
    for kind, name in here:
        pool = [
            other for section_ in rng.sample(others, min(40, len(others))) for k, other in section_.names if k == kind
        ]
        pool = [other for other in pool if _lacks(section, other)]
        if pool:
            return _renamed(text, name, rng.choice(pool)), "name of another passage"
    return None


def same_name(text: str, section: Section, others: Sequence[Section], rng: random.Random) -> tuple[str, str] | None:
    unquoted = _unquoted(text)
    here = [(kind, name) for kind, name in section.names if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", unquoted)]
    rng.shuffle(here)
    for kind, name in here:
        pool = [
            o
            for k, o in section.names
            if k == kind
            and not set(o.split()) & set(text.split())
            and o not in section.title
            and not set(o.split()) & set(name.split())
        ]
        if pool:
            return _renamed(text, name, rng.choice(pool)), "name of the same evidence"
    return None


def _renamed(text: str, name: str, other: str) -> str:
    return re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", lambda _: other, text, count=1)


def altered_quote(text: str, section: Section, others: Sequence[Section], rng: random.Random) -> tuple[str, str] | None:
    found = [one for one in QUOTE.finditer(text) if len(one[one.lastindex or 0]) >= SHORTEST_QUOTE]
    found = [one for one in found if one[one.lastindex or 0].count(" ") >= 2]
    if not found:
        return None
    one = rng.choice(found)
    group = one.lastindex or 0
    inside = list(re.finditer(r"[a-zà-ÿ]{4,}", one[group]))
    if not inside:
        return None
    word = rng.choice(inside)
    pool = [other for other in re.findall(r"(?<= )[a-zà-ÿ]{4,}(?= )", rng.choice(others).text) if other != word[0]]
    if not pool:
        return None
    start = one.start(group)
    return text[: start + word.start()] + rng.choice(pool) + text[start + word.end() :], "quotation altered"


def _unquoted(text: str) -> str:
    return QUOTE.sub(lambda found: "_" * len(found[0]), text)


def _in_date(text: str, number: re.Match[str], language: str) -> bool:
    spans = [one.span() for form in (DATES, MONTH_YEAR) for one in form[language].finditer(text)]
    return any(start <= number.start() < end for start, end in spans)


Planter = Callable[[str, Section, Sequence[Section], random.Random], tuple[str, str] | None]
PLANTERS: Mapping[str, Planter] = {
    "number": changed_number,
    "name": other_name,
    "date": changed_date,
    "quotation": altered_quote,
}
SAME_EVIDENCE: Mapping[str, Planter] = {"number": same_number, "name": same_name}


def planted_cases(
    sections: Sequence[Section], count: int, seed: int, planters: Mapping[str, Planter] = PLANTERS
) -> list[Case]:
    """As many of each kind, as far as the passages have them; half of the sentences are rewritten as well."""
    rng = random.Random(seed)
    wanted = {kind: count // len(planters) for kind in planters}
    cases: list[Case] = []
    for section, place in places(sections, rng):
        for kind in sorted(wanted, key=lambda kind: rng.random()):
            if not wanted[kind]:
                continue
            others = [other for other in rng.sample(sections, min(60, len(sections))) if other.title != section.title]
            text, rules = (
                rewritten(section, place, rng)
                if rng.random() < 0.5
                else (section.sentences[place].text.strip(), ("verbatim",))
            )
            planted = planters[kind](text, section, others, rng)
            if planted is not None and planted[0] != text:
                cases.append(case_of(section, place, planted[0], rules, planted[1]))
                wanted[kind] -= 1
                break
        if not any(wanted.values()):
            break
    return cases
