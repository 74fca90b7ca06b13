"""Candidates: merged, without copies, a page's share, with the way they were found."""

from __future__ import annotations

from datetime import date

import numpy as np
import pytest

from config.settings import SearchSettings
from graph.model import Chunk, Hit, PageType, SearchFilter, StoredChunk
from server.candidates import Candidate, day_of, matches, without_copies
from server.evidence import evidence_of, page_share, section_url
from server.web.leg import WebPassage
from tests.fake_state import FakeState


def stored(key: str, page: str = "w:p", text: str = "text", **more: object) -> StoredChunk:
    chunk = Chunk(id=key, page_id=page, ordinal=0, start=0, end=4, text=text, anchor=str(more.pop("anchor", "")))
    return StoredChunk(chunk=chunk, title="T", url="u", page_type=PageType.ARTICLE, source="w", **more)  # type: ignore[arg-type]


def candidate(key: str, page: str = "w:p", text: str = "text") -> Candidate:
    return Candidate(hit=Hit(key=key, score=1.0), chunk=stored(key, page, text))


def unit(*values: float) -> np.ndarray:
    vector = np.array(values, np.float32)
    return vector / np.linalg.norm(vector)


def test_near_copies_fold_into_the_better_ranked() -> None:
    vectors = {"a": unit(1, 0), "b": unit(1, 0.1), "c": unit(0, 1)}
    kept = without_copies([candidate("a"), candidate("b"), candidate("c")], vectors, 0.92)
    assert [c.hit.key for c in kept] == ["a", "c"]
    assert kept[0].hit.provenance.duplicates == ("b",)


def test_near_vectors_of_other_words_are_no_copies() -> None:
    """A model that knows no Arabic gives all Arabic texts nearly the same vector."""
    texts = {
        "a": "ولد الكاتب في باريس",
        "b": "سقط جدار برلين عام 1989",
    }
    vectors = {"a": unit(1, 0), "b": unit(1, 0.01)}
    kept = without_copies([candidate(key, text=text) for key, text in texts.items()], vectors, 0.92)
    assert [c.hit.key for c in kept] == ["a", "b"]


def test_texts_without_vectors_are_compared_by_their_words() -> None:
    text = "the lamp was lit on the first night of the autumn storm by the keeper"
    passages = [WebPassage(url=f"https://x/{n}", title="t", text=text) for n in range(2)]
    found = [Candidate(hit=Hit(key=p.url, score=1.0), passage=p) for p in passages]
    assert len(without_copies([*found, candidate("a", text="something else")], {}, 0.92)) == 2


def test_a_page_takes_its_share() -> None:
    found = [candidate("a"), candidate("b"), candidate("c"), candidate("d", page="w:q")]
    assert [c.hit.key for c in page_share(found, share=2)] == ["a", "b", "d"]


def test_filters() -> None:
    chunk = stored("a", language="fr", categories=("Light",))
    assert matches(chunk, SearchFilter())
    assert matches(chunk, SearchFilter(languages=("fr",), categories=("Light", "Sea"), sources=("w",)))
    assert not matches(chunk, SearchFilter(sources=("other",)))
    assert not matches(chunk, SearchFilter(categories=("Sea",)))
    assert not matches(chunk, SearchFilter(page_types=(PageType.LIST,)))


@pytest.mark.parametrize(
    ("modified", "day"),
    [
        ("2026-01-31T23:30:00Z", date(2026, 1, 31)),
        ("2026-01-31T23:30:00-05:00", date(2026, 2, 1)),
        ("2026-01-31T23:30:00.123456", date(2026, 1, 31)),
        ("2026-01-31", date(2026, 1, 31)),
        ("", None),
        ("last week", None),
        ("0001-01-01T00:00:00+14:00", None),
    ],
)
def test_a_pages_day_is_that_in_utc(modified: str, day: date | None) -> None:
    assert day_of(modified) == day


def test_a_citation_leads_to_the_section() -> None:
    assert section_url(stored("a", anchor="The_tower")) == "u#The_tower"
    assert section_url(stored("a", anchor='a" b')) == "u#a%22%20b"
    assert section_url(stored("a")) == "u"


def test_web_evidence_keeps_its_url_and_number() -> None:
    passage = WebPassage(url="https://x/1", title="X", text="seen", published="2020-01-01")
    web = Candidate(hit=Hit(key="https://x/1", score=0.5), passage=passage)
    (evidence,) = evidence_of([web], FakeState(), SearchSettings(), limit=6)
    assert (evidence.number, evidence.origin, evidence.url, evidence.modified) == (
        1,
        "web",
        "https://x/1",
        "2020-01-01",
    )
