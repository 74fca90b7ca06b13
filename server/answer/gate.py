"""The gate before anything is searched: what is no question is an error, what is an attack is refused.

It is deterministic and costs no model call. It is the first fence, not the only one: evidence is fenced in
the prompt, and citations resolve to evidence alone. So its patterns are few and mean only one thing each; a
question *about* prompt injection quotes or describes one, and passes.
"""

from __future__ import annotations

import re
import unicodedata

from graph.errors import QuestionError
from server.answer.plain import INVISIBLE

QUOTED = re.compile(
    r"\"[^\"]{0,300}\"|“[^“”]{0,300}”|«[^«»]{0,300}»|„[^„“”]{0,300}[“”]|`[^`]{0,300}`|(?<!\w)'[^']{0,300}'(?!\w)"
)
"""What is quoted is spoken about, not said."""

# An order begins a sentence or follows a word like "please"; "how do I ignore …" does not.
BEGIN = r"(?:^|[.!?:;,(){}\[\]>*#-] ?)"
ORDER = rf"(?:{BEGIN}|\b(?:please|now|then|and|also|just|first|but|so|you (?:must|should|will|can|need to)) )"
ORDER += r"(?:please |now |just |simply )?"
OLD = r"(?:previous|prior|above|earlier|preceding|foregoing|initial|original|existing|system|given)"
RULES = r"(?:instructions?|prompts?|directives?|orders?|rules?|guidelines?|commands?|directions?|constraints?)"
ALL = r"(?:all|any|every|each|everything|about|of|in|the|your|my|our|these|those|this|that|and)"
IGNORE = r"(?:ignore|disregard|forget|override|overlook|bypass|discard|do not follow|don't follow|stop following)"
TOLD = r"you(?:'ve| have| were| are)? (?:ever )?(?:been )?(?:told|instructed|given)"
SHOW = r"(?:reveal|print|show|repeat|output|display|give|tell|send|write|leak|expose|dump|share)"
WHOLE = r"(?:all|the|of|full|entire|exact|complete|verbatim|content|contents|text|own|current|original)"
HIDDEN = r"(?:system|hidden|initial|secret|developer|internal)"
FREE = r"(?:unrestricted|unfiltered|uncensored|jailbroken)"
HOW = rf"(?:how (?:can|do|could|would|should) i|how to|(?:help|teach|show) me(?: how)?(?: to)?|{BEGIN}(?:please )?)"
MAKE = r"(?:make|build|construct|assemble|synthesi[sz]e|cook|produce)"
BOMB = r"(?:(?:pipe ?|nail |car |nuclear )bomb|explosive (?:device|vest)|suicide vest)"
ASK = r"(?:write|make|show|find|generate|create|send|give|get|describe|download|i want|i need)"
POISON = r"(?:(?:chemical|biological) weapon|bioweapon|nerve (?:agent|gas)|sarin|ricin|vx gas)"

