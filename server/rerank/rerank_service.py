"""A cross-encoder behind a /rerank service: of TEI's kind, or of Jina's (Cohere, vLLM, llama.cpp)."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from graph.breaker import Breaker, BreakerState
from graph.model_service import CONCURRENT, ModelService, SlowServiceError, in_parts, sendable, together

BATCH_SIZE = 8
"""Passages in one request: few, so that a slow service has scored the first ones when the budget ends."""
MAX_TOKENS = 512
"""Where a service refuses a passage as too long: what cross-encoders mostly read of question and passage."""
QUESTION_CHARS = 1000
SURE = 1e-6
"""Probabilities are kept this far from 0 and 1, so that their logits stay within ±13.8."""


class TeiRank(msgspec.Struct):
    """One entry of TEI's list."""

    index: int
    score: float


class JinaRank(msgspec.Struct):
    """One entry of Jina's results."""

    index: int
    relevance_score: float


class JinaRanks(msgspec.Struct):
    """Jina's answer; Cohere, vLLM and llama.cpp put other things beside the results."""

    results: list[JinaRank]


class RerankService:
    """`POST {url}/rerank`, in batches of eight, the first passages first.

    Our thresholds are logits. TEI gives them when asked for `raw_scores`. Services of Jina's kind do not say what
    they give: Jina, Cohere and vLLM give probabilities (a sigmoid of the logit), llama.cpp gives the logit itself. So
    as long as every score that came lies within [0, 1] they are probabilities, and turned back into logits; with the
    first one outside, all are logits, for good. Wrong only where a model of logits gives none but such for all of its
    first questions.
    """

    def __init__(
        self,
        url: str,
        *,
        style: Literal["tei", "jina"],
        model: str,
        api_key: str = "",
        breaker: Breaker | None = None,
    ) -> None:
        """`url`: up to and without /rerank; with /v1 where the service wants it."""
        self.model = model
        self._tei = style == "tei"
        self._gives_logits = self._tei
        self._service = ModelService(
            url,
            "/rerank",
            title="The reranking service",
            section="rerank",
            breaker=breaker or Breaker("reranker"),
            api_key=api_key,
            explain=self._explain,
        )

    async def score(self, question: str, passages: Sequence[str], *, budget: float) -> list[float | None]:
        """`DependencyDownError` where nothing came within the budget; where some did, the rest is None."""
        deadline = time.monotonic() + budget
        texts = [sendable(passage) for passage in passages]
        query = sendable(question[:QUESTION_CHARS])
        found: list[float | None] = [None] * len(texts)
        starts = iter(range(0, len(texts), BATCH_SIZE))
        late: list[SlowServiceError] = []

        async def ask(part: list[str]) -> list[float]:
            return await self._ask(query, part, seconds=deadline - time.monotonic())

        async def work() -> None:
            for start in starts:
                if time.monotonic() >= deadline:
                    return
                try:
                    scores = await in_parts(texts[start : start + BATCH_SIZE], ask, max_tokens=MAX_TOKENS)
                except SlowServiceError as error:
                    late.append(error)
                    return
                found[start : start + len(scores)] = scores

        # While the service is given up on one tries alone: the breaker would refuse a second, which would end both.
        workers = CONCURRENT if self._service.breaker.state is BreakerState.CLOSED else 1
        await together(work() for _ in range(workers))
        if late and all(score is None for score in found):
            raise late[0]
        return self._logits(found)

    async def close(self) -> None:
        await self._service.close()

    async def _ask(self, question: str, texts: list[str], *, seconds: float) -> list[float]:
        hint = "raise rerank.budget_seconds, or lower rerank.candidates"
        if self._tei:
            body: dict[str, Any] = {"query": question, "texts": texts, "raw_scores": True, "truncate": True}
            return await self._service.ask(
                body,
                list[TeiRank],
                lambda ranks: self._in_order([(rank.index, rank.score) for rank in ranks], len(texts)),
                seconds=seconds,
                if_slow=hint,
            )
        body = {"model": self.model, "query": question, "documents": texts, "return_documents": False}
        return await self._service.ask(
            body,
            JinaRanks,
            lambda ranks: self._in_order([(rank.index, rank.relevance_score) for rank in ranks.results], len(texts)),
            seconds=seconds,
            if_slow=hint,
        )

    def _in_order(self, ranks: list[tuple[int, float]], count: int) -> list[float]:
        """Scores in the order of the texts; services give them best first."""
        came = f"gives {len(ranks)} scores for {count} passages"
        by_index = dict(ranks)
        if len(ranks) != count or by_index.keys() != set(range(count)):
            wrong = "" if len(ranks) != count else ", but some numbers are repeated or out of range"
            raise self._service.fault(f"{came}{wrong}; check that rerank.url is a reranker")
        if not all(math.isfinite(score) for score in by_index.values()):
            raise self._service.fault(
                f"{came}, but some are no numbers; check rerank.name, and the log behind rerank.url"
            )
        return [by_index[index] for index in range(count)]

    def _logits(self, scores: list[float | None]) -> list[float | None]:
        if not all(score is None or 0.0 <= score <= 1.0 for score in scores):
            self._gives_logits = True
        if self._gives_logits:
            return scores
        return [None if score is None else logit(score) for score in scores]

    def _explain(self, status: int, body: str) -> str:
        if status == 404 and "model" in body and ("not found" in body or "not exist" in body):
            return f"has no model {self.model!r}; set rerank.name to one that it serves"
        if "not a re-ranker" in body or "not a classifier" in body or "does not support rerank" in body:
            return "serves a model that cannot rerank; serve a cross-encoder there"
        return ""


def logit(probability: float) -> float:
    """ln(p / (1 - p)), for p kept off 0 and 1."""
    kept = min(max(probability, SURE), 1 - SURE)
    return math.log(kept / (1 - kept))
