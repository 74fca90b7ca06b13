"""Does a page say what a fact says? The claim check of answers, against the fact's quotation and against its page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from graph.model import Evidence
from graph.research import ResearchPage
from server.answer.claim_check import NamesOf as NamesOf
from server.answer.claim_grounds import Grounds, grounds_of
from server.answer.claim_sentences import CitedSentence
from server.answer.claim_words import language_of
from server.answer.claims import SEVERITY, Checked, check_sentence, judged_by_words
from server.answer.plain import sentence_spans
from server.model import Verdict
from server.research.facts import page_text
from server.research.quotes import Reading, find_quote, read

ADDRESS = re.compile(r"(?:https?://|www\.)[^\s<>\"')\]]+", re.IGNORECASE)
WEAK = 0.5
"""The most that a doubtful statement gets; also one in another language than its page, as words tell nothing there."""
MOST_SENTENCES = 8
"""Of one fact."""


def no_names(texts: Sequence[str], _language: str) -> list[tuple[str, ...]]:
    return [() for _ in texts]


@dataclass(frozen=True, slots=True)
class Support:
    """`share` is 0…1, 0 where unsupported; `reason` says what is amiss."""

    verdict: Verdict
    share: float
    reason: str = ""


class FactCheck:
    """One page, read once. All of it is blocking, some 50 ms for a sentence."""

    def __init__(self, page: ResearchPage, names_of: NamesOf = no_names) -> None:
        self._page = page
        self._names_of = names_of
        self._reading: Reading | None = None
        self._grounds: Grounds | None = None

    @property
    def reading(self) -> Reading:
        if self._reading is None:
            self._reading = read(page_text(self._page))
        return self._reading

    def quote(self, quote: str) -> str | None:
        """The page's own words for it, or None."""
        return find_quote(quote, self.reading)

    def support(self, text: str, quote: str) -> Support:
        """How well the quotation bears the text; what only the rest of the page says is weak."""
        said = ADDRESS.findall(text)
        known = f"{quote}\n{self.reading.text}"
        if any(address not in known for address in said):
            return Support("unsupported", 0.0, f"the address {said[0][:80]} is not in the page")
        if text == quote:
            return Support("supported", 1.0)
        spans = list(sentence_spans(text))[:MOST_SENTENCES]
        language = (self._page.language or language_of(known))[:2].lower()
        names = self._names_of([text[start:end] for start, end in spans], language) if spans else []
        near = _grounds(self._page.title, quote, "the quotation")
        found = [
            self._sentence(CitedSentence(start, end, text[start:end], (1,)), near, recognised)
            for (start, end), recognised in zip(spans, names, strict=True)
        ]
        return min(found, key=lambda one: (-SEVERITY[one.verdict], one.share), default=Support("unsupported", 0.0))

    def _sentence(self, sentence: CitedSentence, near: Grounds, recognised: Sequence[str]) -> Support:
        by_quote = check_sentence(sentence, near, recognised)
        claim = judged_by_words(by_quote)
        share = _share(by_quote)
        if claim.verdict == "supported":
            return Support("supported", share)
        by_page = judged_by_words(check_sentence(sentence, self._whole(), recognised))
        if by_page.verdict == "unsupported":
            return Support("unsupported", 0.0, by_page.reason)
        most = WEAK if by_page.verdict == "supported" or claim.verdict == "weak" else WEAK / 2
        return Support("weak", min(share, most), claim.reason)

    def _whole(self) -> Grounds:
        if self._grounds is None:
            self._grounds = _grounds(self._page.title, page_text(self._page), "the page")
        return self._grounds


def _share(checked: Checked) -> float:
    return round(checked.share, 2) if checked.comparable else WEAK


def _grounds(title: str, text: str, label: str) -> Grounds:
    return replace(grounds_of([Evidence(number=1, key="", title=title, url="", text=text)]), label=label)
