"""The claim check in the flow: where its verdicts go, and what it does without a model or with one that is down."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace

import pytest

from config.settings import AnswerSettings
from graph.errors import DependencyDownError
from server.answer.answer import stream_answer, whole_answer
from server.backends import Backends
from server.http.openai.answers import about
from server.http.views import view_answer
from server.model import Answer, DoneEvent, Question
from tests.fake_chat import FakeChat
from tests.server.answer.found import ScriptedSearch, backends

WHO = Question(text="Who wrote Animal Farm?")
WRONG = "It was published in August 1945 [[1]]. He was 42 years old [[1]]. He was born in Motihari. [[2]]"


@pytest.fixture(autouse=True)
def found(monkeypatch: pytest.MonkeyPatch) -> ScriptedSearch:
    script = ScriptedSearch()
    monkeypatch.setattr("server.answer.answer.search", script)
    return script


class Scoring:
    """A reranker that gives every pair one logit, or is down."""

    model = "scoring"

    def __init__(self, logit: float | None) -> None:
        self._logit = logit
        self.asked: list[str] = []

    async def score(self, question: str, passages: Sequence[str], *, budget: float) -> list[float | None]:
        self.asked.append(question)
        if self._logit is None:
            raise DependencyDownError("The reranker is down.", dependency="reranker")
        return [self._logit] * len(passages)

    async def close(self) -> None: ...


def verdicts(answer: Answer) -> list[tuple[str, str]]:
    return [(answer.text[claim.start : claim.end], claim.verdict) for claim in answer.claims]


async def test_a_generated_answer_says_which_of_its_sentences_are_supported() -> None:
    answer = await whole_answer(WHO, backends(FakeChat(WRONG)))
    assert verdicts(answer) == [
        ("It was published in August 1945 [1].", "supported"),
        ("He was 42 years old [1].", "unsupported"),
        ("He was born in Motihari.", "supported"),
    ]
    assert answer.claims[1].reason == "the number 42 is not in [1]"
    assert "claims" in answer.milliseconds


async def test_every_sentence_of_an_extractive_answer_is_supported() -> None:
    answer = await whole_answer(WHO, backends())
    assert answer.mode == "extractive"
    assert answer.claims
    assert {claim.verdict for claim in answer.claims} == {"supported"}


@pytest.mark.parametrize("words", [WRONG, "So it is [[1]], says 【2】.", "No citation."])
async def test_a_streamed_answer_has_the_claims_of_the_whole_one(words: str) -> None:
    async with aclosing(stream_answer(WHO, backends(FakeChat(words)))) as events:
        streamed = [event.answer async for event in events if isinstance(event, DoneEvent)]
    assert [one.claims for one in streamed] == [(await whole_answer(WHO, backends(FakeChat(words)))).claims]


async def test_a_refusal_claims_nothing(found: ScriptedSearch) -> None:
    found.zone = "abstain"
    answer = await whole_answer(WHO, backends())
    assert answer.citations
    assert answer.claims == ()


async def test_the_check_can_be_switched_off() -> None:
    on = backends(FakeChat(WRONG))
    settings = on.settings.model_copy(update={"answer": AnswerSettings(check_claims=False)})
    answer = await whole_answer(WHO, replace(on, settings=settings))
    assert answer.claims == ()
    assert "claims" not in answer.milliseconds


@pytest.mark.parametrize(("logit", "verdict"), [(5.0, "supported"), (-2.0, "weak"), (-9.0, "unsupported")])
async def test_the_cross_encoder_judges_sentences_that_share_few_words(logit: float, verdict: str) -> None:
    reranker = Scoring(logit)
    answer = await whole_answer(
        WHO, _reading("Otters eat crabs near harbours [[1]]. Animal Farm is a novella [[1]].", reranker)
    )
    assert [claim.verdict for claim in answer.claims] == [verdict, "supported"]
    assert reranker.asked == ["Otters eat crabs near harbours ."]


async def test_without_the_cross_encoder_words_decide() -> None:
    answer = await whole_answer(WHO, _reading("Otters eat crabs near harbours [[1]].", Scoring(None)))
    assert [claim.reason for claim in answer.claims] == ["[1] does not speak of this"]


def _reading(words: str, reranker: Scoring) -> Backends:
    return backends(FakeChat(words), reranker)


async def test_both_interfaces_carry_the_claims() -> None:
    answer = await whole_answer(WHO, backends(FakeChat(WRONG)))
    native = view_answer(answer, explain=False).claims
    assert [(claim.start, claim.end, claim.numbers, claim.verdict) for claim in native] == [
        (claim.start, claim.end, claim.numbers, claim.verdict) for claim in answer.claims
    ]
    assert about(answer).claims == native
