"""Documents shared out among sections: what holds for all offers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from server.writing.assign import Offer, share_out

OFFER = st.tuples(st.integers(0, 11), st.integers(0, 1), st.integers(1, 400)).map(
    lambda drawn: Offer(f"{drawn[0]}-{drawn[1]}", f"document {drawn[0]}", drawn[2])
)
OFFERS = st.lists(st.lists(OFFER, max_size=12, unique_by=lambda offer: offer.key), max_size=6)
ROOMS = st.lists(st.integers(0, 1900), min_size=6, max_size=6)
TAKEN = st.sets(st.integers(0, 11).map(lambda n: f"document {n}"), max_size=4)


@given(OFFERS, ROOMS, TAKEN)
def test_no_section_has_more_than_its_room_or_anything_twice(
    offers: list[list[Offer]], rooms: list[int], taken: set[str]
) -> None:
    chosen = share_out(offers, rooms[: len(offers)], taken)
    assert len(chosen) == len(offers)
    for offered, room, places in zip(offers, rooms, chosen, strict=False):
        assert sum(offered[place].tokens for place in places) <= room
        assert len(set(places)) == len(places)


@given(OFFERS, ROOMS, TAKEN)
def test_no_document_is_in_two_sections_while_another_fits(
    offers: list[list[Offer]], rooms: list[int], taken: set[str]
) -> None:
    chosen = share_out(offers, rooms[: len(offers)], taken)
    shown = [{offers[n][place].document for place in places} for n, places in enumerate(chosen)]
    for n, documents in enumerate(shown):
        elsewhere = taken.union(*(other for m, other in enumerate(shown) if m != n))
        if documents & elsewhere:
            # Either it shares nothing but what others came to share with it, or it had nothing else.
            free = [o for o in offers[n] if o.document not in elsewhere and o.tokens <= rooms[n]]
            sharers = [m for m, other in enumerate(shown) if m != n and other & documents]
            assert not free or all(_has_no_other(offers[m], rooms[m], shown, taken, m) for m in sharers)


def _has_no_other(offered: list[Offer], room: int, shown: list[set[str]], taken: set[str], own: int) -> bool:
    elsewhere = taken.union(*(other for m, other in enumerate(shown) if m != own))
    return not any(o.document not in elsewhere and o.tokens <= room for o in offered)


@given(OFFERS, ROOMS, TAKEN)
def test_a_section_is_never_left_empty_while_something_fits(
    offers: list[list[Offer]], rooms: list[int], taken: set[str]
) -> None:
    chosen = share_out(offers, rooms[: len(offers)], taken)
    for offered, room, places in zip(offers, rooms, chosen, strict=False):
        assert bool(places) == any(offer.tokens <= room for offer in offered)


def test_each_section_has_its_own_best_documents() -> None:
    a, b, c, d = (Offer(name, name, 100) for name in "abcd")
    assert share_out([[a, b, c, d], [b, a, c, d]], [1000, 1000]) == [[0, 2, 3], [0]]


def test_sections_that_must_share_a_document_show_different_passages_of_it() -> None:
    first, second = Offer("1", "same", 100), Offer("2", "same", 100)
    assert share_out([[first], [first, second]], [1000, 1000]) == [[0], [1]]


def test_documents_of_sections_that_are_done_are_not_used_again() -> None:
    a, b = Offer("a", "a", 100), Offer("b", "b", 100)
    assert share_out([[a, b]], [1000], {"a"}) == [[1]]
    assert share_out([[a]], [1000], {"a"}) == [[0]]
