"""Numbers and dates in a text, in one form: "1,000" = "1 000" = "one thousand", "3 October 1990" = "1990-10-03"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import pairwise

from graph.names import UNSPACED
from server.answer.number_words import SCALES, UNITS, spelled

MONTHS = {
    name: month
    for month, names in enumerate(
        """
        january jan janvier janv januar jänner enero gennaio janeiro januari
        february feb février fevrier févr februar febrero febbraio fevereiro februari
        march mar mars märz marzo março maart
        april apr avril avr abril aprile
        may mai mayo maggio maio mei
        june jun juin juni junio giugno junho
        july jul juillet juil juli julio luglio julho
        august aug août aout agosto augustus
        september sep sept septembre septiembre settembre setembro
        october oct octobre oktober okt octubre ottobre outubro
        november nov novembre noviembre novembro
        december dec décembre decembre déc dezember dez diciembre dicembre dezembro
        """.strip().splitlines(),
        1,
    )
    for name in names.split()
}
MONTH = "(?P<name>" + "|".join(sorted(MONTHS, key=len, reverse=True)) + r")\b\.?"
ORDINAL = r"(?:st|nd|rd|th|er|re|ère|ème|eme|e|º|ª|°)"
DAY = rf"(?<!\d)(?<!\d[.,])(?P<day>3[01]|[12]\d|0?[1-9])(?:{ORDINAL}\b)?"
YEAR = r"(?P<year>[12]\d{3}|[1-9]\d{2})(?![\d%])(?![,.]\d)"
GAP = r"[.,]?\s{1,3}(?:(?:of|de|del|di)\s)?"
NAMED_MONTH = re.compile(rf"\b{MONTH}", re.IGNORECASE)
DATE_FORMS = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        r"(?<![\d-])(?P<year>\d{4})-(?P<month>0[1-9]|1[0-2])-(?P<day>3[01]|[12]\d|0[1-9])(?![\d-])",
        r"(?<!\d)(?P<day>3[01]|[12]\d|0?[1-9])[./](?P<month>1[0-2]|0?[1-9])[./](?P<year>[12]\d{3})(?!\d)",
        r"(?<!\d)(?P<month>1[0-2]|0?[1-9])/(?P<day>3[01]|[12]\d|0?[1-9])/(?P<year>[12]\d{3})(?!\d)",
        r"(?<!\d)(?P<year>\d{4})\s?年(?:\s?(?P<month>1[0-2]|0?[1-9])\s?月(?:\s?(?P<day>3[01]|[12]\d|0?[1-9])\s?日)?)?",
        r"(?<!\d)(?P<month>1[0-2]|0?[1-9])\s?月\s?(?P<day>3[01]|[12]\d|0?[1-9])\s?日",
        rf"{DAY}{GAP}{MONTH}(?:{GAP}{YEAR})?",
        rf"\b{MONTH}\s{{1,3}}{DAY}(?!\d|[.,]\d)(?:,?\s{{1,3}}{YEAR})?",
        rf"\b{MONTH}{GAP}{YEAR}",
        rf"\b(?:in|of|by|since|from|until|during|early|late|mid|en|im|seit|bis|dès|depuis)\s{MONTH}",
    )
)
CAPITAL_MONTHS = frozenset({"may", "march", "mar", "august", "jun", "dec", "sep"})
"""Words too; as months they have a capital letter."""
PLAIN = r"\d+(?:[.,]\d+)*"
GROUPED = r"\d{1,3}(?:[ \u00a0\u202f'’]\d{3})+(?:[.,]\d+)?(?!\d)"
DIGITS = re.compile(
    rf"(?<![^\W{UNSPACED}])(?<!\d[.,])(?P<sign>US\$|[$€£¥])?\s?(?P<digits>{GROUPED}|{PLAIN})(?P<percent>\s?%)?"
    rf"(?P<tail>(?:{ORDINAL}|'?s)\b)?"
)
SCALE = re.compile(
    r"[\s-]{0,2}(?P<scale>[万萬亿億]|(?:" + "|".join(sorted(SCALES, key=len, reverse=True)) + r")(?![^\W\d_]))",
    re.IGNORECASE,
)
UNIT = re.compile(
    r"[\s-]{0,2}(?:(?P<per>per\s?cent|pour\s?cent|por\s?ciento)\b|(?:de\s|d['’])?(?P<unit>[^\W\d_]{1,12}\b|[€$£]))",
    re.IGNORECASE,
)
RANGE = re.compile(r"\s?(?:[-–—]|to|and|or|à|et|ou|bis|und)\s?", re.IGNORECASE)
SLASHED = re.compile(r"\d{1,2}[./]\d{1,2}[./]\d{4}")
ROMAN = re.compile(r"\b(?P<roman>[IVX]{1,5})(?:e|er|ème|th)?\s(?=siècle|century)")
ROMAN_DIGITS = {"I": 1, "V": 5, "X": 10}
DECADE = "decade"


@dataclass(frozen=True, slots=True)
class Number:
    """A number as it was written, and what it may mean: "1.234" is 1234 in German, 1.234 in English."""

    start: int
    end: int
    text: str
    values: frozenset[Decimal]
    unit: str = ""
    scale: int = 1
    """What the words behind it multiplied it by."""
    in_words: bool = False

    def agrees(self, other: Number) -> bool:
        """The same value; units are compared where both have one."""
        return self.same_value(other) and (self.unit == other.unit or not self.unit or not other.unit)

    def same_value(self, other: Number) -> bool:
        if not self.values.isdisjoint(other.values):
            return True
        return self.unit == DECADE and any(0 <= b - a < 10 for a in self.values for b in other.values)


@dataclass(frozen=True, slots=True)
class Date:
    """A date, or the part of one that is said."""

    start: int
    end: int
    text: str
    year: int | None = None
    month: int | None = None
    day: int | None = None

    def within(self, other: Date) -> bool:
        """Whether all that this one says, the other says too; 1/2/1990 is in January or in February."""
        if SLASHED.fullmatch(other.text) and (other.day or 13) <= 12:
            return self._within(other) or self._within(replace(other, month=other.day, day=other.month))
        if SLASHED.fullmatch(self.text) and (self.day or 13) <= 12:
            return self._within(other) or replace(self, month=self.day, day=self.month)._within(other)
        return self._within(other)

    def _within(self, other: Date) -> bool:
        return all(
            mine is None or mine == theirs
            for mine, theirs in ((self.year, other.year), (self.month, other.month), (self.day, other.day))
        )


@dataclass(frozen=True, slots=True)
class Quantities:
    """The numbers and dates of a text; years and days of its dates are among `all_numbers` as well."""

    numbers: tuple[Number, ...]
    dates: tuple[Date, ...]

    @property
    def all_numbers(self) -> tuple[Number, ...]:
        parts = [
            Number(date.start, date.end, date.text, frozenset({Decimal(part)}))
            for date in self.dates
            for part in (date.year, date.day)
            if part is not None
        ]
        return (*self.numbers, *parts)

    def has_number(self, wanted: Number) -> bool:
        """A day of a date is a number only for what is in digits, as in "2–4 July"."""
        return any(wanted.agrees(number) for number in self._comparable(wanted))

    def has_value(self, wanted: Number) -> bool:
        """The same without regard to its unit."""
        return any(wanted.same_value(number) for number in self._comparable(wanted))

    def _comparable(self, wanted: Number) -> tuple[Number, ...]:
        return self.numbers if wanted.in_words else self.all_numbers

    def has_date(self, wanted: Date) -> bool:
        """In one place, or the day here and its year there: "on 3 October of that year"."""
        if any(wanted.within(date) for date in self.dates):
            return True
        year = wanted.year
        if year is None or not any(replace(wanted, year=None).within(date) for date in self.dates if date.year is None):
            return False
        return any(Decimal(year) in number.values for number in self.all_numbers)


def quantities(text: str) -> Quantities:
    """What a text counts and dates. Never raises."""
    dates = tuple(_dates(text))
    rest = blanked(text, [(date.start, date.end) for date in dates])
    digits = list(_digits(rest))
    rest = blanked(rest, [(number.start, number.end) for number in digits])
    words = [
        _measured(rest, Number(start, end, text[start:end], frozenset({Decimal(value)}), in_words=True))
        for start, end, value in spelled(rest)
    ]
    return Quantities(tuple(_ranged(text, [*digits, *words])), dates)


def blanked(text: str, spans: list[tuple[int, int]]) -> str:
    """The text with spaces where the spans are; its length stays."""
    for start, end in spans:
        text = text[:start] + " " * (end - start) + text[end:]
    return text


def _dates(text: str) -> Iterator[Date]:
    named = NAMED_MONTH.search(text) is not None
    counted = any(character.isdigit() for character in text)
    for form in DATE_FORMS:
        if not (named or counted) or ("name" in form.groupindex and not named):
            continue
        taken = []
        for found in form.finditer(text):
            parts = found.groupdict()
            name = parts.get("name")
            if name and name.islower() and name in CAPITAL_MONTHS:
                continue
            month = MONTHS[name.lower()] if name else int(parts["month"]) if parts.get("month") else None
            day, year = parts.get("day"), parts.get("year")
            start = found.start("name") if name and not day and not year else found.start()
            yield Date(
                start,
                found.end(),
                text[start : found.end()].strip(" ,"),
                year=int(year) if year else None,
                month=month,
                day=int(day) if day else None,
            )
            taken.append(found.span())
        text = blanked(text, taken)


def _digits(text: str) -> Iterator[Number]:
    for found in DIGITS.finditer(text):
        following = text[found.end() : found.end() + 1]
        tail = (found["tail"] or "").lower()
        digits = found["digits"].rstrip(".,")
        values = _readings(digits)
        if not values:
            continue
        number = Number(found.start(), found.end(), found[0].strip(), values)
        if tail in ("s", "'s") and all(value % 10 == 0 for value in values):
            number = replace(number, unit=DECADE)
        elif found["percent"]:
            number = replace(number, unit="%")
        elif not tail or not following.isalnum():
            number = _measured(text, number)
            if found["sign"]:
                number = replace(number, unit=UNITS.get(found["sign"][-1], ""))
        yield number
    for found in ROMAN.finditer(text):
        yield Number(found.start(), found.end(), found[0].strip(), frozenset({Decimal(_roman(found["roman"]))}))


def _readings(digits: str) -> frozenset[Decimal]:
    """What the separators may mean; nothing for a version or an address such as 3.11.2."""
    digits = re.sub(r"[ \u00a0\u202f'’]", "", digits)
    marks = [mark for mark in digits if mark in ".,"]
    if not marks:
        return frozenset({Decimal(digits)})
    whole, _, rest = digits.rpartition(marks[-1])
    bare = re.sub(r"[.,]", "", whole)
    groups = re.split(r"[.,]", digits)
    in_groups = len(groups[0]) <= 3 and groups[0] != "0" and all(len(group) == 3 for group in groups[1:])
    if len(marks) > 1 and len(set(marks)) == 1:
        return frozenset({Decimal("".join(groups))}) if in_groups else frozenset()
    readings = {Decimal(f"{bare}.{rest}")}
    if len(marks) == 1 and in_groups:
        readings.add(Decimal("".join(groups)))
    return frozenset(readings)


def _measured(text: str, number: Number) -> Number:
    """With the words behind it: "5 million km", "42 per cent"."""
    end = number.end
    factor = 1
    while factor < 10**12 and (scale := SCALE.match(text, end)):
        factor *= SCALES[scale["scale"].lower()]
        end = scale.end()
    values = frozenset(value * factor for value in number.values)
    unit = UNIT.match(text, end)
    named = ("%" if unit["per"] else UNITS.get(unit["unit"].lower(), "")) if unit else ""
    written = number.text + text[number.end : end]
    return replace(number, end=end, values=values, unit=named or number.unit, scale=factor, text=written)


def _ranged(text: str, numbers: list[Number]) -> Iterator[Number]:
    """The first number of a range may have the scale and unit of the second, the second the century of the first."""
    numbers.sort(key=lambda number: number.start)
    ranged = list(numbers)
    for place, (first, second) in enumerate(pairwise(numbers)):
        if not RANGE.fullmatch(text[first.end : second.start]):
            continue
        scaled = {value * second.scale for value in first.values} if first.scale == 1 else set()
        values = ranged[place].values | scaled
        ranged[place] = replace(ranged[place], values=values, unit=first.unit or second.unit)
        if len(first.text) == 4 and first.text.isdigit() and len(second.text) == 2 and second.text.isdigit():
            ranged[place + 1] = replace(second, values=second.values | {Decimal(first.text[:2] + second.text)})
    yield from ranged


def _roman(written: str) -> int:
    values = [ROMAN_DIGITS[letter] for letter in written]
    return sum(-value if value < following else value for value, following in pairwise([*values, 0]))
