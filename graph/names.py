"""One way to normalise names, for pages, text and questions alike (mission.md §2.3).

`words` turns text into the tokens that everything matches on: NFKD, case folded, accents and
possessives dropped; scripts written without spaces are cut into single characters.
"""

from __future__ import annotations

import re
import unicodedata

UNSPACED = (
    "\u3040-\u30ff"  # kana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"  # Han
    "\u0e00-\u0e7f\u0e80-\u0eff\u1780-\u17ff\u1000-\u109f"  # Thai, Lao, Khmer, Myanmar
)
TOKEN = re.compile(rf"[{UNSPACED}]|[^\W_{UNSPACED}]+")
POSSESSIVE = re.compile(r"(?<=\w)['’ʼ`´]s\b|(?<=s)['’ʼ](?!\w)", re.IGNORECASE)
ELISION = re.compile(r"\b(?:[ldjcmnst]|qu)['’ʼ](?=\w)", re.IGNORECASE)
"""French l', d', qu' …: an article or a preposition, never part of the name."""
APOSTROPHE = re.compile(r"(?<=\w)['’ʼ](?=\w)")
"""Inside a name (O'Brien) it joins."""
QUALIFIER = re.compile(r"(?<!\s)\s*[(（][^()（）]*[)）]\s*$")
ARTICLES = frozenset("the a an le la les un une der die das el los las il lo gli o os as".split())
DATE_WORDS = frozenset(
    """january february march april may june july august september october november december
    monday tuesday wednesday thursday friday saturday sunday
    janvier fevrier mars avril mai juin juillet aout septembre octobre novembre decembre
    lundi mardi mercredi jeudi vendredi samedi dimanche
    st nd rd th bc ad ce bce century centuries year years day days month months""".split()
)


def fold(text: str) -> str:
    """NFKD, case folded, without combining marks. May change the length.

    Folding can undo a decomposition and the other way round ("℠" → "SM" → "sm"), hence twice (Unicode 3.13, D145).
    """
    decomposed = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    if not decomposed.isascii():
        decomposed = "".join(ch for ch in decomposed if ch < "\u0300" or not unicodedata.combining(ch))
    return decomposed.casefold()


def words(text: str) -> list[str]:
    """The normalised tokens of a text, in order."""
    if not text.isascii():
        text = fold(text.replace("’", "'").replace("ʼ", "'"))
        return TOKEN.findall(_joined(text))
    return TOKEN.findall(_joined(text.lower()))


def _joined(text: str) -> str:
    if "'" in text or "`" in text:
        text = POSSESSIVE.sub("", text)
        text = ELISION.sub("", text)
        text = APOSTROPHE.sub("", text)
    return text


def name_key(name: str) -> str:
    """The key of a name: its tokens without a leading article, joined by spaces; "" if nothing is left."""
    tokens = words(name)
    if len(tokens) > 1 and tokens[0] in ARTICLES:
        tokens = tokens[1:]
    return " ".join(tokens)


def title_keys(title: str) -> tuple[str, ...]:
    """The keys a page can be met under: the whole title, then the title without a parenthesised qualifier.

    "Mercury (planet)" → ("mercury planet", "mercury"); the first is the entity's id.
    """
    full = name_key(title)
    if not full:
        return ()
    bare = name_key(QUALIFIER.sub("", title))
    return (full, bare) if bare and bare != full else (full,)


def is_quantity(key: str) -> bool:
    """Whether a name is only a date, number or percentage, which is no entity (mission.md §2.2)."""
    return all(token.isdigit() or token in DATE_WORDS or token[:1].isdigit() for token in key.split())
