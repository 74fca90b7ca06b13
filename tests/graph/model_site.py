"""Small real HTTP servers that embed and rerank by words, in the wire formats of Ollama, OpenAI, TEI and Jina.

Ollama's and OpenAI's were recorded from Ollama 0.9.6 (/api/embed, /v1/embeddings); TEI's, vLLM's and llama.cpp's are
those of their sources (`router/src/http/types.rs`, `entrypoints/pooling/score`, `tools/server/server-common.cpp`).
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from graph.names import words
from tests.fakes import HashEmbedder

JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True, slots=True)
class Asked:
    """A request. Its body is JSON."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reply:
    """What goes out; `wait` seconds pass before the head, and `stall` before the second half of the body."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: JSON)
    wait: float = 0.0
    stall: float = 0.0
    hang_up: bool = False
    """The connection is closed in the middle of the body."""


Answer = Callable[[Asked], Reply]


@dataclass(slots=True)
class Site:
    """A running server: what it was asked, and how much of that at once."""

    answer: Answer
    port: int = 0
    asked: list[Asked] = field(default_factory=list)
    connections: int = 0
    at_once: int = 0
    most_at_once: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def sizes(self, name: str) -> list[int]:
        """How many texts were in each request, in its field `name`."""
        return [len(asked.body[name]) for asked in self.asked]


@asynccontextmanager
async def serving(answer: Answer, *, port: int = 0) -> AsyncIterator[Site]:
    site = Site(answer)
    open_now: set[asyncio.Task[None]] = set()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        open_now.add(task)
        site.connections += 1
        try:
            while await _exchange(site, reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            open_now.discard(task)
            writer.close()

    listening = await asyncio.start_server(talk, "127.0.0.1", port, limit=2**22)
    site.port = listening.sockets[0].getsockname()[1]
    try:
        yield site
    finally:
        listening.close()
        for task in open_now:
            task.cancel()
        await asyncio.gather(*open_now, return_exceptions=True)
        await listening.wait_closed()


async def _exchange(site: Site, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").rstrip("\r\n")
    first, *lines = head.split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    body = json.loads(await reader.readexactly(int(headers["content-length"])))
    asked = Asked(first.split(" ")[1], headers, body)
    site.asked.append(asked)
    site.at_once += 1
    site.most_at_once = max(site.most_at_once, site.at_once)
    try:
        reply = site.answer(asked)
        await asyncio.sleep(reply.wait)
        sent = {"Content-Length": str(len(reply.body)), **reply.headers}
        lines = [f"HTTP/1.1 {reply.status} -", *(f"{name}: {value}" for name, value in sent.items()), "", ""]
        half = len(reply.body) // 2
        writer.write("\r\n".join(lines).encode("latin-1") + reply.body[:half])
        await writer.drain()
        if reply.hang_up:
            return False
        await asyncio.sleep(reply.stall)
        writer.write(reply.body[half:])
        await writer.drain()
        return True
    finally:
        site.at_once -= 1


def as_json(value: object, *, status: int = 200, wait: float = 0.0) -> Reply:
    return Reply(json.dumps(value).encode(), status=status, wait=wait)


def vector(text: str, dimension: int = 32) -> list[float]:
    """By the words of a text, and three times as long as a unit vector."""
    found: list[float] = (3 * HashEmbedder(dimension)._vector(text).astype(np.float64)).tolist()
    return found


def ollama_embeddings(vectors: Sequence[object]) -> Reply:
    return as_json(
        {
            "model": "stub",
            "embeddings": vectors,
            "total_duration": 1615024210,
            "load_duration": 2961521,
            "prompt_eval_count": 5,
        }
    )


def openai_embeddings(vectors: Sequence[object], order: Sequence[int] | None = None) -> Reply:
    data = [{"object": "embedding", "embedding": found, "index": index} for index, found in enumerate(vectors)]
    return as_json(
        {
            "object": "list",
            "data": data if order is None else [data[index] for index in order],
            "model": "stub",
            "usage": {"prompt_tokens": 5, "total_tokens": 5},
        }
    )


def ollama(asked: Asked) -> Reply:
    """As Ollama 0.9.6 answers, down to its 500 for an empty text."""
    if asked.path != "/api/embed":
        return Reply(b"404 page not found", status=404, headers={"Content-Type": "text/plain"})
    if not all(asked.body["input"]):
        return as_json({"error": "Failed to create new sequence: no input provided"}, status=500)
    return ollama_embeddings([vector(text) for text in asked.body["input"]])


def openai(asked: Asked) -> Reply:
    """As an OpenAI-compatible API; the order of the answer is not that of the texts, which the protocol allows."""
    if asked.path != "/v1/embeddings":
        return as_json({"error": {"message": "Invalid URL", "type": "invalid_request_error"}}, status=404)
    texts = asked.body["input"]
    return openai_embeddings([vector(text) for text in texts], list(reversed(range(len(texts)))))


def relevance(question: str, passage: str) -> float:
    """A logit by the share of the question's words that are in the passage: -6 for none, +6 for all."""
    wanted = set(words(question))
    return 12 * len(wanted & set(words(passage))) / max(len(wanted), 1) - 6


def best_first(scores: Sequence[float]) -> list[tuple[int, float]]:
    return sorted(enumerate(scores), key=lambda ranked: -ranked[1])


def tei(asked: Asked) -> Reply:
    """As TEI answers on /rerank: a list, best first; a sigmoid unless `raw_scores` is asked for."""
    scores = [relevance(asked.body["query"], text) for text in asked.body["texts"]]
    if not asked.body.get("raw_scores"):
        scores = [1 / (1 + math.exp(-score)) for score in scores]
    return as_json([{"index": index, "score": score} for index, score in best_first(scores)])


def vllm(asked: Asked) -> Reply:
    """As vLLM answers on /v1/rerank: probabilities."""
    scores = [1 / (1 + math.exp(-relevance(asked.body["query"], text))) for text in asked.body["documents"]]
    return as_json(
        {
            "id": "rerank-46396c6c394b4d1bb810855365ad488e",
            "model": asked.body["model"],
            "usage": {"prompt_tokens": 9, "total_tokens": 9},
            "results": [
                {"index": index, "document": {"text": "…", "multi_modal": None}, "relevance_score": score}
                for index, score in best_first(scores)
            ],
        }
    )


def llama_cpp(asked: Asked) -> Reply:
    """As llama.cpp's server answers on /v1/rerank: the logits themselves."""
    scores = [relevance(asked.body["query"], text) for text in asked.body["documents"]]
    results = [{"index": index, "relevance_score": score} for index, score in best_first(scores)]
    usage = {"prompt_tokens": 464, "total_tokens": 464}
    return as_json({"model": asked.body["model"], "object": "list", "usage": usage, "results": results})