PATTERNS = (
    ("override", "en", rf"{ORDER}{IGNORE} (?:{ALL} ){{0,5}}{OLD} (?:(?:and|or|safety|user|{OLD}) ){{0,2}}{RULES}"),
    ("override", "en", rf"{ORDER}{IGNORE} (?:about )?(?:all (?:of )?)?your (?:[a-z]{{1,20}} ){{0,2}}{RULES}"),
    ("override", "en", rf"{ORDER}{IGNORE} (?:about )?(?:all|everything|anything|whatever) (?:that )?{TOLD}"),
    (
        "override",
        "fr",
        rf"{BEGIN}(?:ignore[zr]?|oublie[zr]?) (?:(?:toutes?|les|tes|vos|ces|mes) ){{1,3}}"
        r"(?:instructions?|consignes?|directives?|règles) (?:précédentes?|antérieures?|ci-dessus|initiales?)",
    ),
    (
        "override",
        "de",
        rf"{BEGIN}(?:ignoriere?|vergiss|missachte) (?:(?:bitte|alle|die|deine|diese|sämtliche) ){{1,3}}"
        r"(?:vorherigen|bisherigen|vorigen|früheren|obigen) (?:anweisungen|instruktionen|regeln|vorgaben|befehle)",
    ),
    (
        "override",
        "es",
        rf"(?:{BEGIN}|¡)(?:ignor[ae]|olvid[ae]) (?:(?:todas|las|tus|sus|estas) ){{1,3}}"
        r"(?:instrucciones|órdenes|reglas|indicaciones) (?:anteriores|previas)",
    ),
    (
        "override",
        "zh",
        r"(?:^|[。！？，,.!? ])(?:请)?(?:忽略|无视|忘记|忘掉)(?:你)?(?:之前|以上|前面|先前|上面|所有){1,2}"
        r"(?:的)?(?:所有)?(?:指令|指示|规则|提示)",
    ),
    (
        "exfiltrate",
        "en",
        rf"{ORDER}{SHOW}(?: out| down)? (?:me )?(?:{WHOLE} ){{0,4}}your (?:{WHOLE} ){{0,2}}"
        rf"(?:{HIDDEN} (?:prompt|instructions?|message|rules|directives)|prompt)\b",
    ),
    (
        "jailbreak",
        "en",
        rf"{ORDER}(?:you are|you're|you will be|act as|pretend to be|become|enter|switch to|enable) (?:now )?(?:in )?"
        rf"(?:an? |the )?(?:dan\b|{FREE} (?:ai|assistant|model|chatbot|mode)|(?:developer|god|jailbreak|sudo) mode)",
    ),
    ("forged-role", "en", r"^ ?(?:<\|(?:im_start|start_header_id|start)\|>) ?(?:system|developer|assistant)\b"),
    ("forged-role", "en", r"^ ?(?:<<sys>>|(?:<s> ?)?\[inst\]|\[system\]\(#|### ?system:|<system>)"),
    ("harm", "en", rf"{HOW} ?{MAKE} (?:an? |my own |some |the )?(?:[a-z-]{{1,20}} )?(?:{BOMB}|{POISON})\b"),
    ("harm", "en", rf"{ORDER}{ASK} [^.?!]{{0,40}}?\b(?:child|underage|preteen|minor)s? (?:porn|erotica|sex)"),
)
SLICE = 200
UNSAFE = tuple((reason, language, re.compile(pattern, re.MULTILINE)) for reason, language, pattern in PATTERNS)


def check_question(text: str, most_characters: int) -> str:
    """The question without invisible characters and needless spaces; `QuestionError` where nothing can be asked."""
    if len(text) > most_characters:
        raise QuestionError(
            f"the question has {len(text):,} characters and {most_characters:,} are allowed: shorten it, "
            "or raise answer.question_chars"
        )
    cleaned = INVISIBLE.sub("", text).strip()
    if not cleaned:
        raise QuestionError("the question is empty: write one")
    if not any(map(_carries_meaning, cleaned)):
        raise QuestionError("the question has only punctuation: write it in words")
    return cleaned


def _carries_meaning(character: str) -> bool:
    """A letter, a digit, or a symbol one may ask about (∑, €, ☂) — but not + < = > ^ ` | ~ and $."""
    kind = unicodedata.category(character)
    return kind[0] in "LN" or (kind in ("Sm", "Sc", "So") and not character.isascii())


def refused_for(text: str) -> tuple[str, str] | None:
    """(reason, language) where the question is an attack; None for every other question."""
    lines = QUOTED.sub(" … ", _folded(text))
    # Once with its lines, as an order may begin one, and once without, as it may run over several.
    for said in {lines: None, lines.replace("\n", " "): None}:
        for reason, language, pattern in UNSAFE:
            if pattern.search(said):
                return reason, language
    return None


def _folded(text: str) -> str:
    """Case, width, spaces and curly apostrophes made alike, so that patterns can be plain; lines stay apart."""
    text = INVISIBLE.sub("", text)
    slices = (text[at : at + SLICE] for at in range(0, len(text), SLICE))
    text = "".join(map(_compatible, slices))
    lines = (" ".join(line.split()) for line in text.splitlines())
    return "\n".join(filter(None, lines)).casefold().replace("’", "'")


def _compatible(text: str) -> str:
    """NFKC of a short text (of a long run of combining marks it takes quadratic time), unless it swells: ﷺ has 18."""
    normal = unicodedata.normalize("NFKC", text)
    return normal if len(normal) <= 2 * len(text) else text
