"""`-{zh-hans:…; zh-hant:…}-`: words that MediaWiki shows in one of a language's scripts; here the first of them."""

from __future__ import annotations

import re

CONVERTED = frozenset("ban crh en gan iu kk ku mni sh shi sr tg tly uz wuu zh".split())
"""Languages that MediaWiki writes in several ways; in the others `-{` means nothing."""
MAX_ROUNDS = 5
MAX_WORDS = 2_000
# Tags between which nothing is wikitext go by untouched. The text has passed `Marks.repaired`: each has its closer.
VARIANT = re.compile(
    r"<(?P<tag>nowiki|pre|math|chem|ce|syntaxhighlight|source|code)\b[^<>]{0,2000}>.*?</(?P=tag)\s*>"
    rf"|-\{{(?!\{{)(?:(?P<flags>[A-Za-z;\s+-]{{0,60}})\|)?(?P<words>(?:(?!-\{{|\}}-).){{0,{MAX_WORDS}}})\}}-",
    re.DOTALL | re.IGNORECASE,
)
RULE = re.compile(r"(?:[^;:=]{0,60}=>\s{0,9})?(?P<code>[a-z]{2,3}(?:-[a-z]{1,8}){0,3})\s{0,9}:(?P<words>.*)", re.DOTALL)
NEXT_RULE = re.compile(r";(?=\s{0,9}(?:[^;:=]{0,60}=>\s{0,9})?[a-z]{2,3}(?:-[a-z]{1,8}){0,3}\s{0,9}:)")
PREFERRED = ("zh-hans", "zh-cn", "zh", "sr-ec", "sr-cyrl", "sr")
SILENT_FLAGS = frozenset("HT-")
"""Rules for the rest of the page, for its title, and their removal: they show nothing where they stand."""


def one_variant(text: str, language: str) -> str:
    """Wikitext in one script; `language` is the wiki's."""
    if "-{" not in text or language not in CONVERTED:
        return text
    for _ in range(MAX_ROUNDS):  # from the innermost out
        text, count = VARIANT.subn(_shown, text)
        if "-{" not in text or not count:
            break
    return text


def _shown(match: re.Match[str]) -> str:
    if match["tag"]:
        return match[0]
    flags = {flag.strip() for flag in (match["flags"] or "").split(";")}
    if flags & SILENT_FLAGS:
        return ""
    words = match["words"]
    rules = [RULE.fullmatch(part.strip()) for part in NEXT_RULE.split(words.rstrip("; \n"))]
    if "R" in flags or not rules or rules[0] is None:
        return words
    given = {rule["code"].lower(): rule["words"].strip() for rule in rules if rule and rule["words"].strip()}
    return next((given[code] for code in PREFERRED if code in given), next(iter(given.values()), ""))
