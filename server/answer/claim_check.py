"""The claim check of a whole answer: pure checks first, then the cross-encoder for sentences that share few words."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from config.settings import AnswerSettings
from graph.errors import DependencyError
from graph.model import Evidence
from graph.protocols import Reranker
from server.answer.claim_grounds import Grounds, grounds_of
from server.answer.claim_sentences import Marker, cited_sentences
from server.answer.claims import Checked, check_sentence, judged_by_score, judged_by_words
from server.model import Citation, Claim

BUDGET_SECONDS = 1.0
"""For the cross-encoder; what it does not reach is judged by shared words."""
MOST_SCORED = 8
SCORED_CHARS = 1500
NamesOf = Callable[[Sequence[str], str], list[tuple[str, ...]]]
"""Names in each of some texts of a language; `Recognizer.names`."""


async def checked_claims(
    text: str,
    citations: Sequence[Citation],
    evidence: Sequence[Evidence],
    *,
    language: str,
    names_of: NamesOf,
    reranker: Reranker | None,
    settings: AnswerSettings,
) -> tuple[Claim, ...]:
    """A verdict on each cited sentence of an answer, in order. Never raises for what a text holds."""
    found = await asyncio.to_thread(checked_by_rule, text, citations, evidence, language, names_of)
    scores: dict[int, float] = {}
    if reranker is not None:
        doubtful = [one for one in found if one.doubtful][:MOST_SCORED]
        scores = await _scores(doubtful, reranker)
    return tuple(
        judged_by_score(one, scores[one.claim.start], settings.abstain_below, settings.caution_below)
        if one.claim.start in scores
        else judged_by_words(one)
        for one in found
    )


def checked_by_rule(
    text: str, citations: Sequence[Citation], evidence: Sequence[Evidence], language: str, names_of: NamesOf
) -> list[Checked]:
    """Without a cross-encoder. Blocking: some 50 ms for a sentence."""
    markers = [Marker(one.number, one.start, one.end) for one in citations]
    sentences = cited_sentences(text, markers)
    recognised = names_of([sentence.text for sentence in sentences], language) if sentences else []
    read: dict[tuple[int, ...], Grounds] = {}
    found = []
    for sentence, names in zip(sentences, recognised, strict=True):
        if sentence.numbers not in read:
            read[sentence.numbers] = grounds_of([item for item in evidence if item.number in sentence.numbers])
        found.append(check_sentence(sentence, read[sentence.numbers], names))
    return found


async def _scores(doubtful: Sequence[Checked], reranker: Reranker) -> dict[int, float]:
    """The cross-encoder's logit of each claim and the passage nearest to it, by where the claim begins."""
    known: dict[int, float] = {}
    deadline = asyncio.get_running_loop().time() + BUDGET_SECONDS
    for one in doubtful:
        left = deadline - asyncio.get_running_loop().time()
        if left <= 0:
            break
        try:
            (score,) = await reranker.score(one.text, [one.window[:SCORED_CHARS]], budget=left)
        except DependencyError:
            break
        if score is not None:
            known[one.claim.start] = score
    return known
