"""The chat endpoint with OpenAI's own client, against a real server."""

from __future__ import annotations

from typing import Any

import openai
import pytest
from openai import OpenAI
from openai.types.chat import ChatCompletionChunk

from graph.errors import ConflictError, DependencyFaultError
from server.http.options import HttpOptions
from tests.server.http.running import Running, running
from tests.server.http.scripted import TEXT, ScriptedAnswerer, ScriptedChat

HELLO: list[Any] = [{"role": "user", "content": "Who wrote Animal Farm?"}]
URLS = ["https://wiki.example/Animal_Farm#Plot", "urn:trivet:chunk-2", "https://wiki.example/Animal_Farm#Plot"]


def extra(thing: Any) -> dict[str, Any]:
    """What the client keeps of keys it has no name for."""
    return dict(thing.model_extra or {})


def chunks(ai: OpenAI, **more: Any) -> list[ChatCompletionChunk]:
    return list(ai.chat.completions.create(model="trivet", messages=HELLO, stream=True, **more))


def test_a_whole_answer(ai: OpenAI) -> None:
    completion = ai.chat.completions.create(model="trivet", messages=HELLO)
    choice = completion.choices[0]
    assert completion.object == "chat.completion"
    assert completion.id.startswith("chatcmpl-")
    assert choice.message.content == TEXT
    assert choice.message.role == "assistant"
    assert choice.finish_reason == "stop"
    assert completion.usage is not None
    assert (completion.usage.prompt_tokens, completion.usage.completion_tokens, completion.usage.total_tokens) == (
        50,
        9,
        59,
    )
    assert extra(completion)["trivet"]["mode"] == "generated"


def test_annotations_stand_where_the_markers_do(ai: OpenAI) -> None:
    message = ai.chat.completions.create(model="trivet", messages=HELLO).choices[0].message
    assert message.annotations is not None
    cited = [annotation.url_citation for annotation in message.annotations]
    assert [TEXT[each.start_index : each.end_index] for each in cited] == ["[1]", "[2]"]
    assert [each.url for each in cited] == URLS[:2]
    assert [each.title for each in cited] == ["Animal Farm", "Orwell"]


def test_the_nth_citation_is_what_marker_n_means(ai: OpenAI) -> None:
    completion = ai.chat.completions.create(model="trivet", messages=HELLO)
    assert extra(completion)["citations"] == URLS
    results = extra(completion)["search_results"]
    assert results[0] == {
        "title": "Animal Farm › Plot",
        "url": URLS[0],
        "date": "2026-01-02T03:04:05Z",
        "snippet": "Animal Farm is a novella by George Orwell.",
        "source": "wiki",
    }
    assert [result["date"] for result in results[1:]] == [None, None]


def test_a_stream_in_the_order_clients_expect(ai: OpenAI) -> None:
    got = chunks(ai)
    assert len({chunk.id for chunk in got}) == 1
    assert len({chunk.created for chunk in got}) == 1
    assert {chunk.object for chunk in got} == {"chat.completion.chunk"}
    assert got[0].choices[0].delta.role == "assistant"
    assert [chunk.choices[0].finish_reason for chunk in got] == [None] * (len(got) - 1) + ["stop"]
    assert got[-1].choices[0].delta.content is None
    assert "".join(chunk.choices[0].delta.content or "" for chunk in got) == TEXT
    assert all(chunk.usage is None for chunk in got)


def test_the_usage_chunk_comes_last_and_only_when_asked_for(ai: OpenAI) -> None:
    got = chunks(ai, stream_options={"include_usage": True})
    assert got[-1].choices == []
    assert got[-1].usage is not None
    assert got[-1].usage.total_tokens == 59
    assert got[-2].choices[0].finish_reason == "stop"


def test_streamed_and_whole_answers_carry_the_same_sources(ai: OpenAI) -> None:
    whole = ai.chat.completions.create(model="trivet", messages=HELLO)
    got = chunks(ai)
    streamed = [each for chunk in got for each in extra(chunk.choices[0].delta).get("annotations", [])]
    assert whole.choices[0].message.annotations is not None
    assert streamed == [each.model_dump() for each in whole.choices[0].message.annotations]
    for key in ("citations", "search_results", "trivet"):
        assert extra(got[-1])[key] == extra(whole)[key]
        assert not any(key in extra(chunk) for chunk in got[:-1])


def test_the_clients_own_stream_helper_accumulates(ai: OpenAI) -> None:
    with ai.chat.completions.stream(model="trivet", messages=HELLO) as stream:
        final = stream.get_final_completion()
    assert final.choices[0].message.content == TEXT
    assert final.choices[0].finish_reason == "stop"


