"""Search results as candidates for fetching: which may be fetched at all, which come first. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from graph.model import WebResult
from server.web.addresses import BLOCKED_DOMAIN, parse_url, refusal
from server.web.passages import by_bm25

RRF_K = 60
TRACKING = re.compile(r"utm_[a-z]+|gclid|fbclid|msclkid|mc_cid|mc_eid|ref_src")


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A result that may be fetched. `score` grows with every search that found it, `boost` is its domain's."""

    url: str
    key: str
    """Equal for addresses that are the same page as a rule."""
    title: str
    snippet: str
    query: str
    published: str = ""
    score: float = 0.0
    boost: float = 0.0


def page_key(url: str) -> str:
    """Without scheme, `www.`, fragment and what only counts visitors; the URL itself where it cannot be parsed."""
    try:
        parts = urlsplit(url)
        pairs = [pair for pair in parse_qsl(parts.query, keep_blank_values=True) if not TRACKING.fullmatch(pair[0])]
    except ValueError:
        return url
    host = parts.netloc.lower().removeprefix("www.").removesuffix(":80").removesuffix(":443")
    return urlunsplit(("", host, parts.path or "/", urlencode(pairs), ""))


def admit(
    results: Iterable[WebResult],
    query: str,
    *,
    blocked: Callable[[str], bool],
    boost_of: Callable[[str], float],
    allow_private: bool,
    leave_out: Callable[[str, str], None],
) -> list[Candidate]:
    """Those that may be fetched, in their order; `leave_out` gets reason and URL of the others."""
    kept: dict[str, Candidate] = {}
    for rank, result in enumerate(results, 1):
        if why := refusal(result.url, allow_private=allow_private):
            leave_out(why, result.url)
            continue
        url = parse_url(result.url, allow_private=allow_private).url
        if blocked(url):
            leave_out(BLOCKED_DOMAIN, url)
            continue
        key = page_key(url)
        kept.setdefault(
            key,
            Candidate(
                url=url,
                key=key,
                title=result.title,
                snippet=result.snippet,
                query=query,
                published=result.published,
                score=1 / (RRF_K + rank),
                boost=boost_of(url),
            ),
        )
    return list(kept.values())


def merged(searches: Iterable[Sequence[Candidate]]) -> list[Candidate]:
    """Each page once, the best first, by reciprocal rank fusion over all searches."""
    found: dict[str, Candidate] = {}
    for candidates in searches:
        for candidate in candidates:
            known = found.get(candidate.key)
            found[candidate.key] = replace(known, score=known.score + candidate.score) if known else candidate
    return sorted(found.values(), key=lambda candidate: -candidate.score)


def prescored(candidates: Sequence[Candidate], keywords: Sequence[str]) -> list[Candidate]:
    """The best first, by BM25 of title, snippet and the URL's words; without those that have none of the keywords."""
    texts = [f"{each.title} {each.snippet} {_words_of(each.url)}" for each in candidates]
    return [candidates[place] for place, score in by_bm25(texts, " ".join(keywords)) if score > 0]


def waves(candidates: Sequence[Candidate], size: int) -> list[list[Candidate]]:
    """The most trusted domains first, so that of a page and its copies theirs is kept."""
    ordered = sorted(candidates, key=lambda candidate: (-candidate.boost, -candidate.score))
    return [ordered[at : at + size] for at in range(0, len(ordered), size)]


def by_host(candidates: Iterable[Candidate]) -> Mapping[str, list[Candidate]]:
    hosts: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        hosts.setdefault(urlsplit(candidate.url).netloc, []).append(candidate)
    return hosts


def _words_of(url: str) -> str:
    parts = urlsplit(url)
    return re.sub(r"[\W_]", " ", f"{parts.netloc} {unquote(parts.path)}")
