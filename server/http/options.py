"""What the HTTP interfaces may be told: limits, times and how answers carry their sources."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from config.settings import Settings

CitationMode = Literal["annotations", "openwebui"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpOptions:
    """The settings of the server that the HTTP interfaces need; the defaults are for tests."""

    api_key: str = ""
    """Empty: no key is asked for."""
    citation_mode: CitationMode = "annotations"
    sources_footer: bool = False
    """Whether chat answers end with a Markdown list of their sources."""
    request_seconds: float = 120.0
    """Deadline of an answer that is not streamed."""
    max_body_bytes: int = 1_000_000
    head_seconds: float = 12.0
    """A request line with headers must be complete by then; half of one is closed."""
    body_seconds: float = 12.0
    """A request body must be complete by then."""
    ping_seconds: float = 10.0
    """A stream that has nothing to say for so long says that it is alive."""
    ping_as_delta: bool = False
    """Chat streams say so with an empty delta, for clients that choke on SSE comments."""
    max_active: int = 128
    """Questions worked on at once; one more gets 503 with Retry-After."""
    drain_seconds: float = 20.0
    """After SIGTERM, work under way may take so long before it is ended with an error."""

    @classmethod
    def from_settings(cls, settings: Settings) -> HttpOptions:
        server = settings.server
        return cls(
            api_key=server.api_key.get_secret_value(),
            citation_mode=server.citation_mode,
            request_seconds=server.request_seconds,
            max_body_bytes=server.max_body_bytes,
            sources_footer=server.sources_footer,
            head_seconds=server.head_seconds,
            body_seconds=server.body_seconds,
            ping_seconds=server.ping_seconds,
            ping_as_delta=server.ping_as_delta,
            max_active=server.max_active,
            drain_seconds=server.drain_seconds,
        )
