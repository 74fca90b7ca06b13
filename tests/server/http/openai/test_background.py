"""What chat clients ask on their own."""

from __future__ import annotations

import json

import pytest

from graph.errors import DependencyDownError
from graph.model import ChatMessage
from server.http.openai.background import answer_by_rule, is_background
from tests.server.http.conftest import Client
from tests.server.http.scripted import ScriptedAnswerer, ScriptedChat

HISTORY = (
    "### Chat History:\n<chat_history>\n"
    "USER: Who wrote Animal Farm, and when exactly?\nASSISTANT: Orwell.\n</chat_history>"
)
TITLE = f'### Task:\nGenerate a title.\n### Output:\nJSON format: {{ "title": "your title" }}\n{HISTORY}'
LIBRECHAT = (
    "Provide a concise, 5-word-or-less title for the conversation.\n\nConversation:\nUser: Who wrote it?\nAI: Orwell."
)


def user(text: str) -> ChatMessage:
    return ChatMessage(role="user", content=text)


@pytest.mark.parametrize("text", [TITLE, LIBRECHAT, f"\n{TITLE}"])
def test_background_requests_are_known_by_their_words(text: str) -> None:
    assert is_background([user(text)])
    assert not is_background([user("hi"), user(text)])
    assert not is_background([ChatMessage(role="system", content=text)])


@pytest.mark.parametrize("text", ["### Task: what is that?", "Who wrote <chat_history>?", "Give it a title", ""])
def test_questions_are_not(text: str) -> None:
    assert not is_background([user(text)])


@pytest.mark.parametrize(
    ("prompt", "answer"),
    [
        (TITLE, {"title": "Who wrote Animal Farm, and when"}),
        (TITLE.replace("title", "tags"), {"tags": []}),
        (TITLE.replace("title", "follow_ups"), {"follow_ups": []}),
        (TITLE.replace("title", "queries"), {"queries": []}),
        (TITLE.replace("USER: ", ""), {"title": "Chat"}),
    ],
)
def test_without_a_model_a_rule_answers_in_the_form_asked_for(prompt: str, answer: object) -> None:
    assert json.loads(answer_by_rule(prompt)) == answer


def test_librechat_gets_bare_words() -> None:
    assert answer_by_rule(LIBRECHAT) == "Who wrote it"


def test_a_key_in_the_conversation_does_not_choose_the_form() -> None:
    assert answer_by_rule(TITLE.replace("title", "mood").replace("USER: ", 'USER: "tags" ')) == ""


@pytest.mark.parametrize("stream", [False, True])
async def test_the_model_gets_it_and_nothing_else_does(
    client: Client, answerer: ScriptedAnswerer, stream: bool
) -> None:
    answerer.chat = ScriptedChat()
    asked = {"model": "trivet/teacher", "messages": [{"role": "user", "content": TITLE}], "stream": stream}
    response = await client.post("/v1/chat/completions", json=asked | {"temperature": 0.1, "max_tokens": 50})
    assert response.status_code == 200
    assert answerer.questions == []
    assert answerer.chat.asked == [((user(TITLE),), 0.1, 50, ())]
    for key in ("citations", "search_results", "annotations", "trivet"):
        assert f'"{key}":' not in response.text
    if stream:
        assert response.text.endswith("data: [DONE]\n\n")
    else:
        assert response.json()["usage"] == {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14}


async def test_without_a_model_the_client_gets_a_title_all_the_same(client: Client) -> None:
    response = await client.post("/v1/chat/completions", json={"messages": [{"role": "user", "content": TITLE}]})
    assert json.loads(response.json()["choices"][0]["message"]["content"])["title"].startswith("Who wrote")


async def test_a_model_that_is_down_is_named(client: Client, answerer: ScriptedAnswerer) -> None:
    answerer.chat = ScriptedChat(fails=DependencyDownError("ollama is away", dependency="ollama"))
    response = await client.post("/v1/chat/completions", json={"messages": [{"role": "user", "content": TITLE}]})
    assert response.status_code == 503
    assert response.json()["error"]["message"] == "ollama is away"
