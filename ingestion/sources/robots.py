"""A host's robots.txt: what a crawl may ask for, how slowly, and where the sitemaps are."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from urllib.parse import urljoin

from protego import Protego

from graph.errors import SourceError
from ingestion.sources.polite_http import PageFault, PoliteClient

logger = logging.getLogger(__name__)

AGENT = "Trivet"
MAX_CHARACTERS = 512_000
MAX_LINE = 2_000
MAX_STARS = 10
"""In one rule: Protego makes a regular expression of it."""
MAX_DELAY = 60.0


@dataclass(frozen=True, slots=True)
class Robots:
    """The rules of one host for us."""

    rules: Protego

    def allows(self, url: str) -> bool:
        return bool(self.rules.can_fetch(url, AGENT))

    @property
    def delay(self) -> float:
        """Seconds between two requests."""
        asked = float(self.rules.crawl_delay(AGENT) or 0.0)
        if asked > MAX_DELAY:
            logger.warning("robots.txt asks for %.0f s between two requests; %.0f s are waited", asked, MAX_DELAY)
        return min(max(asked, 0.0), MAX_DELAY)

    @property
    def sitemaps(self) -> list[str]:
        return [str(url) for url in self.rules.sitemaps]


def parse_robots(text: str) -> Robots:
    """Never fails: what is no rule is no rule, so that a page of HTML forbids nothing."""
    lines = text[:MAX_CHARACTERS].replace("\x00", "").removeprefix("\ufeff").splitlines()
    usable = [line for line in lines if len(line) <= MAX_LINE and line.count("*") <= MAX_STARS]
    return Robots(Protego.parse("\n".join(usable)))


def fetch_robots(client: PoliteClient, start: str) -> Robots:
    """As RFC 9309 has it: without the file all is allowed; where the host cannot say, nothing is."""
    try:
        return parse_robots(client.get(urljoin(start, "/robots.txt")).text)
    except PageFault as fault:
        if fault.status == 0 or fault.status == 429 or fault.status >= 500:
            raise SourceError(f"What robots.txt allows cannot be known: {fault.reason}; try again later.") from fault
        return parse_robots("")
