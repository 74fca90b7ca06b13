"""Does an answer's evidence say what the answer says? Each cited sentence against what it cites (mission.md §5.5).

Numbers, dates, quotations and names must be there, best where the evidence speaks of the same matter; then shared words
tell how much of the sentence is there at all. Pure: what needs a model is handed in or comes after, in
`claim_check.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from graph.names import words
from server.answer.claim_grounds import WINDOW, Grounds, Matter, Passage
from server.answer.claim_names import Name, NameIndex, names_in
from server.answer.claim_sentences import DOUBLE_QUOTES, CitedSentence
from server.answer.claim_words import STOP, content, language_of, negations
from server.answer.number_words import ORDINALS
from server.answer.quantities import Date, Number, Quantities, blanked, quantities
from server.model import Claim, Verdict

DOUBTFUL = 0.5
"""Share of a claim's words in its evidence below which the cross-encoder is asked. For 60 faithful sentences of
squad_dev it is .67 to 1; where the same sentences cite another page 0 to .44, and the logit at best -4.8, not +6."""
FEW = 0.25
ALMOST_NONE = 0.1
"""Where there is no logit: below the first a claim is weak, below the second it is not supported."""
ENOUGH_WORDS = 4
REVERSED = 0.75
"""Share of words, both ways, from which two sentences say the same: then one "not" is a contradiction."""
FEWEST_WORDS = 2
"""Besides a name, to look for where the evidence speaks of it."""
MOST_REASONS = 3
PRONOUNS = frozenset(
    """he she it they him her his hers its their them this these that those who which il elle ils elles son sa ses leur
    leurs ce cette ces qui lui er sie es ihr sein seine dieser diese dieses""".split()
)
PAUSES = re.compile(r"\[?(?:\.\.\.|…)\]?|\[[^\[\]]{0,80}\]")
Slot = tuple[tuple[str, ...], tuple[str, ...]]
SEVERITY: Mapping[Verdict, int] = {"supported": 0, "weak": 1, "unsupported": 2}


@dataclass(frozen=True, slots=True)
class Finding:
    """What is amiss with a claim."""

    verdict: Verdict
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A claim and how much of it stands in its evidence by shared words; `window`: the passage nearest to it."""

    claim: Claim
    text: str
    """Without its markers."""
    share: float
    window: str
    comparable: bool
    """Whether claim and evidence are in one language, so that words say something."""
    count: int
    """Content words of the claim."""
    label: str

    @property
    def doubtful(self) -> bool:
        return self.comparable and self.count > 1 and self.share < DOUBTFUL and self.claim.verdict != "unsupported"


def check_sentence(sentence: CitedSentence, grounds: Grounds, recognised: Iterable[str] = ()) -> Checked:
    """`recognised`: names that a language model sees in the sentence."""
    text, quotes = _without_quotes(sentence.text)
    counted = quantities(text)
    spans = [*((one.start, one.end) for one in counted.numbers), *((one.start, one.end) for one in counted.dates)]
    matter = Matter(blanked(sentence.text, spans), grounds)
    language = language_of(sentence.text)
    comparable = not language or not grounds.language or language == grounds.language
    findings = [
        *_quotes(quotes, grounds, comparable),
        *_dates(counted.dates, grounds, matter),
        *_numbers(counted.numbers, text, grounds, matter),
        *_names(names_in(blanked(text, spans), recognised), text, grounds, matter, comparable),
        *_negation(sentence.text, matter, comparable),
    ]
    worst = max(findings, key=lambda finding: SEVERITY[finding.verdict], default=Finding("supported", ""))
    verdict = worst.verdict
    reasons = dict.fromkeys(finding.reason for finding in findings if finding.verdict == verdict)
    claim = Claim(
        start=sentence.start,
        end=sentence.end,
        numbers=sentence.numbers,
        verdict=verdict,
        reason="; ".join(list(reasons)[:MOST_REASONS]),
    )
    return Checked(
        claim=claim,
        text=" ".join(sentence.text.split()),
        share=matter.share,
        window=" ".join((f"{grounds.title}.", *(passage.text for passage in matter.window()))),
        comparable=comparable,
        count=len(matter.said),
        label=grounds.label,
    )


