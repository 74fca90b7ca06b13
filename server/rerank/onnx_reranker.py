"""The cross-encoder that needs no server: an ONNX model on the CPU."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tokenizers import Encoding

from graph.onnx_models import length_batches, open_model, open_tokenizer, worker_count

MAX_TOKENS = 512
QUESTION_TOKENS = 200
"""Of the model's window; a longer question loses its end, so that there is always room for the passage."""
BATCH_SIZE = 4
"""Pairs in one run, at most."""
RUN_SHARE = 0.25
"""Of the budget that one run may take: on a slow machine runs are smaller, down to one pair, as none is cut short."""
LATEST_SHARE = 0.5
"""Of a new run's pace in what is expected of the next: a machine that is busy now is busy for a while."""


class OnnxReranker:
    """Question and passage in one input → one logit (about +8 relevant, −10 not, for ms-marco-MiniLM-L12-v2)."""

    def __init__(self, folder: Path, *, name: str, threads: int = 0) -> None:
        self.model = name
        self._model = open_model(folder, max_tokens=MAX_TOKENS)
        self._counter = open_tokenizer(folder)
        # A long passage loses its end, never the question its own.
        self._model.tokenizer.enable_truncation(MAX_TOKENS, strategy="only_second")
        self._workers = worker_count(threads)
        self._threads = ThreadPoolExecutor(self._workers, thread_name_prefix="rerank")
        self._pace = 0.0
        """Seconds a padded token takes; 0 until known. Written by several threads: the last one's view will do."""

    async def score(self, question: str, passages: Sequence[str], *, budget: float) -> list[float | None]:
        deadline = time.monotonic() + budget
        scores: list[float | None] = [None] * len(passages)
        if not passages:
            return scores
        loop = asyncio.get_running_loop()
        question = await loop.run_in_executor(self._threads, self._cut, question)
        pairs = [(question, passage) for passage in passages]
        encodings = await loop.run_in_executor(self._threads, self._model.tokenizer.encode_batch, pairs)

        async def fill(batch: list[int], *, first: bool) -> None:
            chosen = [encodings[i] for i in batch]
            logits = await loop.run_in_executor(self._threads, self._run, chosen, deadline, first)
            for index, logit in zip(batch, logits, strict=True):
                scores[index] = logit

        longest = max(len(encoding.ids) for encoding in encodings)
        fitting = int(RUN_SHARE * budget / (self._pace * longest)) if self._pace else BATCH_SIZE
        batches = promising_batches(encodings, size=max(1, min(BATCH_SIZE, fitting)))
        await asyncio.gather(*(fill(batch, first=number == 0) for number, batch in enumerate(batches)))
        return scores

    def _cut(self, question: str) -> str:
        """Its first tokens: characters say little of them in scripts where each may be one."""
        offsets = self._counter.encode(question, add_special_tokens=False).offsets
        return question[: offsets[QUESTION_TOKENS][0]] if len(offsets) > QUESTION_TOKENS else question

    async def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _run(self, encodings: list[Encoding], deadline: float, first: bool) -> list[float | None]:
        """Not begun where it would end too late. The first of a question is begun all the same while there is time,
        or a pace that was measured in a bad moment would never be measured again."""
        began = time.monotonic()
        tokens = len(encodings) * max(len(encoding.ids) for encoding in encodings)
        if began >= deadline or (not first and began + self._pace * tokens > deadline):
            return [None] * len(encodings)
        logits = self._model.run(encodings).reshape(len(encodings), -1)[:, 0]
        pace = (time.monotonic() - began) / tokens
        self._pace = LATEST_SHARE * pace + (1 - LATEST_SHARE) * (self._pace or pace)
        return [float(logit) for logit in logits]


def promising_batches(encodings: list[Encoding], *, size: int) -> list[list[int]]:
    """Batches in the caller's order of promise; two batches' worth at a time is sorted by length, to pad less."""
    window = size * 2
    batches: list[list[int]] = []
    for start in range(0, len(encodings), window):
        lengths = [len(encoding.ids) for encoding in encodings[start : start + window]]
        batches += [[start + index for index in batch] for batch in length_batches(lengths, batch_size=size)]
    return batches
