"""A piece as Markdown: sections, references, and a table of what each section rests on. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from server.answer.plain import place_of
from server.model import Claim
from server.writing.model import Piece, Reference, SectionResult

ESCAPED = re.compile(r"([\\`*_\[\]<>#|])")
TAG = re.compile(r"<(?=[A-Za-z/!?])")
"""A model's text is Markdown; HTML in it would be let through by what shows it."""
MARKERS = re.compile(r"(?: ?\[\d{1,4}\]){1,20}")
ADDRESS = re.compile(r"https?://[^\s<>]+")


def piece_markdown(piece: Piece) -> str:
    texts = [section_markdown(section, piece.topic) for section in piece.sections]
    return "".join(texts) + end_markdown(piece)


def section_markdown(section: SectionResult, topic: str) -> str:
    """With its heading; the first one also has the piece's title."""
    title = f"# {escaped(topic)}\n\n" if section.number == 1 else ""
    return f"{title}## {escaped(section.heading)}\n\n{_body(section)}\n\n"


def end_markdown(piece: Piece) -> str:
    """References, and what the piece says of itself."""
    parts = []
    if piece.references:
        lines = "\n".join(f"{one.number}. {_reference(one)}" for one in piece.references)
        parts.append(f"## References\n\n{lines}\n")
    if piece.reason:
        parts.append(f"*{escaped(piece.reason)}*\n")
    parts.append(_about(piece))
    return "\n".join(parts)


def escaped(text: str) -> str:
    """One line that Markdown takes for nothing but text."""
    return ESCAPED.sub(r"\\\1", " ".join(text.split()))


def _body(section: SectionResult) -> str:
    if section.state != "done":
        return f"*This section could not be written: {escaped(section.reason)}*"
    return TAG.sub("&lt;", marked(section.text, section.claims, lambda claim: f" *({escaped(mark_of(claim))})*"))


def mark_of(claim: Claim) -> str:
    return f"not supported: {claim.reason}" if claim.reason else "not supported"


def marked(text: str, claims: Sequence[Claim], mark: Callable[[Claim], str]) -> str:
    """The text with a mark behind each sentence that its evidence does not bear out; `mark` makes it of the claim."""
    for claim in sorted(claims, key=lambda one: -one.end):
        if claim.verdict == "unsupported":
            end = _behind_markers(text, claim.end)
            text = f"{text[:end]}{mark(claim)}{text[end:]}"
    return text


def _behind_markers(text: str, end: int) -> int:
    """A sentence's numbers may stand behind its full stop."""
    found = MARKERS.match(text, end)
    return found.end() if found else end


def _reference(one: Reference) -> str:
    name = escaped(place_of(one.title, one.heading_path))
    if ADDRESS.fullmatch(one.url):
        return f"{name} <{one.url}>"
    return f"{name} ({escaped(one.url)})" if one.url else name


def _about(piece: Piece) -> str:
    head = "## Sections\n\n| section | sources | evidence tokens | confidence | rewrites | searched for |\n"
    rows = [
        f"| {escaped(one.heading)} | {len(one.evidence)} | {one.tokens.context} | {shown(one.confidence)} "
        f"| {one.rewrites} | {'; '.join(map(escaped, one.queries))} |"
        for one in piece.sections
    ]
    report = piece.tokens
    spared = f"\n\nEvidence in all prompts: {report.focused} tokens; broad evidence for every section: {report.broad}."
    return f"{head}|---|---|---|---|---|---|\n" + "\n".join(rows) + (spared if report.broad else "") + "\n"


def shown(confidence: float | None) -> str:
    return "–" if confidence is None else f"{confidence:.2f}"
