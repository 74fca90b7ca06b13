"""A cross-encoder of the BGE family (bge-reranker-v2-m3) through FlagEmbedding (the extra `flag`)."""

from __future__ import annotations

import importlib
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from graph.flag_embedder import import_flag, in_thread, load_model, model_folder, token_limit

MAX_TOKENS = 512
BATCH_SIZE = 4
"""Pairs in one run: small, so that the budget is kept to within one run's time."""


class FlagReranker:
    """Question and passage in one input → one logit. Loading may download: call the constructor in a worker thread.

    The model and tokenizer that FlagEmbedding loads are called directly: its own `compute_score` runs the first
    batch of every call twice, which would halve what fits into the budget.
    """

    def __init__(self, model: str, *, device: str = "") -> None:
        self.model = model
        library = import_flag("rerank.provider")
        folder = model_folder(model, setting="rerank.name")
        self._loaded = load_model(library.FlagReranker, folder, model, device=device, setting="rerank.name")
        self._max_tokens = token_limit(MAX_TOKENS, self._loaded.tokenizer, self._loaded.network.config)
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="flag-rerank")

    async def score(self, question: str, passages: Sequence[str], *, budget: float) -> list[float | None]:
        deadline = time.monotonic() + budget
        scores: list[float | None] = [None] * len(passages)
        for start in range(0, len(passages), BATCH_SIZE):
            if time.monotonic() >= deadline:
                break
            batch = list(passages[start : start + BATCH_SIZE])
            logits = await in_thread(self._threads, partial(self._run, question, batch, deadline))
            scores[start : start + len(batch)] = logits
        return scores

    async def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _run(self, question: str, passages: list[str], deadline: float) -> list[float | None]:
        # Another question's batch may have had the thread until now.
        if time.monotonic() >= deadline:
            return [None] * len(passages)
        # "longest_first" takes from the passage as long as it is the longer one, and so never from a short question.
        inputs = self._loaded.tokenizer(
            [question] * len(passages),
            passages,
            padding=True,
            truncation="longest_first",
            max_length=self._max_tokens,
            return_tensors="pt",
        ).to(self._loaded.device)
        with importlib.import_module("torch").inference_mode():
            logits = self._loaded.network(**inputs, return_dict=True).logits
        return [float(logit) for logit in logits.view(-1).float().cpu().tolist()]
