"""Which language a text is in: by script, by function words, by langdetect, or else the wiki's own."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path
from threading import Lock

from langdetect import detector_factory
from langdetect.lang_detect_exception import LangDetectException

SAMPLE_CHARACTERS = 1000
MIN_LETTERS = 20
"""Below this langdetect is little better than chance; the default stands."""
PRIOR = 0.5
"""Weight of the wiki's own language before a word is read; the other half is spread over all languages."""
SURE = 0.9
"""How sure langdetect must be to overrule the default."""
LEAD = 2
"""How many times more function words than the next language the winner must have."""

LETTER = re.compile(r"[^\W\d_]")
WORD = re.compile(r"[^\W\d_]+")
NOT_PROSE = re.compile(r"```(?s:.*?)```|https?://\S+|`[^`\n]*`|^#+ .*$", re.MULTILINE)
SCRIPTS = {
    "ja": re.compile("[\u3040-\u30ff]"),
    "ko": re.compile("[\uac00-\ud7af\u1100-\u11ff]"),
    "zh": re.compile("[\u3400-\u4dbf\u4e00-\u9fff]"),
    "th": re.compile("[\u0e00-\u0e7f]"),
    "he": re.compile("[\u0590-\u05ff]"),
    "el": re.compile("[\u0370-\u03ff]"),
    "hy": re.compile("[\u0530-\u058f]"),
    "ka": re.compile("[\u10a0-\u10ff]"),
}
"""Scripts that (nearly) one language alone is written in; kana before Han, since Japanese uses both."""
OTHER_SCRIPTS = (
    (re.compile("[\u0400-\u052f]"), ("ru", "uk", "bg", "sr", "mk", "be", "kk", "ky", "mn", "tg", "tt", "ba", "cv")),
    (re.compile("[\u0600-\u06ff]"), ("ar", "fa", "ur", "ps", "ug", "sd", "ckb")),
    (re.compile("[\u0900-\u0dff]"), ("hi", "bn", "mr", "ne", "ta", "te", "kn", "ml", "gu", "pa", "si", "or", "as")),
)
FUNCTION_WORDS = {
    "en": "the of and to in is was for that with as on by it from are were which this did does an",
    "fr": "le la les de des du et est en un une que qui dans pour par sur pas au aux sont été ce cette",
    "de": "der die das und ist in den von zu mit dem des ein eine einer nicht auf für im wurde sich auch",
    "es": "el la los las de del y en que es un una por con para se fue como su más al",
    "it": "il lo la i gli le di del della e è che un una in per con non si fu da al nel sono",
    "pt": "o a os as de do da dos das e é que um uma em para com não por foi no na ao são mais",
    "nl": "de het een van en in is dat op te zijn met voor niet aan door werd deze ook bij naar",
    "pl": "w i na z do się jest nie to że od po przez był oraz jego dla są",
    "sv": "och i att det som en ett är av för på med den till inte var från om har",
    "cs": "a v na se je že s z do o to který která jako by pro byl byla jsou od",
    "ru": "и в не на с что по как из у за от к это для его был была или то же при во о",
    "uk": "і в не на з що у та як від за це для був була або її його про є й при",
    "bg": "и на в от за се да с е по като са не това до който през или има към",
}
"""The commonest small words of languages that share an alphabet."""
QUESTION_WORDS = {
    "en": "who what when where why how which whose",
    "fr": "qui quand pourquoi comment quel quelle quels quelles combien où",
    "de": "wer was wann warum wie wo welche welcher welches wieso",
    "es": "quién qué cuándo cuál dónde cómo cuánto quiénes",
    "it": "chi cosa quando perché quale dove quanti come",
    "pt": "quem quando onde qual quais quanto porque",
    "nl": "wie wat wanneer waarom waar hoe welke",
    "pl": "kto co kiedy gdzie jak który dlaczego ile",
    "sv": "vem vad när varför hur vilken vilket",
    "cs": "kdo co kdy kde jak proč kolik",
    "ru": "кто что когда где как почему какой сколько",
    "uk": "хто що коли де як чому який скільки",
    "bg": "кой какво кога къде как защо колко",
}
"""They count twice, so that "Who wrote Animal Farm?" is enough."""
_loading = Lock()


@cache
def _languages_of() -> dict[str, tuple[str, ...]]:
    owners: dict[str, list[str]] = {}
    for code, listed in FUNCTION_WORDS.items():
        for word in {*listed.split(), *QUESTION_WORDS[code].split()}:
            owners.setdefault(word, []).extend([code] * (2 if word in QUESTION_WORDS[code].split() else 1))
    return {word: tuple(codes) for word, codes in owners.items()}


@cache
def _factory() -> detector_factory.DetectorFactory:
    factory = detector_factory.DetectorFactory()
    factory.load_profile(str(Path(detector_factory.__file__).parent / "profiles"))
    factory.set_seed(0)  # else the same text may get another language on the next run
    return factory


def _loaded() -> detector_factory.DetectorFactory:
    with _loading:  # loading takes a second and is not safe twice at once; detecting is
        return _factory()


def detect_language(text: str, *, default: str = "") -> str:
    """ISO 639-1 code of a page or a question; `default` (the wiki's language) where the text does not tell."""
    sample = NOT_PROSE.sub(" ", text[: 4 * SAMPLE_CHARACTERS])[:SAMPLE_CHARACTERS]
    letters = len(LETTER.findall(sample))
    if not letters:
        return default
    if code := _by_script(sample, letters) or _by_function_words(sample, default):
        return code
    owners = _owners_of_script(sample, letters)
    if not owners and (letters < MIN_LETTERS or default in SCRIPTS):
        return default
    return _by_profile(sample, default if not owners or default in owners else "")


def _by_script(sample: str, letters: int) -> str:
    for code, pattern in SCRIPTS.items():
        share = len(pattern.findall(sample)) / letters
        # Japanese prose has kana throughout; Chinese prose may quote a little.
        if share > (0.1 if code == "ja" else 0.4):
            return code
    return ""


def _by_function_words(sample: str, default: str) -> str:
    owners = _languages_of()
    words = WORD.findall(sample.casefold())
    hits = Counter(code for word in words for code in owners.get(word, ()))
    if not hits:
        return ""
    (best, most), *others = hits.most_common(2)
    rest = others[0][1] if others else 0
    if best == default:  # the wiki's own language needs no such lead
        return best if most >= 2 and most > rest and most * 8 >= len(words) else ""
    return best if most >= 2 and most >= LEAD * rest and most * 5 >= len(words) else ""


def _owners_of_script(sample: str, letters: int) -> tuple[str, ...]:
    """The languages of the shared script that most of a text is in; none for Latin."""
    for pattern, codes in OTHER_SCRIPTS:
        if len(pattern.findall(sample)) > letters / 2:
            return codes
    return ()


def _by_profile(sample: str, default: str) -> str:
    """langdetect; a language that it does not know (Latgalian) would be taken for a neighbour, so its wiki keeps it."""
    factory = _loaded()
    known = factory.get_lang_list()
    if default and default not in known:
        return default
    detector = factory.create()
    detector.n_trial = 3  # of 7: less than half the time, the same answers on the sample wikis
    if default:
        base = (1 - PRIOR) / len(known)
        detector.set_prior_map({code: base + (PRIOR if code == default else 0.0) for code in known})
    detector.append(sample)
    try:
        found = detector.get_probabilities()
    except LangDetectException:
        return default
    if not found or (default and found[0].prob < SURE):
        return default
    return str(found[0].lang).partition("-")[0]  # zh-cn → zh
