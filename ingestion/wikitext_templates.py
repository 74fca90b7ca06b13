"""The few templates whose words belong to the text: infoboxes as `field: value`, inline ones as what they show."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from mwparserfromhell.nodes import Template

from ingestion.clean import one_line

MAX_FIELD_NAME = 40
MAX_FIELD_VALUE = 250
MIN_UNNAMED_INFOBOX_FIELDS = 5
"""A box at the top of a page with this many named fields is an infobox whatever its name."""
INFOBOX = re.compile(
    r"(?:info|taxo|species|chem|drug|geo|auto\w*|paleo)[\s_-]?(?:info)?box\b|^(?:ficha|карточка|картка|infobo\w+|infotaula"
    r"|инфокутия|инфокаста|infoka\w+|infocaseta|bilgi kutusu|infolentelė|thông tin|기본정보|基礎情報|information box)\b"
    r"|(?:infobo\w+|инфо|кутия|personinfo)$",
    re.IGNORECASE,
)
LAYOUT_FIELD = re.compile(
    r"image|img|photo|picture|imatge|imagen|изображение|картинка|снимка|caption|\balt\b|size|width|height|px\b|map|logo"
    r"|signature|colou?r|style|class|flag|icon|module|embed|footnote|\bref\b|refs\b|note|align|border|cover|audio|video"
    r"|coord|lat[dms]?\b|lon|website|url|wiki|commons|authority|^\d+$|^_|^show|^hide|^module|^child$|^range_map",
    re.IGNORECASE,
)
CAMEL_CASE = re.compile(r"(?<=[a-z])(?=[A-Z][a-z])")
FILE_NAME = re.compile(r"\.(?:svg|png|jpe?g|gif|tiff?|og[gv]|webm|pdf)\b", re.IGNORECASE)
NO_INFOBOX = re.compile(
    r"^(?:cite|citation|multiple|quote|sidebar|nav|about|other|redirect|use |good|featured|pp|short)", re.I
)
SYMBOLS = {
    "!": "|", "'": "'", "=": "=", "·": " · ", "•": " • ", "ndash": "–", "mdash": "—", "spaced ndash": " – ",
    "snd": " – ", "spnd": " – ", "–": " – ", "nbsp": " ", "space": " ", "spaces": " ", "dot": " · ", "bull": " • ",
    "clear": "", "lsqb": "[", "rsqb": "]", "sic": "", "pi": "π", "=)": "",
}  # fmt: skip


def _names(words: str) -> frozenset[str]:
    return frozenset(" ".join(name.split()) for name in words.split(","))


LAST_PARAMETER = _names("""
lang, langx, transl, transliteration, translit, script, font, color, colour, fontcolor, tooltip2, nowrap, nobr,
nobreak, small, smaller, big, larger, smallcaps, sc, noitalic, keypress, key, var, mono, tt, code, em, strong, sup,
sub, math, mvar, mathrm, formatnum, flag, flagcountry, country, sortname2, angbr, strikethrough, nocaps, normal,
noflag, bibleverse, lien, kbd, samp, big, center, indent, pad, resize, rtl-lang, ltr, bidi, nihongo2, lang2,
langue, langnf, язык, lang-sprache, xt, не переведено, ill-text, nbsp-text, allcaps, underline, highlight,
poemquote, poem, verse, tq, quote inline, hebrew, greek
""")
FIRST_PARAMETER = _names("""
abbr, tooltip, nihongo, nihongo foot, hover title, ship, hms, gloss, cquote, val, nts, ntsh, ill, interlanguage
link, link-interwiki, wikt-lang, lang-zh-text, korean, vie, nombre, nb, num, abréviation, abbrlink,
sigle, term, проверено, s-link, tlx, proper name, linktext, year, century, siècle, besoin
""")
ALL_PARAMETERS = _names("""
ubl, unbulleted list, plainlist, plain list, flatlist, hlist, cslist, enum, bulleted list, ublist, collapsible
list, comma separated entries, cse, liste, ordered list, linktext list, br separated entries, unbulleted
""")
QUOTES = _names("""
quote, blockquote, quotation, rquote, quote box, quotebox, centered pull quote, cita, citation bloc, zitat,
citazione, citaat, cytat, цитата, citation
""")
DATES = _names("""
birth date, birth date and age, death date, death date and age, start date, start date and age, end date, film
date, bda, dob, date, birth-date, death-date, birth year and age, release date, дата
""")
NAMED_WORDS = {"zh": ("c", "t", "s", "p", "l"), "lang-zh": ("c", "t", "s", "p", "l"), "lang-ko": ("hangul",)}
"""Templates whose words have names: the first that is given is taken."""
CURRENCIES = {
    "usd": "$", "us$": "$", "gbp": "£", "£": "£", "pound sterling": "£", "eur": "€", "euro": "€", "€": "€",
    "¥": "¥", "jpy": "¥", "jpy convert": "¥", "inr": "₹", "₹": "₹", "indian rupee": "₹", "a$": "A$", "aud": "A$",
    "c$": "C$", "cad": "C$", "dollar": "$", "yen": "¥", "cny": "CN¥", "won": "₩",
}  # fmt: skip
HATNOTES = _names("""
main, main article, main list, see also, see, further, further information, details, article détaillé,
hauptartikel, siehe auch, основна, основная статья, main page, see main, vedi anche, ap, véase también, voir aussi,
zie ook, zie hoofdartikel, hovedartikel, huvudartikel, pääartikkeli, osobny artykuł, hlavní článek, bővebben, ana
madde, artigo principal, also, другие значения-см, смотри также, см. также, вижте също, основен, 参见, 主条目, main2
""")
"""Notes of the kind "Main article: X": no text, but links."""


def infobox_fields(template: Template, words: Callable[[object], str]) -> list[str]:
    """Its short, plain fields as `field: value`; not those that only lay it out."""
    fields = []
    for parameter in template.params:
        name = " ".join(CAMEL_CASE.sub(" ", str(parameter.name)).replace("_", " ").split())
        if not parameter.showkey or len(name) > MAX_FIELD_NAME or not name or LAYOUT_FIELD.search(name):
            continue
        lines = [one_line(line).rstrip(",;") for line in words(parameter.value).split("\n")]
        value = ", ".join(line for line in lines if line)
        if value and len(value) <= MAX_FIELD_VALUE and not FILE_NAME.search(value):
            fields.append(f"{name}: {value}")
    return fields


def is_infobox(name: str, template: Template, *, at_top: bool) -> bool:
    """By its name; or, at the top of a page, by its shape."""
    if INFOBOX.search(name):
        return True
    if not at_top or NO_INFOBOX.match(name):
        return False
    named = [parameter for parameter in template.params if parameter.showkey and str(parameter.value).strip()]
    return len(named) >= MIN_UNNAMED_INFOBOX_FIELDS


def inline_words(name: str, template: Template, words: Callable[[object], str]) -> str:
    """What an inline template shows, "" for those that show nothing worth reading."""
    if name in SYMBOLS:
        return SYMBOLS[name]
    positional = (p for p in template.params if not p.showkey or str(p.name).strip().isdecimal())
    given = [text for p in positional if (text := words(p.value))]
    if name in LAST_PARAMETER or name.startswith("lang-"):
        return given[-1] if given else ""
    if name in FIRST_PARAMETER:
        return given[0] if given else ""
    if name in ALL_PARAMETERS:
        return ", ".join(given)
    if name in QUOTES:
        named = [words(p.value) for p in template.params if str(p.name).strip().lower() in ("text", "quote", "texte")]
        return max((*given, *named), key=len, default="")
    if name in NAMED_WORDS:
        texts = {str(p.name).strip(): words(p.value) for p in template.params}
        return next((texts[key] for key in (*NAMED_WORDS[name], "1") if texts.get(key)), "")
    if name in CURRENCIES:
        return f"{CURRENCIES[name]}{given[0]}" if given else ""
    return _calculated(name, given)


def _calculated(name: str, given: Sequence[str]) -> str:
    if not given:
        return ""
    if name in DATES:
        numbers = [part for part in given if part.isdigit()]
        return "-".join(number.zfill(2) for number in numbers[:3]) if numbers else given[0]
    match name:
        case "convert" | "cvt":
            # {{convert|5|to|6|km|mi}}: up to the first unit; what follows is the other unit.
            last = next((i for i, part in enumerate(given) if i and not RANGE_PART.fullmatch(part)), len(given) - 1)
            return " ".join(given[: last + 1])
        case "circa" | "c.":
            return f"c. {given[0]}"
        case "frac" | "fraction" | "sfrac":
            return "/".join(given)
        case "as of":
            return f"as of {'-'.join(given)}"
        case "sortname" | "unité" | "unit":
            return " ".join(given[:2])
        case _:
            return ""


RANGE_PART = re.compile(r"[\d.,/+-]+|to|and|or|by|x|-|–|and\(-\)|to\(-\)")
