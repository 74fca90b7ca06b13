"""What each host's robots.txt lets us fetch, asked for once a day."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

import httpcore

from graph.errors import DependencyError
from ingestion.sources.robots import Robots, parse_robots
from server.web.addresses import AddressError, WebAddress, follow
from server.web.download import ANY_TYPE, Downloader, StatusError

MAX_BYTES = 512_000
MAX_REDIRECTS = 5
MAX_HOSTS = 1000
SECONDS = 10.0
KEPT_SECONDS = 24 * 3600.0
"""RFC 9309 §2.4."""
UNREACHABLE_SECONDS = 600.0
EVERYTHING = parse_robots("")
NOTHING = parse_robots("User-agent: *\nDisallow: /")


@dataclass(frozen=True, slots=True)
class _Kept:
    rules: Robots
    until: float


class RobotsRules:
    """The rules of each scheme, host and port."""

    def __init__(
        self, downloader: Downloader, *, allow_private: bool = False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._downloader = downloader
        self._allow_private = allow_private
        self._clock = clock
        self._kept: dict[tuple[str, str, int], _Kept] = {}

    async def rules(self, address: WebAddress) -> Robots:
        """As RFC 9309 has it: without the file all is allowed; where the host cannot say, nothing is."""
        origin = (address.scheme, address.host, address.port)
        kept = self._kept.get(origin)
        if kept is None or kept.until < self._clock():
            rules = await self._fetch(address)
            seconds = UNREACHABLE_SECONDS if rules is NOTHING else KEPT_SECONDS
            if len(self._kept) >= MAX_HOSTS:
                self._kept.clear()
            kept = self._kept[origin] = _Kept(rules, self._clock() + seconds)
        return kept.rules

    async def _fetch(self, address: WebAddress) -> Robots:
        """Raises `AddressError` for a host that must not be asked at all."""
        try:
            async with asyncio.timeout(SECONDS):
                return await self._ask(follow(address, "/robots.txt", allow_private=self._allow_private))
        except AddressError:
            raise
        except StatusError as error:
            return NOTHING if error.status >= 500 else EVERYTHING
        except (DependencyError, httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException, OSError):
            return NOTHING

    async def _ask(self, at: WebAddress) -> Robots:
        for _ in range(MAX_REDIRECTS + 1):
            reply = await self._downloader.get(at, limits={ANY_TYPE: MAX_BYTES}, cut=True)
            if not reply.location:
                return parse_robots(reply.body.decode(errors="replace"))
            try:
                at = follow(at, reply.location, allow_private=self._allow_private)
            except AddressError:
                break
        return EVERYTHING  # it leads astray, so there is none
