"""What a sentence is about: its content words in one form, without the words that every text has."""

from __future__ import annotations

import re
from collections.abc import Mapping

from graph.names import words

FUNCTION_WORDS: Mapping[str, frozenset[str]] = {
    language: frozenset(names.split())
    for language, names in {
        "en": """the a an and or but of to in on at by for with from as is are was were be been being has
            have had do does did will would can could may might shall should must not no it its he him
            his she her they them their we us our you your i my this that these those which who whom
            whose what when where why how than then there here if so such also into about over under
            after before between during while because through against both each more most some any all
            other own same too very just only up down out off again further once although though however
            according since until upon within without among per one yet still even along around near
            thus therefore hence moreover furthermore meanwhile today later earlier first nevertheless
            instead""",
        "fr": """le la les un une des du de d l et ou mais à a au aux en dans sur sous par pour avec sans
            est sont était etait étaient etaient fut furent être etre été ete a ont avait avaient il
            elle ils elles on nous vous je tu ce cet cette ces son sa ses leur leurs qui que quoi dont
            où ne pas plus moins très tres aussi comme si se s y entre vers chez après apres avant
            depuis pendant selon cependant toutefois ainsi alors donc car lorsque quand tout toute tous
            toutes même meme autre autres notamment puis n qu c j m t""",
        "de": """der die das den dem des ein eine einen einem einer eines und oder aber von zu zum zur in
            im an am auf aus bei mit nach seit vor für fur über uber unter durch gegen ohne um ist sind
            war waren wird werden wurde wurden sein hat haben hatte hatten er sie es wir ihr ich du sich
            nicht kein keine auch als wie wenn dass daß weil bis nur noch schon sehr mehr dieser diese
            dieses welche welcher laut jedoch""",
        "es": """el la los las un una unos unas y o pero de del a al en con por para sin sobre entre es son
            era eran fue fueron ser sido ha han había habia que quien cual cuyo su sus se lo le les no
            más mas muy también tambien como cuando donde si este esta estos estas ese esa según segun
            desde hasta""",
        "it": """il lo la i gli le un uno una e o ma di del della dei delle da dal in nel nella con su per
            tra fra è sono era erano fu furono stato che chi cui suo sua suoi si non più piu anche come
            quando dove secondo""",
        "pt": """o a os as um uma e ou mas de do da dos das em no na nos nas com por para sem sobre entre é
            são sao era eram foi foram que quem seu sua seus suas se não nao mais também tambem como
            quando onde segundo""",
        "nl": """de het een en of maar van in op aan bij met voor naar uit over onder door is zijn was
            waren werd werden heeft hebben had hij zij ze het er niet geen ook als dan die dat deze dit
            volgens""",
    }.items()
}
STOP = frozenset(word for listed in FUNCTION_WORDS.values() for name in listed for word in words(name))
NEGATIONS = frozenset(
    "not no never none neither nor cannot without ne pas jamais aucun aucune nicht kein keine nie".split()
)
SPOKEN = re.compile(r"[^\W\d_]+")
CONTRACTED = re.compile(r"n['’]t\b", re.IGNORECASE)
ENDINGS = ("ations", "ation", "ings", "ing", "edly", "ed", "ies", "es", "s", "ly", "e", "er", "ment")
SHORTEST_STEM = 4


def stem(word: str) -> str:
    """A crude one: it need only bring "founded" and "founding" together."""
    for ending in ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= SHORTEST_STEM:
            return word[: -len(ending)]
    return word


def content(text: str) -> frozenset[str]:
    """Stems of the words that carry meaning, numbers in digits left out."""
    return frozenset(stem(word) for word in words(text) if word not in STOP and not word.isdigit())


def language_of(text: str) -> str:
    """By its function words; "" where they say too little."""
    said = SPOKEN.findall(text.casefold())
    counts = {language: sum(word in listed for word in said) for language, listed in FUNCTION_WORDS.items()}
    best, second = sorted(counts, key=lambda language: -counts[language])[:2]
    return best if counts[best] >= 2 and counts[best] > counts[second] else ""


def negations(text: str) -> int:
    return sum(word in NEGATIONS for word in words(CONTRACTED.sub(" not", text)))
