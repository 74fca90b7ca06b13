"""`/schema`: the OpenAPI document and a page to try it, which works offline.

Litestar's own pages load their script and icon from a CDN.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from litestar import Request, Response, Router, get
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import OpenAPIRenderPlugin
from litestar.openapi.spec import Components, SecurityScheme, Tag

from server.http.auth import OPEN
from server.http.gate import UNCOUNTED

STATIC = Path(__file__).with_name("static")
SCRIPT = "rapidoc-min.js"
POLICY = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'unsafe-inline'; "
    "img-src 'self' data:; font-src 'self' data:; frame-ancestors 'none'; base-uri 'none'"
)
PAGE = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>Trivet API</title>
<script type="module" src="/schema/static/{SCRIPT}"></script>
</head>
<body>
<rapi-doc spec-url="/schema/openapi.json" load-fonts="false" render-style="read" show-header="false"
  allow-server-selection="false" regular-font="system-ui, sans-serif" mono-font="monospace"></rapi-doc>
</body>
</html>
"""


class SchemaPage(OpenAPIRenderPlugin):
    """RapiDoc, from our own files."""

    def __init__(self) -> None:
        super().__init__(path="/")

    def render(self, request: Request[Any, Any, Any], openapi_schema: dict[str, Any]) -> bytes:
        return PAGE.encode()


@cache
def _script() -> bytes:
    return (STATIC / SCRIPT).read_bytes()


@get(f"/static/{SCRIPT}", sync_to_thread=False, media_type="text/javascript")
def script() -> Response[bytes]:
    return Response(_script(), media_type="text/javascript", headers={"cache-control": "max-age=86400"})


def openapi_config(*, asks_for_key: bool) -> OpenAPIConfig:
    return OpenAPIConfig(
        title="Trivet",
        version=version("trivet"),
        description="Questions to your own wiki, every claim cited.",
        use_handler_docstrings=True,
        render_plugins=[SchemaPage()],
        openapi_router=Router(
            "/schema",
            route_handlers=[script],
            include_in_schema=False,
            opt={OPEN: True, UNCOUNTED: True},
            response_headers={"content-security-policy": POLICY},
        ),
        components=Components(
            security_schemes={
                "bearer": SecurityScheme(type="http", scheme="bearer"),
                "key": SecurityScheme(type="apiKey", name="x-api-key", security_scheme_in="header"),
            }
        ),
        security=[{"bearer": []}, {"key": []}] if asks_for_key else None,
        tags=[
            Tag(name="questions", description="The native API."),
            Tag(name="openai", description="For clients that speak OpenAI's."),
            Tag(name="health", description="For whoever watches the server."),
        ],
    )