def test_models_one_per_persona(ai: OpenAI) -> None:
    models = ai.models.list().data
    assert [model.id for model in models] == ["trivet", "trivet/neutral", "trivet/teacher"]
    assert {model.object for model in models} == {"model"}
    assert ai.models.retrieve("trivet/teacher").owned_by == "trivet"


def test_the_model_is_the_persona(ai: OpenAI, answerer: ScriptedAnswerer) -> None:
    completion = ai.chat.completions.create(model="trivet/teacher", messages=HELLO)
    assert completion.model == "trivet/teacher"
    assert answerer.questions[0].persona == "teacher"


def test_an_unknown_model_is_a_404_with_the_list(ai: OpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="trivet/neutral") as caught:
        ai.chat.completions.create(model="../../etc/passwd", messages=HELLO)
    assert caught.value.code == "model_not_found"
    assert caught.value.param == "model"
    with pytest.raises(openai.NotFoundError, match="trivet/neutral"):
        ai.models.retrieve("gpt-5")


def test_routes_that_are_not_offered_name_the_fix(ai: OpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="POST /v1/chat/completions"):
        ai.responses.create(model="trivet", input="hi")
    with pytest.raises(openai.NotFoundError, match="POST /v1/chat/completions"):
        ai.completions.create(model="trivet", prompt="hi")


def test_an_error_in_the_middle_of_a_stream(ai: OpenAI, answerer: ScriptedAnswerer) -> None:
    answerer.breaks = DependencyFaultError("ollama broke off", dependency="ollama")
    got: list[ChatCompletionChunk] = []
    with pytest.raises(openai.APIError, match="ollama broke off"):
        got.extend(ai.chat.completions.create(model="trivet", messages=HELLO, stream=True))
    answerer.breaks = None
    assert extra(ai.chat.completions.create(model="trivet", messages=HELLO))


@pytest.mark.parametrize("stream", [False, True])
def test_an_error_before_the_first_byte_has_its_status(ai: OpenAI, answerer: ScriptedAnswerer, stream: bool) -> None:
    answerer.fails = DependencyFaultError("ollama spoke HTML", dependency="ollama")
    with pytest.raises(openai.InternalServerError, match="ollama spoke HTML") as caught:
        ai.chat.completions.create(model="trivet", messages=HELLO, stream=stream)
    assert caught.value.status_code == 502
    assert caught.value.type == "server_error"


def test_a_conflict_is_no_409_which_clients_would_send_again(ai: OpenAI, answerer: ScriptedAnswerer) -> None:
    answerer.fails = ConflictError("changed meanwhile")
    with pytest.raises(openai.BadRequestError, match="changed meanwhile") as caught:
        ai.chat.completions.create(model="trivet", messages=HELLO)
    assert (caught.value.status_code, caught.value.code) == (400, "conflict")


@pytest.mark.parametrize("encoding", ["float", "base64"])
def test_embeddings(ai: OpenAI, encoding: Any) -> None:
    got = ai.embeddings.create(model="trivet", input=["a farm", "a novel"], encoding_format=encoding)
    assert [each.index for each in got.data] == [0, 1]
    assert got.model == "hash"
    assert got.usage.prompt_tokens == 4


def test_embeddings_as_the_client_asks_for_them_by_default(ai: OpenAI) -> None:
    got = ai.embeddings.create(model="hash", input="a farm")
    assert sum(number * number for number in got.data[0].embedding) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("ping_as_delta", [False, True])
def test_a_slow_start_is_kept_alive(answerer: ScriptedAnswerer, ping_as_delta: bool) -> None:
    answerer.pause = 0.5
    options = HttpOptions(ping_seconds=0.1, ping_as_delta=ping_as_delta, drain_seconds=1)
    with (
        running(answerer, options) as server,
        OpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0) as ai,
    ):
        got = chunks(ai)
        raw = ai.chat.completions.with_raw_response.create(model="trivet", messages=HELLO, stream=True)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in got) == TEXT
    assert raw.headers["content-type"].startswith("text/event-stream")


def test_a_title_goes_straight_to_the_model(server: Running, ai: OpenAI, answerer: ScriptedAnswerer) -> None:
    answerer.chat = ScriptedChat()
    task = "### Task:\nGenerate a title.\n<chat_history>\nUSER: Who?\n</chat_history>"
    completion = ai.chat.completions.create(model="trivet", messages=[{"role": "user", "content": task}])
    assert completion.choices[0].message.content == '{"title": "Animal Farm"}'
    assert answerer.questions == []
    assert "citations" not in extra(completion)