def judged_by_score(checked: Checked, score: float, unsupported_below: float, weak_below: float) -> Claim:
    """The claim, with what the cross-encoder's logit says of it; the bounds are the zones' (mission.md §5.6)."""
    if score >= weak_below:
        return checked.claim
    return _worse(checked, "unsupported" if score < unsupported_below else "weak")


def judged_by_words(checked: Checked) -> Claim:
    """The claim, with what shared words alone say of it."""
    if not checked.doubtful or checked.share >= FEW:
        return checked.claim
    few = checked.share >= ALMOST_NONE or checked.count < ENOUGH_WORDS
    return _worse(checked, "weak" if few else "unsupported")


def _worse(checked: Checked, verdict: Verdict) -> Claim:
    said = f"{checked.label} {'does not speak' if verdict == 'unsupported' else 'hardly speaks'} of this"
    before = checked.claim
    if SEVERITY[before.verdict] > SEVERITY[verdict]:
        return before
    reason = f"{before.reason}; {said}" if before.verdict == verdict else said
    return replace(before, verdict=verdict, reason=reason)


def _numbers(numbers: Iterable[Number], text: str, grounds: Grounds, matter: Matter) -> Iterator[Finding]:
    for number in numbers:
        if number.in_words and (number.text.casefold() in ("one", "first", "premier", "première")):
            continue
        if number.in_words and number.text.casefold() in ORDINALS and text[number.end : number.end + 1] == ",":
            continue  # "Second, …"
        here = [*matter.window_at(number.start), grounds.head]
        if any(part.quantities.has_number(number) for part in here):
            continue
        if any(passage.quantities.has_number(number) for passage in grounds.passages):
            yield Finding("weak", f"the number {number.text} is in {grounds.label}, but about something else")
        elif grounds.rest.quantities.has_number(number):
            continue
        elif grounds.rest.quantities.has_value(number):
            yield Finding("weak", f"the number {number.text} is in {grounds.label} with another unit")
        else:
            yield Finding("unsupported", f"the number {number.text} is not in {grounds.label}")


def _dates(dates: Iterable[Date], grounds: Grounds, matter: Matter) -> Iterator[Finding]:
    for date in dates:
        window = [*matter.window_at(date.start), grounds.head]
        if any(part.quantities.has_date(date) for part in window) or _together(window).has_date(date):
            continue
        if any(passage.quantities.has_date(date) for passage in grounds.passages):
            yield Finding("weak", f"the date {date.text} is in {grounds.label}, but about something else")
        elif not grounds.rest.quantities.has_date(date):
            yield Finding("unsupported", f"the date {date.text} is not in {grounds.label}")


def _together(passages: Sequence[Passage]) -> Quantities:
    return Quantities(
        tuple(number for passage in passages for number in passage.quantities.numbers),
        tuple(date for passage in passages for date in passage.quantities.dates),
    )


def _without_quotes(text: str) -> tuple[str, list[str]]:
    """The text with spaces for what is quoted, and the quotations."""
    found = list(DOUBLE_QUOTES.finditer(text))
    return blanked(text, [quote.span() for quote in found]), [quote[0][1:-1].strip() for quote in found]


def _quotes(quotes: Iterable[str], grounds: Grounds, comparable: bool) -> Iterator[Finding]:
    """Word for word, but for case, accents and punctuation; "…" and "[…]" may leave something out."""
    whole = f" {' '.join(words(grounds.rest.text))} {' '.join(words(grounds.head.text))} "
    for quote in quotes:
        parts = [said for part in PAUSES.split(quote) if (said := words(part))]
        if all(f" {' '.join(said)} " in whole for said in parts):
            continue
        # One word in quotation marks is often irony, and a quotation may have been translated.
        verdict: Verdict = "unsupported" if sum(map(len, parts)) > 1 and comparable else "weak"
        yield Finding(verdict, f"the quotation “{_short(quote)}” is not in {grounds.label}")


