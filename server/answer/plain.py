"""Page text as plain sentences: without invisible characters, Markdown marks, headings and reference marks."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import pairwise

INVISIBLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\xad\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)
"""Controls, soft hyphens, zero-width and direction marks, tags and lone surrogates: text that no reader sees.
The joiners U+200C and U+200D stay, as Persian, Hindi and emoji need them."""
COMMENT = re.compile(r"<!--(?:[^-]|-(?!->))*(?:-->|\Z)")
REFERENCE = re.compile(r"\[{1,2}[ ]?(?:\d{1,3}|note \d{1,3}|citation needed|[a-z])[ ]?\]{1,2}(?!\()")
"""What Wikipedia leaves behind its sentences: [12], [note 3]. In an answer it would read as a citation."""
HEADING = re.compile(r" {0,3}#{1,6}(?:\s|$)")
RULE = re.compile(r"[\s|:=*_+-]{3,}$")
"""Horizontal rules, underlines of headings, the line between a table's header and body."""
BULLET = re.compile(r"\s*(?:[-*+•◦‣]|\d{1,3}[.)]|>)\s+(?:\[[ xX]\]\s+)?")
IMAGE = re.compile(r"!\[([^\[\]]{0,300})\]\([^()\s]{0,2000}(?:\s[^()]{0,300})?\)")
LINK = re.compile(r"\[([^\[\]]{1,300})\]\([^()\s]{0,2000}(?:\([^()\s]{0,300}\)[^()\s]{0,300})?(?:\s[^()]{0,300})?\)")
WIKILINK = re.compile(r"\[\[([^\[\]|]{1,300})(?:\|([^\[\]|]{1,300}))?\]\]")
TAG = re.compile(r"</?[a-zA-Z][^<>]{0,300}>")
EMPHASIS = re.compile(r"(\*{1,3}|_{2,3}|~~|'{2,5}|`{1,3})(?=\S)([^*_~'`\n]{1,500})(?<=\S)\1")

ENDING = re.compile(
    r"[.!?…]{1,6}[\"'”’»)\]]{0,3}(?=\s)"  # Latin, Cyrillic, Greek: an end needs a space after it
    r"|[。！？｡]{1,6}[”’」』）》]{0,3}"  # Chinese and Japanese: none
    r"|[।॥۔؟።]{1,6}"  # Hindi, Urdu, Arabic, Amharic
)
CLOSED = re.compile(r"[.!?…。！？｡।॥۔؟።][\"'”’»)\]」』）》]{0,3}$")
CLOSED_WITHOUT_SPACE = re.compile(r"[。！？｡][”’」』）》]{0,3}$")
ABBREVIATED = """
mr mrs ms dr prof st sr jr vs etc no nos vol pp ed eds fig al approx ca cf e.g i.e viz rev hon gen col capt lt sgt gov
sen rep pres inc ltd co corp dept est mt ft jan feb mar apr jun jul aug sep sept oct nov dec u.s u.k
m mm mme mlle p av apr env janv févr avr juil déc art chap ex tél bd z.b d.h u.a bzw ggf nr str usw sra dra
ud uds pág núm a.k.a
"""
ABBREVIATIONS = frozenset(ABBREVIATED.split())
ORDINAL = re.compile(r"\b(?:am|vom|der|den|dem|die|das|im|zum|ab|bis|und) \d{1,2}$", re.IGNORECASE)
"""German "am 3. Oktober": that full stop makes an ordinal."""
FENCE = re.compile(r" {0,3}(?:```|~~~)")
LONGEST = 400
"""Characters; a longer stretch without an end (Thai, lists in one line) is cut at white space."""


def visible(text: str) -> str:
    """The text that a reader would see: no controls, no hidden characters, no HTML comments."""
    return INVISIBLE.sub("", COMMENT.sub(" ", text) if "<!--" in text else text)


def place_of(title: str, heading_path: Sequence[str]) -> str:
    """Title › headings; the first heading of a page is often its title again."""
    return " › ".join((title, *(part for part in heading_path if part != title)))


def plain_line(text: str) -> str:
    """One line without Markdown, HTML and wiki marks; a table row becomes its cells, joined by "; "."""
    text = IMAGE.sub("", text)
    text = LINK.sub(r"\1", text)
    text = REFERENCE.sub("", text)
    text = WIKILINK.sub(lambda found: found[2] or found[1], text)
    text = EMPHASIS.sub(r"\2", TAG.sub("", text))
    if _is_row(text):
        text = "; ".join(cell for cell in (part.strip() for part in text.split("|")) if cell)
    return " ".join(text.split())


def blocks(text: str) -> Iterator[str]:
    """Paragraphs, list items and table rows, each plain and in one line; headings, rules and code are left out."""
    for lines in _grouped(visible(text).splitlines()):
        if plain := plain_line(" ".join(lines)):
            yield plain


def _grouped(lines: list[str]) -> Iterator[list[str]]:
    """The lines that belong together: a paragraph, a list item with what continues it, a table row."""
    group: list[str] = []
    in_code = False
    for line, following in pairwise([*lines, ""]):
        fence = FENCE.match(line) is not None
        bullet = BULLET.match(line)
        row = _is_row(line)
        dropped = in_code or fence or not line.strip() or _is_no_sentence(line, following)
        if group and (dropped or bullet or row):
            yield group
            group = []
        if row and not dropped:
            yield [line]
        elif not dropped:
            group.append(line[bullet.end() :] if bullet else line)
        in_code ^= fence
    if group:
        yield group


def _is_row(line: str) -> bool:
    return line.count("|") >= 2 or line.lstrip().startswith("|")


def _is_no_sentence(line: str, following: str) -> bool:
    """A heading (of either kind), a rule, or the head of a table."""
    if HEADING.match(line) or RULE.fullmatch(line):
        return True
    underlined = "=" in following or ("-" in following and "|" in following and "|" in line)
    return underlined and RULE.fullmatch(following) is not None


def sentences(text: str) -> list[str]:
    """The sentences of a passage, plain and in order; a list item and a table row are one each."""
    return [piece for block in blocks(text) for sentence in _split(block) for piece in _cut(sentence)]


def _split(block: str) -> Iterator[str]:
    for start, end in sentence_spans(block):
        yield block[start:end]


def sentence_spans(block: str) -> Iterator[tuple[int, int]]:
    """Where each sentence of a paragraph begins and ends, without the white space around it."""
    start = 0
    for end in [*(found.end() for found in ENDING.finditer(block) if _ends(block, found)), len(block)]:
        piece = block[start:end]
        if piece.strip():
            yield start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip())
        start = end


def _ends(block: str, found: re.Match[str]) -> bool:
    """Whether this mark ends a sentence, and is not part of an abbreviation, an initial or an ordinal."""
    if found[0][0] != ".":
        return True
    following = block[found.end() :].lstrip()[:1]
    if following.islower():
        return False
    before = block[max(0, found.start() - 24) : found.start()]
    word = before.rsplit(maxsplit=1)[-1].lstrip("(\"'“‘«[").casefold() if before.strip() else ""
    if len(word) == 1 and word.isalpha() and unicodedata.category(word) != "Lo":
        return False
    return word not in ABBREVIATIONS and ORDINAL.search(before) is None


def _cut(sentence: str) -> Iterator[str]:
    while len(sentence) > LONGEST:
        at = max(sentence.rfind(mark, LONGEST // 4, LONGEST) for mark in ("; ", ", ", " "))
        at = at + 1 if at > 0 else LONGEST
        yield sentence[:at].strip()
        sentence = sentence[at:].strip()
    if sentence:
        yield sentence
