"""The API of a running server that holds the store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

import httpx
import msgspec
from msgspec import Struct

from config.settings import Settings
from graph.errors import (
    ConflictError,
    DependencyDownError,
    DependencyFaultError,
    InputError,
    NotFoundError,
    SettingsError,
    TrivetError,
)
from graph.jobs import ENDED
from server.http.library_views import JobView, Registered, SourceRequest, SourceView, SyncRequest
from server.http.views import QueryRequest, QueryResponse, SearchRequest, SearchResponse

JOB_SECONDS = 0.5
SAME_HERE: Mapping[str, type[TrivetError]] = {
    error.kind: error for error in (NotFoundError, ConflictError, SettingsError)
}
"""Problems that are the same error on this side, by the end of their type."""


class RemoteKnowledge:
    """Asks the server; its errors become ours, so that a command ends the same way wherever the store is."""

    def __init__(self, url: str, client: httpx.AsyncClient) -> None:
        self._url = url
        self._client = client

    async def ask(self, request: QueryRequest) -> QueryResponse:
        return msgspec.json.decode(await self.post("/api/query", request), type=QueryResponse)

    async def search(self, request: SearchRequest) -> SearchResponse:
        return msgspec.json.decode(await self.post("/api/search", request), type=SearchResponse)

    async def add(self, request: SourceRequest) -> JobView:
        return msgspec.json.decode(await self.post("/api/sources", request), type=Registered).job

    async def sync(self, name: str, request: SyncRequest) -> JobView:
        return msgspec.json.decode(await self.post(f"/api/sources/{quote(name)}/sync", request), type=JobView)

    async def sources(self) -> list[SourceView]:
        return msgspec.json.decode(await self.send("GET", "/api/sources"), type=list[SourceView])

    async def forget(self, name: str) -> JobView:
        return msgspec.json.decode(await self.send("DELETE", f"/api/sources/{quote(name)}"), type=JobView)

    async def finished(self, job: JobView, on_progress: Callable[[Mapping[str, Any]], None]) -> JobView:
        """The job once it has ended. It goes on if the command that waits for it does not."""
        while job.state not in ENDED:
            await asyncio.sleep(JOB_SECONDS)
            job = msgspec.json.decode(await self.send("GET", f"/api/jobs/{job.id}"), type=JobView)
            if job.progress:
                on_progress(job.progress)
        return job

    async def post(self, path: str, request: Struct) -> bytes:
        return await self.send("POST", path, msgspec.json.encode(request))

    async def send(self, method: str, path: str, body: bytes | None = None) -> bytes:
        with_type = {"Content-Type": "application/json"} if body is not None else {}
        try:
            response = await self._client.request(method, path, content=body, headers=with_type)
        except httpx.HTTPError as error:
            raise _unreachable(self._url, error) from None
        if not response.is_success:
            raise _problem(self._url, response)
        return response.content


@asynccontextmanager
async def open_remote(url: str, settings: Settings) -> AsyncIterator[RemoteKnowledge]:
    async with _client(url, settings, seconds=settings.server.request_seconds + 5.0) as client:
        yield RemoteKnowledge(url, client)


class Readiness(msgspec.Struct, frozen=True, kw_only=True):
    """`/readyz`; the dependencies are told only to whoever has the key."""

    status: str
    dependencies: dict[str, str] = {}


async def readiness(url: str, settings: Settings) -> Readiness:
    """How a server says it does; a server that does not answer is a status too."""
    async with _client(url, settings, seconds=5.0) as client:
        try:
            response = await client.get("/readyz")
            return msgspec.json.decode(response.content, type=Readiness)
        except (httpx.HTTPError, msgspec.MsgspecError) as error:
            return Readiness(status=f"does not answer ({type(error).__name__})")


def _client(url: str, settings: Settings, *, seconds: float) -> httpx.AsyncClient:
    key = settings.server.api_key.get_secret_value()
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    # Not through a proxy: the server is on this machine.
    return httpx.AsyncClient(base_url=url, headers=headers, timeout=seconds, trust_env=False)


class _Problem(msgspec.Struct, frozen=True, kw_only=True):
    """The part of RFC 9457's problem details that is needed."""

    detail: str = ""
    type: str = ""


def _unreachable(url: str, error: Exception) -> TrivetError:
    return DependencyDownError(
        f"The server at {url} holds the store but does not answer ({type(error).__name__}); stop it or wait for it.",
        dependency="server",
    )


def _problem(url: str, response: httpx.Response) -> TrivetError:
    """The server's own sentence, as the error it would have been here."""
    try:
        problem = msgspec.json.decode(response.content, type=_Problem)
    except msgspec.MsgspecError:
        problem = _Problem(detail=f"HTTP {response.status_code}")
    said = problem.detail
    if response.status_code in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
        return SettingsError(f"The server at {url} holds the store and wants its API key; set server.api_key.")
    kind = problem.type.rpartition(":")[2]
    if kind in SAME_HERE:
        return SAME_HERE[kind](said)
    if response.is_client_error:
        return InputError(said)
    return DependencyFaultError(f"The server at {url} says: {said}", dependency="server")
