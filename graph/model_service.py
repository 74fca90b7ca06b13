"""A service that runs a model behind HTTP: one deadline, a size cap, a breaker, and errors in our words."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from typing import Any, NoReturn, TypeVar

import httpx
import msgspec

from graph.breaker import Breaker, retry_after
from graph.errors import (
    DependencyBusyError,
    DependencyDownError,
    DependencyError,
    DependencyFaultError,
    SettingsError,
)
from graph.token_estimate import estimate_tokens

CONNECT_SECONDS = 5.0
MAX_BYTES = 64_000_000
"""Of an answer: 256 vectors of 4,096 numbers as JSON are 25 MB."""
ERROR_BYTES = 4_000
"""Of a refusal: enough to see what it is about. It is never shown, as it may repeat texts or keys."""
CONCURRENT = 2
"""Batches under way at once: one is computed while the next one travels."""
SHORTEST = 32
"""Characters; a service that refuses so little as too long will not take anything."""

LENGTH_REFUSED = re.compile(
    r"context (?:length|size|window)|too (?:long|large to process)|less than \d{1,9} tokens|max_model_len|n_ctx"
    r"|maximum (?:allowed batch size|input length|number of tokens|sequence length)",
    re.IGNORECASE,
)
"""Ollama, OpenAI, vLLM, TEI and llama.cpp each say it with another status, and OpenAI without a code."""

T = TypeVar("T")
A = TypeVar("A")
Explain = Callable[[int, str], str]
"""Status and body of a refusal → what it means and what to do, or nothing."""


class SlowServiceError(DependencyDownError):
    """No answer in time."""


class TooLongError(DependencyFaultError):
    """A text, or all of them together, is longer than the model takes."""


class ModelService:
    """One address to post JSON to. `section` is where its `url`, `api_key` and `name` are set."""

    def __init__(
        self,
        url: str,
        path: str,
        *,
        title: str,
        section: str,
        breaker: Breaker,
        api_key: str = "",
        explain: Explain = lambda _status, _body: "",
    ) -> None:
        """`title` begins each message: "Ollama", "The reranking service"."""
        self.breaker = breaker
        self._section = section
        self._path = path
        self._explain = explain
        base = _checked_url(url, section)
        shown = base.copy_with(username=None, password=None, query=None, fragment=None)
        self.place = f"{title} at {str(shown).rstrip('/')}"
        self._endpoint = base.copy_with(path=base.path.rstrip("/") + path)
        if not (api_key.isascii() and (api_key.isprintable() or not api_key)):
            raise SettingsError(f"{section}.api_key has characters that no key has: copy it again")
        self._client = httpx.AsyncClient(
            timeout=httpx.Timeout(None, connect=CONNECT_SECONDS),
            follow_redirects=False,
            trust_env=False,
            # Uncompressed, so that what is counted is all there is.
            headers={
                "Content-Type": "application/json",
                "Accept": "application/json",
                "Accept-Encoding": "identity",
                "User-Agent": "Trivet",
                **({"Authorization": f"Bearer {api_key}"} if api_key else {}),
            },
        )
        self._busy_until = 0.0
        """When the pause is over that the service asked for in its last answer; 0 if it asked for none."""

    async def ask(
        self, body: Mapping[str, Any], kind: type[A], read: Callable[[A], T], *, seconds: float, if_slow: str
    ) -> T:
        """What `read` makes of the answer, which must have the form of `kind`; `read` may refuse it with `fault`.

        `if_slow`: what to do about an answer that takes more than `seconds`.
        """
        content = msgspec.json.encode(body)
        refused = False
        with self.breaker.watch():
            try:
                status, headers, data = await self._exchange(content, seconds, if_slow)
                refused = status == httpx.codes.REQUEST_ENTITY_TOO_LARGE or (
                    status >= httpx.codes.BAD_REQUEST and bool(LENGTH_REFUSED.search(_text(data)))
                )
                if not refused:
                    if status != httpx.codes.OK:
                        self._refuse(status, headers, data)
                    found = read(self._decoded(headers, data, kind))
            except DependencyError as error:
                pause = error.retry_after if isinstance(error, DependencyBusyError) else None
                self._busy_until = 0.0 if pause is None else time.monotonic() + pause
                raise
        self._busy_until = 0.0
        if refused:
            # Outside the breaker: the service does its part, the text is at fault.
            raise TooLongError(
                f"{self.place} refuses texts as too long, cut ones too; raise the limit on its side",
                dependency=self.breaker.dependency,
            )
        return found

    async def ask_patiently(
        self, body: Mapping[str, Any], kind: type[A], read: Callable[[A], T], *, seconds: float, if_slow: str
    ) -> T:
        """As `ask`; where the service is busy, again after the pause it asks for, as long as `seconds` allow."""
        deadline = time.monotonic() + seconds
        shortest = 0.05
        while True:
            try:
                return await self.ask(body, kind, read, seconds=deadline - time.monotonic(), if_slow=if_slow)
            except (DependencyBusyError, DependencyDownError):
                # During the pause the breaker refuses in the service's name, and after it while another call tries.
                now = time.monotonic()
                wait = max(self._busy_until - now, shortest)
                if not self._busy_until or now + wait >= deadline:
                    raise
            await asyncio.sleep(wait)
            shortest = min(2 * shortest, 2.0)

    def fault(self, what: str) -> DependencyFaultError:
        """`what` it does wrong and what to do: "gives …; check …"."""
        return DependencyFaultError(f"{self.place} {what}", dependency=self.breaker.dependency)

    async def close(self) -> None:
        await self._client.aclose()

    async def _exchange(self, content: bytes, seconds: float, if_slow: str) -> tuple[int, httpx.Headers, bytes]:
        dependency = self.breaker.dependency
        try:
            async with (
                asyncio.timeout(seconds),
                self._client.stream("POST", self._endpoint, content=content) as response,
            ):
                limit = MAX_BYTES if response.status_code == httpx.codes.OK else ERROR_BYTES
                data = bytearray()
                async for piece in response.aiter_raw():
                    data += piece
                    if len(data) > limit:
                        break
        except TimeoutError:
            raise SlowServiceError(
                f"{self.place} did not answer within {round(seconds, 1):g} s; {if_slow}", dependency=dependency
            ) from None
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, UnicodeError) as error:  # a host's name too long
            raise DependencyDownError(
                f"{self.place} cannot be reached ({_reason(error)}); start it, or set {self._section}.url",
                dependency=dependency,
            ) from None
        if response.status_code == httpx.codes.OK and len(data) > MAX_BYTES:
            raise self.fault(f"sends more than {MAX_BYTES // 1_000_000} MB; check what answers there")
        return response.status_code, response.headers, bytes(data[:limit])

    def _decoded(self, headers: httpx.Headers, data: bytes, kind: type[A]) -> A:
        check = f"check that {self._section}.url is the address of such an API"
        if not data.strip():
            raise self.fault(f"gives an empty answer; {check}")
        if "html" in headers.get("content-type", "") or data.lstrip()[:1] == b"<":
            raise self.fault(f"answers with a web page instead of JSON; {check}")
        try:
            return msgspec.json.decode(data, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            pass
        try:
            # Python's reader takes NaN, Infinity and 1e999, which some servers write and `read` can name.
            return msgspec.convert(json.loads(data), kind)
        except (ValueError, RecursionError) as error:
            form = "JSON of another form" if isinstance(error, msgspec.ValidationError) else "something that is no JSON"
        raise self.fault(f"answers with {form}; {check}")

    def _refuse(self, status: int, headers: httpx.Headers, data: bytes) -> NoReturn:
        """Say what a status other than 200 means."""
        section = self._section
        if status in (httpx.codes.TOO_MANY_REQUESTS, httpx.codes.SERVICE_UNAVAILABLE):
            wait = retry_after(headers)
            raise DependencyBusyError(
                f"{self.place} is busy and asks for a pause of {wait:.3g} s ({status}); ask again later",
                dependency=self.breaker.dependency,
                retry_after=wait,
            )
        if explained := self._explain(status, _text(data)):
            raise self.fault(explained)
        if status in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
            raise self.fault(f"refuses access ({status}); set {section}.api_key to a key that it takes")
        if status in (httpx.codes.NOT_FOUND, httpx.codes.METHOD_NOT_ALLOWED):
            raise self.fault(f"knows no {self._path} ({status}); check {section}.url and {section}.provider")
        if 300 <= status < 400:
            raise self.fault(f"redirects elsewhere ({status}); set {section}.url to the address it leads to")
        if 400 <= status < 500:
            raise self.fault(f"refuses the request ({status}); check {section}.name and {section}.provider")
        raise self.fault(f"answers with status {status}; its log says why")


async def together(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """What all of them give; after the first error the others are cancelled, not waited for."""
    running = [asyncio.create_task(part) for part in work]
    try:
        return await asyncio.gather(*running)
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def in_parts(texts: list[str], ask: Callable[[list[str]], Awaitable[list[T]]], *, max_tokens: int) -> list[T]:
    """`ask` of all texts; of halves where that is too much, down to one text, which is then cut until it is taken."""
    try:
        return await ask(texts)
    except TooLongError:
        if len(texts) == 1 and len(texts[0]) <= SHORTEST:
            raise
    if len(texts) == 1:
        length = len(texts[0])
        kept = min(length * 2 // 3, length * max_tokens // max(estimate_tokens(texts[0]), 1))
        return await in_parts([texts[0][: max(kept, SHORTEST)]], ask, max_tokens=max_tokens)
    half = len(texts) // 2
    first = await in_parts(texts[:half], ask, max_tokens=max_tokens)
    return first + await in_parts(texts[half:], ask, max_tokens=max_tokens)


def sendable(text: str) -> str:
    """Half a surrogate pair cannot be sent, and most services refuse a text of nothing."""
    text = text.encode("utf-8", "replace").decode()
    return text if text.strip() else "."


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _reason(error: Exception) -> str:
    """In words of ours: httpx's own may be empty, or repeat a header."""
    if isinstance(error, httpx.ConnectTimeout):
        return f"no connection within {CONNECT_SECONDS:g} s"
    return "no connection" if isinstance(error, httpx.ConnectError) else "the connection broke"


def _checked_url(url: str, section: str) -> httpx.URL:
    try:
        parsed = httpx.URL(url.strip())
        usable = parsed.scheme in ("http", "https") and parsed.host != "" and (parsed.port or 0) < 65_536
    except (httpx.InvalidURL, ValueError):
        usable = False
    if not usable:
        # Not shown, as it may hold a password.
        raise SettingsError(f"{section}.url is no address: it must look like http://127.0.0.1:8080")
    return parsed
