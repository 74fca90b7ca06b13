"""The suitability gate: what is enough, what is thin, and what a verdict says it rests on."""

from __future__ import annotations

import pytest

from config.settings import ResearchSettings
from graph.errors import DependencyDownError
from graph.research import ResearchPage, TopicState
from server.research.gate import gate, judge, question_of, sigmoid
from tests.server.research.fake_web import TOPIC, Bench, FakeWeb, bench

BOUNDS = ResearchSettings()


class WordReranker:
    """Scores by a word in the passage."""

    model = "words"

    def __init__(self, logit: float | None = 8.0, *, error: DependencyDownError | None = None) -> None:
        self.logit = logit
        self.error = error
        self.asked: list[tuple[str, int]] = []

    async def score(self, question: str, passages: list[str], *, budget: float) -> list[float | None]:
        self.asked.append((question, len(passages)))
        if self.error is not None:
            raise self.error
        return [self.logit if "beacon" in passage else -10.0 for passage in passages]

    async def close(self) -> None: ...


@pytest.mark.parametrize(
    ("chunks", "mean_score", "domains", "state", "said"),
    [
        (0, None, 0, TopicState.INSUFFICIENT, ["0 passages found, 5 are needed"]),
        (4, 0.9, 4, TopicState.INSUFFICIENT, ["4 passages found, 5 are needed"]),
        (1, 0.1, 1, TopicState.INSUFFICIENT, ["1 passage found", "fit the topic badly: 0.10", "from 1 domain"]),
        (5, 0.25, 2, TopicState.OK, ["5 passages of 2 domains, mean score 0.25"]),
        (5, 0.2499, 2, TopicState.THIN, ["0.25 is needed"]),
        (50, 0.9, 1, TopicState.THIN, ["all of it is from 1 domain, 2 are needed"]),
        (50, None, 3, TopicState.OK, ["50 passages of 3 domains"]),
    ],
)
def test_verdicts(chunks: int, mean_score: float | None, domains: int, state: TopicState, said: list[str]) -> None:
    verdict = judge(chunks=chunks, mean_score=mean_score, domains=domains, bounds=BOUNDS, notes=["a note"])
    assert verdict.state is state
    assert len(verdict.reasons) == len(said) + 1
    assert all(words in reason for words, reason in zip(said, verdict.reasons, strict=False))
    assert verdict.reasons[-1] == "a note"


def test_the_bounds_are_settings() -> None:
    strict = ResearchSettings(min_chunks=60, min_score=0.95, min_domains=9)
    assert judge(chunks=50, mean_score=0.9, domains=8, bounds=strict).state is TopicState.INSUFFICIENT
    lax = ResearchSettings(min_chunks=1, min_score=0.0, min_domains=1)
    assert judge(chunks=1, mean_score=0.0, domains=1, bounds=lax).state is TopicState.OK


async def stocked(*urls: str, text: str = "The beacon is cleaned.") -> Bench:
    made = bench(FakeWeb())
    for number, url in enumerate(urls):
        passages = tuple(f"{text} Passage {number} {at}." for at in range(2))
        await made.shelf.put_page(TOPIC, ResearchPage(url=url, title="T", passages=passages))
    return made


async def test_the_best_passages_are_scored_against_title_and_focus() -> None:
    made = await stocked("https://a.example/", "https://www.b.example/", "https://c.b.example/")
    reranker = WordReranker()
    verdict = await gate(TOPIC, made.shelf.store, reranker, ResearchSettings(scored_passages=4))
    assert verdict.state is TopicState.OK
    assert (verdict.chunks, verdict.domains) == (6, 2)
    assert verdict.mean_score == pytest.approx(sigmoid(8.0))
    assert reranker.asked == [(question_of(TOPIC), 4)]
    assert question_of(TOPIC) == f"{TOPIC.title}: {TOPIC.focus}"


async def test_passages_that_do_not_fit_make_it_thin() -> None:
    made = await stocked(*(f"https://{n}.example/" for n in range(4)), text="The weather is fine.")
    verdict = await gate(TOPIC, made.shelf.store, WordReranker(), BOUNDS)
    assert verdict.state is TopicState.THIN
    assert "badly" in verdict.reasons[0]


@pytest.mark.parametrize(
    ("reranker", "why"),
    [
        (None, "the cross-encoder is off"),
        (WordReranker(error=DependencyDownError("TEI is down.", dependency="rerank")), "TEI is down"),
        (WordReranker(None), "not done in time"),
    ],
)
async def test_without_the_cross_encoder_quality_is_not_judged_and_it_is_said(
    reranker: WordReranker | None, why: str
) -> None:
    made = await stocked(*(f"https://{n}.example/" for n in range(3)))
    verdict = await gate(TOPIC, made.shelf.store, reranker, BOUNDS)
    assert verdict.state is TopicState.OK
    assert verdict.mean_score is None
    assert why in verdict.reasons[-1]


async def test_nothing_found_is_insufficient_and_nobody_is_asked() -> None:
    reranker = WordReranker()
    verdict = await gate(TOPIC, bench(FakeWeb()).shelf.store, reranker, BOUNDS, notes=["the search found nothing"])
    assert verdict.state is TopicState.INSUFFICIENT
    assert verdict.reasons == ("0 passages found, 5 are needed", "the search found nothing")
    assert reranker.asked == []


def test_a_sigmoid_never_overflows() -> None:
    assert (sigmoid(-1000.0), sigmoid(0.0), sigmoid(1000.0)) == (0.0, 0.5, 1.0)
