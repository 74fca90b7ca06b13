"""Who may ask: one API key, as `Authorization: Bearer …` or `x-api-key`."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable

from litestar.enums import ScopeType
from litestar.middleware import ASGIMiddleware
from litestar.types import ASGIApp, Receive, Scope, Send

from server.http.problems import UnauthorizedError

OPEN = "open_to_all"
"""The `opt` of a route that asks for no key."""


class KeyAuth(ASGIMiddleware):
    """Lets a request through only with the key; before its body is read."""

    scopes = (ScopeType.HTTP,)
    exclude_opt_key = OPEN

    def __init__(self, key: str) -> None:
        self.key = key

    async def handle(self, scope: Scope, receive: Receive, send: Send, next_app: ASGIApp) -> None:
        if not is_authorized(scope["headers"], self.key):
            raise UnauthorizedError("Send the server's API key as `Authorization: Bearer …` or `x-api-key`.")
        await next_app(scope, receive, send)


def is_authorized(headers: Iterable[tuple[bytes, bytes]], key: str) -> bool:
    """Whether one of the headers has the key; without a key everyone is."""
    if not key:
        return True
    expected = _digest(key.encode())
    # Every candidate is compared, and as digests, so that neither place nor length shows in the time it takes.
    matches = [hmac.compare_digest(_digest(given), expected) for given in _given_keys(headers)]
    return any(matches)


def _given_keys(headers: Iterable[tuple[bytes, bytes]]) -> Iterable[bytes]:
    for name, value in headers:
        if name.lower() == b"x-api-key":
            yield value.strip()
        elif name.lower() == b"authorization":
            scheme, _, credentials = value.strip().partition(b" ")
            if scheme.lower() == b"bearer":
                yield credentials.strip()


def _digest(text: bytes) -> bytes:
    return hashlib.sha256(text).digest()
