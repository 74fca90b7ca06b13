"""`/healthz` and `/readyz`."""

from __future__ import annotations

import pytest

from tests.server.http.conftest import Client
from tests.server.http.scripted import ScriptedAnswerer


@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_alive_whatever_is_down(client: Client, answerer: ScriptedAnswerer, method: str) -> None:
    answerer.state = {"store": "gone"}
    response = await client.request(method, "/healthz")
    assert response.status_code == 200
    assert response.text == ('{"status":"ok"}' if method == "GET" else "")


@pytest.mark.parametrize(
    ("state", "status", "code"),
    [
        ({"store": "ok", "vectors": "ok", "llm": "off"}, "ready", 200),
        ({"store": "ok", "vectors": "ok", "graph": "no answer within 1 s"}, "degraded", 200),
        ({"store": "ok", "vectors": "ok", "llm": "refused"}, "degraded", 200),
        ({"store": "ok", "vectors": "refused", "graph": "ok"}, "unready", 503),
        ({"store": "locked", "vectors": "ok"}, "unready", 503),
    ],
)
async def test_readiness(
    client: Client, answerer: ScriptedAnswerer, state: dict[str, str], status: str, code: int
) -> None:
    answerer.state = state
    response = await client.get("/readyz")
    assert response.status_code == code
    assert response.json() == {"status": status, "dependencies": state}
