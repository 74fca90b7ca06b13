"""Embedders behind HTTP: OpenAI's wire format, and all that can go wrong with either kind of service."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import numpy as np
import pytest

from graph import model_service
from graph.breaker import Breaker
from graph.errors import (
    DependencyBusyError,
    DependencyDownError,
    DependencyFaultError,
    SettingsError,
    StoreVersionError,
    TrivetError,
)
from graph.ollama_embedder import OllamaEmbedder
from graph.openai_embedder import OpenAIEmbedder
from graph.service_embedder import ServiceEmbedder, measured_dimension
from tests.graph.model_site import (
    Answer,
    Asked,
    Reply,
    Site,
    as_json,
    openai,
    openai_embeddings,
    serving,
    vector,
)

HTML = {"Content-Type": "text/html; charset=utf-8"}
Opened = tuple[ServiceEmbedder, Site]


@asynccontextmanager
async def opened(
    answer: Answer = openai, *, kind: type[ServiceEmbedder] = OpenAIEmbedder, **options: object
) -> AsyncIterator[Opened]:
    async with serving(answer) as site:
        url = f"{site.url}/v1" if kind is OpenAIEmbedder else site.url
        embedder = kind(url, **{"model": "stub", "dimension": 32, **options})  # type: ignore[arg-type]
        try:
            yield embedder, site
        finally:
            await embedder.close()


async def fails(answer: Answer, *, kind: type[ServiceEmbedder] = OpenAIEmbedder, **options: object) -> TrivetError:
    """The error that passages end in; its sentence names where, and is one line."""
    async with opened(answer, kind=kind, **options) as (embedder, site):
        with pytest.raises(TrivetError) as caught:
            await embedder.embed_passages(["a lamp"])
        assert site.url in str(caught.value)
        assert "\n" not in str(caught.value)
        return caught.value


async def test_the_wire() -> None:
    async with opened(api_key="sk-1", passage_prefix="passage: ", query_prefix="query: ") as (embedder, site):
        await embedder.embed_passages(["a lamp", "bread"])
        await embedder.embed_question("Who?")
    passages, question = site.asked
    assert passages.path == "/v1/embeddings"
    assert passages.body == {
        "model": "stub",
        "input": ["passage: a lamp", "passage: bread"],
        "encoding_format": "float",
    }
    assert question.body["input"] == ["query: Who?"]
    assert passages.headers["authorization"] == "Bearer sk-1"
    assert passages.headers["accept-encoding"] == "identity"
    assert site.connections == 1


async def test_rows_are_in_the_order_of_the_texts_whatever_the_order_of_the_answer() -> None:
    texts = [f"word{n} lamp" for n in range(70)]
    async with opened(batch_size=16) as (embedder, site):
        rows = await embedder.embed_passages(texts)
    assert site.sizes("input") == [16, 16, 16, 16, 6]
    assert site.most_at_once == 2
    for text, row in zip(texts, rows, strict=True):
        assert row == pytest.approx(np.array(vector(text)) / 3, abs=1e-6)


async def test_a_query_in_the_address_stays_and_is_not_shown() -> None:
    async with serving(lambda _: Reply(status=500)) as site:
        embedder = OpenAIEmbedder(f"{site.url}/v1/?key=secret", model="stub", dimension=0)
        with pytest.raises(DependencyFaultError) as caught:
            await embedder.embed_question("Who?")
        await embedder.close()
    assert site.asked[0].path == "/v1/embeddings?key=secret"
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("kind", [OpenAIEmbedder, OllamaEmbedder])
@pytest.mark.parametrize(
    ("reply", "error", "said"),
    [
        (Reply(b"Traceback: secret", status=500), DependencyFaultError, "status 500; its log"),
        (Reply(b"<html>secret</html>", headers=HTML), DependencyFaultError, "web page"),
        (Reply(b"<html>secret</html>"), DependencyFaultError, "web page"),
        (Reply(b"  "), DependencyFaultError, "empty answer"),
        (Reply(b"secret"), DependencyFaultError, "no JSON"),
        (Reply(b"[" * 100_000), DependencyFaultError, "no JSON"),
        (Reply(b"\xff\xfe"), DependencyFaultError, "no JSON"),
        (Reply(b'{"secret": 1}'), DependencyFaultError, "another form"),
        (Reply(b"[1, 2]"), DependencyFaultError, "another form"),
        (Reply(status=302, headers={"Location": "/secret"}), DependencyFaultError, "embedder.url to the address"),
        (Reply(b"{}", status=404), DependencyFaultError, "embedder.url"),
        (Reply(b"{}", status=422), DependencyFaultError, "embedder.name and embedder.provider"),
        (Reply(b'{"error": "secret"}', status=401), DependencyFaultError, "embedder.api_key"),
        (Reply(b'{"error": "secret"}', status=403), DependencyFaultError, "embedder.api_key"),
        (Reply(b"{}" * 9, hang_up=True), DependencyDownError, "the connection broke"),
    ],
)
async def test_faults_are_named_and_the_body_is_not_shown(
    kind: type[ServiceEmbedder], reply: Reply, error: type[TrivetError], said: str
) -> None:
    found = await fails(lambda _: reply, kind=kind)
    assert type(found) is error
    assert said in str(found)
    assert "secret" not in str(found)


async def test_too_much_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_service, "MAX_BYTES", 1_000_000)
    found = await fails(lambda _: Reply(b" " * 8_000_000))
    assert isinstance(found, DependencyFaultError)
    assert "more than 1 MB" in str(found)


@pytest.mark.parametrize(
    ("vectors", "said"),
    [
        ([], "gives 0 vectors for 1 texts"),
        ([[1.0] * 32] * 2, "gives 2 vectors for 1 texts"),
        ([[]], "no vectors of one length for stub"),
        ([[0.0] * 32], "all zero"),
        ([[float("nan")] * 32], "not of numbers"),
        ([[1.0] * 31 + [float("inf")]], "not of numbers"),
        ([["x"] * 32], "another form"),
        ([None], "another form"),
    ],
)
async def test_vectors_that_are_none_are_a_fault(vectors: list[object], said: str) -> None:
    found = await fails(lambda _: openai_embeddings(vectors))
    assert isinstance(found, DependencyFaultError)
    assert said in str(found)


async def test_a_number_that_is_given_twice_is_a_fault() -> None:
    async with opened(lambda _: openai_embeddings([[1.0] * 32] * 2, [0, 0])) as (embedder, _):
        with pytest.raises(DependencyFaultError, match="numbers them wrongly"):
            await embedder.embed_passages(["a", "b"])


async def test_huge_numbers_are_numbers() -> None:
    async with opened(lambda _: openai_embeddings([[1e300, -1e300, 0.0, 0.0]]), dimension=4) as (embedder, _):
        assert (await embedder.embed_question("Who?")).tolist() == pytest.approx([0.5**0.5, -(0.5**0.5), 0, 0])


async def test_another_dimension_is_refused_with_both_numbers() -> None:
    found = await fails(openai, dimension=384)
    assert isinstance(found, StoreVersionError)
    for part in ("32 numbers", "stub", "384", "trivet ingest --rebuild"):
        assert part in str(found)


async def test_an_unknown_dimension_is_measured_and_holds_from_then_on() -> None:
    sizes = iter([8, 8, 9])
    async with opened(lambda _: openai_embeddings([[1.0] * next(sizes)]), dimension=0) as (embedder, site):
        assert (await embedder.embed_passages([])).shape == (0, 0)
        assert site.asked == []
        assert await measured_dimension(embedder) == 8
        await embedder.embed_question("Who?")
        with pytest.raises(StoreVersionError, match=r"9 numbers .* 8 are expected"):
            await embedder.embed_question("Who?")


async def test_an_unknown_model_is_named() -> None:
    error = {"message": "The model `stub` does not exist.", "type": "NotFoundError", "code": 404}
    assert "embedder.name" in str(await fails(lambda _: as_json({"error": error}, status=404)))
    assert "/v1" in str(await fails(lambda _: Reply(b"{}", status=404)))


async def test_a_model_that_cannot_embed_is_named() -> None:
    error = {"message": "The model does not support Embeddings API", "type": "BadRequestError"}
    assert "cannot embed" in str(await fails(lambda _: as_json({"error": error}, status=400)))


@pytest.mark.parametrize("key", ["schlüssel", "two\nlines"])
def test_a_key_that_is_none_is_refused_without_showing_it(key: str) -> None:
    with pytest.raises(SettingsError, match=r"embedder\.api_key") as caught:
        OpenAIEmbedder("http://127.0.0.1:1/v1", model="stub", dimension=0, api_key=key)
    assert key not in str(caught.value)


@pytest.mark.parametrize("url", ["", "127.0.0.1:8080", "ftp://host/v1", "http://", "http://host:99999999/"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(SettingsError, match=r"embedder\.url"):
        OpenAIEmbedder(url, model="stub", dimension=0)


@pytest.mark.parametrize("kind", [OpenAIEmbedder, OllamaEmbedder])
@pytest.mark.parametrize("host", ["127.0.0.1:1", "no-such-host.invalid", "x" * 70])
async def test_nobody_there_is_named_without_the_password(
    kind: type[OpenAIEmbedder] | type[OllamaEmbedder], host: str
) -> None:
    embedder = kind(f"http://user:secret@{host}", model="stub", dimension=0)
    with pytest.raises(DependencyDownError, match=rf"http://{host} .*(no connection|broke).*embedder\.url") as caught:
        await embedder.embed_question("Who?")
    assert "secret" not in str(caught.value)
    await embedder.close()


@pytest.mark.parametrize("reply", [Reply(b"{}", wait=30), Reply(b"{}" * 99, stall=30)])
async def test_a_stalled_service_keeps_the_deadline_and_a_question_has_the_shorter_one(reply: Reply) -> None:
    async with opened(lambda _: reply, seconds=0.6, question_seconds=0.2) as (embedder, _):
        begun = time.monotonic()
        with pytest.raises(DependencyDownError, match=r"within 0\.2 s"):
            await embedder.embed_question("Who?")
        assert time.monotonic() - begun < 0.5
        with pytest.raises(DependencyDownError, match=r"embedder\.seconds"):
            await embedder.embed_passages(["a lamp"])
        assert 0.7 < time.monotonic() - begun < 1.5


def busy(times: int, *, pause: str = "0") -> Answer:
    """Refuses the first ones."""
    seen: list[Asked] = []

    def answer(asked: Asked) -> Reply:
        seen.append(asked)
        return Reply(status=429, headers={"Retry-After": pause}) if len(seen) <= times else openai(asked)

    return answer


async def test_a_busy_service_is_named_at_once_for_a_question() -> None:
    async with opened(busy(1, pause="7")) as (embedder, site):
        with pytest.raises(DependencyBusyError, match="7 s") as caught:
            await embedder.embed_question("Who?")
        assert caught.value.retry_after == 7
        with pytest.raises(DependencyDownError, match="not asked again"):
            await embedder.embed_question("Who?")
        assert len(site.asked) == 1


async def test_passages_wait_for_a_busy_service_as_long_as_their_deadline_allows() -> None:
    async with opened(busy(3, pause="1"), batch_size=1) as (embedder, site):
        rows = await embedder.embed_passages(["one", "two", "three", "four"])
    assert len(rows) == 4
    assert len(site.asked) == 7
    with pytest.raises(DependencyBusyError):
        raise await fails(busy(9, pause="60"), seconds=1)


async def test_a_busy_service_that_then_fails_ends_the_waiting() -> None:
    replies = iter([Reply(status=429, headers={"Retry-After": "0"}), *[Reply(status=500)] * 9])
    begun = time.monotonic()
    async with opened(lambda _: next(replies), batch_size=1) as (embedder, _):
        with pytest.raises((DependencyFaultError, DependencyDownError), match="status 500"):
            await embedder.embed_passages(["one", "two", "three"])
    assert time.monotonic() - begun < 5


async def test_the_breaker_opens_and_a_service_that_is_back_is_used_without_a_restart() -> None:
    alive = False
    breaker = Breaker("embedder", failures=2, cooldown=0.3)

    def answer(asked: Asked) -> Reply:
        return openai(asked) if alive else Reply(status=500)

    async with opened(answer, breaker=breaker, batch_size=1) as (embedder, site):
        for _ in range(2):
            with pytest.raises(DependencyFaultError):
                await embedder.embed_question("Who?")
        for _ in range(5):
            with pytest.raises(DependencyDownError, match=r"status 500.*not asked again"):
                await embedder.embed_question("Who?")
        assert len(site.asked) == 2
        alive = True
        await asyncio.sleep(0.35)
        # Several batches at once, of which one is the trial.
        assert len(await embedder.embed_passages(["one", "two", "three", "four"])) == 4


async def test_a_server_that_was_restarted_is_found_again() -> None:
    async with serving(openai) as site:
        embedder = OpenAIEmbedder(f"{site.url}/v1", model="stub", dimension=32)
        await embedder.embed_question("Who?")
    with pytest.raises(DependencyDownError):
        await embedder.embed_question("Who?")
    async with serving(openai, port=site.port):
        await embedder.embed_question("Who?")
    await embedder.close()


TOO_LONG = [
    (400, {"error": {"message": "This model's maximum context length is 8192 tokens, however you requested 8528"}}),
    (400, {"error": {"message": "Invalid 'input': maximum context length is 8192 tokens."}}),
    (413, {"error": "Input validation error: `inputs` must have less than 512 tokens. Given: 600"}),
    (413, {"error": "batch size 40 > maximum allowed batch size 32", "error_type": "Validation"}),
    (500, {"error": {"code": 500, "message": "input (596 tokens) is too large to process. increase the physical"}}),
    (400, {"error": "the input length exceeds the context length"}),
]


@pytest.mark.parametrize(("status", "body"), TOO_LONG)
async def test_what_is_too_long_is_cut_and_the_other_texts_of_its_batch_are_whole(status: int, body: object) -> None:
    def answer(asked: Asked) -> Reply:
        if any(len(text) > 900 for text in asked.body["input"]):
            return as_json(body, status=status)
        return openai(asked)

    texts = ["a lamp", "word " * 3000, "bread", "x" * 800]
    async with opened(answer) as (embedder, _):
        rows = await embedder.embed_passages(texts)
    assert rows[0] == pytest.approx(np.array(vector("a lamp")) / 3, abs=1e-6)
    assert rows[1] @ (np.array(vector("word")) / 3) == pytest.approx(1, abs=1e-2)
    assert rows[3] == pytest.approx(np.array(vector("x" * 800)) / 3, abs=1e-6)


async def test_a_service_that_takes_fewer_texts_at_once_gets_fewer() -> None:
    def answer(asked: Asked) -> Reply:
        return as_json(TOO_LONG[3][1], status=413) if len(asked.body["input"]) > 8 else openai(asked)

    async with opened(answer, batch_size=32) as (embedder, site):
        rows = await embedder.embed_passages([f"word{n}" for n in range(30)])
    assert rows[29] == pytest.approx(np.array(vector("word29")) / 3, abs=1e-6)
    assert sum(size for size in site.sizes("input") if size <= 8) == 30


async def test_a_service_that_takes_nothing_is_named_in_the_end() -> None:
    async with opened(lambda _: Reply(status=413)) as (embedder, site):
        with pytest.raises(DependencyFaultError, match="too long"):
            await embedder.embed_passages(["word " * 3000])
    assert 2 < len(site.asked) < 20


async def test_any_text_can_be_sent() -> None:
    texts = ["", "  \n", "\x00", "half a pair \ud83d", "🙂", '"\\', "a" * 100_000]
    async with opened() as (embedder, site):
        rows = await embedder.embed_passages(texts)
    assert rows.shape == (7, 32)
    assert all(text.strip() for text in site.asked[0].body["input"])


async def test_the_first_error_ends_all_batches() -> None:
    def answer(asked: Asked) -> Reply:
        return Reply(status=500) if asked.body["input"] == ["bad"] else Reply(wait=30)

    begun = time.monotonic()
    async with opened(answer, batch_size=1) as (embedder, _):
        with pytest.raises(DependencyFaultError):
            await embedder.embed_passages(["bad", *["good"] * 20])
    assert time.monotonic() - begun < 2


def test_a_recorded_answer_is_read() -> None:
    """Ollama 0.9.6 on /v1/embeddings, its numbers shortened."""
    recorded = json.loads(
        '{"object":"list","data":[{"object":"embedding","embedding":[-0.024634367,-0.003741118,0.012394068],"index":0}],'
        '"model":"smollm2","usage":{"prompt_tokens":5,"total_tokens":5}}'
    )
    ours = json.loads(openai_embeddings([[-0.024634367, -0.003741118, 0.012394068]]).body)
    assert {**ours, "model": "smollm2"} == recorded
