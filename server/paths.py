"""Which entities led to a candidate, and over which pages, as the graph leg went (mission.md §4.9)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from graph.model import SearchFilter
from graph.protocols import StateStore
from server.candidates import Candidate, matches
from server.graph_leg import Exploration, path_to

UNNAMED = "…"
"""In a path, what the filter leaves out."""


def with_paths(
    candidates: Sequence[Candidate], exploration: Exploration | None, state: StateStore, where: SearchFilter
) -> list[Candidate]:
    """Candidates that say from which entities, over which pages, the graph came to them.

    The walk goes over all pages; those that the filter leaves out, or that are no longer live, are not named.
    """
    if exploration is None:
        return list(candidates)
    paths = {c.hit.key: path_to(exploration, c.hit.key) for c in candidates if c.chunk is not None}
    places = {step for _, steps in paths.values() for step in steps}
    titles = {key: stored.title for key, stored in state.chunks(sorted(places)).items() if matches(stored, where)}
    explained = []
    for candidate in candidates:
        entities, steps = paths.get(candidate.hit.key, ((), ()))
        named = [*_named(steps, titles)]
        if candidate.chunk is not None and named:
            named.append(candidate.chunk.title)
        shown = tuple(name for place, name in enumerate(named) if place == 0 or name != named[place - 1])
        provenance = replace(candidate.hit.provenance, entities=entities, path=shown)
        explained.append(replace(candidate, hit=replace(candidate.hit, provenance=provenance)))
    return explained


def _named(steps: Sequence[str], titles: Mapping[str, str]) -> Iterator[str]:
    """`steps`: names of entities with ids of chunks between them. An entity with no page to be named on either side is
    none that this reader could know."""
    for place, step in enumerate(steps):
        if place % 2:
            yield titles.get(step, UNNAMED)
        else:
            beside = [chunk for chunk in steps[max(0, place - 1) : place + 2 : 2] if chunk in titles]
            yield step if beside or place in (0, len(steps) - 1) else UNNAMED
