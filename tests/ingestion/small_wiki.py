"""A wiki of a few pages held in memory, for tests of ingestion."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from config.settings import IngestionSettings
from graph.knowledge import Knowledge
from graph.model import Link, Page, PageType, SourceItem
from graph.recognizer import Recognizer
from tests.fake_state import FakeState
from tests.fakes import FakeGraph, FakeVectors, HashEmbedder

SETTINGS = IngestionSettings(chunk_tokens=64, batch_chunks=2)


@dataclass(slots=True)
class ListSource:
    """Yields what it is given; raises what it is given at its end."""

    items: Sequence[SourceItem]
    name: str = "w"
    kind: str = "list"
    error: Exception | None = None

    def read(self) -> Iterator[SourceItem]:
        yield from self.items
        if self.error is not None:
            raise self.error


def page(title: str, text: str = "", **more: object) -> Page:
    return Page(source="w", key=title, title=title, text=text, language="en", **more)  # type: ignore[arg-type]


def redirect(title: str, target: str) -> Page:
    return page(title, page_type=PageType.REDIRECT, redirect_to=target)


def fake_knowledge() -> Knowledge:
    """Everything in memory; names are found by their capitals."""
    return Knowledge(
        state=FakeState(),
        vectors=FakeVectors(),
        graph=FakeGraph(),
        embedder=HashEmbedder(),
        recognizer=Recognizer(()),
    )


ISLAND = (
    page("Mercury (ship)", "The Mercury was built in Port Vale by Ada Holm. It sank near Gull Rock."),
    page("Mercury (planet)", "Mercury is the planet nearest to the Sun. Ada Holm never saw it."),
    page(
        "Ada Holm",
        "Ada Holm was born at the harbour. Her brother was the keeper Jon Holm.",
        links=(Link(target="Jon Holm"), Link(target="Vale", shown="the harbour")),
    ),
    page("Port Vale", "Port Vale is a harbour. The ship Mercury lay there.", aliases=("The Vale",)),
    page("Gull Rock", "Gull Rock is a reef. The keeper of Gull Rock Light was Jon Holm."),
    page("Gull Rock Light", "A lighthouse on a reef, kept by Jon."),
    redirect("Vale", "Port Vale"),
    redirect("Jon", "Jon Holm"),
    redirect("Nowhere", "No Such Page"),
)
