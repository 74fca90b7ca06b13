"""How a chat answer carries its sources, in the two ways that clients read."""

from __future__ import annotations

from msgspec import Struct

from graph.model import Evidence
from server.answer.plain import place_of
from server.http.links import link_or_name
from server.model import Citation

SNIPPET = 500


class UrlCitation(Struct, frozen=True, kw_only=True):
    """Where the marker `[n]` stands in the text, and what it leads to."""

    start_index: int
    end_index: int
    url: str
    title: str


class Annotation(Struct, frozen=True, kw_only=True):
    """OpenAI's own form of a citation."""

    url_citation: UrlCitation
    type: str = "url_citation"


class FoundSource(Struct, frozen=True, kw_only=True):
    """Perplexity's form of a source."""

    title: str
    url: str
    date: str | None
    snippet: str
    source: str
    """"wiki", "web", "research", "knowledge" or "evergreen"."""


class SourceName(Struct, frozen=True, kw_only=True):
    """What Open WebUI shows of a source."""

    name: str
    url: str


class SourceMetadata(Struct, frozen=True, kw_only=True):
    """`source` is what Open WebUI tells sources apart by."""

    source: str
    name: str


class WebuiSource(Struct, frozen=True, kw_only=True):
    """A source as Open WebUI stores it."""

    source: SourceName
    document: tuple[str, ...]
    metadata: tuple[SourceMetadata, ...]
    distances: tuple[float, ...]


def annotation(citation: Citation) -> Annotation:
    return Annotation(
        url_citation=UrlCitation(
            start_index=citation.start,
            end_index=citation.end,
            url=link_or_name(citation.url, citation.key),
            title=citation.title,
        )
    )


def citation_urls(evidence: tuple[Evidence, ...]) -> tuple[str, ...]:
    """`[n]` in the text is the n-th of these."""
    return tuple(link_or_name(entry.url, entry.key) for entry in evidence)


def search_results(evidence: tuple[Evidence, ...]) -> tuple[FoundSource, ...]:
    urls = citation_urls(evidence)
    return tuple(
        FoundSource(
            title=heading(entry),
            url=url,
            date=entry.modified or None,
            snippet=snippet(entry),
            source=entry.origin,
        )
        for entry, url in zip(evidence, urls, strict=True)
    )


def webui_sources(evidence: tuple[Evidence, ...]) -> tuple[WebuiSource, ...]:
    """Open WebUI reads `[n]` as the n-th distinct `metadata.source`: two passages of one page must differ in it."""
    seen: set[str] = set()
    sources = []
    for entry, url in zip(evidence, citation_urls(evidence), strict=True):
        distinct = url if url not in seen else _with_directive(url, entry.number)
        seen.add(distinct)
        name = heading(entry)
        sources.append(
            WebuiSource(
                source=SourceName(name=name, url=distinct),
                document=(snippet(entry),),
                metadata=(SourceMetadata(source=distinct, name=name),),
                distances=(entry.score,),
            )
        )
    return tuple(sources)


def _with_directive(url: str, number: int) -> str:
    """A fragment directive, which browsers drop before they look for the anchor."""
    return f"{url}{'' if '#' in url else '#'}:~:passage={number}"


def heading(entry: Evidence) -> str:
    return place_of(entry.title, entry.heading_path)


def snippet(entry: Evidence) -> str:
    text = " ".join(entry.text.split())
    return text if len(text) <= SNIPPET else f"{text[: SNIPPET - 1].rstrip()}…"


def footer(evidence: tuple[Evidence, ...]) -> str:
    """A Markdown list of the sources, for clients that show nothing but the text."""
    if not evidence:
        return ""
    urls = citation_urls(evidence)
    lines = [_footer_line(entry, url) for entry, url in zip(evidence, urls, strict=True)]
    return "\n\n---\n**Sources**\n\n" + "\n".join(lines)


def _footer_line(entry: Evidence, url: str) -> str:
    name = heading(entry).replace("[", "(").replace("]", ")")
    return f"{entry.number}. {name}" if url.startswith("urn:") else f"{entry.number}. [{name}](<{url}>)"
