"""Which section gets which document: none in two sections while another fits (mission.md §7.4). Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Offer:
    """A passage that a section could have: what it is, of which document, and what it costs of the section's room."""

    key: str
    document: str
    tokens: int


def share_out(offers: Sequence[Sequence[Offer]], rooms: Sequence[int], taken: Collection[str] = ()) -> list[list[int]]:
    """For each section the places of its passages among its offers, best first.

    `offers`: each section's, best first; `rooms`: tokens each has; `taken`: documents that belong to no section here.
    Every document goes to the section that puts it highest, the earlier one of two; so each section has its own best
    documents, and the first does not take all. A section to which nothing is left takes over a document that is not
    the best one of its owner; where there is none, it shares, and passages that no other section has come first.
    """
    owner: dict[str, int] = {}
    left = list(rooms)
    chosen: list[list[int]] = [[] for _ in offers]
    for rank in range(max(map(len, offers), default=0)):
        for section, offered in enumerate(offers):
            if rank >= len(offered) or offered[rank].tokens > left[section]:
                continue
            document = offered[rank].document
            if document not in taken and owner.setdefault(document, section) == section:
                chosen[section].append(rank)
                left[section] -= offered[rank].tokens
    for section in range(len(offers)):
        if not chosen[section]:
            _take_over(section, offers, chosen, owner, left)
    shown = {offers[section][place].key for section, places in enumerate(chosen) for place in places}
    for section, offered in enumerate(offers):
        if not chosen[section]:
            chosen[section] = _shared(offered, left[section], shown)
            shown |= {offered[place].key for place in chosen[section]}
    return chosen


def _take_over(
    section: int,
    offers: Sequence[Sequence[Offer]],
    chosen: list[list[int]],
    owner: dict[str, int],
    left: list[int],
) -> None:
    """One document, the best that its owner can do without."""
    for offer in offers[section]:
        giver = owner.get(offer.document)
        if giver is None or offer.tokens > left[section]:
            continue
        had = chosen[giver]
        if offers[giver][had[0]].document == offer.document:
            continue
        owner[offer.document] = section
        chosen[giver] = [place for place in had if offers[giver][place].document != offer.document]
        for place, own in enumerate(offers[section]):
            if own.document == offer.document and own.tokens <= left[section]:
                chosen[section].append(place)
                left[section] -= own.tokens
        return


def _shared(offered: Sequence[Offer], room: int, shown: Collection[str]) -> list[int]:
    """What fits, passages that nobody shows first; each list in order of rank."""
    places = sorted(range(len(offered)), key=lambda place: (offered[place].key in shown, place))
    if any(offered[place].key not in shown and offered[place].tokens <= room for place in places):
        places = [place for place in places if offered[place].key not in shown]
    kept = []
    for place in places:
        if offered[place].tokens <= room:
            kept.append(place)
            room -= offered[place].tokens
    return kept
