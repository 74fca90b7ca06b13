"""The OpenAPI document and its page."""

from __future__ import annotations

import re

from litestar import Litestar
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.json import JSONSnapshotExtension

from server.http.schema_page import PAGE, STATIC
from tests.server.http.conftest import Client


async def test_the_public_interface_is_as_it_was(client: Client, snapshot: SnapshotAssertion) -> None:
    """A change here is a change for every client: look at it, then `pytest --snapshot-update`."""
    document = (await client.get("/schema/openapi.json")).json()
    assert document["info"].pop("version")
    assert document == snapshot(extension_class=JSONSnapshotExtension)


def test_every_route_is_in_it(app: Litestar) -> None:
    assert set(app.openapi_schema.to_schema()["paths"]) == {
        "/api/personas",
        "/api/search",
        "/api/query",
        "/api/query/stream",
        "/v1/chat/completions",
        "/v1/embeddings",
        "/v1/models",
        "/v1/models/{model_id}",
        "/api/sources",
        "/api/sources/{name}",
        "/api/sources/{name}/sync",
        "/api/pages",
        "/api/pages/{source}/{page}",
        "/api/jobs",
        "/api/jobs/{job_id}",
        "/api/jobs/{job_id}/events",
        "/api/feedback",
        "/api/topics",
        "/api/topics/{slug}",
        "/api/topics/{slug}/research",
        "/api/topics/{slug}/deep",
        "/api/topics/{slug}/finish",
        "/api/research",
        "/api/facts",
        "/api/facts/{fact_id}",
        "/api/facts/{fact_id}/keep",
        "/api/facts/{fact_id}/reject",
        "/api/facts/{fact_id}/undo",
        "/api/facts/bulk",
        "/api/write",
        "/api/write/{piece_id}",
        "/api/write/{piece_id}/events",
        "/api/write/{piece_id}/piece",
        "/api/write/{piece_id}/resume",
        "/healthz",
        "/metrics",
        "/readyz",
    }


async def test_the_page_asks_nobody_else(client: Client) -> None:
    response = await client.get("/schema")
    assert not re.search(r"(?i)https?:|[\"'(=]\s*//", response.text)
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "http" not in policy
    for local in re.findall(r'(?:src|spec-url)="([^"]+)"', response.text):
        assert (await client.get(local)).status_code == 200


def test_its_script_is_small_and_has_its_licence() -> None:
    files = {path.name: path.stat().st_size for path in STATIC.iterdir()}
    assert sum(files.values()) < 1_600_000
    assert {"rapidoc-min.js", "rapidoc-LICENSE.txt", "rapidoc-min.js.LICENSE.txt"} == set(files)
    assert 'load-fonts="false"' in PAGE
