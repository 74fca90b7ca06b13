"""uvicorn's HTTP/1.1 protocol, with an end to requests that begin and do not go on.

uvicorn's only timeout is for idle connections between requests: half a header may stay for ever.
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 12.0


class PatientH11Protocol(H11Protocol):
    """Closes a connection whose next request head is not complete in time, from its first byte or from connecting."""

    head_seconds = HEAD_SECONDS

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect_head()

    def data_received(self, data: bytes) -> None:
        self._expect_head()
        super().data_received(data)
        self._note_head()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        # A pipelined head may be half here already.
        if self.conn.trailing_data[0]:
            self._expect_head()
        self._note_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def _expect_head(self) -> None:
        if self._head_timer is None and self.conn.their_state is h11.IDLE:
            self._head_timer = self.loop.call_later(self.head_seconds, self._give_up)

    def _note_head(self) -> None:
        if self.conn.their_state is not h11.IDLE:
            self._stop_timer()

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _give_up(self) -> None:
        self._head_timer = None
        if not self.transport.is_closing():
            self.transport.close()
