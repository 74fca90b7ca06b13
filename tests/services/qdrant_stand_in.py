"""A Qdrant to test against: qdrant-client's local engine behind Qdrant's REST routes, in a process of its own.

It is no Qdrant: no registry has that binary. What is real is the wire (HTTP, JSON in the client's own models, status
codes and error bodies as in Qdrant's src/actix) and that the process can be killed or stopped; ranking, filters and
BM25's IDF are those of the client's local mode, which compares every vector. It has no index, no quantisation and no
cluster, and keeps payload indexes' names for show. `python -m tests.services.qdrant_stand_in --port 6333` runs one.
"""

from __future__ import annotations

import argparse
import asyncio
import hmac
import os
import re
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, MutableMapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvicorn
from pydantic_core import to_json
from qdrant_client import AsyncQdrantClient, models

from tests.services.processes import REPOSITORY

VERSION = "1.16.0"
OPEN_PATHS = frozenset({"/", "/healthz", "/readyz", "/livez"})
"""What answers without a key, as in Qdrant."""
LONGEST_START = 60.0

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class RefusalError(Exception):
    """An answer of another status than 200."""

    def __init__(self, status: int, said: str) -> None:
        super().__init__(said)
        self.status = status


class StandIn:
    """The routes that `AsyncQdrantClient` asks for what graph/qdrant_server_store.py calls, as an ASGI app."""

    def __init__(self, client: AsyncQdrantClient, *, api_key: str, version: str) -> None:
        self._client = client
        self._key = api_key
        self._version = version
        self._indexed: dict[str, dict[str, Any]] = {}
        one = r"/collections/([^/]+)"
        self._routes: list[tuple[str, re.Pattern[str], Callable[..., Awaitable[Any]]]] = [
            ("GET", re.compile("/collections"), self._list),
            ("GET", re.compile(f"{one}/exists"), self._exists),
            ("GET", re.compile(one), self._describe),
            ("PUT", re.compile(one), self._create),
            ("PATCH", re.compile(one), self._update),
            ("DELETE", re.compile(one), self._drop),
            ("PUT", re.compile(f"{one}/index"), self._index),
            ("PUT", re.compile(f"{one}/points"), self._upsert),
            ("POST", re.compile(f"{one}/points"), self._retrieve),
            ("POST", re.compile(f"{one}/points/delete"), self._delete),
            ("POST", re.compile(f"{one}/points/count"), self._count),
            ("POST", re.compile(f"{one}/points/scroll"), self._scroll),
            ("POST", re.compile(f"{one}/points/query/batch"), self._query),
        ]

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        body = b""
        while (message := await receive())["type"] == "http.request":
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        headers = {name.decode().lower(): value.decode("latin-1") for name, value in scope["headers"]}
        began = time.perf_counter()
        status, answer = await self._answer(scope["method"], scope["path"], headers, body)
        if isinstance(answer, dict) and "status" in answer:
            answer["time"] = time.perf_counter() - began
        content = answer.encode() if isinstance(answer, str) else to_json(answer)
        kind = b"text/plain" if isinstance(answer, str) else b"application/json"
        lines = [(b"content-type", kind), (b"content-length", str(len(content)).encode())]
        await send({"type": "http.response.start", "status": status, "headers": lines})
        await send({"type": "http.response.body", "body": content})

    async def _answer(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> tuple[int, Any]:
        if (
            path not in OPEN_PATHS
            and self._key
            and not hmac.compare_digest(self._key.encode(), headers.get("api-key", "").encode())
        ):
            missing = "api-key" not in headers
            return 401, "Must provide an API key or an Authorization bearer token" if missing else "Invalid API key"
        if path == "/":
            return 200, {"title": "qdrant - vector search engine", "version": self._version, "commit": "stand-in"}
        if path in OPEN_PATHS:
            return 200, "all shards are ready"
        for wanted, pattern, handle in self._routes:
            if wanted == method and (found := pattern.fullmatch(path)):
                try:
                    return 200, {"result": await handle(*found.groups(), body=body), "status": "ok"}
                except RefusalError as error:
                    return error.status, {"result": None, "status": {"error": str(error)}}
                except ValueError as error:  # what the local engine and pydantic say of wrong input
                    return 400, {"result": None, "status": {"error": f"Wrong input: {error}"}}
        return 404, ""

    async def _list(self, *, body: bytes) -> models.CollectionsResponse:
        return await self._client.get_collections()

    async def _exists(self, name: str, *, body: bytes) -> models.CollectionExistence:
        return models.CollectionExistence(exists=await self._client.collection_exists(name))

    async def _describe(self, name: str, *, body: bytes) -> dict[str, Any]:
        await self._must_exist(name)
        said: dict[str, Any] = (await self._client.get_collection(name)).model_dump(mode="json")
        return {**said, "payload_schema": self._indexed.get(name, {})}

    async def _create(self, name: str, *, body: bytes) -> bool:
        if await self._client.collection_exists(name):
            raise RefusalError(409, f"Wrong input: Collection `{name}` already exists!")
        wanted = models.CreateCollection.model_validate_json(body)
        return await self._client.create_collection(
            name,
            vectors_config=wanted.vectors,
            sparse_vectors_config=wanted.sparse_vectors,
            metadata=wanted.metadata,
        )

    async def _update(self, name: str, *, body: bytes) -> bool:
        """Qdrant's validation of it; the local engine has nothing to change."""
        await self._must_exist(name)
        models.UpdateCollection.model_validate_json(body)
        return True

    async def _drop(self, name: str, *, body: bytes) -> bool:
        self._indexed.pop(name, None)
        return await self._client.delete_collection(name)

    async def _index(self, name: str, *, body: bytes) -> models.UpdateResult:
        await self._must_exist(name)
        wanted = models.CreateFieldIndex.model_validate_json(body)
        self._indexed.setdefault(name, {})[wanted.field_name] = {"data_type": wanted.field_schema, "points": 0}
        return models.UpdateResult(status=models.UpdateStatus.COMPLETED, operation_id=0)

    async def _upsert(self, name: str, *, body: bytes) -> models.UpdateResult:
        await self._must_exist(name)
        return await self._client.upsert(name, models.PointsList.model_validate_json(body).points)

    async def _delete(self, name: str, *, body: bytes) -> models.UpdateResult:
        await self._must_exist(name)
        return await self._client.delete(name, models.PointIdsList.model_validate_json(body))

    async def _count(self, name: str, *, body: bytes) -> models.CountResult:
        await self._must_exist(name)
        return await self._client.count(name, models.CountRequest.model_validate_json(body).filter)

    async def _retrieve(self, name: str, *, body: bytes) -> list[models.Record]:
        await self._must_exist(name)
        wanted = models.PointRequest.model_validate_json(body)
        return await self._client.retrieve(
            name, wanted.ids, with_payload=wanted.with_payload or False, with_vectors=wanted.with_vector or False
        )

    async def _scroll(self, name: str, *, body: bytes) -> dict[str, Any]:
        await self._must_exist(name)
        wanted = models.ScrollRequest.model_validate_json(body)
        points, offset = await self._client.scroll(
            name,
            wanted.filter,
            limit=wanted.limit or 10,
            offset=wanted.offset,
            with_payload=wanted.with_payload or False,
            with_vectors=wanted.with_vector or False,
        )
        return {"points": points, "next_page_offset": offset}

    async def _query(self, name: str, *, body: bytes) -> list[models.QueryResponse]:
        await self._must_exist(name)
        return await self._client.query_batch_points(name, models.QueryRequestBatch.model_validate_json(body).searches)

    async def _must_exist(self, name: str) -> None:
        if not await self._client.collection_exists(name):
            raise RefusalError(404, f"Not found: Collection `{name}` doesn't exist!")


@dataclass(slots=True)
class QdrantProcess:
    """A stand-in that runs, and what a test may do to it. `start` after `kill` takes the same port again."""

    options: list[str]
    port: int = 0
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        command = [sys.executable, "-m", __name__, "--port", str(self.port), "--until-eof", *self.options]
        self._process = subprocess.Popen(command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        late = threading.Timer(LONGEST_START, self._process.kill)
        late.start()
        said = self._process.stdout.readline().decode().strip()
        late.cancel()
        if not said:
            self.kill()
            raise RuntimeError("The Qdrant stand-in did not start; what it said is above.")
        self.port = int(said.rpartition(":")[2])

    def kill(self) -> None:
        """SIGKILL, also to one that is paused."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def pause(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def _end(self, how: signal.Signals) -> None:
        if self._process is None:
            return
        self._process.send_signal(how)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
        self._process = None


@contextmanager
def qdrant_process(*, api_key: str = "", version: str = VERSION, folder: Path | None = None) -> Iterator[QdrantProcess]:
    """One in memory, or with its data in `folder`, where it is after a restart too."""
    options = ["--api-key", api_key, "--version", version, *(["--folder", str(folder)] if folder else [])]
    process = QdrantProcess(options)
    process.start()
    try:
        yield process
    finally:
        process.kill()


@asynccontextmanager
async def running_qdrant(api_key: str = "", version: str = VERSION, folder: Path | None = None) -> AsyncIterator[str]:
    """The URL of one that ends with the block; `qdrant_process` for a test that also kills, pauses or restarts it."""
    opened = qdrant_process(api_key=api_key, version=version, folder=folder)
    process = await asyncio.to_thread(opened.__enter__)
    try:
        yield process.url
    finally:
        await asyncio.to_thread(opened.__exit__, None, None, None)


def _end_with_starter() -> None:
    """So that none is left where the tests were killed: the pipe closes with the one that holds it."""
    sys.stdin.buffer.read()
    os._exit(0)


async def _serve(options: argparse.Namespace) -> None:
    client = AsyncQdrantClient(path=options.folder) if options.folder else AsyncQdrantClient(":memory:")
    app = StandIn(client, api_key=options.api_key, version=options.version)
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
    listening = uvicorn.Config(app, host="127.0.0.1", port=options.port, log_level="error").bind_socket()
    listening.listen(128)  # so that it answers from the line below on
    print(f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
    await server.serve(sockets=[listening])
    await client.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--api-key", default="")
    parser.add_argument("--version", default=VERSION)
    parser.add_argument("--folder", default="")
    parser.add_argument("--until-eof", action="store_true", help="end when standard input does")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # the local engine says of each setting it does not have that it has not
    if options.until_eof:
        threading.Thread(target=_end_with_starter, daemon=True).start()
    asyncio.run(_serve(options))


if __name__ == "__main__":
    main()
