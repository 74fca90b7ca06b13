"""What each embedding strategy does to the ranking of a forum's posts.

    uv run python -m tests.benchmarks.strategies

A made-up forum of 45 posts in three topics, and two kinds of questions: `own` are answered by words of the post
itself, `topic` name the topic's matter and are answered by a post that does not. Prints one JSON object: for each
strategy and kind the share of questions whose post is among the first five, and the mean reciprocal rank, of the vector
leg alone, with the bundled embedder. `llm-blurb` is left out: it wants a model. Made-up posts show which way a strategy
pulls, not how much it is worth to a forum: for that, `trivet eval` on one's own posts, with a home for each strategy.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from config.settings import Settings
from graph.knowledge import WIKI
from graph.model import Page, SourceItem
from ingestion.ingest import ingest
from ingestion.sources.discourse_posts import Excerpts, Forum, Topic
from server.backends import Backends
from server.open import open_backends

STRATEGIES = ("bare", "title", "title+op", "title+op+parent")
NEAR = 5
TOPICS = {
    "Sump pump keeps running after rain": [
        "The pump in my cellar does not stop any more, even hours after the rain has ended. What could it be?",
        "Look at the float first. On mine it had caught behind the discharge pipe and never came down.",
        "Is there a check valve? Without one the water in the pipe runs back and starts it again.",
        "I had the same noise at night until I fixed the pipe to the joists with rubber clamps.",
        "Which make is it? The cheap ones have a switch that welds itself shut within two years.",
        "It is a grey one from the discount store, bought four years ago with the house.",
        "Then I would not repair it. A cast iron one costs twice as much and lasts for fifteen years.",
        "How deep is the pit? If it is under forty centimetres it will start every few minutes.",
        "Thirty, I measured it this morning with a folding rule.",
        "There you have it. Dig it out to sixty and line it with a perforated barrel.",
        "I would rather look where all that water comes from; my gutter emptied right beside the wall.",
        "Seconded. Two metres of extra downspout and mine has been quiet since spring.",
        "Do put in a battery as well, the storm that brings the water also takes the current.",
        "Mine holds for seven hours on a car battery with a small inverter.",
        "It was the float, wedged behind the outlet just as you said. Thank you all, it is silent now.",
    ],
    "Sourdough turns out flat": [
        "My loaves spread like pancakes as soon as they leave the basket. The taste is fine. What do I do wrong?",
        "How warm is your kitchen? Above twenty-six degrees everything is ready in half the time.",
        "Poke it with a finger: if the dent stays, it has had too long.",
        "I would take less water at first, sixty-five per cent, and go up when it works.",
        "Rye or wheat? With more than a third of rye it will never stand up by itself.",
        "All wheat, the strong kind from the mill in the valley.",
        "Then fold it more, four times in the first two hours, until it holds its shape in the bowl.",
        "And leave it in the refrigerator overnight; cold it is much easier to score.",
        "Mine got better when I fed the jar twice a day for a week before I used it.",
        "Yes, it should double within four hours and float on water, else wait another day.",
        "A cast iron pot with the lid on for twenty minutes did more for me than all the folding.",
        "I preheat it for an hour at two hundred and fifty, then turn down to two hundred and thirty.",
        "Do not forget salt, two per cent. I left it out once and it collapsed altogether.",
        "The knife matters too. A dull one tears the skin and lets out what you have gained.",
        "Colder water and a night in the refrigerator did it. It rose as never before.",
    ],
    "Bicycle squeaks when climbing": [
        "Whenever I stand on the pedals uphill something squeaks under me, once each turn. Where do I look?",
        "Take off the pedals, clean the threads and put grease on them. Nine times in ten it is that.",
        "Check the bolts of the chainring as well, they want nine newton metres.",
        "Could be the saddle. Ride a while without sitting; if it is gone, grease the rails.",
        "I stand, so it cannot be the saddle.",
        "Then the bottom bracket. Put a finger on the frame while somebody turns the crank; you can feel it.",
        "Is it a pressed one? Those are known for it, mine was cured with a threaded adapter.",
        "Pressed, yes. It is a carbon frame of 2016.",
        "Press it out, clean the shell with alcohol and put retaining compound in, not grease.",
        "Before you buy tools for that: tighten the quick release. Mine squeaked from the rear axle.",
        "And the cassette lock ring, which goes loose after a winter on the trainer.",
        "In my case it was the plate in the sole of the shoe, I searched for a month.",
        "A drop of wax between the spokes where they cross is worth a try, too.",
        "The shop wanted eighty for the whole job, compound and new bearings included.",
        "It was the rear axle after all. One turn of the lever and there is peace.",
    ],
}
"""Title → posts; each answers the one before it."""
OWN = {
    "folding rule measured the depth of the pit": (0, 9),
    "float caught behind the discharge pipe": (0, 2),
    "battery with an inverter lasts seven hours": (0, 14),
    "downspout two metres longer at the gutter": (0, 12),
    "how many newton metres for chainring bolts": (2, 3),
    "retaining compound in the shell of a carbon frame": (2, 9),
    "wax where spokes cross": (2, 13),
    "how often to feed the jar before baking": (1, 9),
    "what if salt is left out": (1, 13),
    "preheat the pot at two hundred and fifty degrees": (1, 12),
}
TOPIC = {
    "noise of a sump pump at night": (0, 4),
    "replace a sump pump: how long does it last": (0, 7),
    "what solved the sump pump that does not stop": (0, 15),
    "sump pump when the electricity fails": (0, 13),
    "does flour with rye make sourdough bread flat": (1, 5),
    "sourdough in a hot kitchen": (1, 2),
    "how to know that a sourdough loaf is overproofed": (1, 3),
    "what helped the flat sourdough in the end": (1, 15),
    "bicycle squeak because of shoes": (2, 12),
    "what does it cost to have a squeaking bicycle repaired": (2, 14),
    "what was the cause of the bicycle squeaking uphill": (2, 15),
    "squeak of a bicycle from the bottom bracket: how to find out": (2, 6),
}
"""Question → topic and number of the post that answers it."""


@dataclass(slots=True)
class MadeUpForum:
    name: str = "forum"
    kind: str = "discourse"

    def read(self) -> Iterator[SourceItem]:
        forum, number = Forum("forum"), 0
        for place, (title, texts) in enumerate(TOPICS.items()):
            topic, excerpts = Topic(id=place, title=title, slug="x"), Excerpts()
            for at, text in enumerate(texts, 1):
                number += 1
                post = {"id": number, "post_number": at, "cooked": f"<p>{text}</p>", "reply_to_post_number": at - 1}
                item = forum.item(post, topic)
                excerpts.note(item)
                yield excerpts.in_thread(item, post) if isinstance(item, Page) else item


async def ranks(backends: Backends, questions: dict[str, tuple[int, int]]) -> list[int]:
    """Of each question's post among all; 0 where it was not found."""
    found: list[int] = []
    for question, (topic, number) in questions.items():
        dense = await backends.embedder.embed_question(question)
        best = await backends.vectors.search(WIKI, dense=dense, text=question, limit=45)
        chunks = backends.state.chunks([scored.key for scored in best.fused])
        urls = list(dict.fromkeys(chunks[scored.key].url for scored in best.fused))
        wanted = f"/t/x/{topic}/{number}"
        found.append(urls.index(wanted) + 1 if wanted in urls else 0)
    return found


async def measure() -> dict[str, dict[str, dict[str, float]]]:
    figures: dict[str, dict[str, dict[str, float]]] = defaultdict(dict)
    with tempfile.TemporaryDirectory() as folder:
        for strategy in STRATEGIES:
            settings = Settings.model_validate(
                {"home": Path(folder) / strategy, "ingestion": {"embedding_strategy": strategy}}
            )
            backends = await open_backends(settings, command="benchmark")
            try:
                report = await ingest(MadeUpForum(), backends.knowledge, settings.ingestion)
                assert report.added == 45, report
                for kind, questions in (("own", OWN), ("topic", TOPIC)):
                    places = await ranks(backends, questions)
                    figures[strategy][kind] = {
                        f"hit@{NEAR}": round(sum(0 < rank <= NEAR for rank in places) / len(places), 3),
                        "mrr": round(sum(1 / rank for rank in places if rank) / len(places), 3),
                    }
            finally:
                await backends.close()
    return figures


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measure()), indent=2))
