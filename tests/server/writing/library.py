"""A search that is scripted, with many documents, and a model that writes from what it is shown."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from graph.model import ChatMessage, Evidence
from graph.names import words
from server.backends import Backends
from server.model import Question, SearchResult
from server.writing.model import SectionResult, WritingEvent, WritingRequest
from server.writing.write import write

LAMPS = WritingRequest(topic="Lighthouse lamps", kind="research")
FACT = re.compile(r"(Lamp \w+ burned \d+ litres of oil each night\.)")
ENTRY = re.compile(r"evidence (\d+)>>>\n(.*?)\n<<<", re.DOTALL)


def lamp(number: int) -> Evidence:
    """One document with one fact."""
    return Evidence(
        number=number,
        key=f"lamp-{number}",
        title=f"Lamp {number}",
        url=f"https://wiki.example/Lamp_{number}#Use",
        text=f"Lamp L{number} burned {100 + number} litres of oil each night. It stood on a rock far out at sea.",
        page_id=f"wiki:Lamp {number}",
    )


@dataclass(slots=True)
class Library:
    """Gives as many documents as are asked for, always the same to the same question; none to `unknown` words."""

    documents: Sequence[Evidence] = tuple(lamp(n) for n in range(1, 81))
    unknown: str = ""
    answers: dict[str, Sequence[Evidence]] = field(default_factory=dict)
    """Words of a question → what is found for it."""
    asked: list[Question] = field(default_factory=list)
    fails: dict[str, Exception] = field(default_factory=dict)

    async def __call__(self, question: Question, backends: Backends) -> SearchResult:
        self.asked.append(question)
        for part, error in self.fails.items():
            if part in question.text:
                raise error
        found = next((given for part, given in self.answers.items() if part in question.text), None)
        if found is None:
            start = sum(map(ord, "".join(words(question.text)))) % 7
            found = self.documents[start : start + question.limit] or self.documents
        known = not self.unknown or self.unknown not in question.text
        return SearchResult(
            question=question.text,
            language="en",
            keywords=(),
            evidence=tuple(replace(item, number=n) for n, item in enumerate(found, 1)) if known else (),
            legs={"vector": "ok", "web": "off"},
            zone="normal" if known else "abstain",
        )


def scribe(messages: Sequence[ChatMessage]) -> str:
    """Every fact of the evidence, with its number."""
    return " ".join(
        f"{fact} [[{number}]]" for number, text in ENTRY.findall(messages[1].content) for fact in FACT.findall(text)
    )


def heading_of(messages: Sequence[ChatMessage]) -> str:
    found = re.search(r"Write the section “(.*?)”", messages[1].content)
    assert found is not None
    return found[1]


def only(heading: str, says: Callable[[Sequence[ChatMessage]], str]) -> Callable[[Sequence[ChatMessage]], str]:
    """A model that writes one section otherwise."""
    return lambda messages: says(messages) if heading_of(messages) == heading else scribe(messages)


async def events_of(request: WritingRequest, on: Backends, done: Sequence[SectionResult] = ()) -> list[WritingEvent]:
    return [event async for event in write(request, on, done=done)]
