"""A topic and pages that the tests of facts share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from graph.research import ResearchPage, Topic, TopicState
from graph.sqlite_research import SqliteResearch
from tests.places import quick_folder

TOPIC = Topic(
    slug="hollin-bridge", title="Hollin Bridge", category="bridges", focus="How it was built and what it cost"
)
BRIDGE = ResearchPage(
    url="https://wend.example/bridge",
    title="Hollin Bridge",
    published="2021-05-04",
    language="en",
    passages=(
        "Hollin Bridge\nHollin Bridge is a stone bridge across the Wend in the old town. It was built by Ada "
        "Marchetti between 1881 and 1884. Home; News; Contact; About; Links; Imprint.\n"
        "Who built Hollin Bridge in the end?",
        "Cost of the bridge\nThe bridge cost 2.5 million crowns and is 214 metres long. The Mayor of Hollin opened "
        "the bridge on 3 October 1884 before 12,500 people.",
        "The engineer Tomas Weld called the bridge “the finest work of our century”. However, its towers fell in the "
        "flood of 1907. Both towers were built again by the town of Hollin in 1911. "
        "We use cookies on this bridge site.",
    ),
)
COPY = ResearchPage(
    url="https://other.example/hollin",
    title="The bridge of Hollin",
    language="en",
    passages=(
        "Hollin Bridge is a stone bridge across the Wend in the old town.\nThe bridge cost 2.6 million crowns and is "
        "214 metres long. Its arches of Hollin Bridge are made of grey granite from the Toller quarry.",
    ),
)
ELSEWHERE = ResearchPage(
    url="https://food.example/soup",
    title="Soup of the day",
    passages=("Soup is made from leeks and potatoes, which are cooked for twenty minutes and then mashed.",),
)


@contextmanager
def stored(*pages: ResearchPage, topic: Topic = TOPIC) -> Iterator[SqliteResearch]:
    """A store with the topic, judged ok, and its pages."""
    with quick_folder() as folder, closing(SqliteResearch(folder / "research.db")) as store:
        store.add_topic(topic)
        for page in pages:
            store.put_page(topic.slug, page, [])
        store.move_topic(topic.slug, TopicState.RESEARCHING)
        store.move_topic(topic.slug, TopicState.OK)
        yield store
