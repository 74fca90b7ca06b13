"""Request bodies: read in time, decoded strictly, and every fault said as a sentence."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import msgspec
from litestar import Request
from litestar.datastructures import State
from litestar.exceptions import InternalServerException

from server.http.options import HttpOptions
from server.http.problems import BodyTimeoutError, ClientGoneError, RequestError

AT_PATH = re.compile(r"^(?P<what>.*?)(?: - at `\$\.?(?P<path>[^`]*)`)?$", re.DOTALL)
"""How msgspec says where a fault is: "Expected `int`, got `str` - at `$.filter.sources[0]`"."""
NAMED_FIELD = re.compile(r"(?:unknown|required) field `([^`]*)`")


class ApiRequest(Request[None, None, State]):
    """Litestar's request, but a body comes in time, is decoded straight into its type, and never is a 500.

    Litestar itself answers 500 to `[` × 1,000 and turns "5" into 5.
    """

    _arrived: bytes | None = None

    async def body(self) -> bytes:
        if self._arrived is None:
            self._arrived = await self._receive_body()
        return self._arrived

    async def _receive_body(self) -> bytes:
        options: HttpOptions = self.app.state.options
        try:
            async with asyncio.timeout(options.body_seconds):
                body = await super().body()
        except TimeoutError:
            seconds = f"{options.body_seconds:g}"
            raise BodyTimeoutError(f"The request body did not arrive within {seconds} seconds.") from None
        except InternalServerException as error:
            raise ClientGoneError("The client went away while it was sending.") from error
        if not body and self.route_handler.parsed_data_field is not None:
            raise RequestError("The request body is empty; send a JSON object.")
        return body

    async def json(self) -> Any:
        field = self.route_handler.parsed_data_field
        return decode(await self.body(), field.annotation if field else object)


def decode(body: bytes, kind: Any) -> Any:
    """Strict, and with one rule for a key that comes twice: the last one counts."""
    try:
        body.decode()
    except UnicodeDecodeError as error:
        raise RequestError(f"The request body is not UTF-8: byte {error.start} is wrong.") from None
    try:
        return msgspec.json.decode(body, type=kind)
    except RecursionError:
        raise RequestError("The request body is nested too deeply.") from None
    except msgspec.ValidationError as error:
        raise _validation_fault(str(error)) from None
    except msgspec.DecodeError as error:
        raise RequestError(f"The request body is not valid JSON: {_decode_fault(body, str(error))}.") from None


def _validation_fault(message: str) -> RequestError:
    found = AT_PATH.match(message)
    what, path = (found["what"], found["path"] or "") if found else (message, "")
    named = NAMED_FIELD.search(what)
    parts = [path, named[1] if named else ""]
    param = ".".join(part for part in parts if part)
    return RequestError(f"{param or 'The request body'}: {what[:1].lower()}{what[1:]}.", param=param or None)


def _decode_fault(body: bytes, message: str) -> str:
    # msgspec calls half a surrogate pair a truncated input.
    if re.search(rb"\\u[dD][89a-fA-F]", body):
        return "it has half of a surrogate pair"
    return message[:1].lower() + message[1:]
