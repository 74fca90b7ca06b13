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
"""Pairs in one run: small, so that the budget is kept to within one run's time."""


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

    async def score(self, question: str, passages: Sequence[str], *, budget: float) -> list[float | None]:
        deadline = time.monotonic() + budget
        scores: list[float | None] = [None] * len(passages)
        if not passages:
            return scores
        loop = asyncio.get_running_loop()
        question = await loop.run_in_executor(self._threads, self._cut, question)
        pairs = [(question, passage) for passage in passages]
        encodings = await loop.run_in_executor(self._threads, self._model.tokenizer.encode_batch, pairs)

        async def fill(batch: list[int]) -> None:
            logits = await loop.run_in_executor(self._threads, self._run, [encodings[i] for i in batch], deadline)
            for index, logit in zip(batch, logits, strict=True):
                scores[index] = logit

        await asyncio.gather(*(fill(batch) for batch in promising_batches(encodings)))
        return scores

    def _cut(self, question: str) -> str:
        """Its first tokens: characters say little of them in scripts where each may be one."""
        offsets = self._counter.encode(question, add_special_tokens=False).offsets
        return question[: offsets[QUESTION_TOKENS][0]] if len(offsets) > QUESTION_TOKENS else question

    async def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _run(self, encodings: list[Encoding], deadline: float) -> list[float | None]:
        if time.monotonic() >= deadline:
            return [None] * len(encodings)
        return [float(logit) for logit in self._model.run(encodings).reshape(len(encodings), -1)[:, 0]]


def promising_batches(encodings: list[Encoding]) -> list[list[int]]:
    """Batches in the caller's order of promise; two batches' worth at a time is sorted by length, to pad less."""
    window = BATCH_SIZE * 2
    batches: list[list[int]] = []
    for start in range(0, len(encodings), window):
        lengths = [len(encoding.ids) for encoding in encodings[start : start + window]]
        batches += [[start + index for index in batch] for batch in length_batches(lengths, batch_size=BATCH_SIZE)]
    return batches
