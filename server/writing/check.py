"""Does a section's evidence say what the section says? All its sentences, not only the cited ones (mission.md §7.4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from graph.model import Evidence
from server.answer.claim_check import checked_claims
from server.answer.claim_sentences import CitedSentence, Marker, cited_sentences
from server.answer.plain import FENCE
from server.backends import Backends
from server.model import Citation, Claim, Verdict
from server.writing.draft import Draft

WORTH: dict[Verdict, float] = {"supported": 1.0, "weak": 0.5, "unsupported": 0.0}
UNCITED = "it cites nothing, and {reason}"
MOST_FAILED = 4
"""Claims searched for at a time; the worst come first."""


async def checked(draft: Draft, language: str, backends: Backends) -> tuple[Claim, ...]:
    """A verdict on every sentence. What cites nothing may rest on any of the section's evidence."""
    citations = [*draft.citations, *_unsaid(draft)]
    claims = await checked_claims(
        draft.text,
        citations,
        draft.evidence,
        language=language,
        names_of=backends.recognizer.names,
        reranker=backends.reranker,
        settings=backends.settings.answer,
    )
    cited = [Marker(one.number, one.start, one.end) for one in draft.citations]
    own = {sentence.start: sentence for sentence in cited_sentences(draft.text, cited)}
    return tuple(claim if claim.start in own else _uncited(claim) for claim in claims)


def verbatim(draft: Draft) -> tuple[Claim, ...]:
    """Of sentences that are the evidence's own: they say what it says, also where a check made for prose (rows of
    tables, dice) would not see it."""
    markers = [Marker(one.number, one.start, one.end) for one in draft.citations]
    return tuple(
        Claim(start=one.start, end=one.end, numbers=one.numbers, verdict="supported")
        for one in cited_sentences(draft.text, markers)
    )


def _unsaid(draft: Draft) -> Iterator[Citation]:
    """For each sentence without a marker, one of no width at its start for each piece of evidence."""
    cited = [Marker(one.number, one.start, one.end) for one in draft.citations]
    starts = {sentence.start for sentence in cited_sentences(draft.text, cited)}
    for sentence in _all_sentences(draft.text, cited):
        if sentence.start not in starts:
            for item in draft.evidence:
                yield Citation(
                    number=item.number,
                    start=sentence.start,
                    end=sentence.start,
                    key=item.key,
                    title=item.title,
                    url=item.url,
                )


def _all_sentences(text: str, cited: Sequence[Marker]) -> list[CitedSentence]:
    """Each sentence that begins somewhere, found by a mark of no width at every word's start."""
    starts = [0, *(place + 1 for place, letter in enumerate(text) if letter.isspace())]
    marks = [Marker(0, start, start) for start in starts if start < len(text)]
    return [one for one in cited_sentences(text, [*cited, *marks]) if not FENCE.match(text[one.start : one.end])]


def _uncited(claim: Claim) -> Claim:
    """It leads to nothing, whatever bears it out."""
    reason = "" if claim.verdict == "supported" else UNCITED.format(reason="the section's evidence does not say so")
    return replace(claim, numbers=(), reason=reason)


def confidence_of(claims: Sequence[Claim]) -> float | None:
    """Mean worth; None where nothing is claimed."""
    return round(sum(WORTH[claim.verdict] for claim in claims) / len(claims), 3) if claims else None


def must_be_rewritten(claims: Sequence[Claim], least: float) -> bool:
    """Below the confidence that is wanted, or with a sentence that is not there at all: one wrong number among ten
    right sentences is worth a second look."""
    confidence = confidence_of(claims)
    return confidence is not None and (confidence < least or any(claim.verdict == "unsupported" for claim in claims))


def failed_of(claims: Sequence[Claim]) -> list[Claim]:
    """Those to search for, the worst first."""
    return sorted((one for one in claims if WORTH[one.verdict] < 1), key=lambda one: (WORTH[one.verdict], one.start))[
        :MOST_FAILED
    ]


def said_by(claim: Claim, draft: Draft) -> str:
    """The claim's words without its markers."""
    text = draft.text[claim.start : claim.end]
    for one in sorted(draft.citations, key=lambda one: -one.start):
        if claim.start <= one.start and one.end <= claim.end:
            at = one.start - claim.start
            text = text[:at].rstrip(" ") + text[at + one.end - one.start :]
    return " ".join(text.split())


def evidence_for_rewrite(draft: Draft, claims: Sequence[Claim], found: Sequence[Evidence]) -> list[Evidence]:
    """What holds is kept first, then what was found for the failed claims, then the rest of what was there."""
    firm = {number for claim in claims if claim.verdict == "supported" for number in claim.numbers}
    kept = [item for item in draft.evidence if item.number in firm]
    rest = [item for item in draft.evidence if item.number not in firm]
    return [*kept, *found, *rest]
