"""Raw inline wikitext put in order: paragraphs of one line, lists indented, what is left of markup taken out."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ingestion.wikitext_marks import TABLE_MARKUP

# Stand for list marks, line breaks and a literal `<` until a text is put in order; input holds no control characters.
BULLET, NUMBER, TERM, INDENT, BREAK, LESS = "\x01", "\x02", "\x03", "\x04", "\x05", "\x06"
LIST_MARKS = {"*": BULLET, "#": NUMBER, ";": TERM, ":": INDENT}
RAW_LIST = re.compile(r"[*#;:]+")
LIST_MARK = re.compile(f"[{BULLET}{NUMBER}{TERM}{INDENT}]+")
INLINE_INDENT = re.compile(f"(?<=[^{BULLET}{NUMBER}{TERM}{INDENT}{BREAK}\n]){INDENT}")
"""The `:` between a term and its meaning."""
QUOTES = re.compile(r"'{2,}")
SWITCH = re.compile(r"__[^\W\d_a-z]{3,40}__")
LEFTOVER_TAG = re.compile(
    r"</?(?:ref|references|div|span|small|big|sup|sub|b|i|u|s|p|li|ul|ol|td|tr|th|table|tbody|center|font|nowiki|gallery|br"
    r"|blockquote|cite|code|tt|noinclude|includeonly|onlyinclude|abbr|em|strong|poem|section)\b[^<>\n]{0,2000}>?",
    re.IGNORECASE,
)
LEFTOVER_MARK = re.compile(r"\[\[|\]\]|\{\{+|\}\}+")
LOOSE_SEPARATORS = re.compile(r"(?<![\s,;])[\s,;]+(?=[)）])|(?<=[(（])[\s,;]+")
"""Around what a dropped template leaves: "(Schreber, 1776, , )"."""
EMPTY_BRACKETS = re.compile(r" ?[(（][\s,;:·]*[)）]")
SPACE_BEFORE_STOP = re.compile(r"(?<=\w) +(?=[,.)](?:\s|$))")


def without_leftovers(text: str) -> str:
    """Marks that mwparserfromhell could make nothing of: a link over two lines, a table that a template begins."""
    if "[[" in text or "]]" in text or "{{" in text or "}}" in text:
        text = LEFTOVER_MARK.sub("", text)
    if "{|" in text or "|}" in text or "\n|" in text:
        text = TABLE_MARKUP.sub("", text)
    return text


def tidy_inline(text: str) -> str:
    """A run of text without what is left of its markup."""
    if "'" in text:
        text = QUOTES.sub(lambda run: "'" * ((len(run[0]) == 4) + max(0, len(run[0]) - 5)), text)
    if "__" in text:
        text = SWITCH.sub("", text)
    if "<" in text:
        text = LEFTOVER_TAG.sub("", text)
    if "(" in text or "（" in text:
        text = EMPTY_BRACKETS.sub("", LOOSE_SEPARATORS.sub("", text))
    return SPACE_BEFORE_STOP.sub("", " ".join(text.split())).replace(LESS, "<")


@dataclass(slots=True)
class _Ordering:
    """Puts raw inline text in order, line by line."""

    blocks: list[str] = field(default_factory=list)
    """Code begins with a BREAK."""
    lines: list[str] = field(default_factory=list)
    paragraph: list[str] = field(default_factory=list)
    """What will be the next of `lines`: wikitext joins lines."""
    listed: list[str] = field(default_factory=list)
    code: list[str] = field(default_factory=list)

    def line(self, line: str, *, broken: bool) -> None:
        marks = LIST_MARK.match(line)
        if marks:
            if not self.listed:
                self.end()
            self.listed += _list_item(marks[0], line[marks.end() :])
        elif not line.strip():
            if not (broken and self.listed):
                self.end()
        elif broken and self.listed:
            self.listed.append(f"  {tidy_inline(line)}")
        elif line.startswith(" ") and not (broken or self.lines or self.paragraph or self.listed):
            self.code.append(QUOTES.sub("", line[1:]))
        else:
            if self.listed or self.code:
                self.end()
            if broken:
                self._end_line()
            self.paragraph.append(line)

    def end(self) -> None:
        """The end of a paragraph, list or run of indented lines."""
        self._end_line()
        if len(self.code) == 1:
            self.lines.append(tidy_inline(self.code[0]))  # one indented line is an accident
        elif self.code:
            self.blocks.append(BREAK + "\n".join(self.code))
        self.blocks += ["\n".join(held) for held in (self.lines, self.listed) if held]
        for held in (self.lines, self.listed, self.code):
            held.clear()

    def _end_line(self) -> None:
        if tidy := tidy_inline(" ".join(self.paragraph)):
            self.lines.append(tidy)
        self.paragraph.clear()


def in_order(raw: str) -> list[str]:
    """Raw inline text as blocks: lines of a paragraph joined, lists indented; code begins with a BREAK."""
    ordering = _Ordering()
    for line in INLINE_INDENT.sub(f"\n{INDENT}", raw.replace(BREAK, f"\n{BREAK}")).split("\n"):
        ordering.line(line.lstrip(BREAK), broken=line.startswith(BREAK))
    ordering.end()
    return ordering.blocks


def _list_item(marks: str, line: str) -> list[str]:
    words = tidy_inline(line)
    indent = "  " * (len(marks) - 1)
    return [indent + {BULLET: "- ", NUMBER: "1. "}.get(marks[-1], "") + words] if words else []
