"""How a command reaches the knowledge: through the server that holds the store, or by opening the store itself."""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol, cast

import httpx
import msgspec

from config.settings import Settings
from graph.errors import DependencyDownError, DependencyFaultError, InputError, SettingsError
from graph.home import HomeLock
from server.http.views import QueryRequest, QueryResponse, SearchRequest, SearchResponse


class Knowledge(Protocol):
    """What `ask`, `search` and `status` need, wherever it is."""

    async def ask(self, request: QueryRequest) -> QueryResponse: ...
    async def search(self, request: SearchRequest) -> SearchResponse: ...


@asynccontextmanager
async def reach(settings: Settings, *, command: str) -> AsyncIterator[Knowledge]:
    """The server's API where one holds the store, else the store. Raises `StoreBusyError` where neither is possible."""
    holder = HomeLock.holder(settings.home)
    if holder is not None and holder.url:
        async with RemoteKnowledge(holder.url, settings) as remote:
            yield remote
        return
    # The models take seconds to import, so this is done only where the store is opened here.
    opened = cast(
        AbstractAsyncContextManager[Knowledge],
        importlib.import_module("server.commands.local").open_local(settings, command=command),
    )
    async with opened as local:
        yield local


class RemoteKnowledge:
    """A running server's API."""

    def __init__(self, url: str, settings: Settings) -> None:
        key = settings.server.api_key.get_secret_value()
        self._url = url
        self._client = httpx.AsyncClient(
            base_url=url,
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout=settings.server.request_seconds + 5.0,
            trust_env=False,
        )

    async def __aenter__(self) -> RemoteKnowledge:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()

    async def ask(self, request: QueryRequest) -> QueryResponse:
        return msgspec.json.decode(await self._post("/api/query", request), type=QueryResponse)

    async def search(self, request: SearchRequest) -> SearchResponse:
        return msgspec.json.decode(await self._post("/api/search", request), type=SearchResponse)

    async def _post(self, path: str, request: SearchRequest) -> bytes:
        return await self._send("POST", path, msgspec.json.encode(request))

    async def _send(self, method: str, path: str, body: bytes | None = None) -> bytes:
        try:
            response = await self._client.request(
                method, path, content=body, headers={"Content-Type": "application/json"}
            )
        except httpx.HTTPError as error:
            raise DependencyDownError(
                f"the server at {self._url} holds the store but does not answer ({type(error).__name__}); "
                "stop it or wait for it.",
                dependency="server",
            ) from None
        if response.is_success:
            return response.content
        raise self._problem(response)

    def _problem(self, response: httpx.Response) -> Exception:
        """The server's own sentence, as the error it would have been here."""
        try:
            said = msgspec.json.decode(response.content, type=Problem)
        except msgspec.MsgspecError:
            said = Problem(detail=f"HTTP {response.status_code}")
        if response.status_code in (401, 403):
            return SettingsError(f"the server at {self._url} holds the store and wants its key: set server.api_key.")
        if response.status_code < 500:
            return InputError(said.detail)
        return DependencyFaultError(f"the server at {self._url} says: {said.detail}", dependency="server")


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """The part of RFC 9457's problem details that is shown."""

    detail: str = ""
