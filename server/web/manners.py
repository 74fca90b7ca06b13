"""Politeness towards hosts: one request at a time, a pause between two, and what robots.txt says."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from graph.errors import DependencyBusyError
from server.web.addresses import WebAddress
from server.web.page_check import PageError
from server.web.robots_rules import NOTHING, RobotsRules

MAX_HOSTS = 1000
LONGEST_PAUSE = 20.0
"""Seconds of `Retry-After` that are waited for; a page whose host asks for more is left out."""


@dataclass(slots=True)
class _Host:
    free: asyncio.Lock = field(default_factory=asyncio.Lock)
    last: float = float("-inf")
    """When the last request to it ended."""


class Manners:
    """For all that one process fetches."""

    def __init__(
        self,
        robots: RobotsRules | None,
        *,
        host_seconds: float = 1.0,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`robots` is None where the owner does not have it asked."""
        self._robots = robots
        self._host_seconds = host_seconds
        self._sleep = sleep
        self._clock = clock
        self._hosts: dict[str, _Host] = {}

    @asynccontextmanager
    async def turn(self, address: WebAddress) -> AsyncIterator[None]:
        """Wait until this host may be asked, and keep others from it meanwhile. Raises `PageError` where robots.txt
        forbids the page."""
        if len(self._hosts) >= MAX_HOSTS:
            self._hosts = {name: host for name, host in self._hosts.items() if host.free.locked()}
        host = self._hosts.setdefault(address.host, _Host())
        async with host.free:
            pause = self._host_seconds
            if self._robots is not None:
                rules = await self._robots.rules(address)
                if not rules.allows(address.url):
                    why = (
                        "robots.txt keeps it from us" if rules is not NOTHING else "its host's robots.txt cannot be had"
                    )
                    raise PageError(address.host, why)
                pause = max(pause, rules.delay)
            if (wait := host.last + pause - self._clock()) > 0:
                await self._sleep(wait)
            try:
                yield
            finally:
                host.last = self._clock()

    async def bear(self, error: DependencyBusyError) -> None:
        """Wait as long as a host asked for. Raises that error again where it is too long."""
        if error.retry_after > LONGEST_PAUSE:
            raise error
        await self._sleep(error.retry_after)