def _names(names: Iterable[Name], text: str, grounds: Grounds, matter: Matter, comparable: bool) -> Iterator[Finding]:
    everywhere = NameIndex(
        grounds.rest.names.words | grounds.head.names.words, grounds.rest.names.initials | grounds.head.names.initials
    )
    claimed = words(text)
    for name in names:
        if not everywhere.has(name, name.firm):
            verdict: Verdict = "unsupported" if comparable else "weak"
            yield Finding(verdict, f"the name {name.text} is not in {grounds.label}")
        elif not everywhere.has(name, name.doubtful):
            yield Finding("weak", f"the name {name.text} is not in {grounds.label}")
        elif not _named_here(name, grounds, matter, claimed):
            yield Finding("weak", f"the name {name.text} is in {grounds.label}, but about something else")


def _named_here(name: Name, grounds: Grounds, matter: Matter, claimed: Sequence[str]) -> bool:
    """Whether the name is where the evidence speaks of the matter, or may be meant there by a pronoun."""
    own = content(name.text)
    places = _slots(words(name.text), claimed)
    if any(_stands_in(name, part, places) for part in grounds.passages):
        return True
    window = matter.window_at(name.start, own)
    if any(_taken(part, places, claimed) for part in window[:WINDOW]):
        return False
    if len(matter.said - own) < FEWEST_WORDS:
        return True
    here = [*window, grounds.head]
    if all(any(part.names.has_word(token) for part in here) for token in name.firm):
        return True
    if not any(PRONOUNS & set(words(part.text)) for part in window[:1]):
        return False
    others = {word for part in window[:1] for found in names_in(part.text) for word in found.firm}
    return all(grounds.head.names.has_word(word) for word in others.difference(claimed))


def _stands_in(name: Name, passage: Passage, places: Sequence[Slot]) -> bool:
    """Whether the evidence has the name between the very words between which the claim has it."""
    own = words(name.text)
    if not passage.names.words.issuperset(own):
        return False
    return any(_same_slot(mine, theirs) for theirs in _slots(own, words(passage.text)) for mine in places)


def _taken(passage: Passage, places: Sequence[Slot], claimed: Sequence[str]) -> bool:
    """Whether the evidence has another name there."""
    said = words(passage.text)
    others = [found for found in names_in(passage.text) if not set(found.firm) & set(claimed)]
    return any(
        _same_slot(mine, theirs) for other in others for mine in places for theirs in _slots(words(other.text), said)
    )


def _slots(part: Sequence[str], whole: Sequence[str]) -> list[Slot]:
    """The two words before and the two behind each place where a text has these words."""
    width = len(part)
    return [
        (tuple(whole[max(0, at - 2) : at]), tuple(whole[at + width : at + width + 2]))
        for at in range(len(whole) - width + 1)
        if width and list(whole[at : at + width]) == list(part)
    ]


def _same_slot(one: Slot, other: Slot) -> bool:
    """Both neighbours, or both words on one side and one of them not a mere function word."""
    if one[0][-1:] == other[0][-1:] and one[1][:1] == other[1][:1]:
        return bool(one[0] or one[1])
    return any(
        mine == theirs and len(mine) == 2 and not STOP.issuperset(mine) for mine, theirs in zip(one, other, strict=True)
    )


def _negation(text: str, matter: Matter, comparable: bool) -> Iterator[Finding]:
    """Only where both sentences are otherwise nearly the same."""
    window = matter.window()
    if not window or not comparable or not matter.said:
        return
    nearest = window[0]
    shared = len(matter.said & nearest.words)
    if shared < REVERSED * len(matter.said) or shared < REVERSED * len(nearest.words):
        return
    if (negations(text) > 0) != (negations(nearest.text) > 0):
        yield Finding("weak", "one says that it is so, the other that it is not")


def _short(quote: str) -> str:
    return quote if len(quote) <= 60 else f"{quote[:57].rstrip()}…"
