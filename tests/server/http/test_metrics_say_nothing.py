"""`/metrics` says nothing of what was asked, of whom, or with which key."""

from __future__ import annotations

from litestar.testing import AsyncTestClient

from config.settings import Settings
from graph.errors import DependencyFaultError
from server.app import create_app
from server.http.options import HttpOptions
from tests.server.http.scripted import ScriptedAnswerer, opening

KEY = "sk-zanzibar-1234"
SAID = "Who wrote the xylophone-quartz memorandum?"
MODEL = "walrus-model"


async def test_no_question_key_or_name_of_a_client_stands_in_it(answerer: ScriptedAnswerer) -> None:
    options = HttpOptions(api_key=KEY)
    headers = {"authorization": f"Bearer {KEY}", "x-request-id": "walrus-request"}
    async with AsyncTestClient(create_app(Settings(), open_answerer=opening(answerer), options=options)) as client:
        for path in ("/api/search", "/api/query", "/api/query/stream"):
            assert (await client.post(path, json={"question": SAID}, headers=headers)).is_success
            await client.post(path, json={"question": SAID}, headers={"x-api-key": f"{KEY}-wrong"})
            await client.post(path, json={"question": SAID, "persona": "walrus"}, headers=headers)
            await client.post(path, content=SAID.encode(), headers=headers)
        turn = {"role": "user", "content": SAID}
        await client.post("/v1/chat/completions", json={"messages": [turn], "model": MODEL}, headers=headers)
        await client.get("/api/pages", params={"q": SAID, "key": KEY}, headers=headers)
        answerer.breaks = DependencyFaultError(f"{MODEL} broke off at {SAID}", dependency="walrus")
        await client.post("/api/query/stream", json={"question": SAID}, headers=headers)
        told = (await client.get("/metrics", headers=headers)).text
    assert "trivet_http_requests_total" in told
    for word in ("xylophone", "quartz", "zanzibar", "walrus"):
        assert word not in told
