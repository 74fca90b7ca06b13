"""Voice chunks: which are chosen, how often triggers are embedded, and what happens without an embedder."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import numpy as np
import pytest

from config.personas import Persona, VoiceChunk
from graph.errors import DependencyDownError
from server.answer import voice
from server.answer.answer import whole_answer
from server.answer.voice import Voices, nearest
from server.model import Question
from server.question_vectors import QuestionVectors
from tests.fake_chat import FakeChat
from tests.fakes import HashEmbedder
from tests.server.answer.found import ScriptedSearch, backends

TRIGGERS = ("ships and harbours", "the weather at sea", "money and prices", "cooking fish")
PIRATE = Persona(
    name="pirate",
    voice="A pirate.",
    language_rule="As asked.",
    refusal={"en": "Arr."},
    voice_chunks=tuple(VoiceChunk(trigger=trigger, text=f"Arr, {trigger}!") for trigger in TRIGGERS),
)


class BrokenEmbedder(HashEmbedder):
    """A server that is down, or one that is slow."""

    def __init__(self, seconds: float = 0.0) -> None:
        super().__init__()
        self.seconds = seconds

    async def embed_question(self, question: str) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        await asyncio.sleep(self.seconds)
        raise DependencyDownError("the embedder is down", dependency="ollama")


async def test_the_samples_with_the_nearest_triggers_are_chosen() -> None:
    samples, problem = await Voices().chosen(PIRATE, "How is the weather at sea?", HashEmbedder(), QuestionVectors())
    assert samples[0] == "Arr, the weather at sea!"
    assert 2 <= len(samples) <= 3
    assert problem == ""


@pytest.mark.parametrize(
    ("cosines", "places"),
    [
        ([0.1, 0.9, 0.5, 0.48], [1, 2, 3]),
        ([0.1, 0.9, 0.5, 0.4], [1, 2]),
        ([0.5, 0.5, 0.5, 0.5], [0, 1, 2]),
        ([0.3], [0]),
        ([0.3, -0.2], [0, 1]),
    ],
)
def test_two_or_three_and_ties_by_place(cosines: list[float], places: list[int]) -> None:
    assert nearest(np.array(cosines, np.float32)) == places


async def test_triggers_are_embedded_once() -> None:
    voices, embedder = Voices(), HashEmbedder()
    await voices.prepare([PIRATE, PIRATE.model_copy(update={"voice_chunks": ()})], embedder)
    for focus in ("ships", "prices"):
        await voices.chosen(PIRATE, focus, embedder, QuestionVectors())
    assert embedder.embedded == list(TRIGGERS)


@pytest.mark.parametrize("seconds", [0.0, 30.0])
async def test_without_an_embedder_they_are_left_out_and_it_is_said(
    monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    monkeypatch.setattr(voice, "SECONDS", 0.05)
    samples, problem = await Voices().chosen(PIRATE, "ships", BrokenEmbedder(seconds), QuestionVectors())
    assert samples == ()
    assert problem.startswith("answered without samples of the persona's voice: ")


async def test_a_persona_without_samples_asks_no_embedder() -> None:
    silent = PIRATE.model_copy(update={"voice_chunks": ()})
    assert await Voices().chosen(silent, "ships", BrokenEmbedder(), QuestionVectors()) == ((), "")


class CountingEmbedder(HashEmbedder):
    """Remembers the questions; each takes a while, as on a server."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    async def embed_question(self, question: str) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        self.asked.append(question)
        await asyncio.sleep(0.05)
        return await super().embed_question(question)


async def test_search_and_samples_share_the_question_s_vector() -> None:
    embedder = CountingEmbedder()
    on = replace(backends(FakeChat()), embedder=embedder, personas={"pirate": PIRATE})
    await whole_answer(Question(text="How is the weather at sea?", persona="pirate"), on)
    assert embedder.asked == ["How is the weather at sea?"]


async def test_samples_that_give_up_do_not_cut_the_search_s_embedding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(voice, "SECONDS", 0.01)
    embedder, vectors = CountingEmbedder(), QuestionVectors()
    (samples, problem), found = await asyncio.gather(
        Voices().chosen(PIRATE, "ships", embedder, vectors), vectors.of("ships", embedder)
    )
    assert samples == ()
    assert "took over" in problem
    assert found.dense == pytest.approx(await HashEmbedder().embed_question("ships"))
    assert embedder.asked == ["ships"]


async def test_they_reach_the_model_and_are_never_evidence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server.answer.answer.search", ScriptedSearch())
    chat = FakeChat("It is so [[1]].")
    on = replace(backends(chat), personas={"pirate": PIRATE})
    answer = await whole_answer(Question(text="How is the weather at sea?", persona="pirate"), on)
    prompt = chat.asked[0][-1].content
    assert "AUTHOR VOICE\nA pirate.\nThis is how you put things." in prompt
    assert prompt.index("RESEARCH FACTS") < prompt.index("- Arr, the weather at sea!") < prompt.index("STRUCTURE")
    assert not any("Arr" in item.text for item in answer.evidence)
    assert answer.notes == ()


async def test_an_embedder_that_is_down_costs_the_samples_and_not_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server.answer.answer.search", ScriptedSearch())
    on = replace(backends(FakeChat()), personas={"pirate": PIRATE}, embedder=BrokenEmbedder())
    answer = await whole_answer(Question(text="Who?", persona="pirate"), on)
    assert answer.mode == "generated"
    assert answer.notes == ("answered without samples of the persona's voice: the embedder is down",)
