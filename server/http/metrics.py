"""`/metrics`: what Prometheus reads. No label has more values than this program has words, whatever clients send."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from litestar.enums import ScopeType
from litestar.types import ASGIApp, Message, Receive, Scope, Send
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)

from graph.breaker import Breaker, BreakerState
from graph.jobs import JobState
from server.legs import OFF, OK
from server.model import Answer, SearchResult

MEDIA_TYPE = "text/plain; version=0.0.4"
"""Litestar adds the charset."""
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
OTHER = "other"
NO_ROUTE = "none"
"""Of a request that meets no route: its path is the client's own text."""
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
STATUSES = (OK, OFF, "timeout", "unavailable", "refused")
"""How a leg's status may begin; any other is one of "failed"."""
PARTIAL = "partial"
"""A leg that gave something, but not all: its status is "ok", and why not all in brackets."""


class Metrics:
    """The counts of one application since it was started."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._requests = self._counter("http_requests", "Requests that have ended.", "route", "method", "status")
        self._request_seconds = self._histogram(
            "http_request_seconds", "From a request's start to the end of its response.", "route", "method"
        )
        self._active = Gauge("trivet_http_requests_active", "Requests under way.", registry=self.registry)
        self._answers = self._counter("answers", "Answers given, whole or streamed.", "mode", "zone")
        self._broken = self._counter("streams_broken", "Streams that ended with an error.", "kind")
        self._legs = self._counter("legs", "What became of each leg of an answer or a search.", "leg", "status")
        self._stages = self._histogram("stage_seconds", "Legs and other stages of answers and searches.", "stage")
        self._tokens = self._counter("llm_tokens", "Tokens of the model, as its server counts them.", "direction")
        self._breakers = self._gauge("breaker", "1 for the state that it is in.", "leg", "state")
        self._jobs = self._gauge("jobs", "Jobs that are remembered.", "state")

    def _counter(self, name: str, told: str, *labels: str) -> Counter:
        return Counter(f"trivet_{name}", told, labels, registry=self.registry)

    def _histogram(self, name: str, told: str, *labels: str) -> Histogram:
        return Histogram(f"trivet_{name}", told, labels, registry=self.registry, buckets=SECONDS)

    def _gauge(self, name: str, told: str, *labels: str) -> Gauge:
        return Gauge(f"trivet_{name}", told, labels, registry=self.registry)

    @contextmanager
    def request(self) -> Iterator[None]:
        self._active.inc()
        try:
            yield
        finally:
            self._active.dec()

    def requested(self, route: str, method: str, status: str, seconds: float) -> None:
        self._requests.labels(route, method, status).inc()
        self._request_seconds.labels(route, method).observe(seconds)

    def answered(self, answer: Answer) -> None:
        self._answers.labels(answer.mode, answer.zone).inc()
        self._worked(answer.legs, answer.milliseconds)
        self.spent(answer)

    def searched(self, found: SearchResult) -> None:
        self._worked(found.legs, found.milliseconds)

    def spent(self, answer: Answer) -> None:
        """Also for what a client asks of the model on its own, which is no answer."""
        self._tokens.labels("prompt").inc(answer.prompt_tokens)
        self._tokens.labels("completion").inc(answer.completion_tokens)

    def broke_off(self, kind: str) -> None:
        self._broken.labels(kind).inc()

    def _worked(self, legs: Mapping[str, str], milliseconds: Mapping[str, float]) -> None:
        for leg, status in legs.items():
            self._legs.labels(leg, short_status(status)).inc()
        for stage, taken in milliseconds.items():
            self._stages.labels(stage).observe(taken / 1000)

    def exposition(self, breakers: Mapping[str, Breaker], jobs: Mapping[JobState, int]) -> bytes:
        """As text, with how breakers and jobs are now."""
        for leg, breaker in breakers.items():
            for state in BreakerState:
                self._breakers.labels(leg, state).set(breaker.state is state)
        self._jobs.clear()
        for kind, count in jobs.items():
            self._jobs.labels(kind).set(count)
        return generate_latest(self.registry)


def short_status(status: str) -> str:
    """One word for a leg's status, which is a sentence.

    >>> [short_status(said) for said in ("ok", "ok (1 engine silent)", "timeout after 2 s", "no model there")]
    ['ok', 'partial', 'timeout', 'failed']
    """
    if status.startswith(f"{OK} ("):
        return PARTIAL
    word = status.replace(":", " ").partition(" ")[0]
    return word if word in STATUSES else "failed"


class RequestMetrics:
    """Around the application: counts its requests by the route they meet."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app = app
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            await self.app(scope, receive, send)
            return
        status = "none"

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = str(message["status"])
            await send(message)

        begun = time.monotonic()
        with self.metrics.request():
            try:
                await self.app(scope, receive, noting)
            finally:
                # Litestar's, `/api/jobs/{job_id}` and not the path.
                route = scope.get("path_template") or NO_ROUTE
                method = scope["method"] if scope["method"] in METHODS else OTHER
                self.metrics.requested(route, method, status, time.monotonic() - begun)
