"""How soon the first word of a streamed answer comes: search, what the server itself adds, and the model's own time.

    uv run python -m tests.benchmarks.first_token [--questions 40] [--model-seconds 0.3]

The sample wiki behind the application on a real port, with a stub model that takes so long to its first word.
Prints one JSON object, in milliseconds over the questions: `first_token` from the request to the first word, `search`
the server's own measure of it, `added` what is left when search and the model's time are taken off, and `ratio`: the
first token divided by search + 100 ms + the model's time, which is to be 1 or less (issue 7).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import shutil
import tempfile
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import httpx

from config.settings import Settings
from graph.model import ChatMessage, ChatPiece
from ingestion.ingest import ingest
from ingestion.sources.detect import open_source
from server.answer.voice import Voices
from server.backends import Backends
from server.commands.demo import QUESTIONS, SAMPLE
from server.evaluation.metrics import percentile
from server.http.backends_answerer import BackendsAnswerer, warm_up
from server.logs import set_up_logging
from server.open import open_backends
from tests.fake_chat import FakeChat
from tests.server.http.running import running

WORD_SECONDS = 0.05
ALLOWED = 100.0
"""Milliseconds that the server may add."""
PERSONAS = ("neutral", "archiviste")
"""One without samples of a voice, one with."""


class PacedChat(FakeChat):
    """Word after word, as a model does: what is done once it has ended must not be counted."""

    async def stream(
        self, messages: Sequence[ChatMessage], *, temperature: float, max_tokens: int, stop: Sequence[str] = ()
    ) -> AsyncGenerator[ChatPiece, None]:
        async with aclosing(
            super().stream(messages, temperature=temperature, max_tokens=max_tokens, stop=stop)
        ) as pieces:
            async for piece in pieces:
                yield piece
                await asyncio.sleep(WORD_SECONDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """One streamed answer, in milliseconds."""

    first_token: float
    search: float
    model: float

    @property
    def added(self) -> float:
        return self.first_token - self.search - self.model

    @property
    def ratio(self) -> float:
        return self.first_token / (self.search + ALLOWED + self.model)


def ask(client: httpx.Client, question: str, persona: str) -> Timed:
    """From sending the request to the first `token` event; the server's own stages from the last event."""
    began = time.perf_counter()
    first = 0.0
    done: dict[str, Any] = {}
    body = {"question": question, "persona": persona}
    with client.stream("POST", "/api/query/stream", json=body) as response:
        event = ""
        for line in response.iter_lines():
            if line.startswith("event: "):
                event = line.removeprefix("event: ")
                first = first or (1000 * (time.perf_counter() - began) if event == "token" else 0.0)
            elif event == "done" and line.startswith("data: "):
                done = json.loads(line.removeprefix("data: "))
    stages: dict[str, float] = done["milliseconds"]
    search = sum(stages[stage] for stage in ("legs", "fusion", "rerank", "evidence"))
    return Timed(first_token=first, search=search, model=stages["first_token"])


def summary(times: list[Timed]) -> dict[str, float]:
    added = [each.added for each in times]
    return {
        "first_token_p50": round(median(each.first_token for each in times), 1),
        "search_p50": round(median(each.search for each in times), 1),
        "added_p50": round(median(added), 1),
        "added_p95": round(percentile(added, 0.95), 1),
        "ratio_max": round(max(each.ratio for each in times), 3),
    }


async def opened(home: Path, chat: FakeChat) -> Backends:
    settings = Settings(home=home)
    backends = await open_backends(settings, command="benchmark")
    await ingest(open_source(home / "wiki", name="hollin"), backends.knowledge, settings.ingestion)
    return replace(backends, chat=chat, voices=Voices())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=40)
    parser.add_argument("--model-seconds", type=float, default=0.3)
    given = parser.parse_args()
    set_up_logging(level=logging.WARNING)
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(SAMPLE, Path(folder) / "wiki")
        chat = PacedChat("So it is, as the page says [[1]].", first_seconds=given.model_seconds)
        backends = asyncio.run(opened(Path(folder), chat))
        asyncio.run(warm_up(backends))
        with (
            running(BackendsAnswerer(backends)) as server,
            # Making one takes longer than what is measured.
            httpx.Client(base_url=server.url, timeout=120, trust_env=False) as client,
        ):
            ask(client, QUESTIONS[0], PERSONAS[0])
            found = {
                persona: summary([ask(client, QUESTIONS[n % 2], persona) for n in range(given.questions)])
                for persona in PERSONAS
            }
        asyncio.run(backends.close())
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
