"""The verification loop: what is planted wrong is caught, searched for, written again, and marked if it stays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from config.settings import AnswerSettings, WritingSettings
from graph.errors import DependencyDownError
from graph.model import ChatMessage
from server.answer.citations import Marker
from server.backends import Backends
from server.model import Claim, Verdict
from server.writing.check import checked, confidence_of, must_be_rewritten, said_by
from server.writing.draft import Draft, joined
from server.writing.markdown import piece_markdown
from server.writing.model import Piece
from server.writing.write import whole_piece
from tests.fake_chat import FakeChat
from tests.server.answer.found import backends
from tests.server.writing.library import FACT, LAMPS, Library, heading_of, lamp, only, scribe

WRONG = "Lamp L{n} burned 777 litres of oil each night [[1]]."


@pytest.fixture(autouse=True)
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    script = Library()
    monkeypatch.setattr("server.writing.gather.search", script)
    return script


def planted(messages: Sequence[ChatMessage]) -> str:
    """The evidence's facts with a wrong number in the first of them."""
    first, *rest = scribe(messages).split(" Lamp ")
    number = FACT.findall(first)[0].split("burned ")[1].split()[0]
    return " Lamp ".join([first.replace(number, "777"), *rest])


def stubborn() -> FakeChat:
    return FakeChat(only("Evidence", planted))


def repentant() -> FakeChat:
    """Wrong at first, right when it is told."""
    return FakeChat(
        only("Evidence", lambda messages: scribe(messages) if "777" in messages[1].content else planted(messages))
    )


async def written(chat: FakeChat, on: Backends | None = None) -> Piece:
    return await whole_piece(LAMPS, replace(on or backends(), chat=chat))


def evidence_calls(chat: FakeChat) -> list[str]:
    return [messages[1].content for messages in chat.asked if heading_of(messages) == "Evidence"]


async def test_a_wrong_number_is_searched_for_and_written_again(library: Library) -> None:
    chat = repentant()
    section = (await written(chat)).sections[2]
    assert (section.rewrites, section.confidence) == (1, 1.0)
    assert "777" not in section.text
    searched = section.queries[1]
    assert searched.startswith("Lamp L")
    assert "burned 777 litres" in searched
    assert "[" not in searched
    assert searched in [question.text for question in library.asked]
    assert "the number 777 is not in" in evidence_calls(chat)[1]


async def test_what_was_found_for_a_claim_is_in_the_next_prompt(library: Library) -> None:
    library.answers = {"777": [lamp(50)]}
    chat = repentant()
    section = (await written(chat)).sections[2]
    before, after = evidence_calls(chat)
    assert "Lamp L50" not in before
    assert "Lamp L50" in after
    assert "Lamp L50" in section.text


async def test_what_cannot_be_supported_is_marked_after_two_rewrites_and_never_more() -> None:
    chat = stubborn()
    piece = await written(chat)
    section = piece.sections[2]
    assert section.rewrites == 2
    assert len(evidence_calls(chat)) == 3
    assert [claim.verdict for claim in section.claims].count("unsupported") == 1
    assert section.confidence is not None
    assert section.confidence < 1
    text = piece_markdown(piece)
    assert "burned 777 litres" in text
    assert text.count("*(not supported: the number 777 is not in") == 1
    number = next(claim for claim in section.claims if claim.verdict == "unsupported").numbers[0]
    assert f"the number 777 is not in \\[{number}\\])*" in text


async def test_other_sections_are_not_written_again() -> None:
    chat = stubborn()
    await written(chat)
    assert len(chat.asked) == 5 + 2


async def test_a_rewrite_takes_no_document_of_another_section_while_there_are_others(
    library: Library,
) -> None:
    library.answers = {"777": [lamp(2), lamp(50), lamp(3)]}
    on = backends()
    once = on.settings.model_copy(update={"writing": WritingSettings(rewrites=1)})
    piece = await written(stubborn(), replace(on, settings=once))
    others = {item.page_id for section in piece.sections if section.number != 3 for item in section.evidence}
    own = {item.page_id for item in piece.sections[2].evidence}
    assert not others & own
    assert "wiki:Lamp 50" in own


async def test_the_best_draft_is_kept_not_the_last() -> None:
    calls = 0

    def worse(messages: Sequence[ChatMessage]) -> str:
        nonlocal calls
        calls += 1
        return planted(messages) if calls == 1 else WRONG.format(n=900 + calls)

    section = (await written(FakeChat(only("Evidence", worse)))).sections[2]
    assert calls == 3
    assert len(section.claims) > 1
    assert "L902" not in section.text


async def test_a_model_that_dies_in_a_rewrite_leaves_the_draft_and_says_so() -> None:
    def dying(messages: Sequence[ChatMessage]) -> str:
        if "777" in messages[1].content:
            raise DependencyDownError("The model is away.", dependency="ollama")
        return planted(messages)

    piece = await written(FakeChat(only("Evidence", dying)))
    section = piece.sections[2]
    assert piece.state == "done"
    assert "777" in section.text
    assert "the section could not be rewritten: The model is away." in section.notes


async def test_an_uncited_sentence_is_checked_against_all_of_the_sections_evidence() -> None:
    def bare(messages: Sequence[ChatMessage]) -> str:
        return f"{scribe(messages)} The keepers were paid 5,321 crowns a year."

    section = (await written(FakeChat(only("Evidence", bare)))).sections[2]
    (last,) = [claim for claim in section.claims if claim.verdict == "unsupported"]
    assert section.text[last.start : last.end] == "The keepers were paid 5,321 crowns a year."
    assert last.reason.startswith("it cites nothing")
    assert section.rewrites == 2


async def test_no_rewrites_where_the_setting_says_none_and_no_check_where_it_is_off() -> None:
    on = backends()
    none = on.settings.model_copy(update={"writing": WritingSettings(rewrites=0)})
    section = (await written(stubborn(), replace(on, settings=none))).sections[2]
    assert (section.rewrites, len([c for c in section.claims if c.verdict == "unsupported"])) == (0, 1)
    off = on.settings.model_copy(update={"answer": AnswerSettings(check_claims=False)})
    section = (await written(stubborn(), replace(on, settings=off))).sections[2]
    assert (section.claims, section.confidence, section.rewrites) == ((), None, 0)


def claim(verdict: Verdict) -> Claim:
    return Claim(start=0, end=1, numbers=(1,), verdict=verdict)


@pytest.mark.parametrize(
    ("verdicts", "confidence", "rewritten"),
    [
        ([], None, False),
        (["supported"] * 3, 1.0, False),
        (["supported", "weak"], 0.75, True),
        (["supported", "supported", "supported", "weak"], 0.875, False),
        (["supported"] * 9 + ["unsupported"], 0.9, True),
    ],
)
def test_confidence_is_the_mean_and_one_sentence_that_is_not_there_is_enough(
    verdicts: list[Verdict], confidence: float | None, rewritten: bool
) -> None:
    claims = [claim(verdict) for verdict in verdicts]
    assert confidence_of(claims) == confidence
    assert must_be_rewritten(claims, 0.8) is rewritten


async def test_a_claims_words_have_no_markers_in_them() -> None:
    text, citations = joined(["It burned ", Marker(1, 0, 0), " 9 litres. Next."], [lamp(1)])
    draft = Draft(text=text, citations=citations, evidence=(lamp(1),))
    first, second = await checked(draft, "en", backends())
    assert (said_by(first, draft), said_by(second, draft)) == ("It burned 9 litres.", "Next.")
