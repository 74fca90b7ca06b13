"""Prompts of a server that tells its own counts: more of the window is used, and never more than there is."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from config.personas import load_personas
from config.settings import LLMSettings
from graph.errors import DependencyFaultError
from graph.model import ChatMessage
from graph.onnx_models import bundled_model_dir
from graph.token_estimate import PROMPTS, TokenCounter, estimate_tokens
from server.answer.ollama_chat import OllamaChat
from server.answer.openai_chat import OpenAIChat
from server.answer.prompt import Prompt, build_prompt
from tests.model_server import Script, Wire, ollama_lines, openai_events, serving
from tests.server.answer.found import FARM

WINDOW = 2048
PERSONA = load_personas(None)["neutral"]
TEMPLATE_TOKENS = 5
"""Around each message, as chat templates have them."""
ENGLISH = (
    "The treaty was signed in the palace by the ministers of both countries, who had not spoken before.",
    "It is said that the lighthouse was built by a merchant whose ships had been lost on the rocks near the harbour.",
    "Osteoarthritis of the interphalangeal joints is associated with the loss of hyaline cartilage.",
    "In 1887 the Schwarzenberg expedition went from Trondheim to Longyearbyen with 14 men and 2,400 kg of food.",
    "Many of these plants have been used as medicine, although there is little evidence of their effects.",
)
OTHERS = (
    "Die Vertragsunterzeichnung erfolgte im Rathaus, nachdem die Landwirtschaftsministerin zugestimmt hatte.",
    "Les élèves français étudient à l'école jusqu'à dix-huit ans, selon l'établissement de leur région.",
    "乔治·奥威尔是英国作家，他在1945年写了《动物庄园》。",
    "Договор был подписан в присутствии министров обеих стран.",
    "| 1914 | 17.2 | 3,401 | 88 % | KX-771 |",
)
PLAIN = [" ".join(ENGLISH)] * 20
BGE = Tokenizer.from_file(str(bundled_model_dir("bge_small_en") / "tokenizer.json"))
BGE.no_truncation()


def true_count(prompt: Prompt) -> int:
    return sum(
        len(BGE.encode(message.content, add_special_tokens=False).ids) + TEMPLATE_TOKENS for message in prompt.messages
    )


def prompt_of(texts: Sequence[str], counter: TokenCounter) -> Prompt:
    evidence = [replace(FARM, number=n, key=str(n), text=text, context="") for n, text in enumerate(texts, 1)]
    return build_prompt(
        question="Who signed it?",
        persona=PERSONA,
        evidence=evidence,
        zone="normal",
        language="en",
        count_tokens=counter.count,
        context_tokens=WINDOW,
        max_tokens=400,
    )


def passages(sentences: tuple[str, ...]) -> st.SearchStrategy[list[str]]:
    passage = st.lists(st.sampled_from(sentences), min_size=3, max_size=8).map(" ".join)
    return st.lists(passage, min_size=1, max_size=40)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.one_of(passages(ENGLISH), passages(OTHERS), passages(ENGLISH + OTHERS)), min_size=1, max_size=8))
def test_no_prompt_is_over_the_window_whatever_was_learnt_before(asked: list[list[str]]) -> None:
    counter = TokenCounter(WINDOW)
    for texts in [PLAIN] * PROMPTS + asked:
        prompt = prompt_of(texts, counter)
        real = true_count(prompt)
        assert real <= prompt.tokens
        assert real + prompt.max_tokens <= WINDOW
        counter.learn([message.content for message in prompt.messages], real)
    assert counter.share < 1


def test_more_pieces_fit_once_the_server_has_counted() -> None:
    counter = TokenCounter(WINDOW)
    used = []
    for _ in range(PROMPTS + 1):
        prompt = prompt_of(PLAIN, counter)
        used.append(prompt.used)
        counter.learn([message.content for message in prompt.messages], true_count(prompt))
    assert used[:PROMPTS] == used[:1] * PROMPTS
    assert used[PROMPTS] >= 1.1 * used[0]


def telling(wire: Wire, count: int) -> Wire:
    """The same stub, which says that the prompt had so many tokens."""

    def lines(words: Sequence[str], finish: str) -> list[bytes]:
        told = []
        for line in wire(words, finish):
            told.append(line.replace(b'"prompt_eval_count": 12', b'"prompt_eval_count": %d' % count))
            told[-1] = told[-1].replace(b'"prompt_tokens": 12', b'"prompt_tokens": %d' % count)
        return told

    return lines


@pytest.mark.parametrize(("kind", "wire"), [(OllamaChat, ollama_lines), (OpenAIChat, openai_events)])
async def test_models_learn_from_what_their_server_counted(
    kind: type[OllamaChat] | type[OpenAIChat], wire: Wire
) -> None:
    text = " ".join(ENGLISH[:2]) * 10
    whole = estimate_tokens(text)
    async with serving(telling(wire, whole * 6 // 10), Script()) as server:
        chat = kind(LLMSettings(url=server.url, model="stub"))
        for _ in range(PROMPTS):
            assert chat.count_tokens(text) == whole
            async for _piece in chat.stream([ChatMessage(role="user", content=text)], temperature=0.0, max_tokens=9):
                pass
        assert whole * 6 // 10 < chat.count_tokens(text) < whole * 8 // 10
        assert chat.count_tokens(OTHERS[0]) == estimate_tokens(OTHERS[0])
        await chat.close()


async def test_a_window_that_was_too_small_ends_the_trust() -> None:
    text = " ".join(ENGLISH[:2]) * 10
    whole = estimate_tokens(text)
    refused = Script(status=400, body=json.dumps({"error": {"code": "context_length_exceeded"}}).encode())
    scripts = [Script()] * PROMPTS + [refused]
    async with serving(telling(openai_events, whole * 6 // 10), *scripts) as server:
        chat = OpenAIChat(LLMSettings(url=server.url, model="stub"))
        for _ in range(PROMPTS):
            async for _piece in chat.stream([ChatMessage(role="user", content=text)], temperature=0.0, max_tokens=9):
                pass
        assert chat.count_tokens(text) < whole
        with pytest.raises(DependencyFaultError, match="smaller window"):
            async for _piece in chat.stream([ChatMessage(role="user", content=text)], temperature=0.0, max_tokens=9):
                pass
        assert chat.count_tokens(text) == whole
        await chat.close()
