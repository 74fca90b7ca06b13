"""The API key."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from litestar.testing import AsyncTestClient

from config.settings import Settings
from server.app import create_app
from server.http.auth import is_authorized
from server.http.options import HttpOptions
from tests.server.http.conftest import Client
from tests.server.http.scripted import ScriptedAnswerer, opening

KEY = "sk-trivet-clé-1"
SENT = KEY.encode()


@pytest.fixture
async def locked(answerer: ScriptedAnswerer) -> AsyncIterator[Client]:
    options = HttpOptions(api_key=KEY)
    async with AsyncTestClient(create_app(Settings(), open_answerer=opening(answerer), options=options)) as client:
        yield client


@pytest.mark.parametrize(
    "header",
    [
        (b"authorization", b"Bearer " + SENT),
        (b"Authorization", b"bearer   " + SENT + b" "),
        (b"x-api-key", SENT),
        (b"X-API-Key", b" " + SENT),
    ],
)
def test_the_key_in_either_header(header: tuple[bytes, bytes]) -> None:
    assert is_authorized([header], KEY)
    assert is_authorized([(b"authorization", b"Bearer other"), header], KEY)


@pytest.mark.parametrize(
    "header",
    [
        (b"authorization", SENT),
        (b"authorization", b"Basic " + SENT),
        (b"authorization", b"Bearer"),
        (b"authorization", b"Bearer " + SENT[:-1]),
        (b"authorization", b"Bearer " + SENT + b"1"),
        (b"authorization", b"Bearer " + SENT.upper()),
        (b"authorization", "Bearer ключ".encode()),
        (b"authorization", b"Bearer \xff\xfe"),
        (b"authorization", b"Bearer " + KEY.encode("latin-1")),
        (b"x-api-key", b""),
        (b"x-api-key", b"Bearer " + SENT),
        (b"api-key", SENT),
    ],
)
def test_anything_else_is_not_the_key(header: tuple[bytes, bytes]) -> None:
    assert not is_authorized([header], KEY)


def test_without_a_key_everyone_may_ask() -> None:
    assert is_authorized([], "")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/api/search"),
        ("POST", "/api/query"),
        ("POST", "/api/query/stream"),
        ("POST", "/v1/chat/completions"),
        ("POST", "/v1/embeddings"),
        ("POST", "/v1/responses"),
        ("GET", "/v1/models"),
        ("GET", "/v1/models/trivet"),
    ],
)
async def test_every_route_asks_for_it(locked: Client, answerer: ScriptedAnswerer, method: str, path: str) -> None:
    response = await locked.request(method, path, content=b"[" * 1000)
    assert response.status_code == 401
    assert response.headers["www-authenticate"].startswith("Bearer")
    if path.startswith("/v1"):
        assert response.json()["error"]["code"] == "invalid_api_key"
    else:
        assert response.json()["type"] == "urn:trivet:problem:unauthorized"
    assert answerer.questions == []


async def test_health_and_the_schema_are_open(locked: Client) -> None:
    for path in ("/healthz", "/readyz", "/schema", "/schema/openapi.json", "/schema/static/rapidoc-min.js"):
        assert (await locked.get(path)).status_code == 200


async def test_only_the_key_opens_the_details_of_readiness(locked: Client, answerer: ScriptedAnswerer) -> None:
    answerer.state["graph"] = "bolt://10.0.0.1 refused"
    assert (await locked.get("/readyz")).json() == {"status": "degraded"}
    known = await locked.get("/readyz", headers=[(b"x-api-key", SENT)])
    assert known.json()["dependencies"]["graph"] == "bolt://10.0.0.1 refused"
