"""Numbers written as words, and the words that scale or measure one, in English, French, German and Spanish."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping


def _counted(names: str, *, first: int = 0, step: int = 1) -> dict[str, int]:
    """One column per number, the names of one number joined by "/"."""
    return {name: first + step * place for place, column in enumerate(names.split()) for name in column.split("/")}


SMALL = _counted(
    """zero/zéro/null/cero one two/deux/zwei/dos three/trois/drei/tres four/quatre/vier/cuatro five/cinq/fünf/cinco
    six/sechs/seis seven/sept/sieben/siete eight/huit/acht/ocho nine/neuf/neun/nueve ten/dix/zehn/diez eleven/onze
    twelve/douze/zwölf/doce thirteen/treize/dreizehn/trece fourteen/quatorze/vierzehn/catorce fifteen/quinze/fünfzehn
    sixteen/seize/sechzehn seventeen/siebzehn eighteen/achtzehn nineteen/neunzehn"""
)
TENS = _counted(
    """twenty/vingt/vingts/zwanzig/veinte thirty/trente/dreißig/treinta forty/quarante/vierzig/cuarenta
    fifty/cinquante/fünfzig/cincuenta sixty/soixante/sechzig/sesenta seventy/septante/siebzig/setenta
    eighty/achtzig/ochenta ninety/nonante/neunzig/noventa""",
    first=20,
    step=10,
)
GERMAN_UNITS = "ein zwei drei vier fünf sechs sieben acht neun".split()
GERMAN_TENS = "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig".split()
COMPOUNDS = {f"{unit}und{ten}": TENS[ten] + value for ten in GERMAN_TENS for value, unit in enumerate(GERMAN_UNITS, 1)}
ORDINALS = _counted(
    """first/premier/première second third/troisième fourth/quatrième fifth/cinquième sixth/sixième seventh/septième
    eighth/huitième ninth/neuvième tenth/dixième eleventh/onzième twelfth/douzième thirteenth/treizième
    fourteenth/quatorzième fifteenth/quinzième sixteenth/seizième seventeenth eighteenth nineteenth
    twentieth/vingtième""",
    first=1,
) | {"deuxième": 2, "thirtieth": 30, "fortieth": 40, "fiftieth": 50}
ADDED = {"un": 1, "une": 1}
"""Articles by themselves; "vingt et un" is 21."""
HUNDRED = frozenset("hundred cent cents hundert".split())
SCALES: Mapping[str, int] = {
    name: 10**power
    for power, names in (
        (3, "thousand thousands mille millier milliers tausend mil"),
        (4, "万 萬"),
        (6, "million millions millionen millón millones mn"),
        (8, "亿 億"),
        (9, "billion billions milliard milliards milliarde milliarden bn"),
        (12, "trillion trillions"),
    )
    for name in names.split()
}
VAGUE = frozenset(
    "cent cents thousands milliers millier millions millionen millones billions milliards trillions".split()
)
"""No number by themselves: "millions of people", "fifty cents"."""
UNITS: Mapping[str, str] = {
    name: names.split()[0]
    for names in """
    % percent percentage prozent
    km kilometre kilometres kilometer kilometers kilomètre kilomètres
    m metre metres meter meters mètre mètres
    cm centimetre centimetres centimeter centimeters centimètre centimètres
    mm millimetre millimetres millimeter millimeters millimètre millimètres
    mi mile miles
    ft foot feet
    yd yard yards
    kg kilogram kilograms kilogramme kilogrammes kilo kilos
    g gram grams gramme grammes
    lb lbs
    t tonne tonnes ton tons
    ha hectare hectares
    acre acres
    year years an ans année années jahr jahre jahren
    month months mois monat monate monaten
    week weeks semaine semaines woche wochen
    day days jour jours tag tage tagen
    hour hours heure heures stunde stunden
    minute minutes minuten
    dollar dollars $ usd
    euro euros € eur
    £ pound pounds
    ¥ yen
    """.strip().splitlines()
    for name in names.split()
}
AND = frozenset("and et und y".split())
WORD = re.compile(r"[^\W\d_]+")
JOINERS = re.compile(r"(?:[ -]|[ -](?:and|et|und|y)[ -])")


def spelled(text: str) -> Iterator[tuple[int, int, int]]:
    """Numbers in words: where each begins and ends, and what it is."""
    begun: _Reading | None = None
    for word in WORD.finditer(text):
        name = word[0].casefold()
        if begun is not None:
            between = text[begun.end : word.start()]
            if name in AND and between in (" ", "-"):
                continue  # what follows it tells
            joins = JOINERS.fullmatch(between) and not (len(between) > 1 and name in SCALES)
            if joins and begun.add(name, word.end()):
                continue
            yield from begun.result()
            begun = None
        following = _Reading(word.start())
        if following.add(name, word.end()):
            begun = following
    if begun is not None:
        yield from begun.result()


class _Reading:
    """A number as its words come: `total` holds what is scaled already, `current` what may still be."""

    def __init__(self, start: int) -> None:
        self.start = start
        self.end = start
        self._total = 0
        self._current = 0
        self._words = 0
        self._last = ""
        self._closed = False

    def add(self, name: str, end: int) -> bool:
        """Take the next word if it belongs to this number."""
        taken = not self._closed and self._take(name)
        if taken:
            self.end = end
            self._words += 1
            self._last = name
        return taken

    def _take(self, name: str) -> bool:
        tail = self._current % 100
        if name in SCALES and (self._current or not self._words):
            self._total += (self._current or 1) * SCALES[name]
            self._current = 0
            return True
        if name in HUNDRED and self._current < 20:
            self._current = (self._current or 1) * 100
            return True
        if name in TENS and tail == 4 and TENS[name] == 20:  # quatre-vingts
            self._current += 76
            return True
        value = TENS.get(name) or COMPOUNDS.get(name)
        if value is not None:
            return self._plus(value, fits=tail == 0 and self._room())
        if name in ORDINALS:
            self._closed = True
            return self._plus(ORDINALS[name], fits=self._fits(ORDINALS[name], tail))
        if name in SMALL:
            return self._plus(SMALL[name], fits=self._fits(SMALL[name], tail))
        return self._words > 0 and name in ADDED and self._plus(1, fits=tail >= 20 and tail % 10 == 0)

    def _fits(self, value: int, tail: int) -> bool:
        if value >= 10:
            return (tail == 0 and self._room()) or tail in (60, 80)
        return (tail == 0 and self._room()) or (tail >= 20 and tail % 10 == 0)

    def _room(self) -> bool:
        return not self._words or self._last in HUNDRED or self._last in SCALES

    def _plus(self, value: int, *, fits: bool) -> bool:
        if fits:
            self._current += value
        return fits

    def result(self) -> Iterator[tuple[int, int, int]]:
        if not (self._words == 1 and self._last in VAGUE):
            yield self.start, self.end, self._total + self._current
